#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A ResNet-50 service beside trainings on a real GPU: latency, and what the trainings get.

    tests/gpu/service_trial.py PROGRAMS OUTPUT [SECONDS [FACTOR [TRAINING ...]]]

PROGRAMS is a folder of scripts/bundle. For each load (requests a second, at random times) the
service runs alone; beside each training by plain MPS; and beside it as a service of colloc with a
target for its p99, FACTOR (default 2) times the largest alone. A training's throughput is relative
to its own alone. OUTPUT gets service.csv, a row for each, after each; SECONDS (default 330) is when
no further one begins. Needs one idle GPU, MPS, and a python3 with PyTorch and torchvision.
"""
import csv
import http.client
import json
import math
import os
import queue
import random
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from trial import TrialDaemon  # noqa: E402

PORT = 18080
LOADS = (30, 100, 300)
TRAININGS = ("small", "medium", "heavy")
MEASURE_S, GUARDED_S, ALONE_S = 8, 24, 10
HOLD = "6s"
CLIENTS = 32  # chosen: more than are ever under way at a load that the service can bear
SETTINGS = {"sharing": "mps", "service-hold": HOLD, "settle": "2s", "settle-max": "10s"}


class Load:
    """Requests at random times of a rate, for some seconds: their times and latencies."""

    def __init__(self, rate, seconds):
        self.rate, self.seconds = rate, seconds
        self.due = queue.Queue()
        self.done = []

    def ask(self):
        connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=20)
        while True:
            at = self.due.get()
            if at is None:
                return
            try:
                connection.request("GET", "/")
                is_good = connection.getresponse().read() != b""
            except (OSError, http.client.HTTPException):
                is_good = False
                connection.close()
            self.done.append((at, time.monotonic() - at if is_good else 20.0))

    def run(self):
        threads = [threading.Thread(target=self.ask) for _ in range(CLIENTS)]
        for thread in threads:
            thread.start()
        chance, at = random.Random(1), time.monotonic()
        end = at + self.seconds
        while at < end:
            at += chance.expovariate(self.rate)
            time.sleep(max(0.0, at - time.monotonic()))
            self.due.put(at)
        for _ in threads:
            self.due.put(None)
        for thread in threads:
            thread.join()
        return [latency for _, latency in self.done]


def quantile(values, q):
    ordered = sorted(values)
    return ordered[min(len(ordered), max(1, math.ceil(q * len(ordered)))) - 1] if ordered else None


def wait_for(condition, what, limit_s=120):
    end = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError(f"{what} did not happen within {limit_s} s")
        time.sleep(0.1)


def is_answering():
    try:
        connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=5)
        connection.request("GET", "/")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False


def end_all(daemon):
    """Ends the daemon's tasks, then the daemon: tasks outlive it."""
    tasks = json.loads(daemon.colloc("queue", "--json"))["tasks"]
    daemon.colloc("cancel", "--mine", check=False)
    daemon.wait(*[task["id"] for task in tasks])
    daemon.close()


