"""What somebody who works on a task has without the daemon: kbench-verify measure in the task's image, and what `kbench task start` lays out."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1] / "support")]
import kbenchd  # noqa: E402
import programs  # noqa: E402

BIN = pathlib.Path(os.environ.get("KBENCH_BIN") or kbenchd.ROOT / "build/dev/bin")
# No kbench-verify in the PATH: what is laid out goes to the base image then.
ENV = {**os.environ, "DOCKER_HOST": kbenchd.engine_host(), "DOCKER_BUILDKIT": "0", "PATH": "/usr/local/bin:/usr/bin:/bin"}
BASE = ENV.setdefault("KBENCH_BASE", "kbench/base:cpu")
IMAGE = "kbench-e2e-measure"
MEASURE = "kbench-verify measure --task /task --submission /app/solution --device cpu"


class Measure(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        work = tempfile.TemporaryDirectory()   # 0700, as a home may be
        cls.addClassCleanup(work.cleanup)
        cls.work = pathlib.Path(work.name)
        kbenchd.copy_tasks(cls.work / "tasks")
        built = subprocess.run(["docker", "build", "-q", "-t", IMAGE, "--build-arg", f"KBENCH_BASE={BASE}",
                                cls.work / "tasks" / kbenchd.SCAN / "environment"], env=ENV, capture_output=True, text=True)
        if built.returncode != 0:
            raise RuntimeError(built.stderr)
        cls.addClassCleanup(subprocess.run, ["docker", "rmi", IMAGE], env=ENV, capture_output=True)

    def run_it(self, *command, cwd=None):
        return subprocess.run(command, env=ENV, cwd=cwd, capture_output=True, text=True, timeout=300)

    def in_image(self, command, files):
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.work))
        for name, text in files.items():
            (folder / name).write_text(text)
        return self.run_it("docker", "run", "--rm", "--network", "none", "-v", f"{folder}:/app/solution:ro", IMAGE, "bash", "-c", command)

    def test_a_correct_kernel_is_timed(self):
        ran = self.in_image(MEASURE, programs.CORRECT)
        self.assertEqual(ran.returncode, 0, ran)
        self.assertRegex(ran.stdout, r"(?m)^correct$")
        self.assertGreater(float(re.search(r"(?m)^reward (\S+)", ran.stdout)[1]), 0, ran.stdout)

    def test_a_wrong_kernel_is_told_why(self):
        ran = self.in_image(MEASURE, programs.INCORRECT)
        self.assertEqual(ran.returncode, 0, ran)
        self.assertRegex(ran.stdout, r"(?m)^incorrect")
        self.assertIn("out", ran.stdout)
        self.assertNotRegex(ran.stdout, r"(?m)^reward [1-9]")

    def test_a_kernel_that_does_not_compile_is_shown_the_compilers_words(self):
        ran = self.in_image(MEASURE, programs.COMPILE_ERROR)
        self.assertIn("compile_error", ran.stdout, ran)
        self.assertIn("was not declared", ran.stdout)

    def test_a_closed_working_folder_does_no_harm(self):
        ran = self.in_image(f"chmod 700 /root && cd /root && {MEASURE}", programs.CORRECT)
        self.assertRegex(ran.stdout, r"(?m)^correct$", ran)

    def test_a_verifier_in_a_closed_home_names_the_fix(self):
        closed = "chmod 700 /root && cp -r /opt/kbench /root && /root/kbench/bin/"
        ran = self.in_image(closed + MEASURE, programs.CORRECT)
        self.assertEqual(ran.returncode, 3, ran)
        self.assertIn("chmod o+rx /root", ran.stderr)
        ran = self.in_image(closed.replace("cp -r", "chmod o+rx /root && cp -r") + MEASURE, programs.CORRECT)
        self.assertRegex(ran.stdout, r"(?m)^correct$", ran)

    def test_what_task_start_lays_out(self):
        folder = self.work / "mine"
        ran = self.run_it(BIN / "kbench", "task", "start", kbenchd.SCAN, folder, "--device", "cpu", "--tasks", self.work / "tasks")
        self.assertEqual(ran.returncode, 0, ran)
        quick_check = re.search(r"(?m)^    (docker run (?:.*\\\n)*.*)", (folder / "README.md").read_text())[1]
        for files, compiles, verdict in ((programs.CORRECT, True, "correct"), (programs.INCORRECT, True, "incorrect"),
                                         (programs.COMPILE_ERROR, False, "compile_error")):
            with self.subTest(verdict):
                (folder / "solution/solution.cpp").write_text(files["solution.cpp"])
                ran = self.run_it("sh", "-c", quick_check, cwd=folder)
                self.assertEqual((ran.returncode, ran.stderr == ""), (0 if compiles else 1, compiles), ran)
                ran = self.run_it(folder / "measure")
                self.assertEqual(ran.returncode, 0, ran)
                self.assertRegex(ran.stdout, rf"(?m)^{verdict}")


if __name__ == "__main__":
    unittest.main()
