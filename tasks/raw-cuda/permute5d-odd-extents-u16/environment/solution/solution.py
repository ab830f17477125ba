"""Five-dimensional permutation of 16-bit elements with odd extents

The task is in /task/instruction.md, a correct but slow version in /task/reference.h.
"""


def kbench_run(B, C, D, H, Wd, x, out):
    """Writes nothing yet: it loads and scores 0. To be written in place: out (PyTorch tensors on the task's device)."""
