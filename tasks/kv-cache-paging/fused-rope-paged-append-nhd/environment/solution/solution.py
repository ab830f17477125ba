"""Fused neox RoPE on Q and K with paged K/V append (NHD pages)

The task is in /task/instruction.md, a correct but slow version in /task/reference.h.
"""


def kbench_run(N, Hq, Hk, D, P, NB, BS, qkv, pos, cs, slot, pages, qo):
    """Writes nothing yet: it loads and scores 0. To be written in place: pages, qo (PyTorch tensors on the task's device)."""
