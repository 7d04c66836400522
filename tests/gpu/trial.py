#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The main functions on a real GPU: collocd, the CLI and PyTorch tasks. Prints results as JSON.

    tests/gpu/trial.py PROGRAMS [OUTPUT [PART ...]]

PROGRAMS is a folder with collocd, colloc and colloc-shim (scripts/bundle makes one). Needs a GPU,
its driver and a python3 with PyTorch; changes no setting of the GPU.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TRAIN = os.path.join(HERE, "train.py")


class TrialDaemon:
    """One collocd in a temporary folder."""

    def __init__(self, programs, gpus="0", **settings):
        self.programs, self.managed = os.path.abspath(programs), gpus
        self.folder = tempfile.mkdtemp(prefix="colloc-trial-")
        self.socket = os.path.join(self.folder, "s")
        self.settings = settings
        self.log = open(os.path.join(self.folder, "log"), "a+")
        self.start()

    def start(self):
        command = [
            f"{self.programs}/collocd",
            f"--socket={self.socket}",
            f"--state-dir={self.folder}/state",
            f"--shim={self.programs}/colloc-shim",
            f"--gpus={self.managed}",
        ]
        command += [f"--{key.replace('_', '-')}={value}" for key, value in self.settings.items()]
        self.process = subprocess.Popen(command, stderr=self.log, start_new_session=True)
        limit = time.monotonic() + 20
        while subprocess.run(
            [f"{self.programs}/colloc", "--socket", self.socket, "info"], capture_output=True
        ).returncode:
            if time.monotonic() > limit or self.process.poll() is not None:
                raise RuntimeError("collocd does not answer: " + open(self.log.name).read())

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def close(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def colloc(self, *arguments, check=True):
        done = subprocess.run(
            [f"{self.programs}/colloc", "--socket", self.socket, *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=120,
        )
        if check and done.returncode:
            raise RuntimeError(f"colloc {arguments}: {done.stderr}")
        return done.stdout

    def submit(self, *work, options=()):
        before = time.time()
        out = self.colloc("submit", "--json", *options, "--", sys.executable, *work)
        return json.loads(out)["id"], before

    def show(self, task):
        return json.loads(self.colloc("show", str(task), "--json"))

    def wait(self, *tasks):
        self.colloc("wait", *[str(task) for task in tasks], check=False)
        return [self.show(task) for task in tasks]

    def lines(self, task):
        return [
            json.loads(line)
            for line in self.colloc("logs", str(task)).splitlines()
            if line.startswith("{")
        ]

    def gpus(self):
        return json.loads(self.colloc("gpus", "--json"))["gpus"]


def brief(task):
    keys = (
        "state",
        "reason",
        "failure",
        "evidence",
        "wait_s",
        "exec_s",
        "attempt_count",
        "oom_count",
        "exit_code",
        "signal",
        "mem_peak_mib",
    )
    return {key: task[key] for key in keys}


def nvidia_smi(query):
    if not shutil.which("nvidia-smi"):
        return None
    return subprocess.run(
        ["nvidia-smi", query, "--format=csv,noheader,nounits"], capture_output=True, text=True
    ).stdout.splitlines()


def one_training(programs):
    daemon = TrialDaemon(programs, sharing="streams")
    task, _ = daemon.submit(TRAIN, "resnet50", "--batch", "64", "--seconds", "15")
    samples = []
    while daemon.show(task)["state"] in ("PENDING", "RUNNING"):
        gpu = daemon.gpus()[0]
        samples.append(
            {
                key: gpu[key]
                for key in (
                    "mem_used_mib",
                    "smact",
                    "smocc",
                    "dram_active",
                    "utilisation",
                    "power_w",
                )
            }
        )
        samples[-1]["driver_processes"] = (
            nvidia_smi("--query-compute-apps=pid,used_memory") if len(samples) % 10 == 5 else None
        )
        time.sleep(0.5)
    lines, task_shown = daemon.lines(task), daemon.show(task)
    daemon.close()
    return {"task": brief(task_shown), "own_words": lines, "samples": samples}


def latency(programs):
    """Seconds from submit to the first line of output, against a start by hand, on an idle GPU."""
    work = ("-c", "import time; print(time.time())")
    daemon = TrialDaemon(programs, sharing="streams")
    by_colloc, by_hand = [], []
    for _ in range(20):
        task, before = daemon.submit(*work)
        daemon.wait(task)
        by_colloc.append(float(daemon.colloc("logs", str(task))) - before)
        before = time.time()
        by_hand.append(
            float(subprocess.run([sys.executable, *work], capture_output=True, text=True).stdout)
            - before
        )
    daemon.close()
    return {"by_colloc_s": by_colloc, "by_hand_s": by_hand}


def out_of_memory(programs):
    daemon = TrialDaemon(programs, sharing="streams", settle="3s", smact_max="1")
    first, _ = daemon.submit(TRAIN, "allocate", "--gib", "90", "--seconds", "12")
    second, _ = daemon.submit(TRAIN, "allocate", "--gib", "70", "--seconds", "3")
    alone, _ = daemon.submit(
        TRAIN, "allocate", "--gib", "200", "--seconds", "3", options=("--exclusive",)
    )
    beside, neighbour, lonely = daemon.wait(second, first, alone)
    stats = {"beside": brief(beside), "neighbour": brief(neighbour), "alone": brief(lonely)}
    stats["story"] = [(event["event"], event["text"]) for event in beside["events"]]
    stats["stderr"] = daemon.colloc("logs", str(second), "--stderr", "--attempt", "1")[-1500:]
    daemon.close()
    return stats


def other_failures(programs):
    daemon = TrialDaemon(programs, sharing="streams")
    work = {
        "device assert": (TRAIN, "illegal"),
        "jax oom": (
            "-c",
            "import os; os.environ['XLA_PYTHON_CLIENT_PREALLOCATE']='false'; "
            "import jax.numpy as n; n.zeros((300, 2**28)).block_until_ready()",
        ),
        "cupy oom": ("-c", "import cupy; cupy.zeros((300, 2**28), dtype=cupy.float32)"),
        "plain error": ("-c", "raise ValueError('CUDA out of memory is not what happened')"),
    }
    result = {}
    for name, arguments in work.items():
        task, _ = daemon.submit(*arguments, options=("--exclusive",))
        result[name] = brief(daemon.wait(task)[0])
        result[name]["stderr_end"] = daemon.colloc("logs", str(task), "--stderr")[-400:]
    daemon.close()
    return result


def kill_daemon(programs):
    daemon = TrialDaemon(programs, sharing="streams")
    running, _ = daemon.submit(TRAIN, "resnet50", "--seconds", "12", options=("--exclusive",))
    short, _ = daemon.submit(TRAIN, "allocate", "--gib", "1", "--seconds", "1")
    while not daemon.lines(running):
        time.sleep(0.2)
    daemon.kill()
    time.sleep(1)
    daemon.start()
    while_running = brief(daemon.show(running))
    ended = [brief(task) for task in daemon.wait(running, short)]
    daemon.close()
    return {"after_restart": while_running, "ended": ended}


def together(programs, how, policy, count, model, batch):
    """Runs `count` equal trainings. Returns the time until all have made their steps."""
    daemon = TrialDaemon(
        programs, sharing=how, policy=policy, settle="1s", smact_max="1", min_free="2GiB"
    )
    started = time.time()
    tasks = [
        daemon.submit(TRAIN, model, "--batch", str(batch), "--seconds", "12")[0]
        for _ in range(count)
    ]
    ended = daemon.wait(*tasks)
    words = [line for task in tasks for line in daemon.lines(task) if line["event"] == "trained"]
    pipes = [daemon.lines(task)[0]["pipe"] for task in tasks]
    result = {
        "states": [task["state"] for task in ended],
        "total_s": time.time() - started,
        "images_per_s_each": [line["images_per_s"] for line in words],
        "step_ms": [line["step_ms"] for line in words],
        "mem_peak_mib": [task["mem_peak_mib"] for task in ended],
        "mps": [bool(pipe) for pipe in pipes],
        "log": open(daemon.log.name).read()[-600:],
    }
    for pipe in set(filter(None, pipes)):
        environment = dict(os.environ, CUDA_MPS_PIPE_DIRECTORY=pipe)
        subprocess.run(
            ["nvidia-cuda-mps-control"],
            input="quit\n",
            text=True,
            env=environment,
            capture_output=True,
            timeout=30,
        )
    daemon.close()
    return result


def cost(programs):
    """What looking at the GPUs costs: processor time of an idle collocd, by how often it looks."""
    result = {}
    for period, seconds in (("1s", 30), ("100ms", 20)):
        daemon = TrialDaemon(programs, sample_period=period)
        time.sleep(2)
        before, began = processor_s(daemon.process.pid), time.monotonic()
        time.sleep(seconds)
        result[period] = {
            "share_of_a_core": (processor_s(daemon.process.pid) - before)
            / (time.monotonic() - began)
        }
        with open(f"/proc/{daemon.process.pid}/status") as status:
            result[period]["memory"] = [
                line.strip() for line in status if line.startswith(("VmRSS", "RssAnon"))
            ]
        daemon.close()
    return result


def processor_s(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main():
    programs, output = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    seen = {
        "gpu": nvidia_smi(
            "--query-gpu=name,driver_version,memory.total,compute_mode,mig.mode.current"
        )
    }
    parts = {
        "cost": lambda: cost(programs),
        "latency": lambda: latency(programs),
        "one_training": lambda: one_training(programs),
        "out_of_memory": lambda: out_of_memory(programs),
        "other_failures": lambda: other_failures(programs),
        "kill_daemon": lambda: kill_daemon(programs),
        "small_streams": lambda: together(programs, "streams", "magm", 4, "resnet18", 64),
        "small_mps": lambda: together(programs, "mps", "magm", 4, "resnet18", 64),
        "small_alone": lambda: together(programs, "streams", "exclusive", 1, "resnet18", 64),
    }
    chosen = sys.argv[3:] or list(parts)
    for name in chosen:
        part = parts[name]
        began = time.monotonic()
        try:
            seen[name] = part()
        except Exception as error:  # one part that fails must not lose what the others saw
            seen[name] = {"error": repr(error)}
        seen[name]["took_s"] = time.monotonic() - began
        print(name, json.dumps(seen[name])[:1500], flush=True)
        if output:
            with open(output, "w") as file:
                json.dump(seen, file, indent=1)


if __name__ == "__main__":
    main()
