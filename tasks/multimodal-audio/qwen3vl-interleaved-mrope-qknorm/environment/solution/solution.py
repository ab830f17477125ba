"""Qwen3-VL per-head QK RMSNorm + interleaved multimodal RoPE, in place

The task is in /task/instruction.md, a correct but slow version in /task/reference.h.
"""


def kbench_run(N, Hq, Hk, D, s1, s2, eps, q, k, gq, gk, pos, inv):
    """Writes nothing yet: it loads and scores 0. To be written in place: q, k (PyTorch tensors on the task's device)."""
