"""A kbenchd of one's own for tests: started on a temporary data folder, spoken to by its REST API, killed and started again.

Standard library only. One object per daemon; methods block; not for several threads, except `request`, which opens a connection each.
"""
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
FINAL = ("done", "cancelled", "failed")
SCAN = "raw-cuda/segmented-exclusive-scan"
# Deadlines short enough for tests of what hangs.
FAST = {
    "grader": {"compile_deadline": "30 s", "compile_memory": "2 GiB", "compile_tmp": "256 MiB", "measure_deadline": "3 min",
               "measure_memory": "2 GiB", "measure_tmp": "256 MiB", "measure_shm": "64 MiB", "container_slack": "10 s", "renew_every": "200 ms"},
    "verifier": {"load": "15 s", "prepare": "20 s", "repetition": "4 s", "measure": "90 s"},
}
RMSNORM = "norm-rope-fusion/fused-residual-add-rmsnorm"


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {self.body[:2000]!r}"


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout=30):
        super().__init__("docker", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Engine:
    """What the tests ask a Docker Engine about what kbenchd left there."""

    def __init__(self, host):
        assert host.startswith("unix://"), f"not a unix socket: {host}"
        self.socket = host.removeprefix("unix://")

    def request(self, method, path):
        connection = UnixConnection(self.socket)
        try:
            connection.request(method, path)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def containers(self, owner):
        """All containers of the kbenchd that labels them so, running or not."""
        filters = urllib.parse.quote(json.dumps({"label": [f"kbench.owner={owner}"]}))
        status, body = self.request("GET", f"/v1.41/containers/json?all=1&filters={filters}")
        assert status == 200, body
        return json.loads(body)


def engine_host():
    return subprocess.run([ROOT / "scripts/engine", "host"], check=True, capture_output=True, text=True).stdout.strip()


class Kbenchd:
    def __init__(self, binaries=None, data=None, settings=None, engine=None):
        """`settings`: {table: {option: value}} of the configuration. `engine`: a socket where none need be; then start() does not wait for it."""
        self.binaries = pathlib.Path(binaries or os.environ.get("KBENCH_BIN") or ROOT / "build/dev/bin")
        self.own_data = tempfile.TemporaryDirectory(prefix="kbench-test-") if data is None else None
        self.data = pathlib.Path(data or self.own_data.name)
        self.engine = Engine(engine_host() if engine is None else f"unix://{engine}")
        self.healthy = "/readyz" if engine is None else "/healthz"
        self.settings = settings or {}
        self.port = free_port()
        self.name = f"test-{self.port}"
        self.process = None

        self.tasks = self.data / "tasks"
        if not self.tasks.exists():
            copy_tasks(self.tasks)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()
        if self.own_data:
            self.own_data.cleanup()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def token(self):
        return (self.data / "token").read_text().strip()

    def start(self, ready_s=60):
        config = self.data / "kbenchd.toml"
        config.write_text(configuration(self))
        with open(self.data / "kbenchd.log", "ab") as log:
            self.process = subprocess.Popen([self.binaries / "kbenchd", "--config", config], stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + ready_s
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"kbenchd ended with {self.process.returncode}:\n{self.log_text()[-4000:]}")
            try:
                if self.request("GET", self.healthy, token=None).status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.1)
        raise RuntimeError(f"kbenchd was not ready within {ready_s} s:\n{self.log_text()[-4000:]}")

    @property
    def owner(self):
        """What its containers are labelled with."""
        return (self.data / "work/owner").read_text().strip()

    def containers(self):
        """The containers of this daemon that the Engine still has, running or not. A removal may be under way: it gets a moment."""
        deadline = time.monotonic() + 15
        while True:
            left = self.engine.containers(self.owner)
            if not left or time.monotonic() > deadline:
                return [c["Names"] for c in left]
            time.sleep(0.2)

    def leftovers(self):
        """What finished attempts left in the work folder. A removal may be under way: it gets a moment."""
        deadline = time.monotonic() + 15
        while True:
            left = sorted(str(path) for path in (self.data / "work").glob("*") if path.is_dir())
            if not left or time.monotonic() > deadline:
                return left
            time.sleep(0.2)

    def log_text(self):
        return (self.data / "kbenchd.log").read_text(errors="replace")

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        """As if the power had gone."""
        self.process.kill()
        self.process.wait()

    def stop(self):
        if not self.process or self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()
            raise RuntimeError("kbenchd did not end within 60 s of SIGTERM")

    def request(self, method, path, body=None, headers=None, token=""):
        """`body`: bytes or str as they are, else sent as JSON. `token`: "" means the daemon's own, None means none."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        send = dict(headers or {})
        if token is not None:
            send.setdefault("Authorization", f"Bearer {token or self.token}")
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
            send.setdefault("Content-Type", "application/json")
        try:
            try:
                connection.request(method, path, body.encode() if isinstance(body, str) else body, send)
            except (BrokenPipeError, ConnectionResetError):
                pass   # refused before the whole body was read; the answer is there all the same
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())
        finally:
            connection.close()

    def submit(self, files, task=SCAN, language="cpp", headers=None, **more):
        """`files`: {path: text}. The submission's id."""
        body = submission(files, task, language, **more)
        answer = self.request("POST", "/api/v1/submissions", body, headers)
        if answer.status != 202:
            raise RuntimeError(f"not accepted: {answer}")
        return answer.json["id"]

    def get(self, id):
        answer = self.request("GET", f"/api/v1/submissions/{id}")
        if answer.status != 200:
            raise RuntimeError(f"{id}: {answer}")
        return answer.json

    def wait(self, id, states=FINAL, timeout_s=240):
        deadline = time.monotonic() + timeout_s
        while True:
            found = self.get(id)
            if found["state"] in states:
                return found
            if found["state"] in FINAL or time.monotonic() > deadline:
                raise RuntimeError(f"{id} is not {states} after {timeout_s} s: {found}\n{self.log_text()[-3000:]}")
            time.sleep(0.05)

    def cancel(self, id):
        return self.request("DELETE", f"/api/v1/submissions/{id}")

    def events(self, id, last=None, timeout_s=240):
        """The server-sent events from the one after `last` on, as (number, type, data), until the stream ends."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout_s)
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "text/event-stream"}
        if last is not None:
            headers["Last-Event-ID"] = str(last)
        try:
            connection.request("GET", f"/api/v1/submissions/{id}/events", headers=headers)
            response = connection.getresponse()
            if response.status != 200:
                raise RuntimeError(f"{response.status} {response.read()!r}")
            number, kind, data = None, "message", []
            while line := response.readline():
                line = line.decode().rstrip("\r\n")
                name, _, value = line.partition(":")
                value = value.removeprefix(" ")
                if line == "":
                    if data:
                        yield number, kind, json.loads("\n".join(data))
                    kind, data = "message", []
                elif name == "id":
                    number = int(value)
                elif name == "event":
                    kind = value
                elif name == "data":
                    data.append(value)
        finally:
            connection.close()


def submission(files, task=SCAN, language="cpp", device="cpu", **more):
    return {"task": task, "device": device, "language": language,
            "files": dict(files), **more}


def configuration(daemon):
    # Users of its own: the kernel counts a user's processes on the whole machine, and another test may have a fork bomb at work.
    uid = 1_000_000 + 33_000 * (daemon.port % 30_000)
    tables = {
        "server": {"port": daemon.port},
        "data": {"folder": str(daemon.data)},
        "tasks": {"folder": str(daemon.tasks)},
        "engine": {"socket": daemon.engine.socket},
        "grader": {"name": daemon.name, "uid_first": uid, "compile_uid_first": uid + 32_000, "seccomp_file": str(ROOT / "docker/seccomp.json")},
    }
    for table, options in daemon.settings.items():
        tables[table] = {**tables.get(table, {}), **options}
    return "".join(f"[{table}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in options.items())
                   for table, options in tables.items())


# The cpu device measures the `test` shapes; these are large enough to be timed and small enough for many gradings.
SMALL = {SCAN: {"N": 1000003}, RMSNORM: {"M": 250, "C": 4096}}


def copy_tasks(folder):
    """The repository's tasks, those of SMALL with a smaller size to measure."""
    for task, dims in SMALL.items():
        shutil.copytree(ROOT / "tasks" / task, folder / task)
        for path in (folder / task).glob("*/task.json"):
            problem = json.loads(path.read_text())
            problem["test"] = [{"name": "test0", "dims": dims}]
            path.write_text(json.dumps(problem, indent=1))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]
