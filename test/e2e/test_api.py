"""The REST interface on a running daemon: bad input names the field and stores nothing, retries are safe, event streams resume."""
import json
import pathlib
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1] / "support")]
import kbenchd  # noqa: E402
import programs  # noqa: E402

JSON = {"Content-Type": "application/json"}
FORM = {"Content-Type": "multipart/form-data; boundary=xyz"}
GOOD = kbenchd.submission(programs.CORRECT)


def changed(**fields):
    return {**GOOD, **fields}


def form(*parts):
    return "".join(f'--xyz\r\nContent-Disposition: form-data; {head}\r\n\r\n{text}\r\n' for head, text in parts) + "--xyz--\r\n"


# what: (body, headers, status, field)
BAD = {
    "unknown task": (changed(task="raw-cuda/segmented-exclusive-scam"), JSON, 422, "task"),
    "no task": ({k: v for k, v in GOOD.items() if k != "task"}, JSON, 422, "task"),
    "task of another type": (changed(task=7), JSON, 422, "task"),
    "no files": (changed(files={}), JSON, 422, "files"),
    "missing files": ({k: v for k, v in GOOD.items() if k != "files"}, JSON, 422, "files"),
    "no source file": (changed(files={"readme.txt": "x"}), JSON, 422, "files"),
    "path traversal": (changed(files={"../solution.cpp": "x"}), JSON, 422, 'files["../solution.cpp"]'),
    "path traversal within": (changed(files={"a/../../solution.cpp": "x"}), JSON, 422, 'files["a/../../solution.cpp"]'),
    "absolute path": (changed(files={"/etc/cron.d/x.cpp": "x"}), JSON, 422, 'files["/etc/cron.d/x.cpp"]'),
    "a name like an option": (changed(files={"-fplugin=x.cpp": "x"}), JSON, 422, 'files["-fplugin=x.cpp"]'),
    "a response file": (changed(files={"@x.cpp": "x"}), JSON, 422, 'files["@x.cpp"]'),
    "NUL in a name": (changed(files={"a\0.cpp": "x"}), JSON, 422, None),
    "NUL in a file": (changed(files={"solution.cpp": "a\0b"}), JSON, 422, 'files["solution.cpp"]'),
    "a file and a folder": (changed(files={"a.cpp": "x", "a.cpp/b.cpp": "y"}), JSON, 422, 'files["a.cpp"]'),
    "too many files": (changed(files={f"{n}.cpp": "x" for n in range(65)}), JSON, 413, "files"),
    "too large a file": (changed(files={"solution.cpp": "x" * (1024 * 1024 + 1)}), JSON, 413, 'files["solution.cpp"]'),
    "too large together": (changed(files={f"{n}.cpp": "x" * 1024 * 1000 for n in range(5)}), JSON, 413, "files"),
    "unknown field": (changed(fast=True), JSON, 422, "fast"),
    "unknown device": (changed(device="tpu"), JSON, 422, "device"),
    "a device that is not here": (changed(device="cuda"), JSON, 422, "device"),
    "unknown language": (changed(language="fortran"), JSON, 422, "language"),
    "language without its file": (changed(language="python"), JSON, 422, "files"),
    "priority out of range": (changed(priority=1000), JSON, 422, "priority"),
    "priority of another type": (changed(priority="high"), JSON, 422, "priority"),
    "a label's name": (changed(labels={"a b": "c"}), JSON, 422, 'labels["a b"]'),
    "a label's value": (changed(labels={"a": "c\n"}), JSON, 422, 'labels["a"]'),
    "too many labels": (changed(labels={f"l{n}": "x" for n in range(17)}), JSON, 422, "labels"),
    "malformed JSON": ('{"task": ', JSON, 400, "body"),
    "empty body": ("", JSON, 400, "body"),
    "not an object": ("[1, 2]", JSON, 400, "body"),
    "a name given twice": ('{"task": "a", "task": "b"}', JSON, 400, "task"),
    "a file given twice": ('{"files": {"a.cpp": "x", "a.cpp": "y"}}', JSON, 400, 'files["a.cpp"]'),
    "a compressed body": (b"\x1f\x8b\x08\x00", {**JSON, "Content-Encoding": "gzip"}, 415, "Content-Encoding"),
    "nested too deep": ("[" * 100000, JSON, 400, "body"),
    "bad UTF-8": (b'{"task": "\xff\xfe"}', JSON, 400, "task"),
    "bad UTF-8 in a file": (b'{"files": {"a.cpp": "\xff"}}', JSON, 400, 'files["a.cpp"]'),
    "no content type": (json.dumps(GOOD), {"Content-Type": "text/plain"}, 415, "Content-Type"),
    "a form without end": ("--xyz\r\nContent-Disposition: form-data; name=\"task\"\r\n\r\nx", FORM, 400, None),
    "a form without boundary": (form(('name="task"', kbenchd.SCAN)), {"Content-Type": "multipart/form-data"}, 400, None),
    "a form with an unknown part": (form(('name="task"', kbenchd.SCAN), ('name="evil"', "x")), FORM, 422, "evil"),
    "a form with path traversal": (form(('name="task"', kbenchd.SCAN), ('name="file"; filename="../x.cpp"', "x")), FORM, 422, 'files["../x.cpp"]'),
    "a form's file without a name": (form(('name="task"', kbenchd.SCAN), ('name="file"', "x")), FORM, 422, "file"),
    "a bad idempotency key": (GOOD, {**JSON, "Idempotency-Key": "a b"}, 400, "Idempotency-Key"),
}


