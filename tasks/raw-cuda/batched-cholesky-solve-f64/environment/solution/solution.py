"""Batched small Cholesky factorisation, solve and log-determinant in fp64

The task is in /task/instruction.md, a correct but slow version in /task/reference.h.
"""


def kbench_run(B, n, A, rhs, L, x, logdet):
    """Writes nothing yet: it loads and scores 0. To be written in place: L, x, logdet (PyTorch tensors on the task's device)."""
