"""Wan CausalConv3d 3x3x3 with one-sided zero temporal padding

The task is in /task/instruction.md, a correct but slow version in /task/reference.h.
"""


def kbench_run(B, Ci, Co, T, H, W, x, w, b, y):
    """Writes nothing yet: it loads and scores 0. To be written in place: y (PyTorch tensors on the task's device)."""