class Api(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = kbenchd.Kbenchd(settings=kbenchd.FAST)
        cls.daemon.start()
        cls.addClassCleanup(cls.daemon.__exit__)

    def problem(self, answer, status, field=None):
        self.assertEqual(answer.status, status, answer)
        self.assertEqual(answer.headers["Content-Type"], "application/problem+json")
        body = answer.json
        self.assertEqual(body["status"], status)
        self.assertTrue(body["title"] and body["detail"], body)   # what is wrong, and the fix
        if field is not None:
            self.assertIn(field, [body.get("field")] + [e["field"] for e in body.get("errors", [])], body)

    def stored(self):
        return self.daemon.request("GET", "/api/v1/submissions?limit=200").json["submissions"]

    def test_bad_input_names_the_field_and_stores_nothing(self):
        before = len(self.stored())
        for what, (body, headers, status, field) in BAD.items():
            with self.subTest(what):
                if not isinstance(body, (str, bytes)):
                    body = json.dumps(body)
                self.problem(self.daemon.request("POST", "/api/v1/submissions", body, headers), status, field)
        self.assertEqual(len(self.stored()), before)

    def test_wrong_method_path_and_query(self):
        answer = self.daemon.request("PUT", "/api/v1/submissions", GOOD)
        self.problem(answer, 405)
        self.assertIn("POST", answer.headers["Allow"])
        self.problem(self.daemon.request("GET", "/api/v1/nothing"), 404)
        self.problem(self.daemon.request("GET", "/api/v1/submissions/s-unknown"), 404, "id")
        self.problem(self.daemon.request("DELETE", "/api/v1/submissions/s-unknown"), 404, "id")
        self.problem(self.daemon.request("GET", "/api/v1/submissions/s-unknown/events"), 404, "id")
        self.problem(self.daemon.request("GET", "/api/v1/tasks/raw-cuda/unknown"), 404, "task")
        self.problem(self.daemon.request("GET", "/api/v1/submissions?limit=many"), 400, "limit")
        self.problem(self.daemon.request("GET", "/api/v1/submissions?cursor=ours"), 400, "cursor")
        self.problem(self.daemon.request("GET", "/api/v1/submissions?colour=red"), 400, "colour")
        for name in "state", "verdict", "device", "task":
            self.problem(self.daemon.request("GET", f"/api/v1/submissions?{name}=purple"), 400, name)

    def test_a_token_is_needed(self):
        for token in (None, "wrong"):
            answer = self.daemon.request("GET", "/api/v1/submissions", token=token)
            self.problem(answer, 401)
            self.assertIn("Bearer", answer.headers["WWW-Authenticate"])
        self.assertEqual((self.daemon.data / "token").stat().st_mode & 0o777, 0o600)

    def test_too_large_a_body_is_refused(self):
        self.problem(self.daemon.request("POST", "/api/v1/submissions", "x" * (17 << 20), JSON), 413)

    def test_idempotency(self):
        headers = {"Idempotency-Key": "key-1"}
        first = self.daemon.request("POST", "/api/v1/submissions", changed(labels={"k": "1"}), headers)
        self.assertEqual(first.status, 202)
        again = self.daemon.request("POST", "/api/v1/submissions", changed(labels={"k": "1"}), headers)
        self.assertEqual((again.status, again.json["id"]), (202, first.json["id"]))
        self.problem(self.daemon.request("POST", "/api/v1/submissions", changed(labels={"k": "2"}), headers), 422, "Idempotency-Key")
        self.assertEqual(len([s for s in self.stored() if s["labels"].get("k")]), 1)
        self.daemon.cancel(first.json["id"])

    def test_a_form_is_graded_like_json(self):
        body = form(('name="task"', kbenchd.SCAN), ('name="device"', "cpu"), ('name="label"', "from=form"),
                    ('name="file"; filename="solution.cpp"', programs.CORRECT["solution.cpp"]))
        answer = self.daemon.request("POST", "/api/v1/submissions", body, FORM)
        self.assertEqual(answer.status, 202, answer)
        self.assertEqual(answer.headers["Location"], f"/api/v1/submissions/{answer.json['id']}")
        found = self.daemon.wait(answer.json["id"])
        self.assertEqual((found["verdict"], found["labels"]), ("correct", {"from": "form"}), found)

    def test_events_resume(self):
        id = self.daemon.submit(programs.CORRECT)
        head = []
        for number, kind, _ in self.daemon.events(id):   # live; the connection is dropped in the middle
            head.append((number, kind))
            if len(head) == 4:
                break
        rest = [(number, kind) for number, kind, _ in self.daemon.events(id, last=head[-1][0])]
        self.daemon.wait(id)
        whole = [(number, kind) for number, kind, _ in self.daemon.events(id)]
        self.assertEqual(head + rest, whole)
        self.assertEqual([number for number, _ in whole], list(range(1, len(whole) + 1)))
        kinds = [kind for _, kind in whole]
        self.assertEqual(kinds.count("result"), 1, kinds)
        self.assertGreaterEqual(kinds.count("run"), 5, kinds)   # no `progress` where a run is over within a second

    def test_lists_page_by_cursor(self):
        ids = [self.daemon.submit(programs.COMPILE_ERROR, labels={"page": "yes"}) for _ in range(5)]
        seen, cursor = [], ""
        while True:
            page = self.daemon.request("GET", f"/api/v1/submissions?label=page=yes&limit=2{cursor}").json
            seen += [s["id"] for s in page["submissions"]]
            if not page["next"]:
                break
            cursor = f"&cursor={page['next']}"
        self.assertEqual(sorted(seen), sorted(ids))
        for id in ids:
            self.daemon.cancel(id)

    def test_what_is_there(self):
        tasks = self.daemon.request("GET", "/api/v1/tasks").json["tasks"]
        self.assertIn(kbenchd.SCAN, [t["id"] for t in tasks])
        task = self.daemon.request("GET", f"/api/v1/tasks/{kbenchd.SCAN}").json
        self.assertIn("head", task["instruction"])
        slots = self.daemon.request("GET", "/api/v1/gpus")
        self.assertEqual(slots.status, 200)
        self.assertIn("cpu", slots.body.decode())
        self.assertEqual(self.daemon.request("GET", "/healthz", token=None).status, 200)
        self.assertTrue(self.daemon.request("GET", "/readyz", token=None).json["ready"])
        metrics = self.daemon.request("GET", "/metrics").body.decode()
        self.assertIn("kbench_", metrics)


class NotReady(unittest.TestCase):
    def test_readyz_names_the_cause(self):
        with kbenchd.Kbenchd(engine="/nowhere/docker.sock") as daemon:
            answer = daemon.request("GET", "/readyz", token=None)
            self.assertEqual(answer.status, 503)
            self.assertIn("/nowhere/docker.sock", answer.body.decode())
            self.assertEqual(daemon.request("GET", "/healthz", token=None).status, 200)

    def test_a_full_queue_is_a_503(self):
        with kbenchd.Kbenchd(engine="/nowhere/docker.sock", settings={"queue": {"depth_max": 2}}) as daemon:
            for _ in range(2):
                daemon.submit(programs.CORRECT)
            answer = daemon.request("POST", "/api/v1/submissions", GOOD)
            self.assertEqual(answer.status, 503, answer)
            self.assertGreater(int(answer.headers["Retry-After"]), 0)
            self.assertEqual(len(daemon.request("GET", "/api/v1/submissions").json["submissions"]), 2)


if __name__ == "__main__":
    unittest.main()
