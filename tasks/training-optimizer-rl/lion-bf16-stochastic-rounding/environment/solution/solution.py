"""Lion on bf16 parameters with stochastic rounding from supplied random bits

The task is in /task/instruction.md, a correct but slow version in /task/reference.h.
"""


def kbench_run(N, b1, b2, lr, wd, P, m, G, rnd):
    """Writes nothing yet: it loads and scores 0. To be written in place: P, m (PyTorch tensors on the task's device)."""
