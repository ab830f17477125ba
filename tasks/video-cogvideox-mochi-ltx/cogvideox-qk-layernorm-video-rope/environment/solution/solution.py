"""CogVideoX QK LayerNorm with 3D RoPE on video tokens only

The task is in /task/instruction.md, a correct but slow version in /task/reference.h.
"""


def kbench_run(B, T, GF, GH, GW, H, D8, eps, theta, qkv, wq, cq, wk, ck, q, k, v):
    """Writes nothing yet: it loads and scores 0. To be written in place: q, k, v (PyTorch tensors on the task's device)."""
