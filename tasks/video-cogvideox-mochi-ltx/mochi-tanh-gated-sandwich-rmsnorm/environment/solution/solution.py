"""Mochi tanh-gated residual of a normalised branch followed by a modulated RMSNorm

The task is in /task/instruction.md, a correct but slow version in /task/reference.h.
"""


def kbench_run(B, N, C, eps, x, r, gate, scale, x1, y):
    """Writes nothing yet: it loads and scores 0. To be written in place: x1, y (PyTorch tensors on the task's device)."""
