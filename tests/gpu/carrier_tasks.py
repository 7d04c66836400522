# SPDX-License-Identifier: Apache-2.0
"""What the trials of the carrier under a real collocd have in common: the machine, a daemon in a
folder, and a training that is its task. Imported by carrier_kills_trial.py, carrier_slots_trial.py
and carrier_lent_trial.py.

A Machine is real, with a folder of scripts/bundle and groups_trainings.py, or emulated: a build
folder, the emulator's GPUs, and tests/system/carried_training.c, which ends at the first block that
is not as it was. So that each trial can be tried without a GPU.
"""
import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), HERE]
sys.path.insert(0, os.path.join(HERE, "..", "..", "python"))
import preload_daemon as pd  # noqa: E402
from colloc_fit.machine import ForkServer  # noqa: E402
from groups_trial import (  # noqa: E402
    ENDED,
    PR_SET_CHILD_SUBREAPER,
    SETTINGS,
    end_all,
    is_running,
    until,
    write,
)

EMULATED_SPEED = 100  # the emulator's GPUs copy as many times as fast
FOLDERS = {
    "collocd": "src/daemon",
    "colloc": "src/cli",
    "colloc-shim": "src/exec",
    "colloc-checkpoint": "src/checkpoint",
    "libcolloc-preload.so": "src/preload",
}


class Machine:
    """The GPUs, the programs and the trainings."""

    def __init__(self, programs, is_emulated, folder):
        self.programs, self.folder = os.path.abspath(programs), folder
        self.is_emulated, self.fork = is_emulated, None
        self.env = dict(os.environ, CUBLAS_WORKSPACE_CONFIG=":4096:8")
        if is_emulated:
            emulator = f"{self.programs}/emulator"
            self.env.update(
                PATH=f"{emulator}:{os.environ['PATH']}",
                LD_LIBRARY_PATH=emulator,
                COLLOC_EMULATOR=f"{folder}/gpus",
            )
            self.emulator("create", "--gpus=2xH200", f"--speed={EMULATED_SPEED}", f"{folder}/gpus")
            self.emulator("set", "0", "nvlink=1:4")

    def emulator(self, *words):
        command = [f"{self.programs}/emulator/colloc-emulator", *words]
        subprocess.run(command, env=self.env, check=True, stdout=subprocess.DEVNULL)

    def program(self, name):
        return os.path.join(self.programs, FOLDERS[name] if self.is_emulated else "", name)

    def import_once(self, *libraries):
        """From now on a training is a fork of a process that has imported them. The emulated one
        imports nothing."""
        if not self.is_emulated:
            library = self.program("libcolloc-preload.so")
            self.fork = ForkServer(libraries, library, has_carrier=True)

    def close(self):
        if self.fork:
            self.fork.close()

    def used_mib(self, gpu):
        """By the driver, whoever uses it; None of an emulated GPU."""
        if self.is_emulated:
            return None
        query = ["--query-gpu=memory.used", "--format=csv,noheader,nounits"]
        done = subprocess.run(
            ["nvidia-smi", "-i", str(gpu), *query], capture_output=True, text=True, check=True
        )
        return int(done.stdout)

    def training(self, kind, steps, stop, pause, batch=16, pace=0.0, mib=64, may_fork=True):
        """The words of its command. It ends before its last step once the file `stop` is there, and
        rests while `pause` is. mib: what the emulated one takes, which has no batch. A fork has the
        library, since its server has."""
        if self.is_emulated:
            training = f"{self.programs}/tests/system/carried-training"
            words = [training, f"--steps={steps}", f"--end={stop}", f"--idle={pause}"]
            return [*words, "--blocks=2", f"--first-mib={mib // 2}"]
        python = self.fork.command() if self.fork and may_fork else [sys.executable]
        words = [*python, f"{HERE}/groups_trainings.py", kind, f"--steps={steps}"]
        return [*words, f"--batch={batch}", f"--pace={pace}", f"--stop={stop}", f"--pause={pause}"]


