"""Wan VAE channel RMS norm (L2-normalise over C) + SiLU in NCTHW

The task is in /task/instruction.md, a correct but slow version in /task/reference.h.
"""


def kbench_run(B, C, T, H, W, eps, x, gamma, y):
    """Writes nothing yet: it loads and scores 0. To be written in place: y (PyTorch tensors on the task's device)."""
