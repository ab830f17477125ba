"""HunyuanVideo FP8-weight single-block linear1 (W8A16) with split GELU epilogue

The task is in /task/instruction.md, a correct but slow version in /task/reference.h.
"""


def kbench_run(M, C, FF, x, w8, ws, b1, qkv, g):
    """Writes nothing yet: it loads and scores 0. To be written in place: qkv, g (PyTorch tensors on the task's device)."""
