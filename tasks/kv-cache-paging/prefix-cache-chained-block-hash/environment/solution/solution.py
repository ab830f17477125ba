"""Prefix-cache block hashing: chained polynomial hash of token blocks modulo 2^64

The task is in /task/instruction.md, a correct but slow version in /task/reference.h.
"""


def kbench_run(B, S, BS, tok, seed, key):
    """Writes nothing yet: it loads and scores 0. To be written in place: key (PyTorch tensors on the task's device)."""
