#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""MPS clients that give way by the carrier (docs/carrier.md) on a real GPU. Writes JSON lines.

    tests/gpu/carrier_mps_trial.py PROGRAMS OUTPUT SECONDS [--small] [PART ...]

PROGRAMS: a folder made by scripts/bundle. OUTPUT: a line for each result. It needs what
carrier_trial.py needs. Each part is a process with its own time limit; what a part leaves running
is ended, and the next part begins. All parts together end within SECONDS.

Parts, the first one first; carrier_turns_trial.py has clients that take turns:
    collocd    `colloc suspend` and `colloc resume` of two MPS clients, ResNet-50 and ResNet-152
    speed      the same trainings out and in by the carrier, time-sliced and as MPS clients, and by
               the driver's checkpoint; the others pause meanwhile
    neighbour  an MPS client's steps, and NVML's answers, while another one leaves and comes back
    losses     torch.compile, also with CUDA graphs, CuPy and JAX, 50 times out and in, time-sliced
               and as MPS clients
    jax        the same of JAX alone
"""
import ctypes
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

import carrier_trial as ct
from trial import TrialDaemon

LIMITS_S = {"collocd": 100, "speed": 130, "losses": 200, "neighbour": 60, "jax": 60}
# name: (steps of the task, batch, times out and in)
KINDS = {"resnet50": (200, 64, 5), "resnet152": (40, 256, 2)}
SMALL_KINDS = {"resnet50": (60, 8, 2), "resnet18": (60, 8, 1)}
# name: (steps, batch)
LOSSES = {
    "compile": (700, 32),
    "compile-graphs": (700, 32),
    "cupy": (1200, 512),
    "jax": (1200, 512),
}
SMALL_LOSSES = {"lstm": (60, 16), "cupy": (200, 64), "jax": (200, 64)}
PR_SET_CHILD_SUBREAPER = 36


def until(condition, limit, what):
    end = time.monotonic() + limit
    while not (value := condition()):
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.01)
    return value


def common_prefix_equal(losses, reference):
    n = min(len(losses), len(reference))
    return n > 0 and losses[:n] == reference[:n]


def first_difference(losses, reference):
    """The number of the first step whose loss differs; None without one."""
    pairs = enumerate(zip(losses, reference))
    return next((number for number, (own, other) in pairs if own != other), None)


def p99(values):
    return sorted(values)[int(0.99 * len(values))] if values else None


class Part:
    def __init__(self, programs, output, work, small):
        self.programs, self.output, self.work, self.small = programs, output, work, small
        self.kinds = SMALL_KINDS if small else KINDS
        self.end = time.monotonic() + float(os.environ.get("PART_SECONDS", "100"))
        library = os.path.join(programs, "libcolloc-preload.so")
        self.trial = ct.Trial(library, os.path.join(work, "trial.json"))
        self.script = os.path.join(work, "train.py")
        with open(self.script, "w") as out:
            out.write(ct.TRAIN)

    def note(self, key, value):
        with open(self.output, "a") as out:
            out.write(json.dumps({"result": key, **value}) + "\n")
        print(key, json.dumps(value)[:400], flush=True)

    def keep(self, key, losses):
        """To be compared with the reference when all parts have ended."""
        with open(os.path.join(self.work, f"losses-{key}"), "w") as out:
            json.dump(losses, out)

    # ---- by collocd ----

    def new_daemon(self, **settings):
        return TrialDaemon(
            self.programs,
            preload_library=self.trial.library,
            checkpoint=f"{self.programs}/colloc-checkpoint",
            carrier="yes",
            sharing="mps",
            policy="magm",
            sample_period="500ms",
            settle="1s",
            settle_max="2s",
            smact_max="1",
            min_free="1GiB",
            margin="256MiB",
            mps_memory_limit="no",
            **settings,
        )

    def losses_of(self, daemon, task):
        lines = [line.split() for line in daemon.colloc("logs", str(task)).splitlines()]
        return [words[2] for words in lines if words[:1] == ["step"] and len(words) == 3]

    def suspend_and_resume(self, daemon, task):
        row = {}
        for verb, goal in (("suspend", "SUSPENDED"), ("resume", "RUNNING")):
            begin = time.monotonic()
            daemon.colloc(verb, str(task), check=False)
            ends = ("COMPLETED", "FAILED", "PAUSED", goal)
            state = until(
                lambda: (s := daemon.show(task)["state"]) in ends and s, 40, f"{goal} after {verb}"
            )
            row[verb + "_s"] = round(time.monotonic() - begin, 3)
            if state != goal:
                row["state"] = state
                break
        return row

    def collocd(self):
        daemon = self.new_daemon(suspend_memory_max="80GiB")
        tasks, rows = {}, {name: [] for name in self.kinds}
        for name, (steps, batch, _) in self.kinds.items():
            tasks[name] = daemon.submit(self.script, name, str(steps), str(batch))[0]
        for task in tasks.values():
            until(lambda: self.losses_of(daemon, task), 60, "the first step")
            until(lambda: daemon.show(task)["carried"], 10, "its carrier")
        try:
            for i in range(max(times for _, _, times in self.kinds.values())):
                for name, (_, _, times) in self.kinds.items():
                    running = daemon.show(tasks[name])["state"] == "RUNNING"
                    if i < times and running and time.monotonic() < self.end - 40:
                        rows[name].append(self.suspend_and_resume(daemon, tasks[name]))
                        print(name, rows[name][-1], flush=True)
            ended = ("COMPLETED", "FAILED", "CANCELLED")
            while time.monotonic() < self.end - 15:
                if all(daemon.show(task)["state"] in ended for task in tasks.values()):
                    break
                time.sleep(0.2)
        finally:
            for name, task in tasks.items():
                shown = daemon.show(task)
                losses = self.losses_of(daemon, task)
                self.keep(f"collocd {name}, MPS", losses)
                keys = ("state", "sharing", "carried", "exit_code", "mem_peak_mib", "suspended_s")
                result = {key: shown.get(key) for key in keys}
                result.update(steps=len(losses), rows=rows[name])
                result["events"] = [e["text"] for e in shown["events"]][-3:]
                self.note(f"collocd {name}, MPS", result)
            self.note_log("collocd", daemon)
        daemon.close()

    def note_log(self, part, daemon):
        with open(daemon.log.name) as log:
            lines = [line for line in log.read().splitlines() if "audit" in line or "waits" in line]
            self.note(f"{part}, log", {"lines": lines[-60:]})

    # ---- by this trial ----

    def start(self, name, batch, steps=100000, **options):
        pause = tempfile.mktemp(dir=self.work)
        training = ct.Training(self.trial, name, steps, batch, PAUSE=pause, **options)
        training.pause_file = pause
        return training

    def pause(self, training, paused=True):
        if paused:
            open(training.pause_file, "w").close()
        elif os.path.exists(training.pause_file):
            os.unlink(training.pause_file)

    def wait_steps(self, training, more, limit=20):
        n = len(training.steps)
        until(
            lambda: len(training.steps) >= n + more or training.process.poll() is not None,
            limit,
            f"{more} more steps: {training.others[-3:]}",
        )

    def measure(self, training, times):
        """Alone on the GPU, as all others pause."""
        self.pause(training, False)
        self.wait_steps(training, 3)
        if training.daemon:
            result = {"gib": round(training.page.u64(ct.pd.CARRY_BYTES) / 2**30, 2)}
            result["swaps"] = [training.swap(0.2) for _ in range(times)]
        else:
            result = {"swaps": [ct.Driver().swap(training.process.pid)]}
        n = len(training.steps)
        try:
            self.wait_steps(training, 10)
        except TimeoutError:
            pass
        result["steps_after"] = len(training.steps) - n
        return result

    def run_all(self, wave):
        """wave: key -> (training, times); all have been started."""
        for training, _ in wave.values():
            training.wait_begun(90)
            self.pause(training)
        for key, (training, times) in wave.items():
            try:
                self.note(f"speed {key}", self.measure(training, times))
            except Exception as error:  # noqa: BLE001 - the others are still of use
                result = {"error": repr(error), "says": training.others[-4:]}
                self.note(f"speed {key}", result)
            training.kill()
            self.keep(f"speed {key}", training.losses)

    def speed(self):
        small, (large, (_, large_batch, _)) = "resnet50", list(self.kinds.items())[1]
        _, small_batch, _ = self.kinds[small]
        first = {
            f"{small}, driver": (self.start(small, small_batch, carrier=False), 1),
            small: (self.start(small, small_batch), 5),
            f"{small}, MPS": (self.start(small, small_batch, mps=True), 5),
            f"{large}, driver": (self.start(large, large_batch, carrier=False), 1),
            large: (self.start(large, large_batch), 3),
        }
        self.run_all(first)
        second = {f"{large}, MPS": (self.start(large, large_batch, mps=True), 3)}
        self.run_all(second)
        self.trial.end_mps()

    def disturb(self, done, training, times, seed):
        """Leaves and comes back at random instants."""
        instants = random.Random(seed)
        try:
            training.wait_begun()
            while len(done) < times and training.process.poll() is None:
                time.sleep(instants.uniform(0.02, 0.2))
                done.append(training.swap(instants.uniform(0, 0.1)))
        except Exception as error:  # noqa: BLE001 - a part of the result
            if training.process.poll() is None:
                done.append({"why": repr(error)})

    def keep_references(self):
        """Of the trainings of the other parts, where these have run."""
        kept = [name for name in os.listdir(self.work) if name.startswith("losses-")]
        references = {
            name: self.start(name, batch, steps, carrier=False)
            for name, (steps, batch, _) in self.kinds.items()
            if any(name in file for file in kept)
        }
        for name, training in references.items():
            training.end(80)
            self.keep(f"reference {name}", training.losses)

    def start_disturbed(self, kinds, times, options):
        """(label, training, what came of each time, the thread that disturbs it)"""
        started = []
        for name, (steps, batch) in kinds.items():
            for label, mps in ((name, False), (f"{name}, MPS", True)):
                training, done = self.start(name, batch, steps, mps=mps, **options), []
                arguments = (done, training, times, len(started) + 1)
                thread = threading.Thread(target=self.disturb, args=arguments, daemon=True)
                thread.start()
                started.append((label, training, done, thread))
        return started

    def losses(self):
        self.keep_references()
        self.compare_losses(SMALL_LOSSES if self.small else LOSSES)

    def jax(self):
        self.compare_losses({"jax": (SMALL_LOSSES if self.small else LOSSES)["jax"]})

    def compare_losses(self, kinds):
        """Those of torch.compile begin when the undisturbed ones have filled its cache. JAX does
        not choose kernels by their times, which would differ from process to process."""
        times = 3 if self.small else 50
        options = {
            "TORCHINDUCTOR_CACHE_DIR": tempfile.mkdtemp(dir=self.work),
            "TORCHINDUCTOR_COMPILE_THREADS": 6,
            "XLA_PYTHON_CLIENT_MEM_FRACTION": 0.1,
            "XLA_FLAGS": "--xla_gpu_autotune_level=0",
        }
        undisturbed = {
            name: self.start(name, batch, steps, carrier=False, **options)
            for name, (steps, batch) in kinds.items()
        }
        options["PACE"] = 0.03
        others = {name: kind for name, kind in kinds.items() if not name.startswith("compile")}
        disturbed = self.start_disturbed(others, times, options)
        compiled = {name: kind for name, kind in kinds.items() if name not in others}
        for name in compiled:
            undisturbed[name].wait_begun(80)
        disturbed += self.start_disturbed(compiled, times, options)
        for label, training, done, thread in disturbed:
            thread.join(max(0.1, self.end - 8 - time.monotonic()))
            reference = undisturbed[label.split(",")[0]]
            self.note(f"losses {label}", self.losses_of_disturbed(training, done, reference))
        for training in undisturbed.values():
            training.kill()
        self.trial.end_mps()

    def losses_of_disturbed(self, training, done, reference):
        """Ends it, after some more steps."""
        steps_then = len(training.losses)
        try:
            self.wait_steps(training, 3, min(5, max(1, self.end - 6 - time.monotonic())))
        except TimeoutError:
            pass
        result = {
            "rc": training.process.poll(),  # None: it computes on
            "steps": [len(reference.losses), len(training.losses)],
            "steps_then": steps_then,
            "equal": common_prefix_equal(training.losses, reference.losses),
            "out_and_in": len([s for s in done if s.get("why") == "can"]),
            "refused": sorted({s["why"] for s in done if s.get("why") != "can"}),
        }
        if not result["equal"]:
            result["first_difference"] = first_difference(training.losses, reference.losses)
            result["says"] = training.others[-4:]
        training.kill()
        return result

    def neighbour(self):
        calm_s, swaps = (3, 3) if self.small else (12, 20)
        leaving = self.start("resnet50", 64, mps=True)
        beside = self.start("resnet50", 32, carrier=False, mps=True)
        leaving.wait_begun(40)
        beside.wait_begun(40)
        nvml = NvmlClock()
        time.sleep(calm_s)
        calm, calm_ms = beside.steps[:], nvml.take()
        done = []
        for _ in range(swaps):
            done.append(leaving.swap(0.1))
            time.sleep(0.2)
        during, during_ms = beside.steps[len(calm) :], nvml.take()
        self.note(
            "neighbour, MPS",
            {
                "p99_step_ms": [round(1000 * p99(s), 2) for s in (calm, during)],
                "steps": [len(calm), len(during)],
                "nvml_p99_ms": [p99(calm_ms), p99(during_ms)],
                "nvml_worst_ms": [max(calm_ms), max(during_ms)],
                "nvml_answers": [len(calm_ms), len(during_ms)],
                "swaps": done[:3],
            },
        )
        leaving.kill()
        beside.kill()
        self.trial.end_mps()


class NvmlClock(threading.Thread):
    """How long NVML takes to answer, in milliseconds."""

    def __init__(self, gpu=0):
        super().__init__(daemon=True)
        self.nvml, self.device = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p()
        self.nvml.nvmlInit_v2()
        self.nvml.nvmlDeviceGetHandleByIndex_v2(gpu, ctypes.byref(self.device))
        self.times = []
        self.start()

    def run(self):
        memory = (ctypes.c_ulonglong * 3)()
        while True:
            begin = time.monotonic()
            self.nvml.nvmlDeviceGetMemoryInfo(self.device, memory)
            self.times.append(round(1000 * (time.monotonic() - begin), 3))
            time.sleep(0.005)

    def take(self):
        taken, self.times = self.times, []
        return taken


# ---- the process that runs the parts ----


def descendants():
    parents = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as stat:
                parents[int(pid)] = int(stat.read().rsplit(")", 1)[1].split()[1])
        except (OSError, ValueError):
            pass
    found, new = set(), {os.getpid()}
    while new:
        new = {pid for pid, parent in parents.items() if parent in new} - found
        found |= new
    return found


def end_all():
    """What a part has left: its daemons too, since this process is their reaper."""
    for _ in range(50):
        left = descendants()
        if not left:
            return
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
        time.sleep(0.1)


def run_parts(arguments, parts, output, deadline, work, limits=LIMITS_S, script=__file__):
    """Parts of a group run at the same time."""
    for group in parts:
        limit = max(limits[part] for part in group)
        limit = min(limit, deadline - time.monotonic() - 4)
        if limit < 8:
            write(output, {"result": "not run: no time is left", "parts": group})
            continue
        begin = time.monotonic()
        commands = [
            [sys.executable, os.path.abspath(script), *arguments, "--part", work, part]
            for part in group
        ]
        env = dict(os.environ, PART_SECONDS=str(limit))
        started = [subprocess.Popen(command, env=env) for command in commands]
        for part, process in zip(group, started):
            try:
                rc = process.wait(max(0.1, begin + limit - time.monotonic()))
            except subprocess.TimeoutExpired:
                rc = "ran past its limit"
            seconds = round(time.monotonic() - begin, 1)
            write(output, {"result": f"part {part}", "rc": rc, "seconds": seconds})
        end_all()


def write(output, row):
    with open(output, "a") as out:
        out.write(json.dumps(row) + "\n")
    print(json.dumps(row), flush=True)


def compare(output, work):
    """What was trained by others with that of the references, as far as both have come."""
    kept = {}
    for file in sorted(os.listdir(work)):
        if file.startswith("losses-"):
            with open(os.path.join(work, file)) as source:
                kept[file[len("losses-") :]] = json.load(source)
    for key, losses in kept.items():
        if key.startswith("reference "):
            continue
        reference = kept.get("reference " + key.split()[1].rstrip(","), [])
        row = {"equal": common_prefix_equal(losses, reference)}
        row["steps"] = [len(reference), len(losses)]
        write(output, {"result": f"{key}, losses", **row})


def summarise(output):
    print("---- summary ----")
    with open(output) as rows:
        for row in map(json.loads, rows):
            key = row.pop("result")
            for long in ("lines", "story", "events"):
                row.pop(long, None)
            print(f"{key}: {json.dumps(row)[:230]}")


# Speeds are not of interest in a small trial.
GROUPS = [["collocd"], ["speed"], ["neighbour"], ["losses"]]
SMALL_GROUPS = [["losses", "neighbour"], ["collocd"], ["speed"]]


def run_trial(script, part_class, limits, groups, small_groups):
    """Of the script's arguments: all parts, or one of them in this process."""
    programs, output, seconds = os.path.abspath(sys.argv[1]), sys.argv[2], float(sys.argv[3])
    rest = sys.argv[4:]
    small = "--small" in rest
    if "--part" in rest:
        work, part = rest[rest.index("--part") + 1 :]
        getattr(part_class(programs, output, work, small), part)()
        os._exit(0)  # threads of this trial may wait for ever
    deadline = time.monotonic() + seconds
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    chosen = [word for word in rest if word != "--small"]
    groups = [[part] for part in chosen] or (small_groups if small else groups)
    arguments = [programs, output, sys.argv[3]] + (["--small"] if small else [])
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as work:
        try:
            run_parts(arguments, groups, output, deadline, work, limits, script)
            compare(output, work)
        finally:
            end_all()
    summarise(output)


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    run_trial(__file__, Part, LIMITS_S, GROUPS, SMALL_GROUPS)