class Daemon:
    """One collocd in a folder."""

    def __init__(self, machine, gpus, **settings):
        self.machine, self.folder = machine, tempfile.mkdtemp(dir=machine.folder)
        self.socket, self.log = f"{self.folder}/s", open(f"{self.folder}/log", "a")
        given = {
            "socket": self.socket,
            "state_dir": f"{self.folder}/state",
            "shim": machine.program("colloc-shim"),
            "preload_library": machine.program("libcolloc-preload.so"),
            "checkpoint": machine.program("colloc-checkpoint"),
            "gpus": gpus,
            **SETTINGS,
            **settings,
        }
        self.tasks = []
        self.command = [machine.program("collocd")]
        self.command += [f"--{key.replace('_', '-')}={value}" for key, value in given.items()]
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stderr=self.log, env=self.machine.env)
        until(lambda: self.ask("info").returncode == 0, 30, "collocd to answer", 0.05)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        """Tasks outlive their daemon: they are ended first."""
        for task in self.tasks:
            self.ask("cancel", str(task))
        for task in self.tasks:
            until(lambda: self.show(task)["state"] in ENDED, 30, "its end", 0.05)
        self.process.terminate()
        self.process.wait()

    def words(self, *words):
        return [self.machine.program("colloc"), f"--socket={self.socket}", *words]

    def ask(self, *words):
        env, given = self.machine.env, self.words(*words)
        return subprocess.run(given, env=env, capture_output=True, text=True, timeout=120)

    def show(self, task):
        return json.loads(self.ask("show", str(task), "--json").stdout)

    def gpus(self):
        return json.loads(self.ask("gpus", "--json").stdout)["gpus"]

    def warnings(self):
        with open(f"{self.folder}/log", encoding="utf-8", errors="replace") as log:
            return [line.strip() for line in log if "warning" in line or "error" in line]

    def helper(self):
        """The pid of its colloc-checkpoint; None: it runs none."""
        children = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        for pid in open(children).read().split():
            if "colloc-checkpoint" in open(f"/proc/{pid}/cmdline").read():
                return int(pid)
        return None


def rest(pause_file, is_resting):
    """From after its next step a training rests while the file is there."""
    if is_resting:
        open(pause_file, "w").close()
    elif os.path.exists(pause_file):
        os.unlink(pause_file)


class Task:
    """A training under a daemon. options: of `colloc submit`; the rest is Machine.training's."""

    def __init__(self, daemon, kind, steps, *options, is_paused=False, **training):
        self.daemon, name = daemon, tempfile.mktemp(dir=daemon.folder)
        self.stop_file, self.pause_file, self.steps = f"{name}.stop", f"{name}.pause", steps
        self.path = f"{name}.out"
        self.pause(is_paused)
        words = daemon.machine.training(kind, steps, self.stop_file, self.pause_file, **training)
        # A file for each: the default's name has the task's number alone, which two daemons have.
        options = (*options, f"--output={self.path}", "--requeue=no", "--json")
        done = daemon.ask("submit", *options, "--", *words)
        if done.returncode:
            raise RuntimeError(done.stderr)
        self.id = json.loads(done.stdout)["id"]
        daemon.tasks.append(self.id)

    def show(self):
        return self.daemon.show(self.id)

    def state(self):
        return self.show()["state"]

    def pause(self, is_paused):
        rest(self.pause_file, is_paused)

    def output(self):
        return self.daemon.ask("logs", str(self.id)).stdout.splitlines()

    def losses(self):
        """Of the emulated training: nothing but that a step has found all as it was."""
        return [" ".join(line.split()[4:5]) for line in self.output() if line.startswith("step")]

    def wait_steps(self, more, limit_s=60):
        aim = len(self.losses()) + more

        def has_come():
            if self.state() in ENDED:
                raise RuntimeError(f"it has ended: {self.output()[-5:]}")
            return len(self.losses()) >= aim

        until(has_come, limit_s, "its steps", 0.05)

    def wait(self, *states, limit_s=60):
        return until(lambda: (s := self.state()) in states and s, limit_s, str(states), 0.05)

    def is_mine(self, pid):
        """By its environment."""
        with open(f"/proc/{pid}/environ", errors="replace") as environ:
            environment = environ.read().split("\0")
        if f"COLLOC_TASK_ID={self.id}" not in environment:
            return False
        return any(self.daemon.folder in entry for entry in environment)

    def find_pid(self):
        """Of the process that has a page of the daemon; None: none has one yet. A fork says its
        pid: /proc has the environment of its server."""
        is_fork = self.daemon.machine.fork is not None
        said = [line.split()[2] for line in self.output() if line.startswith("pid ")]
        for pid in said if is_fork else filter(str.isdigit, os.listdir("/proc")):
            try:
                if (is_fork or self.is_mine(pid)) and pd.ProcessPage.pages_of(pid):
                    return int(pid)
            except OSError:
                continue
        return None


