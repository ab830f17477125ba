"""Sparse VideoGen2: stable counting sort of tokens by cluster label and gather of K and V

The task is in /task/instruction.md, a correct but slow version in /task/reference.h.
"""


def kbench_run(H, N, D, K, k, v, lab, kp, vp, off, perm):
    """Writes nothing yet: it loads and scores 0. To be written in place: kp, vp, off, perm (PyTorch tensors on the task's device)."""
