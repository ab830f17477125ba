"""Decode GEMV over a stack of MXFP4 weight matrices with bf16 activations

The task is in /task/instruction.md, a correct but slow version in /task/reference.h.
"""


def kbench_run(L, M, N, K, X, W, S, Y):
    """Writes nothing yet: it loads and scores 0. To be written in place: Y (PyTorch tensors on the task's device)."""
