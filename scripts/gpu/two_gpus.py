#!/usr/bin/env python3
"""Grades what is for two GPUs: the naive and the fast submission of each task, then two workers that hide work on GPU 1 (test/gpu/two_gpus).

usage: scripts/gpu/two_gpus.py [NAME…]     with a kbenchd from `. scripts/gpu/host`; NAME: of a task, or early, resident
A row a submission: verdict, reward, interval, share of one GPU's peak, seconds, and by shape the evidence of its windows: medians in us,
calibrated values in brackets. Last line: `two-gpus: N of M as expected`.
"""
import collections
import statistics
import sys

import rest

FAMILY = "distributed-multi-gpu"
TASKS = ("tp-allreduce-residual-rmsnorm", "gemm-reduce-scatter-residual")
HIDING = rest.ROOT / "test/gpu/two_gpus"


def submissions():
    """(name, task, files, verdict that it must have); the slow ones last."""
    shared = {"two_gpus.h": (HIDING / "two_gpus.h").read_text(), "pages.h": (rest.ROOT / "test/redteam/common/pages.h").read_text()}
    for kind in ("cuda_fast", "cuda_naive"):
        for task in TASKS:
            yield f"{task}/{kind}", task, rest.files_of(rest.ROOT / "test/submissions" / task / kind), "correct"
        for mode in ("early", "resident") if kind == "cuda_fast" else ():
            yield mode, TASKS[0], {**rest.files_of(HIDING / mode), **shared}, "integrity_violation"


def evidence(details):
    """A line a shape."""
    runs = details.get("runs", []) + (details.get("conditions") or {}).get("voided_runs", [])
    calibrated = {c["shape"]: c for c in details.get("calibration", [])}
    for shape, own in calibrated.items():
        samples = [s for run in runs for s in run["samples"] if s["shape"] == shape and s["scored"]]
        if not samples:
            continue
        median = {key: statistics.median(s[key] for s in samples) for key in ("window_us", "quiescence_us", "stretch_us", "start_us", "worker_us")}
        most = {key: max(s[key] for s in samples) for key in ("quiescence_us", "stretch_us", "start_us")}
        breaches = dict(collections.Counter(s["breach"] for s in samples))
        yield (f"    {shape}: window {median['window_us']:.1f}, less overhead {median['window_us'] - own['overhead_us']:.1f} [{own['overhead_us']:.1f}: "
               f"empty {own['empty_us']:.1f}, writing {own['writing_us']:.1f}]; GPU 0's events {median['worker_us']:.1f}; "
               f"quiescence {median['quiescence_us']:.1f}, most {most['quiescence_us']:.1f}; "
               f"stretch {median['stretch_us']:.1f}, most {most['stretch_us']:.1f} [{own['stretch_us']:.1f}]; "
               f"start {median['start_us']:.1f}, most {most['start_us']:.1f} [{own['start_us']:.1f}]; {breaches}")


def main():
    rest.conditions()
    wanted = sys.argv[1:]
    count = good = 0
    for name, task, files, expected in submissions():
        if wanted and not any(word in name for word in wanted):
            continue
        count += 1
        try:
            found, details, seconds = rest.grade(f"{FAMILY}/{task}", files)
        except SystemExit as fault:   # refused, or not in time: the others are graded all the same
            print(f"{name}: {fault}", flush=True)
            continue
        verdict = found.get("verdict") or found["state"]
        good += verdict == expected
        low, high = details.get("interval") or (0, 0)
        reward, peak = found.get("reward") or 0, details.get("peak")
        phases = " ".join(f"{k} {v:.1f}" for k, v in sorted((details.get("seconds") or {}).items()))
        print(f"{name:45}{verdict:20}{reward:9.1f} [{low:.1f} .. {high:.1f}]{f' {100 * reward / peak:.0f} % of peak' if peak else ''}  "
              f"{seconds:.1f} s: {phases}", flush=True)
        for line in evidence(details):
            print(line, flush=True)
        if verdict != expected or expected != "correct":
            print(f"    rule {details.get('rule') or '-'}: {' '.join((found.get('reason') or '-').split())[:400]}", flush=True)
        if details.get("flags"):
            print(f"    flags: {', '.join(details['flags'])}", flush=True)
    print(f"two-gpus: {good} of {count} as expected")
    return 0 if good == count else 1


sys.exit(main())
