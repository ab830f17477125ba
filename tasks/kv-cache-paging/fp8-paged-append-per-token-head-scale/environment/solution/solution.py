"""Dynamic FP8 quantised paged append with one scale per (token, head)

The task is in /task/instruction.md, a correct but slow version in /task/reference.h.
"""


def run(N, Hk, D, NB, BS, k, v, slot, kc, vc, ks, vs):
    """Writes nothing yet: it loads and scores 0. Fill kc, vc, ks, vs in place (tensors on the task's device)."""
