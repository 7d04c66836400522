#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Steps a second as libcolloc-preload.so counts them, beside the counts of the trainings.

    tests/gpu/step_rate_trial.py LIBRARY OUT.jsonl SECONDS [DEVICE [NAME,NAME... [PART,PART...]]]
    tests/gpu/step_rate_trial.py --page OUT.jsonl[.xz]  # the tables of docs/measured/steps.md

The twelve trainings of step_rate_trainings.py start together, since most of their start is on the
CPU, and wait. Then, in SECONDS in all, on a GPU without other users:

    alone     each trains by itself
    shared    four at a time, time-sliced
    mps       five of LIBRARY's folder `workloads` as clients of MPS, which start together: their
              steps are searched for beside the others
    probe     a training beside another that is stopped (SIGSTOP) for three seconds: does the speed
              meanwhile say what it is alone? And beside one that is stopped for half of the time.
    launch    launch-cost beside this file, if it is there: the time of a launch without the library
              and with it, in turns

The default are all parts but mps. With names only these train, by default alone and then all of
them together.

The other end of the library is tests/lib/preload_daemon.py (or preload_daemon.py beside this file),
so no colloc has to run. A row for each training and part is written when it is known:

    steps, counted     steps by the training's own count and by the library, in the same time: from
                       the library's first step of the run to the last sample of its page
    per_s, counted_per_s   without evaluations, each by its own clock
    found_s            seconds of training until the library showed steps (0: before the run)
    ends, page         the raw data: ms of each step's end; of the page [ms, count, timed ms, unit,
                       source]
