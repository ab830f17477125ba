"""DPM-Solver++(2M) SDE multistep update for a flow model, with data-prediction history

The task is in /task/instruction.md, a correct but slow version in /task/reference.h.
"""


def kbench_run(B, M, x, v, m1, nz, sig):
    """Writes nothing yet: it loads and scores 0. To be written in place: x, m1 (PyTorch tensors on the task's device)."""
