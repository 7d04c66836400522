#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Promises of speed (docs/promise.md) and the ledger (docs/ledger.md) on a real GPU.

    tests/gpu/promise_trial.py PROGRAMS OUT.jsonl SECONDS [--small|--dry] [PART ...]
    tests/gpu/promise_trial.py --page OUT.jsonl[.xz]    # the tables of docs/measured/promise.md

PROGRAMS: a folder made by scripts/bundle. The first GPU of CUDA_VISIBLE_DEVICES is used, or GPU 0.
Parts, in this order; OUT gets a line for each result when it is known:

    held:MODEL  a training of MODEL under collocd with --max-slowdown=1.5, under MPS, first alone,
                then beside a GPT-2 that joins it
    bare        pairs under MPS without colloc: what a limit on the SMs, and a lower priority
                (CUDA_MPS_CLIENT_PRIORITY), of the GPT-2 do
    ledger      four short trainings, each alone, one after the other; then all of them at the same
                time under collocd: what the ledger says that sharing saved, and what it saved

Speeds are steps a second by the trainings' own counts. --small: each part in a few seconds. --dry:
without a GPU, on the emulator.
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
SMACT = {"small": 0.48, "medium": 0.35, "decoder": 0.89}  # alone, data/sharing/h200-threads.csv
MEMORY = {"small": "3G", "medium": "3G", "decoder": "12G", "encoder": "8G", "recommender": "9G"}
LEDGER_SMACT = dict(SMACT, encoder=0.87, recommender=0.1)
# model: steps of some six seconds alone (data/sharing/h200.csv)
SHORT = [
    ("small", 600),
    ("medium", 320),
    ("decoder", 66),
    ("recommender", 1000),
]
START_MAX_S = 60
ALONE_S = 12


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

    def __init__(self, trial):
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
            "--policy=predictive",
            "--sharing=mps",
            "--settle=1s",
            "--settle-max=2s",
            "--smact-max=1",
            "--min-free=2GiB",
        ]
        environment = {k: v for k, v in os.environ.items() if k != "CUDA_VISIBLE_DEVICES"}
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
        return json.loads(out)["id"]

    def show(self, task):
        return json.loads(self.run("show", str(task), "--json").stdout)

    def cancel(self, *tasks):
        for task in tasks:
            self.run("cancel", str(task), check=False)
        for task in tasks:
            self.run("wait", str(task), check=False)

    def close(self):
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
        self.monitor = None
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

    def held(self, model):
        daemon = Daemon(self)
        try:
            self.held_by(daemon, model, 12 if self.is_small else 52)
        finally:
            daemon.close()

    def held_by(self, daemon, model, seconds):
        own = os.path.join(daemon.folder, "promised")
        other = os.path.join(daemon.folder, "other")
        promised = daemon.submit(
            model,
            own,
            f"--max-slowdown={PROMISE}",
            f"--smact={SMACT[model]}",
            f"--memory={MEMORY[model]}",
        )
        first = until(lambda: read_steps(own), START_MAX_S, "first step")[0]
        with contextlib.suppress(TimeoutError):  # the row says then that it was not known
            until(lambda: daemon.show(promised)["slowdown"], 30, "its speed alone")
        time.sleep(max(0, first + (6 if self.is_small else ALONE_S) - time.time()))
        joined = time.time()
        beside = daemon.submit(
            "decoder", other, f"--smact={SMACT['decoder']}", f"--memory={MEMORY['decoder']}"
        )
        begin = until(lambda: read_steps(other), START_MAX_S, "first step of the other")[0]
        seen, end = [], begin + min(seconds, max(5, self.left() - 8))
        while time.time() < end:
            one, two = daemon.show(promised), daemon.show(beside)
            keys = ("slowdown", "steps_per_s", "promise_text")
            seen.append([round(time.time() - begin, 1), *(one[k] for k in keys), two["state"]])
            time.sleep(1)
        last = daemon.show(beside)
        end = time.time()
        events = [(e["event"], e["text"]) for e in last["events"]]
        daemon.cancel(promised)
        alone_since = time.time()
        time.sleep(1 if self.is_small else 4)
        daemon.cancel(beside)
        ends, others = read_steps(own), read_steps(other)
        alone = rate(ends, first + 2, joined)
        windows = []
        at = begin
        while at + WINDOW_S <= end:
            windows.append([round(rate(e, at, at + WINDOW_S), 3) for e in (ends, others)])
            at += WINDOW_S
        self.write(
            part="held",
            model=model,
            promise=PROMISE,
            counted_alone_per_s=daemon.show(promised).get("steps_per_s_alone"),
            alone_per_s=round(alone, 3),
            joined_s=round(begin - joined, 1),
            thread_percentage=last.get("thread_percentage"),
            sharing=last.get("sharing"),
            sharing_text=last.get("sharing_text"),
            together_s=round(end - begin, 1),
            own_per_s=round(rate(ends, begin, end), 3),
            other_per_s=round(rate(others, begin, end), 3),
            other_limited_alone_per_s=round(
                rate(others, alone_since + 0.5, others[-1] if others else 0), 3
            ),
            windows=windows,
            sliding=[
                round(rate(ends, begin + s, begin + s + WINDOW_S), 3)
                for s in range(int(end - begin - WINDOW_S) + 1)
            ],
            seen=seen,
            events=events[-8:],
        )

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
        daemon = Daemon(self)
        short = SHORT[:2] if self.is_small else SHORT
        try:
            self.ledger_pass(daemon, short, "exclusive", ["--exclusive"])
            self.ledger_pass(daemon, short, "shared", [])
        finally:
            daemon.close()

    def ledger_pass(self, daemon, short, how, options):
        time.sleep(1.1)  # the report begins at a whole second after what came before
        begin, energy = time.time(), self.energy_j()
        tasks = []
        for number, (model, steps) in enumerate(short):
            path = os.path.join(daemon.folder, f"{model}-{number}")
            steps = steps // 4 if self.is_small else steps
            options_of = [f"--smact={LEDGER_SMACT[model]}", f"--memory={MEMORY[model]}"]
            tasks.append((path, daemon.submit(model, path, *options, *options_of, steps=steps)))
        for _, task in tasks:
            daemon.run("wait", str(task), check=False)
        end = time.time()
        ran = []
        for path, task in tasks:
            shown, ends = daemon.show(task), read_steps(path)
            keys = ("state", "exec_s", "started_at", "ended_at", "steps", "steps_per_s_mean")
            ran.append(
                {
                    **{key: shown.get(key) for key in keys},
                    **{key: shown[key] for key in shown if "saved" in key or "alone" in key},
                    "first_step": ends[0] - begin if ends else None,
                    "last_step": ends[-1] - begin if ends else None,
                }
            )
        report = daemon.run(
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

    def part(self, name):
        what, _, model = name.partition(":")
        try:
            if self.left() < 20:
                self.write(part=what, error="no time was left")
            elif what == "held":
                self.held(model)
            else:
                {"bare": self.bare, "ledger": self.ledger}[what]()
        except Exception as problem:  # the other parts are worth their time
            self.write(part=what, model=model, error=repr(problem)[-400:])


# ---- the summary, and the page


def read(path):
    with lzma.open(path, "rt") if path.endswith(".xz") else open(path) as file:
        return [json.loads(line) for line in file if line.strip()]


def bare_alone(rows):
    return {r["mix"][0]: r["per_s"][0] for r in rows if r["part"] == "bare" and len(r["mix"]) == 1}


def held_row(row, alone):
    """Windows in which the promise was held, and the sum of speeds."""
    kept = [w for w in row["windows"] if row["alone_per_s"] <= PROMISE * w[0]]
    other = alone.get("decoder") or 0
    own_speed = row["own_per_s"] / row["alone_per_s"]
    other_speed = row["other_per_s"] / other if other else float("nan")
    worst = min((w[0] for w in row["windows"]), default=0) / row["alone_per_s"]
    return {
        "windows": len(row["windows"]),
        "held": len(kept),
        "sliding": len(row["sliding"]),
        "slid": sum(row["alone_per_s"] <= PROMISE * per_s for per_s in row["sliding"]),
        "own": own_speed,
        "worst": worst,
        "other": other_speed,
        "sum": own_speed + other_speed,
    }


def ledger_rows(rows):
    return {row["how"]: row for row in rows if row["part"] == "ledger" and "how" in row}


def page(path):
    rows = read(path)
    alone = bare_alone(rows)
    columns = "windows of 10 s | held in | one each second | held in | slowest"
    print(f"| promised 1.5 | beside | SMs | {columns} | speed | of the other | sum |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for row in rows:
        if row["part"] != "held" or "error" in row:
            continue
        found = held_row(row, alone)
        print(
            f"| {row['model']} | decoder | {row['thread_percentage']} % | {found['windows']} | "
            f"{found['held']} | {found['sliding']} | {found['slid']} | {found['worst']:.2f} | "
            f"{found['own']:.2f} | {found['other']:.2f} | {found['sum']:.2f} |"
        )
    print()
    print("| under MPS, without colloc | speed of the first | of the second | sum |")
    print("| --- | ---: | ---: | ---: |")
    for row in rows:
        if row["part"] == "bare" and len(row.get("mix", ())) == 2:
            speeds = [
                per_s / alone[name.split(",")[0]] for per_s, name in zip(row["per_s"], row["mix"])
            ]
            cells = [" + ".join(row["mix"]), *(f"{value:.2f}" for value in [*speeds, sum(speeds)])]
            print(f"| {' | '.join(cells)} |")
    print()
    for how, row in ledger_rows(rows).items():
        total = row["report"].get("total") if isinstance(row["report"], dict) else row["report"]
        print(f"ledger, {how}: {row['seconds']} s, {row['energy_j']} J; {json.dumps(total)}")
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
    for part in parts or ["held:small", "bare", "held:medium", "ledger"]:
        trial.part(part)
    page(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
