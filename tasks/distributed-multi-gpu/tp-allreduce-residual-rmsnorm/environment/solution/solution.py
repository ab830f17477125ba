"""Tensor-parallel all-reduce fused with residual add and RMSNorm

The task is in /task/instruction.md, a correct but slow version in /task/reference.h.
"""


def kbench_run(TT, D, eps, part, res, w, res_out, y):
    """Writes nothing yet: it loads and scores 0. To be written in place: res_out, y (lists of PyTorch tensors, one a GPU)."""
