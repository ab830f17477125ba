"""Packed variable-length causal GQA prefill

The task is in /task/instruction.md, a correct but slow version in /task/reference.h.
"""


def kbench_run(U, NS, HQ, HK, D, TT, q, k, v, cu, o, lse):
    """Writes nothing yet: it loads and scores 0. To be written in place: o, lse (PyTorch tensors on the task's device)."""
