#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trainings of several ranks that give way together (docs/carrier.md), and moves, on two GPUs.

    tests/gpu/groups_trial.py PROGRAMS OUTPUT SECONDS [--small] [PART ...]

PROGRAMS: a folder made by scripts/bundle. OUTPUT: JSON lines, one for each result. Needs a machine
with two GPUs, PyTorch and torchvision. Each part is a process with its own time limit; what a part
leaves running is ended, and the next part begins. All parts together end within SECONDS. PART+PART
runs them at the same time.

Parts, the first one first:
    losses   DDP, fully_shard and tensor parallelism, all on the same two GPUs: each 20 times out
             and in by `colloc suspend` and `colloc resume` at random instants, beside undisturbed
             runs
    moves    ResNet-50 and ResNet-152 by `colloc move` to the other GPU and back, by the carrier and
             by the driver alone; and what colloc shows of them afterwards
    big      DDP with about 20 GiB in each rank: seconds by phase
    slots    two DDP trainings that take turns on the same two GPUs
    kill     `kill -9` of a rank in each phase, and of collocd, twice each
    mps      DDP whose ranks are clients of MPS
    tp       tensor parallelism of `losses` alone; only where it is named
"""
import ctypes
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), HERE]
import preload_daemon as pd  # noqa: E402
from trial import TrialDaemon  # noqa: E402

TRAININGS = os.path.join(HERE, os.environ.get("GROUPS_TRAININGS", "groups_trainings.py"))
LIMITS_S = {"losses": 115, "moves": 100, "big": 55, "slots": 75, "kill": 120, "mps": 45, "tp": 120}
PR_SET_CHILD_SUBREAPER = 36
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "STOPPED")
GIB = 1 << 30


def until(condition, limit, what, pause=0.01):
    end = time.monotonic() + limit
    while not (value := condition()):
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(pause)
    return value


def smi(query):
    done = subprocess.run(
        ["nvidia-smi", query, "--format=csv,noheader,nounits"], capture_output=True, text=True
    )
    return [[word.strip() for word in line.split(",")] for line in done.stdout.splitlines()]


def used_mib():
    return [int(row[0]) for row in smi("--query-gpu=memory.used")]


class Watch(threading.Thread):
    """When each rank enters each phase, in seconds from the start."""

    def __init__(self, pages):
        super().__init__(daemon=True)
        self.pages, self.seen, self.is_over = pages, [[] for _ in pages], False
        self.begin = time.monotonic()
        self.start()

    def run(self):
        while not self.is_over:
            for page, seen in zip(self.pages, self.seen):
                phase = page.phase()
                if not seen or seen[-1][0] != phase:
                    seen.append([phase, round(time.monotonic() - self.begin, 3)])
            time.sleep(0.0005)

    def end(self):
        self.is_over = True
        self.join()
        return self.seen


class Work:
    """One training: a task, or a process beside colloc."""

    def __init__(self, folder, kind, ranks=2, **options):
        self.folder = tempfile.mkdtemp(dir=folder)
        self.kind, self.ranks = kind, ranks
        self.output = os.path.join(self.folder, "output")
        self.stop_file = os.path.join(self.folder, "stop")
        self.pause_file = os.path.join(self.folder, "pause")
        self.task, self.daemon, self.process = None, None, None
        words = [sys.executable, TRAININGS]
        if ranks > 1:
            launch = "-m torch.distributed.run --standalone".split()
            words = [sys.executable, *launch, f"--nproc-per-node={ranks}", TRAININGS]
            if "GROUPS_TRAININGS" in os.environ:
                words = [sys.executable, TRAININGS, f"--ranks={ranks}"]
        words += [kind, f"--stop={self.stop_file}", f"--pause={self.pause_file}"]
        words += [f"--{key}={value}" for key, value in options.items()]
        self.command = ["sh", "-c", f"exec {' '.join(words)} >{self.output} 2>&1"]

    def submit(self, daemon, *options):
        self.daemon = daemon
        out = daemon.colloc("submit", "--json", *options, "--", *self.command)
        self.task = json.loads(out)["id"]
        return self

    def start(self, **env):
        self.process = subprocess.Popen(self.command, env=dict(os.environ, **env))
        return self

    def lines(self):
        try:
            with open(self.output, errors="replace") as output:
                return output.read().splitlines()
        except FileNotFoundError:
            return []

    def steps(self):
        """For each rank: (seconds, loss, other words) of each step."""
        found = [[] for _ in range(self.ranks)]
        for line in self.lines():
            words = line.split()
            if words[:1] == ["step"] and len(words) >= 5:
                found[int(words[1])].append((float(words[3]), words[4], words[5:]))
        return found

    def count(self):
        return min(len(steps) for steps in self.steps())

    def pids(self):
        words = [line.split() for line in self.lines() if line.startswith("pid ")]
        return [int(pid) for _, _, pid in sorted(words)]

    def has_ended(self):
        if self.process:
            return self.process.poll() is not None
        return self.state() in ENDED

    def wait_steps(self, more, limit=90):
        aim = self.count() + more
        until(lambda: self.count() >= aim or self.has_ended(), limit, f"{self.kind}: steps", 0.1)
        if self.has_ended() and self.count() < aim:
            raise RuntimeError(f"{self.kind} has ended: {self.lines()[-6:]}")

    def wait_end(self, limit):
        try:
            until(self.has_ended, limit, "", 0.1)
        except TimeoutError:
            pass
        return self.process.poll() if self.process else self.state()

    def show(self):
        return self.daemon.show(self.task)

    def state(self):
        return self.show()["state"]

    def ask(self, verb, *words):
        """Returns (seconds, "" or why it was refused)."""
        begin = time.monotonic()
        done = subprocess.run(
            [f"{self.daemon.programs}/colloc", "--socket", self.daemon.socket]
            + [verb, str(self.task), *words],
            capture_output=True,
            text=True,
        )
        goal = "SUSPENDED" if verb == "suspend" else "RUNNING"
        try:  # the command may return before
            state = until(
                lambda: (s := self.state()) in (goal, "PAUSED", *ENDED) and s, 40, goal, 0.005
            )
        except TimeoutError:
            state = self.state()
        said = (done.stderr.strip() or done.stdout.strip())[-200:]
        is_done = done.returncode == 0 and state == goal
        return time.monotonic() - begin, "" if is_done else f"{state}: {said}"

    def stop(self):
        open(self.stop_file, "w").close()

    def pause(self, is_paused=True):
        if is_paused:
            open(self.pause_file, "w").close()
        elif os.path.exists(self.pause_file):
            os.unlink(self.pause_file)


def compare(work, reference):
    """Losses of all ranks, as far as both have come."""
    pairs = list(zip(work.steps(), reference.steps()))
    n = min(min(len(a), len(b)) for a, b in pairs)
    equal = n > 0 and all([x[1] for x in a[:n]] == [x[1] for x in b[:n]] for a, b in pairs)
    result = {"equal": equal, "steps_compared": n, "steps": work.count()}
    if not equal:
        result["first_difference"] = next(
            (i for i in range(n) if any(a[i][1] != b[i][1] for a, b in pairs)), None
        )
        result["says"] = [work.lines()[-4:], reference.lines()[-4:]]
    return result


SETTINGS = {  # of the trials' daemons: memory and activity are known in seconds
    "carrier": "yes",
    "sample_period": "500ms",
    "settle": "1s",
    "settle_max": "2s",
    "smact_max": "1",
    "min_free": "1GiB",
    "margin": "256MiB",
}


class Part:
    rest_s = 22  # what is left of a part's time for its end

    def __init__(self, programs, output, work, small):
        self.programs, self.output, self.work, self.small = programs, output, work, small
        self.end = time.monotonic() + float(os.environ.get("PART_SECONDS", "100"))
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"

    def left_s(self):
        return self.end - time.monotonic()

    def note(self, key, value):
        write(self.output, {"result": key, **value})

    def new_daemon(self, **settings):
        return TrialDaemon(
            self.programs,
            **{
                "gpus": "0,1",
                "preload_library": f"{self.programs}/libcolloc-preload.so",
                "checkpoint": f"{self.programs}/colloc-checkpoint",
                "sharing": "streams",
                "policy": "magm",
                **SETTINGS,
                "suspend_memory_max": "200GiB",
                **settings,
            },
        )

    def new(self, kind, ranks=2, **options):
        return Work(self.work, kind, ranks, **options)

    def note_log(self, part, daemon):
        with open(daemon.log.name) as log:
            lines = [line for line in log.read().splitlines() if "task " in line or "rror" in line]
        self.note(f"{part}, log", {"lines": lines[-40:]})

    @staticmethod
    def wait_carrier(work, limit):
        """Until the daemon can suspend it by the carrier; else says where each rank stands."""
        try:
            until(lambda: work.show()["carried"] or work.has_ended(), limit, "", 0.1)
        except TimeoutError:
            obstacle = work.show()["carrier_obstacle"]
            pages = [pd.ProcessPage(pid, work.daemon.process.pid) for pid in work.pids()]
            stands = [page.stand() for page in pages]
            raise TimeoutError(f"its carrier: {obstacle}; {json.dumps(stands)}") from None

    # ---- losses ----

    def swap_often(self, work, times, seed, rows, gap_s):
        chances = random.Random(seed)
        try:
            work.wait_steps(3)
            self.wait_carrier(work, 15)
            while (
                sum(not row[2] and not row[3] for row in rows) < times
                and self.left_s() > self.rest_s
            ):
                if len(rows) > 2 * times or work.has_ended():
                    break
                time.sleep(chances.uniform(*gap_s))
                out_s, why = work.ask("suspend")
                if why.startswith("PAUSED"):  # it could not be suspended
                    work.daemon.colloc("resume", str(work.task), check=False)
                in_s, why_in = (0, "") if why else work.ask("resume")
                rows.append([round(out_s, 3), round(in_s, 3), why, why_in])
        except Exception as error:  # noqa: BLE001 - a part of the result
            rows.append([0, 0, repr(error), ""])

    def note_swaps(self, key, work, reference, rows):
        good = [row for row in rows if not row[2] and not row[3]]
        shown = work.show()
        result = {
            "state": shown["state"],
            "attempts": shown["attempt_count"],
            "suspensions": shown["suspensions"],
            "out_and_in": len(good),
            **compare(work, reference),
            "mem_peak_mib": shown["mem_peak_mib"],
            "failed": [row[2:] for row in rows if row[2] or row[3]][-3:],
            "n_failed": len(rows) - len(good),
        }
        if good:
            for place, name in enumerate(("out_s", "in_s")):
                values = sorted(row[place] for row in good)
                middle = round(statistics.median(values), 3)
                result[name] = [values[0], middle, values[-1]]
        if work.count():
            result["step_ms"] = round(1000 * statistics.median(s[0] for s in work.steps()[0]), 1)
        self.note(key, result)

    def start_reference(self, kind, **options):
        return self.new(kind, steps=150, **options).start()

    def swap_beside_reference(self, kinds, times, daemon, *options, gap_s=(0.02, 0.4)):
        """kinds: name -> (kind, options of the training)"""
        works, references, rows, threads = {}, {}, {}, []
        for key, (kind, more) in kinds.items():
            references[key] = self.start_reference(kind, **more)
            works[key] = self.new(kind, steps=100000, pace=0.2, **more).submit(daemon, *options)
            rows[key] = []
        for seed, (key, work) in enumerate(works.items(), start=1):
            arguments = (work, times, seed, rows[key], gap_s)
            threads.append(threading.Thread(target=self.swap_often, args=arguments, daemon=True))
            threads[-1].start()
        for thread in threads:
            thread.join(max(1, self.left_s() - 15))
        for work in works.values():
            work.stop()
        for key, work in works.items():
            work.wait_end(max(1, min(15, self.left_s() - 8)))
            try:
                aim = work.count()
                until(lambda: references[key].count() >= aim, max(0, self.left_s() - 5), "", 0.1)
            except TimeoutError:
                pass
            references[key].stop()
            self.note_swaps(key, work, references[key], rows[key])

    def losses(self, names=("ddp", "fsdp", "tp")):
        batch = 4 if self.small else 16
        kinds = {
            "losses ddp": ("ddp-resnet50", {"batch": 2 * batch}),
            "losses fsdp": ("fsdp", {"batch": batch}),
            "losses tp": ("tp", {"batch": batch}),
        }
        kinds = {key: kind for key, kind in kinds.items() if key.split()[1] in names}
        daemon = self.new_daemon()
        try:
            options = ("--gpus=2", "--memory=12GiB", "--smact=0.2")
            self.swap_beside_reference(kinds, 3 if self.small else 20, daemon, *options)
        finally:
            self.note_log("losses", daemon)
        daemon.close()

    def tp(self):
        self.losses(("tp",))

    def mps(self):
        daemon = self.new_daemon(sharing="mps", mps_memory_limit="no")
        kinds = {"mps ddp": ("ddp-resnet50", {"batch": 8 if self.small else 32})}
        try:
            options = ("--gpus=2", "--memory=12GiB", "--smact=0.2")
            self.swap_beside_reference(kinds, 2 if self.small else 8, daemon, *options)
        finally:
            self.note_log("mps", daemon)
        daemon.close()

    # ---- moves ----

    def places(self, daemon, work):
        """Where the driver and colloc say that the process is, after two polls."""
        pid = work.pids()[0]
        uuids = dict(smi("--query-gpu=uuid,index"))
        of_driver = [
            [int(uuids.get(uuid, -1)), int(mib)]
            for uuid, p, mib in (
                row for row in smi("--query-compute-apps=gpu_uuid,pid,used_memory")
            )
            if int(p) == pid
        ]
        seen = {"driver": of_driver, "show": work.show()["gpus"]}
        for gpu in daemon.gpus():
            tasks = [
                t for t in gpu["tasks"] if (t["id"] if isinstance(t, dict) else t) == work.task
            ]
            seen[f"gpus {gpu['index']}"] = tasks[:1]
        metrics = get(daemon.socket, "/v1/metrics").decode(errors="replace")
        seen["metrics"] = [
            line
            for line in metrics.splitlines()
            if line.startswith(("colloc_task_gpu_memory", "colloc_task_gpu_sm_active"))
            and f'task="{work.task}"' in line
        ]
        series = json.loads(get(daemon.socket, f"/v1/tasks/{work.task}/series?metric=mem_used_mib"))
        seen["series"] = [
            {"gpu": s["gpu"], "seconds_ago": round(time.time() - s["times"][-1], 1)}
            for s in series.get("series", [])
            if s["times"]
        ]
        seen["process"] = work.steps()[0][-1][2]
        return seen

    def move_one(self, key, work, times):
        work.pause(False)
        work.wait_steps(3)
        rows = []
        for _ in range(times):
            if self.left_s() < 12:
                break
            before = int(work.show()["gpus"][0])
            seconds, why = work.ask("move", f"--gpu={1 - before}")
            n, begin = work.count(), time.monotonic()
            row = {"seconds": round(seconds, 3), "why": why, "from_to": [before, None]}
            rows.append(row)
            try:
                work.wait_steps(2, 20)
                row["next_step_s"] = round(time.monotonic() - begin, 3)
            except (TimeoutError, RuntimeError) as error:
                row["error"] = repr(error)[-300:]
                break
            row["from_to"][1] = int(work.show()["gpus"][0])
            time.sleep(1.2)  # two polls of the daemon
            row["places"] = self.places(work.daemon, work)
            row["steps_after"] = work.count() - n
        self.note(key, {"mem_peak_mib": work.show()["mem_peak_mib"], "moves": rows})
        work.pause()

    def moves(self):
        batches = {"resnet50": 8 if self.small else 64}
        if not self.small:
            batches["resnet152"] = 256
        fill_memory(0 if self.small else 112)
        daemons = {way: self.new_daemon(carrier=way) for way in ("yes", "no")}
        references, works = {}, {}
        for name, batch in batches.items():
            options = {"steps": 100000, "batch": batch}
            references[name] = self.new(name, 1, **{**options, "steps": 40})
            references[name].start(CUDA_VISIBLE_DEVICES="1")
            for way, daemon in daemons.items():
                memory = "--memory=54GiB" if name == "resnet152" else "--memory=10GiB"
                works[name, way] = self.new(name, 1, **options)
                works[name, way].submit(daemon, memory, "--smact=0.2")
        try:
            for work in works.values():
                until(lambda: work.count() >= 3 or work.has_ended(), 60, "steps", 0.1)
                work.pause()
            for name in references:
                references[name].wait_end(30)
            for name in reversed(batches):
                for way in ("yes", "no"):
                    how = "carrier" if way == "yes" else "driver"
                    times = 2 if way == "yes" or name == "resnet50" else 1
                    self.move_one(f"moves {name}, {how}", works[name, way], times)
        finally:
            for (name, way), work in works.items():
                how = "carrier" if way == "yes" else "driver"
                shown = work.show()
                result = {"state": shown["state"], "moves": shown["moves"]}
                result.update(compare(work, references[name]))
                self.note(f"moves {name}, {how}, losses", result)
            for way, daemon in daemons.items():
                self.note_log(f"moves {way}", daemon)
        for work in works.values():
            work.pause(False)
            work.stop()
        for work in works.values():
            work.wait_end(min(10, max(1, self.left_s() - 3)))
        for daemon in daemons.values():
            daemon.close()

    # ---- both at once ----

    def big(self):
        fill_memory(0 if self.small else 64)
        kind, batch = ("ddp-resnet50", 8) if self.small else ("ddp-resnet152", 108)
        daemon = self.new_daemon()
        work = self.new(kind, steps=100000, batch=batch)
        reference = self.new(kind, steps=60, batch=batch).start()
        work.submit(daemon, "--gpus=2", "--memory=30GiB", "--smact=0.2")
        rows = []
        try:
            work.wait_steps(3)
            work.pause()
            reference.wait_end(30)
            work.pause(False)
            work.wait_steps(2)
            pages = [pd.ProcessPage(pid, daemon.process.pid) for pid in work.pids()]
            for _ in range(2 if self.small else 5):
                if self.left_s() < 15:
                    break
                time.sleep(0.4)
                watch = Watch(pages)
                out_s, why = work.ask("suspend")
                row = {"out_s": round(out_s, 3), "why": why, "used_mib": used_mib()}
                row["gib"] = [round(page.u64(pd.CARRY_BYTES) / GIB, 2) for page in pages]
                if not why:
                    begin = time.monotonic() - watch.begin
                    in_s, row["why_in"] = work.ask("resume")
                    row.update(in_s=round(in_s, 3), resume_at=round(begin, 3))
                row["phases"] = watch.end()
                row["carry_out_s"] = [page.u64(pd.CARRY_OUT_US) / 1e6 for page in pages]
                row["carry_in_s"] = [page.u64(pd.CARRY_IN_US) / 1e6 for page in pages]
                rows.append(row)
                self.note("big", row)
            work.stop()
            state = work.wait_end(min(15, max(1, self.left_s() - 4)))
        finally:
            self.note_log("big", daemon)
        shown = work.show()
        self.note(
            "big, losses",
            {
                "state": state,
                "mem_peak_mib": shown["mem_peak_mib"],
                "together_s": [round(r["out_s"] + r.get("in_s", 0), 3) for r in rows],
                **compare(work, reference),
            },
        )
        daemon.close()

    # ---- slots ----

    def watch_turns(self, works, story, begin, spare_s):
        """Adds a line to the story whenever a state changes: seconds since `begin`, and the state
        and steps of each. Until all have ended, or spare_s are left of the part."""
        last = None
        while self.left_s() > spare_s:
            now = [[work.state(), work.count()] for work in works]
            states = [state for state, _ in now]
            if states != last:
                story.append([round(time.monotonic() - begin, 1), *now])
            last = states
            if all(state in ENDED for state in states):
                break
            time.sleep(0.1)

    def slots(self):
        """The daemon admits one task at a time."""
        daemon = self.new_daemon(slots="yes", slot_length="2s", tasks_per_gpu="1")
        steps, batch = (300, 4) if self.small else (350, 32)
        works = [self.new("ddp-resnet50", steps=steps, batch=batch, pace=0.01) for _ in range(2)]
        reference = self.new("ddp-resnet50", steps=steps, batch=batch)
        begin = time.monotonic()
        for work in works:
            work.submit(daemon, "--gpus=2", "--memory=5GiB", "--smact=0.2")
        reference.start()
        story = []
        self.watch_turns(works, story, begin, spare_s=10)
        reference.wait_end(max(0.1, self.left_s() - 8))
        total_s = round(time.monotonic() - begin, 1)
        for i, work in enumerate(works):
            shown = work.show()
            keys = ("state", "attempt_count", "suspensions", "suspended_s", "exec_s")
            result = {key: shown.get(key) for key in keys}
            result["events"] = [[e["event"], e["text"][:90]] for e in shown["events"]][-14:]
            self.note(f"slots {i + 1}", {**result, **compare(work, reference)})
        self.note("slots", {"total_s": total_s, "story": story})
        self.note_log("slots", daemon)
        daemon.close()

    # ---- ends ----

    VICTIMS = ("copying", "away", "returning", "held")
    DAEMONS = ("copying", "returning")

    def kill(self):
        before = used_mib()
        daemon = self.new_daemon()
        kinds = [("rank", phase) for phase in self.VICTIMS[: 3 if self.small else None]]
        kinds += [("collocd", phase) for phase in self.DAEMONS[: 1 if self.small else None]]
        kinds *= 1 if self.small else 2
        works = []
        for _ in kinds:
            work = self.new("ddp-resnet50", steps=100000, batch=16, pace=0.2)
            options = ("--gpus=2", "--memory=8GiB", "--smact=0.1", "--requeue=no")
            works.append(work.submit(daemon, *options))
        try:
            for work, (who, phase) in zip(works, kinds):
                if self.left_s() < 14:
                    self.note(f"kill {who} {phase}", {"not_run": "no time is left"})
                    continue
                try:
                    work.wait_steps(3, 60)
                    self.wait_carrier(work, 5)
                    result = self.kill_one(daemon, work, who, phase)
                except Exception as error:  # noqa: BLE001 - a part of the result
                    result = {"error": repr(error)[-2000:], "says": work.lines()[-3:]}
                self.note(f"kill {who} {phase}", result)
        finally:
            self.note_log("kill", daemon)
        for work in works:
            daemon.colloc("cancel", str(work.task), check=False)
        for work in works:
            work.wait_end(10)
        gone = lambda: max(a - b for a, b in zip(used_mib(), before)) < 64  # noqa: E731
        try:
            until(gone, 8, "", 0.2)
        except TimeoutError:
            pass
        self.note("kill, memory", {"before_mib": before, "after_mib": used_mib()})
        daemon.close()

    def kill_one(self, daemon, work, who, phase):
        pids = work.pids()
        page = pd.ProcessPage(pids[1], daemon.process.pid)
        if phase == "returning":
            _, why = work.ask("suspend")
            if why:
                return {"why": why}
        verb = "resume" if phase == "returning" else "suspend"
        command = [f"{daemon.programs}/colloc", "--socket", daemon.socket, verb, str(work.task)]
        asking = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        goals = ("held", "gate") if phase == "held" else (phase,)
        seen = page.wait_phase(*goals)
        if who == "rank":
            os.kill(pids[1], signal.SIGKILL)
        else:
            daemon.kill()
        result, begin = {"phase_seen": seen}, time.monotonic()
        if who == "collocd":
            daemon.start()
        asking.wait(60)
        if who == "rank":
            result["state"] = work.wait_end(40)
            result["ended_after_s"] = round(time.monotonic() - begin, 2)
            result["left_processes"] = [pid for pid in pids if is_running(pid)]
            apps = smi("--query-compute-apps=pid,used_memory")
            result["left_on_gpu"] = [row for row in apps if int(row[0]) in pids]
            return result
        settled = ("RUNNING", "SUSPENDED", *ENDED)
        state = until(lambda: (s := work.state()) in settled and s, 40, "the task to settle")
        result.update(state=state, settled_after_s=round(time.monotonic() - begin, 2))
        if state == "SUSPENDED":
            _, result["resume"] = work.ask("resume")
        n = work.count()
        work.wait_steps(3, 30)
        result.update(attempts=work.show()["attempt_count"], more_steps=work.count() - n)
        return result


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def get(socket, path):
    import http.client
    import socket as sockets

    connection = http.client.HTTPConnection("localhost", timeout=10)
    connection.sock = sockets.socket(sockets.AF_UNIX)
    connection.sock.connect(socket)
    connection.request("GET", path)
    return connection.getresponse().read()


FILL = (
    "import mmap, sys; m = mmap.mmap(-1, int(sys.argv[1]) << 30); m.madvise(23)"  # POPULATE_WRITE
)


def fill_memory(gib):
    """A lent machine gets its memory as it is used first; that is no part of a suspension."""
    each = gib // 16
    if each:
        fill = [sys.executable, "-c", FILL, str(each)]
        subprocess.Popen(
            ["sh", "-c", " & ".join([" ".join(f"'{w}'" for w in fill)] * 16) + "; wait"]
        )


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
    return found - {os.getpid()}


def end_all():
    """What a part has left: its daemons too, since this process is their reaper."""
    for _ in range(50):
        left = descendants()
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
        if not left:
            return
        time.sleep(0.1)


def run_parts(program, groups, limits_s, output, deadline):
    """Parts of a group run at the same time. program: the words that a part's name follows."""
    for group in groups:
        limit = max(limits_s[part] for part in group)
        limit = min(limit, deadline - time.monotonic() - 4)
        if limit < 25:
            write(output, {"result": "not run: no time is left", "parts": group})
            continue
        begin = time.monotonic()
        env = dict(os.environ, PART_SECONDS=str(limit - 1))
        started = [subprocess.Popen([sys.executable, *program, part], env=env) for part in group]
        for part, process in zip(group, started):
            try:
                rc = process.wait(max(0.1, begin + limit - time.monotonic()))
            except subprocess.TimeoutExpired:
                rc = "ran past its limit"
            seconds = round(time.monotonic() - begin, 1)
            write(output, {"result": f"part {part}", "rc": rc, "seconds": seconds})
        end_all()
        write(output, {"result": "memory after the part", "used_mib": used_mib()})


