"""Backward of LayerNorm modulation with per-sample shift and scale gradients

The task is in /task/instruction.md, a correct but slow version in /task/reference.h.
"""


def kbench_run(B, N, C, eps, x, sc, dy, dx, dsc, dsh):
    """Writes nothing yet: it loads and scores 0. To be written in place: dx, dsc, dsh (PyTorch tensors on the task's device)."""
