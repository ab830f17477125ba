"""Cancelling in every state."""
import sys
import pathlib
import time
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1] / "support")]
import kbenchd  # noqa: E402
import programs  # noqa: E402


class Cancel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = kbenchd.Kbenchd(settings=kbenchd.FAST)
        cls.daemon.start()
        cls.addClassCleanup(cls.daemon.__exit__)
        cls.daemon.wait(cls.daemon.submit(programs.CORRECT))   # the task's images are there from here on

    def cancelled(self, id):
        begin = time.monotonic()
        self.assertIn(self.daemon.cancel(id).status, (200, 202))
        found = self.daemon.wait(id, timeout_s=30)
        self.assertEqual(found["state"], "cancelled", found)
        self.assertIsNone(found.get("reward"))
        self.assertLess(time.monotonic() - begin, 20)

    def test_each_state(self):
        measuring = self.daemon.submit(programs.HANG)
        self.daemon.wait(measuring, ("measuring",))
        ready = self.daemon.submit(programs.CORRECT)
        self.daemon.wait(ready, ("ready",))
        preparing = self.daemon.submit(programs.SLOW_TO_COMPILE)
        queued = [self.daemon.submit(programs.SLOW_TO_COMPILE) for _ in range(6)]
        self.daemon.wait(preparing, ("preparing",))
        with self.subTest("queued"):
            self.assertEqual(self.daemon.get(queued[-1])["state"], "queued")
            for id in reversed(queued):
                self.cancelled(id)
        with self.subTest("preparing"):
            self.cancelled(preparing)
        with self.subTest("ready"):
            self.cancelled(ready)
        with self.subTest("measuring"):
            self.assertEqual(self.daemon.get(measuring)["state"], "measuring")
            self.cancelled(measuring)
        with self.subTest("cancelled: once more changes nothing"):
            self.assertIn(self.daemon.cancel(measuring).status, (200, 202, 409))
            self.assertEqual(self.daemon.get(measuring)["state"], "cancelled")
        with self.subTest("what came after is graded"):
            after = self.daemon.wait(self.daemon.submit(programs.CORRECT))
            self.assertEqual(after["verdict"], "correct", after)
        with self.subTest("done: refused"):
            self.assertEqual(self.daemon.cancel(after["id"]).status, 409)
            self.assertEqual(self.daemon.get(after["id"])["verdict"], "correct")
        with self.subTest("no container is left"):
            self.assertEqual(self.daemon.containers(), [])


if __name__ == "__main__":
    unittest.main()