class Trial:
    def __init__(self, programs, output, limit_s, factor, trainings):
        self.programs, self.output = os.path.abspath(programs), output
        self.factor, self.trainings = factor, trainings
        self.ends = time.monotonic() + limit_s
        self.rows, self.alone, self.smact = [], {}, {}
        self.train = os.path.join(self.programs, "workloads", "train.py")
        self.serve = os.path.join(self.programs, "workloads", "pipelines", "serve.py")

    def note(self, **row):
        self.rows.append(row)
        keys = sorted({key for each in self.rows for key in each})
        with open(os.path.join(self.output, "service.csv"), "w", newline="") as file:
            writer = csv.DictWriter(file, keys)
            writer.writeheader()
            writer.writerows(self.rows)
        print(json.dumps(row), flush=True)

    def start_service(self, daemon, target_s=None):
        options = ["--service", f"--port={PORT}", "--memory=4GiB", "--smact=0.2"]
        if target_s:
            options.append(f"--p99={max(1, round(1e3 * target_s))}ms")
        service, _ = daemon.submit(self.serve, "resnet50", options=options)
        wait_for(is_answering, "an answer of the service")
        return service

    def start_training(self, daemon, name):
        smact = self.smact.get(name)
        options = ["--memory=12GiB"] + ([f"--smact={smact:.3f}"] if smact else [])
        training, _ = daemon.submit(
            self.train, name, "--epochs", "100000", "--steps", "10", options=options
        )
        return training

    def samples_between(self, daemon, training, began, ended):
        """Samples per second in that time, of the epochs that ended then."""
        epochs = [line for line in daemon.lines(training) if line.get("event") == "epoch"]
        done = 0.0
        for epoch in epochs:
            within = min(ended, epoch["to"]) - max(began, epoch["from"])
            if within > 0:
                done += epoch["samples"] * within / max(1e-9, epoch["to"] - epoch["from"])
        return done / (ended - began)

    def is_training(self, daemon, training):
        return any(line.get("event") == "epoch" for line in daemon.lines(training))

    def train_alone(self):
        for name in self.trainings:
            daemon = TrialDaemon(self.programs, **SETTINGS)
            try:
                training = self.start_training(daemon, name)
                wait_for(lambda: self.is_training(daemon, training), "an epoch")
                began = time.time()
                levels = []
                while time.time() < began + ALONE_S:
                    levels.append(daemon.gpus()[0]["smact"])
                    time.sleep(0.5)
                rate = self.samples_between(daemon, training, began, time.time())
                known = [level for level in levels if level is not None]
                self.alone[name] = rate
                self.smact[name] = quantile(known, 0.5) or 1.0
                self.note(mode="alone", training=name, samples_per_s=rate, smact=self.smact[name])
            finally:
                end_all(daemon)

    def measure(self, daemon, mode, rate, seconds, target_s, training=None, name=""):
        began = time.time()
        latencies = Load(rate, seconds).run()
        ended = time.time()
        row = {
            "mode": mode,
            "training": name,
            "requests_per_s": rate,
            "p50_ms": 1e3 * quantile(latencies, 0.5),
            "p99_ms": 1e3 * quantile(latencies, 0.99),
        }
        if target_s:
            row["target_ms"] = 1e3 * target_s
            row["within_target"] = sum(each <= target_s for each in latencies) / len(latencies)
        if training:
            gained = self.samples_between(daemon, training, began, ended)
            shown = daemon.show(training)
            row["training_speed"] = gained / self.alone[name]
            row["pauses"] = shown["pauses"] + shown["suspensions"]
            row["state"] = shown["state"]
        self.note(**row)
        return row

    def serve_alone(self):
        daemon = TrialDaemon(self.programs, **SETTINGS)
        try:
            self.start_service(daemon)
            rows = [self.measure(daemon, "exclusive", rate, MEASURE_S, None) for rate in LOADS]
            return self.factor * max(row["p99_ms"] for row in rows) / 1e3
        finally:
            end_all(daemon)

    def wait_admitted(self, daemon, training):
        """Until it trains; or for 30 s: one that would make the target be missed never does. At the
        smallest load meanwhile."""
        end = time.monotonic() + 30
        while not self.is_training(daemon, training) and time.monotonic() < end:
            Load(LOADS[0], 2).run()

    def beside(self, mode, name, target_s):
        """By plain MPS both just run; with a target colloc lets the training give way."""
        is_guarded = mode == "target"
        daemon = TrialDaemon(self.programs, **SETTINGS)
        try:
            self.start_service(daemon, target_s if is_guarded else None)
            training = self.start_training(daemon, name)
            if not is_guarded:
                wait_for(lambda: self.is_training(daemon, training), "an epoch")
            else:
                self.wait_admitted(daemon, training)
            for rate in LOADS:
                if time.monotonic() > self.ends:
                    return
                seconds = GUARDED_S if is_guarded else MEASURE_S
                self.measure(daemon, mode, rate, seconds, target_s, training, name)
            shown = daemon.show(training)
            events = [(event["event"], event["text"]) for event in shown.get("events", [])]
            print(json.dumps({"mode": mode, "training": name, "events": events[-30:]}), flush=True)
        finally:
            end_all(daemon)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    os.makedirs(sys.argv[2], exist_ok=True)
    limit_s = float(sys.argv[3]) if len(sys.argv) > 3 else 330
    factor = float(sys.argv[4]) if len(sys.argv) > 4 else 2
    trial = Trial(sys.argv[1], sys.argv[2], limit_s, factor, sys.argv[5:] or TRAININGS)
    trial.train_alone()
    target_s = trial.serve_alone()
    for name in trial.trainings:
        for mode in ("mps", "target"):
            if time.monotonic() < trial.ends:
                trial.beside(mode, name, target_s)
    return 0


if __name__ == "__main__":
    sys.exit(main())
