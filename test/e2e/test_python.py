"""A submission in Python on the cpu device: graded where the base image has PyTorch, else a fault of ours that names the fix."""
import os
import pathlib
import subprocess
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1] / "support")]
import kbenchd  # noqa: E402

BASE = os.environ.get("KBENCH_BASE", "kbench/base:cpu")
SCAN = """import torch


def kbench_run(N, x, head, out, **_):
    if N < 1: return 0
    total = torch.cumsum(x, 0, dtype=torch.int64) - x          # exclusive, over all
    starts = torch.cummax(torch.where(head != 0, torch.arange(N), torch.zeros(N, dtype=torch.int64)), 0).values
    out.copy_((total - total[starts]).to(torch.int32))
"""


def has_torch():
    found = subprocess.run(["docker", "run", "--rm", "--network", "none", BASE, "python3", "-c", "import torch"],
                           env={**os.environ, "DOCKER_HOST": kbenchd.engine_host()}, capture_output=True)
    return found.returncode == 0


class Python(unittest.TestCase):
    def test_with_pytorch_it_is_graded_and_without_it_is_not_the_submitters_fault(self):
        with kbenchd.Kbenchd(settings={"grader": {"base_cpu": BASE}}) as daemon:
            found = daemon.wait(daemon.submit({"solution.py": SCAN}, language="python"))
            if has_torch():
                self.assertEqual((found["state"], found["verdict"]), ("done", "correct"), found)
                self.assertGreater(found["reward"], 0)
            else:
                self.assertEqual((found["state"], found["verdict"], found["attempt"]), ("failed", "infra_error", 1), found)
                self.assertIn("scripts/build-base --python", found["reason"])


if __name__ == "__main__":
    unittest.main()
