"""Packed variable-length causal GQA prefill

The task is in /task/instruction.md, a correct but slow version in /task/reference.h.
"""


def run(U, NS, HQ, HK, D, TT, q, k, v, cu, o, lse):
    """Writes nothing yet: it loads and scores 0. Fill o, lse in place (tensors on the task's device)."""
