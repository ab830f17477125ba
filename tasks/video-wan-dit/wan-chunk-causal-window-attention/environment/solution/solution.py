"""Chunk-causal video attention with a sliding chunk window and a sink chunk

The task is in /task/instruction.md, a correct but slow version in /task/reference.h.
"""


def kbench_run(B, H, NC, CS, WC, D, q, k, v, o):
    """Writes nothing yet: it loads and scores 0. To be written in place: o (PyTorch tensors on the task's device)."""
