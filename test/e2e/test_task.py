"""A task without the daemon: plain docker, as the design's section 6 shows it."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1] / "support")]
import kbenchd  # noqa: E402
import programs  # noqa: E402

ENV = {**os.environ, "DOCKER_HOST": kbenchd.engine_host(), "DOCKER_BUILDKIT": "0"}
# A task of one more family: a size that is large enough to be timed, what makes of its naive submission a wrong one, and the output that is
# wrong then.
MISTAKES = {"kv-cache-paging/fused-rope-paged-append-nhd": ({"N": 300}, "if (slot >= 0)", "if (slot >= 0 && n > 0)", "pages")}
RMSNORM = (kbenchd.ROOT / "test/redteam/common/rmsnorm.h").read_text()


class Task(unittest.TestCase):
    def graded(self, task, files, folder=None):
        """reward.json and details.json of the untouched environment image, or of one with these files in /app/solution."""
        folder = folder or kbenchd.ROOT / "tasks" / task
        image = "kbench-e2e-" + task.rpartition("/")[2]
        built = subprocess.run(["docker", "build", "-q", "-t", image, folder / "environment"], env=ENV, capture_output=True, text=True)
        self.assertEqual(built.returncode, 0, built.stderr)
        with tempfile.TemporaryDirectory() as work:
            os.chmod(work, 0o755)
            logs, solution = pathlib.Path(work, "logs"), pathlib.Path(work, "solution")
            logs.mkdir()
            solution.mkdir()
            for name, text in files.items():
                (solution / name).write_text(text)
            mounts = ["-v", f"{folder}/tests:/tests:ro", "-v", f"{logs}:/logs/verifier"]
            if files:
                mounts += ["-v", f"{solution}:/app/solution:ro"]
            ran = subprocess.run(["docker", "run", "--rm", *mounts, image, "bash", "/tests/test.sh"], env=ENV, capture_output=True, text=True,
                                 timeout=300)
            self.assertTrue((logs / "reward.json").exists(), ran.stdout + ran.stderr)
            self.assertIn((logs / "reward.json").read_text().strip(), ran.stdout)   # a container that is gone leaves that
            return json.loads((logs / "reward.json").read_text()), json.loads((logs / "details.json").read_text())

    def check(self, task, files):
        reward, details = self.graded(task, {})
        self.assertEqual(reward, {"reward": 0}, details)
        reward, details = self.graded(task, files)
        self.assertEqual(list(reward), ["reward"])
        self.assertGreater(reward["reward"], 0, details)
        self.assertEqual(details["verdict"], "correct")

    def test_scan(self):
        self.check(kbenchd.SCAN, programs.CORRECT)

    def test_rmsnorm(self):
        self.check(kbenchd.RMSNORM, {"rmsnorm.h": RMSNORM, "solution.cpp": '#include "rmsnorm.h"\nextern "C" int kbench_run(const kbench_args* a, '
                                     'kbench_stream) { return rmsnorm(*a, {}); }\n'})

    def test_an_in_out_tensor(self):
        for task, (dims, right, wrong, output) in MISTAKES.items():
            with self.subTest(task), tempfile.TemporaryDirectory() as work:
                os.chmod(work, 0o755)
                folder, name = pathlib.Path(work, "task"), task.rpartition("/")[2]
                shutil.copytree(kbenchd.ROOT / "tasks" / task, folder)
                for path in folder.glob("*/task.json"):
                    problem = json.loads(path.read_text())
                    problem["test"] = [{"name": "test0", "dims": {**problem["test"][0]["dims"], **dims}}]
                    path.write_text(json.dumps(problem))
                naive = (kbenchd.ROOT / "test/submissions" / name / "naive/solution.cpp").read_text()
                self.assertEqual(naive.count(right), 1)
                reward, details = self.graded(task, {"solution.cpp": naive}, folder)
                self.assertGreater(reward["reward"], 0, details)
                reward, details = self.graded(task, {"solution.cpp": naive.replace(right, wrong)}, folder)
                self.assertEqual((reward, details["verdict"]), ({"reward": 0}, "incorrect"), details)
                self.assertIn(f": {output}: ", details["reason"])


if __name__ == "__main__":
    unittest.main()