class Reference:
    """The same training without colloc: its losses are those of an undisturbed run."""

    def __init__(self, machine, kind, steps, gpu=0, is_paused=False, **training):
        self.path = tempfile.mktemp(dir=machine.folder)
        self.pause_file = f"{self.path}.pause"
        rest(self.pause_file, is_paused)
        files = (f"{self.path}.stop", self.pause_file)
        words = machine.training(kind, steps, *files, may_fork=False, **training)
        env = machine.env
        if not machine.is_emulated and "CUDA_VISIBLE_DEVICES" not in env:
            env = dict(env, CUDA_VISIBLE_DEVICES=str(gpu))
        with open(self.path, "w") as output:
            self.process = subprocess.Popen(words, env=env, stdout=output, stderr=output)

    def losses(self):
        with open(self.path, errors="replace") as output:
            return [" ".join(line.split()[4:5]) for line in output if line.startswith("step")]

    def compare(self, losses, limit_s=60):
        """Waits for as many steps. Returns {"equal", "compared"}."""
        try:
            until(
                lambda: len(self.losses()) >= len(losses) or not is_running(self.process.pid),
                limit_s,
                "the reference",
                0.1,
            )
        except TimeoutError:
            pass
        return compare(losses, self.losses())

    def end(self):
        self.process.kill()
        self.process.wait()


def compare(losses, reference):
    """Bit for bit, as far as both have come."""
    pairs = list(zip(losses, reference))
    first = next((i for i, (a, b) in enumerate(pairs) if a != b), None)
    row = {"equal": bool(pairs) and first is None, "compared": len(pairs)}
    if first is not None:
        row["first_difference"] = first
        row["losses"] = [list(pair) for pair in pairs[max(0, first - 1) : first + 3]]
    return row


def read_options(usage, **more):
    """PROGRAMS OUT.jsonl [--seconds=S] [--emulated], and those of a trial: name -> default."""
    parser = argparse.ArgumentParser(usage=usage)
    parser.add_argument("programs")
    parser.add_argument("out")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--emulated", action="store_true")
    for name, default in more.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(default), default=default)
    return parser.parse_args()


def note_error(own, part, error):
    own.note(f"error of {part}", error=repr(error)[-300:])


def run_parts(own, parts, end, least_s, on_error=note_error):
    """Calls methods of the trial `own`, of which `parts` has the names with commas. None begins
    less than `least_s` before `end`, in the time of time.monotonic(). An error of one is a part of
    the result: on_error(own, part, error)."""
    for part in parts.split(","):
        if time.monotonic() > end - least_s:
            own.note(part, not_run="no time is left")
            continue
        try:
            getattr(own, part)()
        except Exception as error:  # noqa: BLE001 - a part of the result
            on_error(own, part, error)


def run(usage, trial, **more):
    """Calls trial(machine, options); all that it has started ends with it."""
    options = read_options(usage, **more)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        machine = Machine(options.programs, options.emulated, folder)
        begin = time.monotonic()
        try:
            trial(machine, options)
        finally:
            machine.close()
            end_all()
        write(options.out, {"result": "took", "seconds": round(time.monotonic() - begin, 1)})
