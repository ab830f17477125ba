"""Ragged grouped GEMM over expert-sorted rows

The task is in /task/instruction.md, a correct but slow version in /task/reference.h.
"""


def kbench_run(R, H, N, E, X, offs, W, Y):
    """Writes nothing yet: it loads and scores 0. To be written in place: Y (PyTorch tensors on the task's device)."""
