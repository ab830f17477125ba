"""{{title}}

The task is in /task/instruction.md, a correct but slow version in /task/reference.h.
"""


def kbench_run({{python_parameters}}):
    """Writes nothing yet: it loads and scores 0. To be written in place: {{python_outputs}} ({{python_tensors_are}})."""
