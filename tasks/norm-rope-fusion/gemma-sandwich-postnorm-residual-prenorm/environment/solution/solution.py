"""Gemma sandwich norm: post-norm of a branch, residual add, next pre-norm, (1+w) weights

The task is in /task/instruction.md, a correct but slow version in /task/reference.h.
"""


def kbench_run(M, C, eps, x, res, w1, w2, h, y):
    """Writes nothing yet: it loads and scores 0. To be written in place: h, y (PyTorch tensors on the task's device)."""
