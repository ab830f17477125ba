"""Gated linear attention backward (dq, dk, dv, dgate)

The task is in /task/instruction.md, a correct but slow version in /task/reference.h.
"""


def kbench_run(B, T, H, K, V, q, k, v, g, dO, dq, dk, dv, dg):
    """Writes nothing yet: it loads and scores 0. To be written in place: dq, dk, dv, dg (PyTorch tensors on the task's device)."""
