"""RWKV-4 WKV with running maximum and receptance gate

The task is in /task/instruction.md, a correct but slow version in /task/reference.h.
"""


def kbench_run(B, T, C, r, k, v, w, u, y):
    """Writes nothing yet: it loads and scores 0. To be written in place: y (PyTorch tensors on the task's device)."""
