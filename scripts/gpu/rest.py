"""What the scripts here share: submissions through kbenchd's REST API, and what their details say. Standard library only."""
import json
import os
import pathlib
import statistics
import subprocess
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
URL = os.environ.get("KBENCH_URL", "http://127.0.0.1:8700")
FINAL = ("done", "cancelled", "failed")


class NotEnded(SystemExit):
    pass


def call(method, path, body=None, headers=None):
    request = urllib.request.Request(URL + path, method=method, data=None if body is None else json.dumps(body).encode())
    request.add_header("Authorization", "Bearer " + os.environ["KBENCH_TOKEN"].strip())
    request.add_header("Content-Type", "application/json")
    for name, value in (headers or {}).items():
        request.add_header(name, value)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as fault:
        raise SystemExit(f"{method} {path}: {fault.code} {fault.read().decode()}") from None


def files_of(folder):
    folder = pathlib.Path(folder)
    return {str(p.relative_to(folder)): p.read_text() for p in sorted(folder.rglob("*")) if p.is_file() and p.suffix in (".cu", ".cuh", ".cpp", ".h", ".py")}


def submit(task, files, device="cuda"):
    return call("POST", "/api/v1/submissions", {"task": task, "device": device, "files": files})["id"]


def wait(id, seconds=600):
    """The submission when it has ended, and the time from POST to verdict as the daemon's clock saw it."""
    end = time.time() + seconds
    while time.time() < end:
        found = call("GET", f"/api/v1/submissions/{id}")
        if found["state"] in FINAL:
            return found
        time.sleep(0.05)
    raise NotEnded(f"{id} has not ended in {seconds:.0f} s")


def grade(task, files, device="cuda"):
    """(submission, details, seconds from POST to verdict)."""
    start = time.time()
    found = wait(submit(task, files, device))
    seconds = time.time() - start
    return found, details_of(found), seconds


def details_of(found):
    return (call("GET", f"/api/v1/submissions/{found['id']}/details") if found["state"] == "done" else None) or {}


def samples(details, shape=None):
    return [s for run in details.get("runs", []) for s in run["samples"] if s["scored"] and s["time_us"] and shape in (None, s["shape"])]


def bias(details):
    """By shape: our median time over the worker's own median (CUDA events in its process), less one. For submissions of our own."""
    result = {}
    for shape in dict.fromkeys(s["shape"] for s in samples(details)):
        ours = statistics.median(s["time_us"] for s in samples(details, shape))
        result[shape] = ours / statistics.median(s["worker_us"] for s in samples(details, shape)) - 1
    return result


def conditions():
    asked = "name,driver_version,clocks.max.sm,clocks.max.mem,clocks.sm,temperature.gpu,power.draw"
    gpu = subprocess.run(["nvidia-smi", f"--query-gpu={asked}", "--format=csv,noheader"], capture_output=True, text=True).stdout.strip()
    print(f"date {time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())}\ngpu  {gpu} ({asked})\nhost {os.uname().release}, {os.cpu_count()} CPUs")
