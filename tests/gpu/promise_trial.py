#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Promises of speed (docs/promise.md) and the ledger (docs/ledger.md) on a real GPU.

    tests/gpu/promise_trial.py PROGRAMS OUT.jsonl SECONDS [--small|--dry] [PART ...]
    tests/gpu/promise_trial.py --page OUT.jsonl[.xz]    # the tables of docs/measured/promise.md

PROGRAMS: a folder made by scripts/bundle. The first GPU of CUDA_VISIBLE_DEVICES is used, or GPU 0.
Parts (default: held:small missed:medium); OUT gets a line for each result when it is known:

    held:MODEL    a training of MODEL under collocd with --max-slowdown=1.5, under MPS, first alone,
                  then beside a GPT-2 that joins it, then alone again
    missed:MODEL  the same; then a GPT-2 joins it that was declared to use less of the GPU than it
                  does, so that the promise is missed: who gives way, when, and what that brings
    probe:MODEL   a training of MODEL joins another one, so that it was never alone: the speed alone
                  that a probe measures (docs/promise.md), against that without the other one
    bare          pairs under MPS without colloc: what a limit on the SMs, and a lower priority
                  (CUDA_MPS_CLIENT_PRIORITY), of the GPT-2 do
    ledger        five short trainings, each alone, one after the other; then all of them at the
                  same time, as often as time allows: what the ledger says that sharing saved, and
                  what it saved

Speeds are steps a second by the trainings' own counts. --small: each part in a few seconds. --dry:
the same on the emulator, whose variables are set (docs/emulator.md), with trainings that pretend.
"""
import contextlib
import glob
import json
import lzma
import os
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TRAINING = os.path.join(HERE, "promise_training.py")
PROMISE = 1.5
WINDOW_S = 10
# Alone (data/sharing/h200.csv).
SMACT = {"small": 0.52, "medium": 0.38, "decoder": 0.9, "encoder": 0.89, "recommender": 0.17}
MEMORY = {"small": "3G", "medium": "3G", "decoder": "12G", "encoder": "8G", "recommender": "9G"}
# model: steps of some twelve seconds alone
SHORT = [
    ("small", 1080),
    ("decoder", 132),
    ("recommender", 2000),
    ("medium", 560),
    ("encoder", 160),
]
# The decoder as declared where the promise shall be missed: the model predicts 1.3 then, and it
# takes 2 to 2.6 times as long, as the decoder has the normal priority of a promised task, too.
WRONG = ["--smact=0.67", "--max-slowdown=100"]
START_MAX_S = 60
START_S = 13  # until the first step: the libraries are loaded by then
SETTLE_S = 2
ALONE_S = 8
TOGETHER_S = 100
# Of a neighbour's time, for probes: the default is 0.01, whose first probe is after 200 s.
PROBE = ["--probe-share=0.25"]
PROBE_NEIGHBOUR = "medium"
PROBE_MAX_S = 60
PROBE_SETTLE_S = 0.5  # PROBE_SETTLE_US of src/core/probe.h
MISSED_S = 40  # two reports, giving way, and what the speed is then
FLUSH_S = 0.25  # of promise_training.py


def until(condition, limit, what):
    end = time.monotonic() + limit
    while not (value := condition()):
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.1)
    return value


def gpu_of(index, query):
    command = ["nvidia-smi", "-i", index, f"--query-gpu={query}", "--format=csv,noheader"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def quit_mps(environment):
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(
            ["nvidia-cuda-mps-control"],
            input="quit -t 2\n",
            text=True,
            env=environment,
            capture_output=True,
            timeout=15,
        )


class Daemon:
    """collocd on one GPU, with its own folders."""

    def __init__(self, trial, policy="predictive", *options):
        self.trial, self.folder = trial, tempfile.mkdtemp(prefix="promise-", dir=trial.folder)
        self.socket = os.path.join(self.folder, "s")
        programs = trial.programs
        command = [
            f"{programs}/collocd",
            f"--socket={self.socket}",
            f"--state-dir={self.folder}/state",
            f"--shim={programs}/colloc-shim",
            f"--preload-library={programs}/libcolloc-preload.so",
            f"--gpus={trial.index}",
            f"--policy={policy}",
            "--sharing=mps",
            "--settle=1s",
            "--settle-max=2s",
            "--smact-max=1",
            "--min-free=2GiB",
            *options,
        ]
        environment = {k: v for k, v in os.environ.items() if k != "CUDA_VISIBLE_DEVICES"}
        self.tasks = []
        self.log = open(os.path.join(self.folder, "log"), "a+")
        self.process = subprocess.Popen(
            command, stderr=self.log, stdout=self.log, env=environment, start_new_session=True
        )
        until(self.answers, 20, "collocd does not answer")

    def answers(self):
        if self.process.poll() is not None:
            raise RuntimeError("collocd ended: " + open(self.log.name).read()[-600:])
        return self.run("info", check=False).returncode == 0

    def run(self, *arguments, check=True):
        done = subprocess.run(
            [f"{self.trial.programs}/colloc", "--socket", self.socket, *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=60,
        )
        if check and done.returncode:
            raise RuntimeError(f"colloc {arguments}: {done.stderr[-300:]}")
        return done

    def submit(self, model, path, *options, steps=None):
        command = [sys.executable, TRAINING, self.trial.workloads, self.trial.model(model), path]
        command += [str(steps)] if steps else []
        out = self.run("submit", "--json", *options, "--", *command).stdout
        self.tasks.append(json.loads(out)["id"])
        return self.tasks[-1]

    def show(self, task):
        return json.loads(self.run("show", str(task), "--json").stdout)

    def cancel(self, *tasks):
        for task in tasks:
            self.run("cancel", str(task), check=False)
        for task in tasks:
            self.run("wait", str(task), check=False)

    def close(self):
        """Ends it with its tasks, which would outlive it."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.cancel(*(id for id in self.tasks if self.show(id)["ended_at"] is None))
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
        for pipe in glob.glob(f"{self.folder}/state/mps/*/pipe"):
            quit_mps(dict(os.environ, CUDA_MPS_PIPE_DIRECTORY=pipe))


