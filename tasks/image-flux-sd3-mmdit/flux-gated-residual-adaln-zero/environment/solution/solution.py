"""FLUX gated residual plus AdaLN-Zero re-normalisation

The task is in /task/instruction.md, a correct but slow version in /task/reference.h.
"""


def kbench_run(B, L, C, eps, x, a, mod, x1, y):
    """Writes nothing yet: it loads and scores 0. To be written in place: x1, y (PyTorch tensors on the task's device)."""
