"""Wan2.2-TI2V / diffusion-forcing modulation with a timestep per latent frame

The task is in /task/instruction.md, a correct but slow version in /task/reference.h.
"""


def kbench_run(B, GF, S, U, C, eps, x, table, e, tidx, y):
    """Writes nothing yet: it loads and scores 0. To be written in place: y (PyTorch tensors on the task's device)."""
