"""Dynamic FP8 quantised paged append with one scale per (token, head)

The task is in /task/instruction.md, a correct but slow version in /task/reference.h.
"""


def kbench_run(N, Hk, D, NB, BS, k, v, slot, kc, vc, ks, vs):
    """Writes nothing yet: it loads and scores 0. To be written in place: kc, vc, ks, vs (PyTorch tensors on the task's device)."""