def read_steps(path):
    with contextlib.suppress(OSError), open(path) as file:
        return [float(word) for word in file.read().split()]
    return []


def in_ms(ends, since):
    """From the second `since` on: the first one, and milliseconds after it."""
    ends = [t for t in ends if t >= since]
    return [ends[0], *(round(1000 * (t - ends[0])) for t in ends)] if ends else []


def from_ms(packed):
    return [packed[0] + ms / 1000 for ms in packed[1:]]


def rate(ends, since, to):
    inside = [t for t in ends if since <= t < to]
    return len(inside) / (to - since) if to > since else 0


class Trial:
    def __init__(self, programs, path, seconds, options):
        self.programs = os.path.abspath(programs)
        self.workloads = os.path.join(self.programs, "workloads")
        self.is_dry, self.is_small = "--dry" in options, "--small" in options or "--dry" in options
        self.index = (os.environ.get("CUDA_VISIBLE_DEVICES") or "0").split(",")[0]
        self.gpu = "0" if self.is_dry else gpu_of(self.index, "uuid")
        self.folder = tempfile.mkdtemp(prefix="promise-trial-")
        self.out, self.begin, self.seconds = open(path, "a"), time.monotonic(), float(seconds)
        self.alone_s = 3 if self.is_small else ALONE_S
        self.daemon = self.monitor = None
        self.write(
            part="machine", gpu="" if self.is_dry else gpu_of(self.index, "name,driver_version")
        )

    def left(self):
        return self.begin + self.seconds - time.monotonic()

    def write(self, **row):
        row["at_s"] = round(time.monotonic() - self.begin, 1)
        self.out.write(json.dumps(row, separators=(",", ":")) + "\n")
        self.out.flush()
        shown = {k: v for k, v in row.items() if not isinstance(v, list) or len(v) < 8}
        print(json.dumps(shown)[:700], flush=True)

    def model(self, name):
        return f"dry/{ {'decoder': 11, 'medium': 54}.get(name, 98)}" if self.is_dry else name

    def energy_j(self):
        if self.is_dry:
            return None
        import pynvml

        if not self.monitor:
            pynvml.nvmlInit()
            self.monitor = pynvml.nvmlDeviceGetHandleByIndex(int(self.index))
        return pynvml.nvmlDeviceGetTotalEnergyConsumption(self.monitor) / 1e3

    # ---- a promise, held

    def held(self, model, seconds, is_missed=False):
        """A promised training: alone, beside a decoder for `seconds`, and alone again; then, with
        is_missed, beside a decoder that is declared to use less of the GPU than it does."""
        own = os.path.join(self.daemon.folder, f"promised-{model}")
        promised = self.daemon.submit(
            model,
            own,
            f"--max-slowdown={PROMISE}",
            f"--smact={SMACT[model]}",
            f"--memory={MEMORY[model]}",
        )
        row = {"part": "held", "model": model, "promise": PROMISE, "promised": promised}
        try:
            first = until(lambda: read_steps(own), START_MAX_S, "first step")[0]
            row["alone_from"] = first + SETTLE_S
            with contextlib.suppress(TimeoutError):  # the row says then that it was not known
                until(lambda: self.daemon.show(promised)["slowdown"], 30, "its speed alone")
            time.sleep(max(0, row["alone_from"] + self.alone_s - time.time()))
            honest = [f"--smact={SMACT['decoder']}"]
            self.write(**row, **self.beside(promised, own, "decoder", honest, seconds))
            if is_missed:
                row["part"] = "missed"
                seconds = max(3, self.left() - START_S - self.alone_s - 5)
                self.write(**row, **self.beside(promised, own, "wrong", WRONG, seconds, True))
        finally:
            self.daemon.cancel(promised)

    def beside(self, promised, own, name, options, seconds, is_last=False):
        """A decoder joins the promised task, and leaves again; or, if it is the last one, the
        promised task leaves, and the decoder goes on alone. Returns what happened."""
        other = os.path.join(self.daemon.folder, f"{name}-{promised}")
        row = {"joined": time.time()}
        task = self.daemon.submit("decoder", other, f"--memory={MEMORY['decoder']}", *options)
        row["together_from"] = until(lambda: read_steps(other), START_MAX_S, "its first step")[0]
        seen = []
        while time.time() < row["together_from"] + seconds:
            one, two = self.daemon.show(promised), self.daemon.show(task)
            keys = ("slowdown", "steps_per_s", "promise_text")
            seen.append([round(time.time(), 1), *(one[k] for k in keys), two["state"]])
            time.sleep(1)
        row["together_to"] = time.time()
        last, one = self.daemon.show(task), self.daemon.show(promised)
        self.daemon.cancel(promised if is_last else task)
        row["alone_again_from"] = time.time() + 1
        time.sleep(max(1, min(self.alone_s + 1, self.left() - 4)))
        row["alone_again_to"] = time.time() - 2 * FLUSH_S
        if is_last:  # it has come back by then
            row["alone_again_from"] = row["alone_again_to"] - 0.6 * self.alone_s
        found = self.daemon.show(task)
        if is_last:
            self.daemon.cancel(task)
        kept = ("thread_percentage", "sharing", "sharing_text", "max_slowdown")
        return {
            **row,
            **{key: last.get(key) for key in kept},
            "counted_alone_per_s": one.get("steps_per_s_alone"),
            "seen": seen,
            "events": [[e["at"], e["event"], e["text"]] for e in found["events"]],
            "ends": in_ms(read_steps(own), row["joined"] - self.alone_s - 5),
            "other_ends": in_ms(read_steps(other), 0),
        }

    # ---- a probe

    def probe(self, model):
        other = os.path.join(self.daemon.folder, "neighbour")
        own = os.path.join(self.daemon.folder, f"probed-{model}")
        task = self.submit_declared(PROBE_NEIGHBOUR, other)
        until(lambda: read_steps(other), START_MAX_S, "the neighbour's first step")
        promised = self.submit_declared(model, own, "--max-slowdown=3")
        row = {"part": "probe", "model": model, "neighbour": PROBE_NEIGHBOUR}
        row["together_from"] = until(lambda: read_steps(own), START_MAX_S, "its first step")[0]
        with contextlib.suppress(TimeoutError):  # the row says why, in promise_text
            until(lambda: self.daemon.show(promised)["steps_per_s_alone"], PROBE_MAX_S, "a probe")
        shown = self.daemon.show(promised)
        self.daemon.cancel(task)
        row["alone_from"] = time.time() + 1
        time.sleep(self.alone_s + 1)
        row["alone_to"] = time.time() - 2 * FLUSH_S
        found = self.daemon.show(task)
        self.daemon.cancel(promised)
        ends = read_steps(own)
        alone = rate(ends, row["alone_from"], row["alone_to"])
        self.write(
            **row,
            probed_per_s=shown["steps_per_s_alone"],
            alone_per_s=round(alone, 3),
            promise_text=shown["promise_text"],
            probes_text=found["probes_text"],
            events=[[e["at"], e["event"], e["text"]] for e in found["events"]],
            ends=in_ms(ends, 0),
            other_ends=in_ms(read_steps(other), 0),
        )

    def submit_declared(self, model, path, *options):
        declared = [f"--smact={SMACT[model]}", f"--memory={MEMORY[model]}"]
        return self.daemon.submit(model, path, *declared, *options)

    # ---- MPS without colloc

    def bare(self):
        environment = dict(
            os.environ,
            CUDA_VISIBLE_DEVICES=self.gpu,
            CUDA_MPS_PIPE_DIRECTORY=f"{self.folder}/pipe",
            CUDA_MPS_LOG_DIRECTORY=f"{self.folder}/mps-log",
        )
        os.makedirs(environment["CUDA_MPS_PIPE_DIRECTORY"])
        os.makedirs(environment["CUDA_MPS_LOG_DIRECTORY"])
        if self.is_dry:
            return self.bare_runs(environment)
        subprocess.run(["nvidia-cuda-mps-control", "-d"], env=environment, check=True)
        try:
            self.bare_runs(environment)
        finally:
            quit_mps(environment)

    def bare_runs(self, environment):
        limits = {
            "small": {},
            "medium": {},
            "decoder": {},
            "decoder, lower priority": {"CUDA_MPS_CLIENT_PRIORITY": "1"},
            "decoder, 55 %": {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "55"},
            "decoder, 70 %, lower priority": {
                "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "70",
                "CUDA_MPS_CLIENT_PRIORITY": "1",
            },
        }
        vision = ["small"] if self.is_small else ["small", "medium"]
        for name in ("medium", "decoder, 70 %, lower priority") if self.is_small else ():
            del limits[name]
        workers = {
            name: subprocess.Popen(
                [sys.executable, TRAINING, self.workloads, "-"],
                env=dict(environment, **own),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for name, own in limits.items()
        }
        seconds = 1.5 if self.is_small else 2.5
        try:
            for name, worker in workers.items():
                self.say(worker, f"load {self.model(name.split(',')[0])}")
            for worker in workers.values():
                json.loads(worker.stdout.readline())
            others = [name for name in workers if name.startswith("decoder")]
            mixes = [(name,) for name in (*vision, "decoder")]
            mixes += [(a, b) for a in vision for b in others]
            for mix in mixes:
                for name in mix:
                    self.say(workers[name], f"run {seconds}")
                answers = [json.loads(workers[name].stdout.readline()) for name in mix]
                self.write(part="bare", mix=mix, per_s=[round(a["per_s"], 3) for a in answers])
        finally:
            for worker in workers.values():
                worker.kill()

    @staticmethod
    def say(worker, line):
        worker.stdin.write(line + "\n")
        worker.stdin.flush()

    # ---- the ledger

    def ledger(self):
        """Alone one after the other, then together, and again while there is time. With magm, as
        predictive, which knows from the first pass how long they take, lets some of them wait."""
        self.daemon = Daemon(self, "magm")
        short = SHORT[:2] if self.is_small else SHORT
        self.ledger_pass(short, "exclusive", ["--exclusive"])
        begin = time.monotonic()
        self.ledger_pass(short, "shared", [])
        took = time.monotonic() - begin
        while not self.is_small and self.left() > 1.2 * took + 5:
            self.ledger_pass(short, "shared", [])

    def ledger_pass(self, short, how, options):
        time.sleep(1.1)  # the report begins at a whole second after what came before
        begin, energy = time.time(), self.energy_j()
        tasks = []
        for number, (model, steps) in enumerate(short):  # the same commands in each pass
            path = os.path.join(self.daemon.folder, f"{model}-{number}")
            steps = steps // 4 if self.is_small else steps
            options_of = [f"--smact={SMACT[model]}", f"--memory={MEMORY[model]}"]
            tasks.append(
                (path, self.daemon.submit(model, path, *options, *options_of, steps=steps))
            )
        for _, task in tasks:
            self.daemon.run("wait", str(task), check=False)
        end = time.time()
        ran = [self.ledger_task(path, task) for path, task in tasks]
        report = self.daemon.run(
            "report",
            "--saved",
            "--json",
            f"--from={time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(begin))}",
            check=False,
        )
        self.write(
            part="ledger",
            how=how,
            seconds=round(end - begin, 2),
            energy_j=None if energy is None else round(self.energy_j() - energy, 1),
            tasks=ran,
            report=json.loads(report.stdout) if report.returncode == 0 else report.stderr[-300:],
        )

    def ledger_task(self, path, task):
        shown, ends = self.daemon.show(task), read_steps(path)
        keys = (
            "state exec_s started_at ended_at steps steps_per_s_mean steps_per_s_alone ledger "
            "sharing thread_percentage gpus"
        ).split()
        return {
            **{key: shown.get(key) for key in keys},
            "first_step": ends[0] if ends else None,
            "last_step": ends[-1] if ends else None,
            "made": len(ends),
        }

    def together_s(self, parts):
        """How long the decoder stays beside each promised task of these parts."""
        if self.is_small:
            return 3
        timed = [name for name in parts if name.startswith(("held", "missed"))]
        one_s = 2 * START_S + SETTLE_S + 2 * ALONE_S + 3
        missed = [name for name in timed if name.startswith("missed")]
        rest_s = len(timed) * one_s + len(missed) * (START_S + MISSED_S + ALONE_S + 3)
        return min(TOGETHER_S, max(WINDOW_S, (self.left() - rest_s) / len(timed)))

    def part(self, parts):
        """Runs the first one of these."""
        what, _, model = parts[0].partition(":")
        try:
            if self.left() < 20:
                self.write(part=what, model=model, error="no time was left")
            elif what == "bare":
                self.bare()
            elif what == "ledger":
                self.close()
                self.ledger()
            elif what == "probe":
                self.close()
                self.daemon = Daemon(self, "predictive", *PROBE)
                self.probe(model)
                self.close()
            else:
                self.daemon = self.daemon or Daemon(self)
                self.held(model, self.together_s(parts), what == "missed")
        except Exception as problem:  # the other parts are worth their time
            self.write(part=what, model=model, error=repr(problem)[-400:])

    def close(self):
        if self.daemon:
            self.daemon.close()
        self.daemon = None


# ---- the summary, and the page


def read(path):
    with lzma.open(path, "rt") if path.endswith(".xz") else open(path) as file:
        return [json.loads(line) for line in file if line.strip()]


def bare_alone(rows):
    return {r["mix"][0]: r["per_s"][0] for r in rows if r["part"] == "bare" and len(r["mix"]) == 1}


def windows(ends, since, to, step_s=WINDOW_S):
    """Steps a second in windows that begin every step_s seconds."""
    n = int((to - since - WINDOW_S) // step_s) + 1
    return [rate(ends, since + i * step_s, since + i * step_s + WINDOW_S) for i in range(max(0, n))]


class Beside:
    """What a row of the parts held and missed says."""

    def __init__(self, row):
        self.row = row
        self.ends, self.others = from_ms(row["ends"]), from_ms(row["other_ends"])
        self.since, self.to = row["together_from"], row["together_to"]
        self.before = rate(self.ends, max(row["alone_from"], self.ends[0]), row["joined"])
        self.after = rate(self.ends, row["alone_again_from"], row["alone_again_to"])

    def alone(self):
        """Steps a second alone, by name of what they are taken from."""
        found = {"before": self.before, "after": self.after if self.row["part"] == "held" else 0}
        found["colloc"] = self.row["counted_alone_per_s"] or 0
        return {name: per_s for name, per_s in found.items() if per_s > 0}

    def kept(self, alone, step_s=WINDOW_S):
        found = windows(self.ends, self.since, self.to, step_s)
        return sum(alone <= PROMISE * per_s for per_s in found), len(found)


def last_phase(row):
    """Since when, and until when, the one that stays is alone. A decoder that had given way is not
    there before it has come back: its first step ends that."""
    since = row["alone_again_from"]
    back = max((at for at, event, _ in row["events"] if event == "RESUMED"), default=since)
    if row["part"] == "missed" and back > since:
        since = next((t for t in from_ms(row["other_ends"]) if t > back), since)
    return since, row["alone_again_to"]


def decoder_alone(rows):
    """Steps a second of the decoder without a limit, once the promised task has left."""
    for row in rows:
        if row["part"] == "missed" and "ends" in row:
            return rate(from_ms(row["other_ends"]), *last_phase(row))
    return float("nan")


def percent_of(kept):
    return f"{kept[0]} of {kept[1]}"


def page_held(rows):
    if not any(row["part"] == "held" for row in rows):
        return
    print("| promised 1.5 | SMs of the decoder | speed alone from | steps/s | ", end="")
    print("windows of 10 s | one each second | slowest | speed | of the decoder | sum |")
    print("| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    decoder = decoder_alone(rows)
    for row in rows:
        if row["part"] != "held" or "ends" not in row:
            continue
        it = Beside(row)
        other = rate(it.others, it.since, it.to) / decoder
        for name, alone in it.alone().items():
            own = rate(it.ends, it.since, it.to) / alone
            worst = min(windows(it.ends, it.since, it.to), default=0) / alone
            print(
                f"| {row['model']} | {row['thread_percentage'] or 100} % | {name} | {alone:.1f} | "
                f"{percent_of(it.kept(alone))} | {percent_of(it.kept(alone, 1))} | {worst:.2f} | "
                f"{own:.2f} | {other:.2f} | {own + other:.2f} |"
            )
    print()


def phases(it):
    """What happened: (name, since, to). The decoder may have given way, and come back."""
    row = it.row
    at = {event: moment for moment, event, _ in row["events"]}
    gave_way = at.get("SUSPENDED", row["together_to"])
    yield "alone", max(row["alone_from"], it.ends[0]), row["joined"]
    yield "a decoder starts", row["joined"], it.since
    yield "beside it", it.since, at.get("SUSPENDING", gave_way)
    if "SUSPENDED" in at:
        yield "it has given way", gave_way, row["together_to"]
    last = "it is alone" if row["part"] == "missed" else "alone again"
    yield (last, *last_phase(row))


def span(ends, since, to):
    """The mean of steps a second, and the slowest and fastest of its whole seconds."""
    seconds = [rate(ends, since + i, since + i + 1) for i in range(int(to - since))]
    spread = f" ({min(seconds):.0f} to {max(seconds):.0f})" if len(seconds) > 1 else ""
    return f"{rate(ends, since, to):.1f}{spread}"


def page_story(rows):
    for row in rows:
        if "ends" not in row or row["part"] == "probe":
            continue
        it = Beside(row)
        print(f"{row['part']}: {row['model']}, decoder {row['thread_percentage'] or 100} %\n")
        print("| | s | steps/s (of single seconds) | of the decoder |")
        print("| --- | ---: | ---: | ---: |")
        for name, since, to in phases(it):
            own = span(it.ends, since, to) if name != "it is alone" else "-"
            other = rate(it.others, since, to)
            print(f"| {name} | {to - since:.1f} | {own} | {other:.1f} |")
        print("\n| s since it joined | slowdown by colloc | decoder | promise |")
        print("| ---: | ---: | --- | --- |")
        shown = None
        for at, slowdown, _, text, state in row["seen"]:
            if (text, state) != shown:
                shown = (text, state)
                slow = "-" if slowdown is None else f"{slowdown:.2f}"
                print(f"| {at - row['joined']:.0f} | {slow} | {state} | {text} |")
        print()
        for at, event, text in row["events"]:
            print(f"    {at - row['joined']:6.1f} s {event} {text}")
        print()


def page_ledger(rows):
    passes = [row for row in rows if row["part"] == "ledger" and "tasks" in row]
    alone = [sum(t["exec_s"] for t in row["tasks"]) for row in passes if row["how"] == "exclusive"]
    if not alone:
        return
    print("| | held | of it before first steps | occupied | saved, really | part ", end="")
    print("| by the ledger | between | measured | energy | saved by the ledger |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for row in passes:
        if not isinstance(row["report"], dict):
            print(f"| {row['how']} | {row['report']} |")
            continue
        found = row["report"]["total"]
        s = {key: 3600 * (found[key] or 0) for key in found if key.startswith("gpu_hours")}
        real = round(alone[0] - s["gpu_hours_occupied"], 3) + 0.0  # no -0.0
        low, said, high = (s[f"gpu_hours_saved{end}"] for end in ("_low", "", "_high"))
        shared = s["gpu_hours_shared"]
        starting = sum(t["first_step"] - t["started_at"] for t in row["tasks"] if t["first_step"])
        energy = "-" if row["energy_j"] is None else f"{row['energy_j'] / 1e3:.1f} kJ"
        print(
            f"| {row['how']} | {s['gpu_hours_held']:.1f} s | {starting:.1f} s | "
            f"{s['gpu_hours_occupied']:.1f} s | "
            f"{real:.1f} s | {100 * real / alone[0]:.1f} % | "
            f"{said:.1f} s, {100 * said / s['gpu_hours_alone']:.1f} % | "
            f"{low:.1f} and {high:.1f} s | "
            f"{100 * s['gpu_hours_speed_measured'] / shared if shared else 0:.0f} % | "
            f"{energy} | {3600 * (found['energy_saved_kwh'] or 0):.1f} kJ |"
        )
    print()


def own_rate(task, made):
    """Steps a second by the ends of the first and the last one."""
    if not task["first_step"] or made < 2:
        return float("nan")
    return (made - 1) / (task["last_step"] - task["first_step"])


def page_ledger_tasks(rows):
    """Each task beside the others, against itself alone."""
    passes = [row for row in rows if row["part"] == "ledger" and "tasks" in row]
    alone = next((row["tasks"] for row in passes if row["how"] == "exclusive"), [])
    beside = next((row["tasks"] for row in passes if row["how"] == "shared"), [])
    if not beside:
        return
    print(
        "| task | steps/s alone | counted | beside others | counted | steps counted of made ",
        end="",
    )
    print("| s alone | by the ledger | s beside others | of it measured |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for (name, steps), one, two in zip(SHORT, alone, beside):
        made = two.get("made", steps)
        print(
            f"| {name} | {own_rate(one, one.get('made', steps)):.1f} | "
            f"{one['steps_per_s_mean'] or float('nan'):.1f} | {own_rate(two, made):.1f} | "
            f"{two['steps_per_s_mean'] or float('nan'):.1f} | {two['steps'] or 0:.0f} of {made} | "
            f"{one['exec_s']:.1f} | {two['ledger']['alone_s']:.1f} | "
            f"{two['ledger']['shared_s']:.1f} | {two['ledger']['measured_s']:.1f} |"
        )
    print()


def probe_phases(row):
    """Of the story of a probe: (name, since, to)."""
    at = {event: moment for moment, event, _ in row["events"]}
    if "PAUSE" in at and "CONTINUE" in at:
        yield "beside it", row["together_from"], at["PAUSE"]
        yield "it is paused, and its kernels end", at["PAUSE"], at["PAUSE"] + PROBE_SETTLE_S
        yield "it is paused: the steps are counted", at["PAUSE"] + PROBE_SETTLE_S, at["CONTINUE"]
    if "END" in at and at["END"] < row["alone_from"]:
        yield "it has just left", at["END"], row["alone_from"]
    yield "it has left", row["alone_from"], row["alone_to"]


def lengths_ms(ends, since, to):
    """The 5th percentile and the median of the steps' lengths; "-": too few."""
    inside = [t for t in ends if since <= t < to]
    lengths = sorted(1000 * (b - a) for a, b in zip(inside, inside[1:]))
    if len(lengths) < 20:
        return "- | -"
    return f"{lengths[len(lengths) // 20]:.0f} | {lengths[len(lengths) // 2]:.0f}"


def page_probe(rows):
    for row in rows:
        if row["part"] != "probe" or "ends" not in row:
            continue
        said = f"{row['probed_per_s']:.1f}" if row["probed_per_s"] else "no speed"
        note = row["probes_text"] or row["promise_text"]
        ends, others = from_ms(row["ends"]), from_ms(row["other_ends"])
        print(f"{row['model']} beside {row['neighbour']}; the probe says {said}: {note}\n")
        print("| the neighbour | s | steps/s (of single seconds) | step, ms: 5 % | median ", end="")
        print("| of the neighbour |\n| --- | ---: | ---: | ---: | ---: | ---: |")
        for name, since, to in probe_phases(row):
            print(
                f"| {name} | {to - since:.1f} | {span(ends, since, to)} | "
                f"{lengths_ms(ends, since, to)} | {rate(others, since, to):.1f} |"
            )
        print()


def page_bare(rows):
    alone = {r["mix"][0]: r["per_s"][0] for r in rows if len(r.get("mix", ())) == 1}
    if not alone:
        return
    print("| under MPS, without colloc | speed of the first | of the second | sum |")
    print("| --- | ---: | ---: | ---: |")
    for row in rows:
        if len(row.get("mix", ())) == 2:
            speeds = [
                per_s / alone[name.split(",")[0]] for per_s, name in zip(row["per_s"], row["mix"])
            ]
            cells = [" + ".join(row["mix"]), *(f"{value:.2f}" for value in [*speeds, sum(speeds)])]
            print(f"| {' | '.join(cells)} |")
    print()


PAGES = (page_held, page_story, page_probe, page_ledger, page_ledger_tasks, page_bare)


def page(path):
    rows = read(path)
    for print_part in PAGES:
        print_part(rows)
    for row in rows:
        if "error" in row:
            print(f"{row['part']}: {row['error']}")


def main(arguments):
    words = [word for word in arguments if not word.startswith("--")]
    options = [word for word in arguments if word.startswith("--")]
    if options == ["--page"]:
        return page(words[0])
    if len(words) < 3:
        sys.exit(__doc__)
    programs, path, seconds, *parts = words
    trial = Trial(programs, path, seconds, options)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    parts = parts or ["held:small", "missed:medium"]
    try:
        for i in range(len(parts)):
            trial.part(parts[i:])
    finally:
        trial.close()
    page(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