def write(output, row):
    with open(output, "a") as out:
        out.write(json.dumps(row) + "\n")
    print(json.dumps(row)[:2000], flush=True)


LONG = ("lines", "story", "events", "phases", "places", "says")


def shorten(value):
    if isinstance(value, dict):
        return {key: shorten(v) for key, v in value.items() if key not in LONG}
    return [shorten(v) for v in value] if isinstance(value, list) else value


def summarise(output):
    print("---- summary ----")
    with open(output) as rows:
        for row in map(json.loads, rows):
            key = row.pop("result")
            if not key.endswith(", log"):
                print(f"{key}: {json.dumps(shorten(row))[:270]}")


def machine():
    with open("/proc/meminfo") as info:
        memory = {line.split(":")[0]: line.split()[1] for line in info}
    return {
        "gpus": smi("--query-gpu=name,driver_version,memory.total"),
        "cpus": os.cpu_count(),
        "mem_total_kib": memory["MemTotal"],
        "mem_available_kib": memory["MemAvailable"],
    }


def main(kind, groups, limits_s, file):
    """Runs the parts, methods of `kind`, of the program `file`: those of a group together."""
    if len(sys.argv) < 4:
        sys.exit(sys.modules["__main__"].__doc__)
    programs, output, seconds = os.path.abspath(sys.argv[1]), sys.argv[2], float(sys.argv[3])
    rest = sys.argv[4:]
    small = "--small" in rest
    if "--part" in rest:
        work, part = rest[rest.index("--part") + 1 :]
        try:
            getattr(kind(programs, output, work, small), part)()
        except Exception as error:  # noqa: BLE001 - the other parts are still of use
            import traceback

            where = traceback.format_exc().splitlines()[-7:]
            write(output, {"result": f"error of {part}", "error": repr(error)[:300], "at": where})
            os._exit(1)
        os._exit(0)  # threads of this trial may wait for ever
    deadline = time.monotonic() + seconds
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    chosen = [word for word in rest if word != "--small"]
    if small:
        groups = [[part for group in groups for part in group]]
    groups = [words.split("+") for words in chosen] or groups
    arguments = [programs, output, sys.argv[3]] + (["--small"] if small else [])
    write(output, {"result": "machine", **machine()})
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as work:
        os.environ["TMPDIR"] = work
        try:
            program = [os.path.abspath(file), *arguments, "--part", work]
            run_parts(program, groups, limits_s, output, deadline)
        finally:
            end_all()
    write(output, {"result": "machine at the end", **machine()})
    summarise(output)


if __name__ == "__main__":
    main(Part, [["losses"], ["moves"], ["big"], ["slots"], ["kill"], ["mps"]], LIMITS_S, __file__)
