"""Gradient cast to E5M2 with transposed copy, bias gradient and amax in one pass

The task is in /task/instruction.md, a correct but slow version in /task/reference.h.
"""


def kbench_run(M, N, G, scale, Q, QT, dbias, amax):
    """Writes nothing yet: it loads and scores 0. To be written in place: Q, QT, dbias, amax (PyTorch tensors on the task's device)."""
