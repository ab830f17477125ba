"""Whole Llama-3.2-1B decode step

The task is in /task/instruction.md, a correct but slow version in /task/reference.h.
"""


def kbench_run(B, NL, DM, HQ, HK, HD, FF, V, CT, eps, tok, E, g1, g2, gf, Wqkv, Wo, Wgu, Wd, kc, vc, invf, logits, kn, vn):
    """Writes nothing yet: it loads and scores 0. To be written in place: logits, kn, vn (PyTorch tensors on the task's device)."""
