"""The whole path, from POST to verdict, for every way in which a submission can end; and a neighbour that is not hurt by any of them."""
import sys
import pathlib
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1] / "support")]
import kbenchd  # noqa: E402
import programs  # noqa: E402

CASES = {   # name: (files, verdicts admitted)
    "correct": (programs.CORRECT, {"correct"}),
    "incorrect": (programs.INCORRECT, {"incorrect"}),
    "compile_error": (programs.COMPILE_ERROR, {"compile_error"}),
    "no_symbol": (programs.NO_SYMBOL, {"runtime_error", "compile_error"}),
    "returns_7": (programs.RETURNS_7, {"runtime_error"}),
    "crash": (programs.CRASH, {"runtime_error"}),
    "throws": (programs.THROWS, {"runtime_error"}),
    "stack_overflow": (programs.STACK_OVERFLOW, {"runtime_error"}),
    "hang": (programs.HANG, {"timeout"}),
    "hang_loading": (programs.HANG_LOADING, {"timeout"}),
    "fork_bomb": (programs.FORK_BOMB, {"timeout", "runtime_error", "integrity_violation", "out_of_memory", "correct"}),
    "log_flood": (programs.LOG_FLOOD, {"correct"}),
    "memory": (programs.MEMORY, {"out_of_memory"}),
    "early_exit": (programs.EARLY_EXIT, {"runtime_error"}),
    "neighbour": (programs.CORRECT, {"correct"}),
}


class Verdicts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = kbenchd.Kbenchd(settings=kbenchd.FAST)
        cls.daemon.start()
        cls.addClassCleanup(cls.daemon.__exit__)
        cls.ids = {name: cls.daemon.submit(files, labels={"test": name}) for name, (files, _) in CASES.items()}

    def found(self, name):
        found = self.daemon.wait(self.ids[name], timeout_s=420)
        log = self.daemon.request("GET", f"/api/v1/submissions/{self.ids[name]}/log")
        self.assertEqual(log.status, 200)
        self.assertLessEqual(len(log.body), 1 << 20)
        self.assertEqual(found["state"], "done", found)
        self.assertIn(found["verdict"], CASES[name][1], found)
        if found["verdict"] == "correct":
            self.assertGreater(found["reward"], 0)
            low, high = found["interval"]
            self.assertLessEqual(low, found["reward"])
            self.assertGreaterEqual(high, found["reward"])
        else:
            self.assertEqual(found["reward"], 0, found)
            self.assertTrue(found["reason"])
            self.assertFalse(found["rank"]["eligible"])
        return found, log.body.decode()

    def test_a_compile_error_shows_the_compilers_words(self):
        _, log = self.found("compile_error")
        self.assertIn("'b' was not declared", log.replace("\u2018", "'").replace("\u2019", "'"))

    def test_a_return_value_is_shown(self):
        found, _ = self.found("returns_7")
        self.assertIn("7", found["reason"])

    def test_no_container_is_left(self):
        for name in CASES:
            self.daemon.wait(self.ids[name], timeout_s=420)
        self.assertEqual(self.daemon.containers(), [])


def verdict_test(name):
    def test(self):
        self.found(name)
    return test


for case in CASES:
    setattr(Verdicts, f"test_{case}", verdict_test(case))

if __name__ == "__main__":
    unittest.main()
