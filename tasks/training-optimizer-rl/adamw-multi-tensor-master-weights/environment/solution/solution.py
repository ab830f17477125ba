"""Multi-tensor AdamW with fp32 master weights, per-tensor hyper-parameters and bf16 model copy

The task is in /task/instruction.md, a correct but slow version in /task/reference.h.
"""


def kbench_run(N, NT, b1, b2, eps, bc1, bc2, G, P, m, v, off, lr, wd, gs, Pb):
    """Writes nothing yet: it loads and scores 0. To be written in place: P, m, v, Pb (PyTorch tensors on the task's device)."""
