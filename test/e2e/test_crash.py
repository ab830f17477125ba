"""kbenchd is killed at bad moments and started again: one result, nothing left behind."""
import sys
import pathlib
import time
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1] / "support")]
import kbenchd  # noqa: E402
import programs  # noqa: E402


class Crash(unittest.TestCase):
    def one_result(self, daemon, id):
        found = daemon.wait(id)
        self.assertEqual((found["state"], found["verdict"]), ("done", "correct"), found)
        numbers, kinds = zip(*[(number, kind) for number, kind, _ in daemon.events(id, timeout_s=30)])
        self.assertEqual(list(numbers), list(range(1, len(numbers) + 1)))
        self.assertEqual(kinds.count("result"), 1, kinds)
        self.assertEqual(daemon.containers(), [])
        self.assertEqual(daemon.leftovers(), [])
        return found

    def killed_while(self, state, files, settle_s=0.0):
        with kbenchd.Kbenchd(settings=kbenchd.FAST) as daemon:
            daemon.wait(daemon.submit(programs.CORRECT))   # the images are there
            id = daemon.submit(files)
            daemon.wait(id, (state,))
            time.sleep(settle_s)
            daemon.kill()
            daemon.start()
            return self.one_result(daemon, id)

    def test_killed_while_preparing(self):
        self.killed_while("preparing", programs.SLOW_TO_COMPILE, 0.5)

    def test_killed_while_measuring(self):
        self.killed_while("measuring", programs.CORRECT, 2.0)

    def test_killed_at_the_start_of_measuring(self):
        self.killed_while("measuring", programs.CORRECT)

    def test_accepted_is_kept(self):
        """Many submissions, and a kill right after the last 202: none is lost, none is graded twice."""
        with kbenchd.Kbenchd(settings=kbenchd.FAST) as daemon:
            ids = [daemon.submit(programs.COMPILE_ERROR, labels={"n": str(n)}) for n in range(8)]
            daemon.kill()
            daemon.start()
            for id in ids:
                found = daemon.wait(id)
                self.assertEqual(found["verdict"], "compile_error", found)
            listed = daemon.request("GET", "/api/v1/submissions?limit=50").json["submissions"]
            self.assertEqual(sorted(s["id"] for s in listed), sorted(ids))
            self.assertEqual(daemon.leftovers(), [])

    def test_a_gentle_stop_hands_work_back(self):
        with kbenchd.Kbenchd(settings=kbenchd.FAST) as daemon:
            daemon.wait(daemon.submit(programs.CORRECT))
            id = daemon.submit(programs.CORRECT)
            daemon.wait(id, ("measuring",))
            daemon.stop()
            self.assertEqual(daemon.containers(), [])
            daemon.start()
            self.one_result(daemon, id)


if __name__ == "__main__":
    unittest.main()
