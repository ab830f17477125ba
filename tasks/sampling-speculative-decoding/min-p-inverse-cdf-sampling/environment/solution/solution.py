"""Temperature and min-p sampling in vocabulary order

The task is in /task/instruction.md, a correct but slow version in /task/reference.h.
"""


def kbench_run(B, V, logits, temp, minp, u, token, mass, nkeep):
    """Writes nothing yet: it loads and scores 0. To be written in place: token, mass, nkeep (PyTorch tensors on the task's device)."""