"""
import json
import lzma
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib")]

from promise_trial import quit_mps  # noqa: E402

TRAININGS = os.path.join(HERE, "step_rate_trainings.py")
LAUNCH_COST = os.path.join(HERE, "launch-cost")
NAMES = (
    "resnet vit_half gpt2 lstm gan detection recommender accumulate evaluation compile graph jax"
).split()
GROUPS = [
    ["resnet", "gpt2", "lstm", "graph"],
    ["vit_half", "gan", "recommender", "evaluation"],
    ["detection", "accumulate", "compile", "jax"],
]
PROBES = [("resnet", "gpt2"), ("accumulate", "vit_half"), ("gpt2", "resnet")]
CLIENTS = ["small", "decoder", "recommender", "medium", "encoder"]
# Of SECONDS the trainings start in the first part, or later where they are slow. The parts share
# the rest by these weights.
READY_PART = 0.2
WEIGHTS = {"alone": 3, "shared": 3, "mps": 3.2, "probe": 1, "launch": 1}
MPS_TRAINING = 0.4  # of that part; before, the clients start, for some 20 s
SAMPLE_S = 0.02
ANSWER_MAX_S = 20  # a step that is under way, and its synchronisation
PROBE_BEFORE, PROBE_STOPPED = 0.3, 0.35  # of the time of a probe; the rest: stopped half of it
PERIOD_S = 0.4  # of stopping for half of the time
COUNTED_PARTS = ("alone", "shared", "mps")
WITHIN = 0.02


class Watch:
    """Samples the page of one process."""

    def __init__(self, daemon, pid):
        self.daemon, self.pid, self.samples = daemon, pid, []

    def sample(self):
        import preload_daemon as pd

        page = self.daemon.pages.get(self.pid)
        if not page:
            return
        values = (
            page.u64(pd.STEPS),
            page.u64(pd.STEPS_TIMED_US),
            page.u32(pd.STEPS_UNIT),
            page.u32(pd.STEPS_SOURCE),
        )
        self.samples.append((time.monotonic(), *values))


class Training:
    def __init__(self, name, trial, more=None):
        self.name, self.trial, self.error = name, trial, None
        environment = dict(
            os.environ,
            CUDA_DEVICE_ORDER="PCI_BUS_ID",
            XLA_PYTHON_CLIENT_PREALLOCATE="false",
            OMP_NUM_THREADS="1",
            LD_PRELOAD=trial.library,
            COLLOC_PRELOAD_SOCKET=trial.daemon.path,
            COLLOC_TASK_ID=str(1 + trial.next_task()),
            COLLOC_ATTEMPT_NUMBER="1",
            PYTHONUNBUFFERED="1",
            **(more or {}),
        )
        self.log = tempfile.TemporaryFile("w+", errors="replace")
        self.process = subprocess.Popen(
            [sys.executable, TRAININGS, name, trial.device],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )
        self.answers, self.came = [], threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            word, _, text = line.partition(" ")
            if word in ("ready", "steps"):
                with self.came:
                    self.answers.append(json.loads(text))
                    self.came.notify_all()
        with self.came:
            self.answers.append(None)
            self.came.notify_all()

    def wait(self, seconds):
        """The next answer; None with self.error: it ended, or took too long."""
        end = time.monotonic() + seconds
        with self.came:
            while not self.answers:
                left = end - time.monotonic()
                if left <= 0:
                    self.error = self.error or f"no answer in {seconds:.0f} s"
                    return None
                self.came.wait(left)
            answer = self.answers.pop(0)
        if answer is None:
            self.log.seek(0)
            lines = [line for line in self.log.read().splitlines() if line.strip()]
            self.error = "; ".join(lines[-2:])[-300:] or f"ended with {self.process.wait()}"
        return answer

    def begin(self, seconds):
        self.process.stdin.write(f"run {seconds}\n")
        self.process.stdin.flush()

    def end(self):
        self.process.kill()
        self.process.wait()


def settle(name, part, answer, samples, beside=()):
    """The row of one run: both counts between two samples of the page."""
    ends, breaks = answer["ends"], answer["breaks"]
    row = {"part": part, "name": name, "beside": list(beside)}
    begin = ends[0] if ends else 0
    row["ends"] = [round(1000 * (end - begin), 1) for end in ends]
    row["breaks"] = [[round(1000 * (t - begin), 1) for t in pair] for pair in breaks]
    row["page"] = thin(samples, begin)
    inside = [s for s in samples if ends and ends[0] <= s[0] <= ends[-1] and s[4]]
    if not inside:
        return dict(row, error="no step was found")
    unit = inside[-1][3]
    own = [s for s in inside if s[3] == unit]
    moved = next((s for s in own if s[1] > own[0][1]), None)
    if not moved:
        return dict(row, error="no step was counted")
    first, last = moved, own[-1]
    before = max((end for end in ends if end <= first[0]), default=ends[0])
    until = max(end for end in ends if end <= last[0])
    paused = sum(max(0, min(b, until) - max(a, before)) for a, b in breaks)
    steps = sum(before < end <= until for end in ends)
    took, counted = until - before, last[1] - first[1]
    timed = (last[2] - first[2]) / 1e6
    row.update(
        found_s=round(inside[0][0] - ends[0], 2),
        seconds=round(took, 3),
        steps=steps,
        counted=counted,
        per_s=round(steps / max(1e-9, took - paused), 4),
        counted_per_s=round(counted / timed, 4) if timed > 0 else None,
        units=len({s[3] for s in inside}),
    )
    return row


def thin(samples, begin):
    """Two of three samples say nothing new: those between changes of the count, and one in ten."""
    kept = [s for i, s in enumerate(samples) if i % 10 == 0 or i == len(samples) - 1]
    return [[round(1000 * (s[0] - begin), 1), s[1], round(s[2] / 1000, 1), *s[3:]] for s in kept]


class Trial:
    def __init__(self, library, path, seconds, device, names, parts):
        import preload_daemon as pd

        self.library, self.device = os.path.abspath(library), device
        self.out = open(path, "a")
        self.begin, self.seconds = time.monotonic(), seconds
        self.names, self.groups = (names, [names]) if names else (NAMES, GROUPS)
        self.parts, self.tasks = parts, 0
        self.folder = tempfile.mkdtemp(prefix="step-rate")
        self.daemon = pd.PreloadDaemon(
            os.path.join(self.folder, "socket"), lambda wait: [(pd.FAIL, 0)]
        )
        self.trainings, self.ready = {}, []

    def left(self):
        return self.begin + self.seconds - time.monotonic()

    def seconds_of(self, *parts):
        weights = {part: WEIGHTS[part] for part in self.parts}
        share = sum(weights.get(part, 0) for part in parts) / sum(weights.values())
        return (1 - READY_PART) * self.seconds * share

    def next_task(self):
        self.tasks += 1
        return self.tasks

    def write(self, row):
        self.out.write(json.dumps(row, separators=(",", ":")) + "\n")
        self.out.flush()
        text = {k: v for k, v in row.items() if k not in ("ends", "page", "breaks")}
        print(f"{time.monotonic() - self.begin:6.1f} s", json.dumps(text), flush=True)

    def start(self):
        for name in self.names:
            self.trainings[name] = Training(name, self)

    def gather(self, until):
        """Those that have become ready; waits until all are, or for so long."""
        for name, training in self.trainings.items():
            if name in self.ready or training.error:
                continue
            answer = training.wait(max(0.02, until - time.monotonic()))
            if answer:
                self.ready.append(name)
                self.write({"part": "start", "name": name, **answer})
            elif training.process.poll() is None:
                training.error = None  # it may become ready later
            else:
                self.write({"part": "start", "name": name, "error": training.error})

    def write_late(self):
        """A training that no part could have since its start took too long is named too."""
        for name, training in self.trainings.items():
            if name in self.names and name not in self.ready and not training.error:
                self.write({"part": "start", "name": name, "error": "its start took too long"})

    def run(self, names, seconds, part):
        """Lets trainings run at the same time. Returns their rows, which are not written yet."""
        watches = {n: Watch(self.daemon, self.trainings[n].process.pid) for n in names}
        for watch in watches.values():
            watch.sample()
        for name in names:
            self.trainings[name].begin(seconds)
        self.sample(watches, seconds)
        return [self.row_of(name, names, part, watches[name]) for name in names]

    @staticmethod
    def sample(watches, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for watch in watches.values():
                watch.sample()
            time.sleep(SAMPLE_S)

    def row_of(self, name, names, part, watch):
        answer = self.trainings[name].wait(ANSWER_MAX_S)
        beside = [other for other in names if other != name]
        if answer:
            return settle(name, part, answer, watch.samples, beside)
        self.ready.remove(name)
        return {"part": part, "name": name, "error": self.trainings[name].error}

    def alone(self):
        seconds = self.seconds_of("alone") / len(self.names)
        rest = seconds + self.seconds_of(*(part for part in self.parts if part != "alone"))
        done = set()
        while self.left() > rest:
            waiting = [n for n in self.names if n in self.ready and n not in done]
            if waiting:
                done.add(waiting[0])
                for row in self.run(waiting[:1], seconds, "alone"):
                    self.write(row)
            elif all(n in self.ready or self.trainings[n].error for n in self.names):
                break
            else:
                self.gather(time.monotonic() + 0.5)

    def shared(self):
        seconds = self.seconds_of("shared") / len(self.groups)
        for group in self.groups:
            names = [name for name in group if name in self.ready]
            for row in self.run(names, seconds, "shared") if names else []:
                self.write(row)

    def mps(self):
        """Clients that start together, and train from their first step on."""
        for training in self.trainings.values():
            training.end()
        seconds = min(self.seconds_of("mps"), self.left())
        pipe, workloads = (os.path.join(self.folder, "pipe"), self.workloads())
        environment = {"CUDA_MPS_PIPE_DIRECTORY": pipe, "CUDA_MPS_LOG_DIRECTORY": pipe}
        os.makedirs(pipe)
        if self.device == "cuda":
            control = ["nvidia-cuda-mps-control", "-d"]
            subprocess.run(control, env={**os.environ, **environment}, check=True)
        try:
            self.trainings = {
                model: Training(f"{workloads}:{model}", self, environment) for model in CLIENTS
            }
            watches = {n: Watch(self.daemon, t.process.pid) for n, t in self.trainings.items()}
            for training in self.trainings.values():
                training.begin(MPS_TRAINING * seconds)
            self.sample(watches, seconds - 4)
            for model in CLIENTS:
                self.write(self.client_row(model, watches[model]))
        finally:
            for training in self.trainings.values():
                training.end()
            if self.device == "cuda":
                quit_mps({**os.environ, **environment})

    def client_row(self, model, watch):
        if not self.trainings[model].wait(0.1):
            return {"part": "mps", "name": model, "error": self.trainings[model].error}
        self.ready.append(model)
        return self.row_of(model, CLIENTS, "mps", watch)

    def workloads(self):
        """In a bundle, beside the library; else that of the repository."""
        folder = os.path.join(os.path.dirname(self.library), "workloads")
        return folder if os.path.isdir(folder) else os.path.join(HERE, "..", "..", "workloads")

    def probe(self):
        seconds = self.seconds_of("probe") / len(PROBES)
        for name, other in PROBES:
            if name in self.ready and other in self.ready:
                self.probe_one(name, other, seconds)

    def probe_one(self, name, other, seconds):
        neighbour = self.trainings[other].process
        begin = time.monotonic()
        stop_at = begin + PROBE_BEFORE * seconds
        half_at = stop_at + PROBE_STOPPED * seconds
        state = {"stopped": False}

        def meanwhile(now):
            wanted = stop_at <= now < half_at
            if now >= half_at:
                wanted = (now - half_at) % PERIOD_S < PERIOD_S / 2
            if wanted != state["stopped"]:
                neighbour.send_signal(signal.SIGSTOP if wanted else signal.SIGCONT)
                state["stopped"] = wanted

        try:
            rows = self.run_probe([name, other], seconds, meanwhile, neighbour)
        finally:
            neighbour.send_signal(signal.SIGCONT)
        parts = {"before": (begin, stop_at), "probe": (stop_at, half_at), "half": (half_at, None)}
        for row in rows:
            row["phases_s"] = {k: round(v[0] - begin, 3) for k, v in parts.items()}
            self.write(row)

    def run_probe(self, names, seconds, meanwhile, neighbour):
        """As run(), with the speed of each training in each phase by its own steps."""
        trainings = [self.trainings[name] for name in names]
        watches = [Watch(self.daemon, training.process.pid) for training in trainings]
        begin = time.monotonic()
        for training in trainings:
            training.begin(seconds)
        while time.monotonic() < begin + seconds:
            for watch in watches:
                watch.sample()
            meanwhile(time.monotonic())
            time.sleep(SAMPLE_S)
        neighbour.send_signal(signal.SIGCONT)
        marks = [
            begin + 0.3,
            begin + PROBE_BEFORE * seconds,
            begin + (PROBE_BEFORE + PROBE_STOPPED) * seconds,
            begin + seconds,
        ]
        rows = []
        for training, watch in zip(trainings, watches):
            answer = training.wait(ANSWER_MAX_S)
            row = {"part": "probe", "name": training.name}
            row["beside"] = [name for name in names if name != training.name]
            if not answer:
                rows.append(dict(row, error=training.error))
                continue
            for phase, a, b in zip(("before", "probe", "half"), marks, marks[1:]):
                row[phase] = speeds_within(answer["ends"], watch.samples, a, b)
            row["ends"] = [round(1000 * (t - begin), 1) for t in answer["ends"]]
            row["page"] = thin(watch.samples, begin)
            rows.append(row)
        return rows

    def launch(self):
        if not os.path.exists(LAUNCH_COST):
            return self.write({"part": "launch", "error": "no launch-cost"})
        ran = {False: [], True: []}
        turns = 4
        seconds = max(0.2, self.seconds_of("launch") / turns - 2)
        for turn in range(turns):
            preload = turn % 4 in (1, 2)
            if self.left() < 1:
                break
            environment = dict(os.environ, COLLOC_PRELOAD_SOCKET=self.daemon.path)
            environment.update(COLLOC_TASK_ID="99", COLLOC_ATTEMPT_NUMBER="1")
            if preload:
                environment["LD_PRELOAD"] = self.library
            out = subprocess.run(
                [LAUNCH_COST, str(seconds)],
                env=environment,
                capture_output=True,
                text=True,
                timeout=max(3, self.left()),
            )
            if out.returncode:
                return self.write({"part": "launch", "error": out.stderr.strip()[-200:]})
            ran[preload].append(json.loads(out.stdout))
        self.write({"part": "launch", "without": ran[False], "with": ran[True]})

    def close(self):
        for training in self.trainings.values():
            training.end()
        self.daemon.close()


def speeds_within(ends, samples, a, b):
    """Steps a second by the training's count and by the library's, from a to b."""
    steps = [end for end in ends if a <= end <= b]
    pages = [s for s in samples if a <= s[0] <= b and s[4]]
    answer = {"per_s": None, "counted_per_s": None}
    if len(steps) > 2:
        answer["per_s"] = round((len(steps) - 1) / (steps[-1] - steps[0]), 4)
    if pages and pages[-1][1] - pages[0][1] > 2:
        timed = (pages[-1][2] - pages[0][2]) / 1e6
        answer["counted_per_s"] = round((pages[-1][1] - pages[0][1]) / timed, 4)
    return answer


# ---- the summary


def off(row):
    """How far the library's count, and its steps a second, are off: parts of the training's."""
    count = row["counted"] - row["steps"]
    count -= max(-1, min(1, count))  # a step that is under way at either end
    per_s = row["counted_per_s"] / row["per_s"] - 1 if row.get("counted_per_s") else None
    return count / max(1, row["steps"]), per_s


def counted_before(row):
    """Steps, and steps counted, while the page showed other marks than the last ones."""
    made = counted = 0
    samples = row["page"]
    for before, after in zip(samples, samples[1:]):
        is_shown = before[4] if len(before) > 4 else before[3]
        if is_shown and before[3] != samples[-1][3]:
            made += sum(before[0] < end <= after[0] for end in row["ends"])
            counted += after[1] - before[1]
    return made, counted


def is_right(row):
    """Within 2 %, whatever the marks were."""
    made, before = counted_before(row)
    errors = [*off(row), (before - made) / max(1, made) if abs(before - made) > 1 else 0]
    return all(error is not None and abs(error) <= WITHIN for error in errors)


def percent(value):
    return "–" if value is None else f"{100 * value:+.1f} %"


def before_text(row):
    made, counted = counted_before(row)
    return f"{counted} of {made}" if made or counted else "–"


def read(path):
    with lzma.open(path, "rt") if path.endswith(".xz") else open(path) as file:
        return [json.loads(line) for line in file if line.strip()]


def summarise(rows):
    lines = ["part    training     steps counted count off   steps/s off  found after  before"]
    good = total = 0
    for row in rows:
        if row["part"] not in COUNTED_PARTS:
            continue
        total += 1
        start = f"{row['part']:7} {row['name']:12}"
        if "error" in row:
            lines.append(f"{start} {row['error'][:60]}")
            continue
        count, per_s = off(row)
        good += is_right(row)
        lines.append(
            f"{start} {row['steps']:5} {row['counted']:7} {percent(count):>9} "
            f"{row['per_s']:9.2f} {percent(per_s):>7} {row['found_s']:5.1f} s  {before_text(row)}"
        )
    lines.append(f"within 2 %: {good} of {total}")
    for row in rows:
        if row["part"] == "probe" and "before" in row:
            phases = " ".join(f"{k} {row[k]['per_s']}" for k in ("before", "probe", "half"))
            lines.append(f"probe: {row['name']} beside {row['beside'][0]}, steps/s: {phases}")
        if row["part"] == "launch" and "with" in row:
            one, two = (
                statistics.median([r["launch_ns"] for r in row[k]] or [0])
                for k in ("without", "with")
            )
            lines.append(f"a launch: {one:.0f} ns without the library, {two:.0f} ns with it")
        if row["part"] == "start" and "error" in row:
            lines.append(f"{row['name']} did not start: {row['error'][:80]}")
    return lines


def replaced_marks(row):
    """A line for each time that other marks replaced those in use: steps missing before and after,
    by the training's own ends and the samples of the page."""
    samples = [(sum(end <= s[0] for end in row["ends"]), s[0], s[1], s[3]) for s in row["page"]]
    for before, after in zip(samples, samples[1:]):
        if 0 < before[3] < after[3]:
            sides = (samples[0], before), (after, samples[-1])
            own = [to[0] - since[0] for since, to in sides]
            missing = [n - (to[2] - since[2]) for n, (since, to) in zip(own, sides)]
            yield (
                f"{row['name']}, {row['part']}: other marks after {after[1] / 1000:.1f} s; "
                f"not counted: {missing[0]} of {own[0]} steps before, "
                f"{missing[1]} of {own[1]} after"
            )


def page(path):
    """The tables of docs/measured/steps.md."""
    rows = read(path)
    print(
        "| training | part | steps | counted | count off | steps/s | off | found after "
        "| by other marks before |"
    )
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for row in rows:
        if row["part"] not in COUNTED_PARTS:
            continue
        if "error" in row:
            print(f"| {row['name']} | {row['part']} | {row['error']} | | | | | | |")
            continue
        count, per_s = off(row)
        print(
            f"| {row['name']} | {row['part']} | {row['steps']} | {row['counted']} | "
            f"{percent(count)} | {row['per_s']:.2f} | {percent(per_s)} | {row['found_s']:.1f} s | "
            f"{before_text(row)} |"
        )
    print()
    for row in rows:
        for line in replaced_marks(row) if row["part"] == "shared" and "page" in row else ():
            print(line)
    print("\n".join(line for line in summarise(rows) if line.startswith(("within", "probe", "a "))))


def main(library, path, seconds, device="cuda", names="", parts=""):
    chosen = [name for name in names.split(",") if name]
    default = ["alone", "shared"] + ([] if chosen else ["probe", "launch"])
    trial = Trial(
        library, path, float(seconds), device, chosen, [p for p in parts.split(",") if p] or default
    )
    try:
        if any(part != "mps" for part in trial.parts):
            trial.start()
            trial.gather(trial.begin + READY_PART * trial.seconds)
        for part in trial.parts:
            try:
                getattr(trial, part)()
            except Exception as problem:  # the other parts are worth their time
                trial.write({"part": part, "name": "", "error": repr(problem)[:200]})
        trial.write_late()
    finally:
        trial.close()
    print("\n".join(summarise(read(path))))
    return 0


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--page":
        sys.exit(page(sys.argv[2]))
    if len(sys.argv) not in (4, 5, 6, 7):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
