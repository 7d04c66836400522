#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GPUs that are closed by the kernel (docs/placement.md, docs/outside.md): what CUDA and nvidia-smi
find where the filter of cgroups refuses the device files. Writes JSON lines.

    tests/gpu/closed_trial.py PROGRAMS OUT.jsonl --seconds=S [--gpus=0] [--image=IMAGE]
                              [--parts=told,filter,limit,container] [--emulated]

PROGRAMS: a folder made by scripts/bundle; with --emulated a build folder: the device files are made
then, and opening one that is not refused says that there is no device.

    told        the rows `gpu-filter` and `outside` of `colloc doctor`, and whether docker, podman
                and nvidia-ctk are there: a filter that cannot be made here explains the rest
    filter      `gpu-filter: yes`: tasks of no, one and all GPUs unset CUDA_VISIBLE_DEVICES, and see
                their own GPUs only (`as_granted`); a training computes as ever
    limit       `outside: limit`, tasks may be suspended: a person's process in a login's cgroup
                sees no GPU, root's sees all, a task sees all; a training is suspended and resumed;
                after collocd has been killed the person sees all again (`as_meant`)
    container   with --image, an image that is on this machine and has nvidia-smi: a task of one GPU
                by --container, and `docker run --gpus all` in a task, see one GPU (`as_granted`)
"""
import json
import os
import shutil
import stat
import subprocess
import sys
import time

import carrier_tasks as ct
from groups_trial import until, write

PERSON = 12345  # without a name on this machine
STEPS = 100000
PART_S = 8  # chosen: no part begins later before the end

# Prints what this process finds: device files by their numbers, and devices of CUDA and nvidia-smi.
PROBE = """
import ctypes, errno, glob, json, os, re, subprocess, sys
folder, cgroup, uid = sys.argv[1], sys.argv[2], int(sys.argv[3])
if cgroup:
    open(cgroup + "/cgroup.procs", "w").write("0")
if uid:
    os.setgroups([])
    os.setresuid(uid, uid, uid)
os.environ.pop("CUDA_VISIBLE_DEVICES", None)
found = {"files": {}}
for path in sorted(glob.glob(folder + "/nvidia[0-9]*")):
    try:
        os.close(os.open(path, os.O_RDWR))
        said = 0
    except OSError as error:
        said = error.errno
    found["files"][re.sub(".*nvidia", "", path)] = said not in (errno.EPERM, errno.EACCES)
try:
    count = ctypes.c_int()
    cuda = ctypes.CDLL("libcuda.so.1")
    found["cuda_says"] = [cuda.cuInit(0), cuda.cuDeviceGetCount(ctypes.byref(count))]
    found["cuda"] = count.value
except OSError as error:
    found["cuda_says"] = str(error)
try:
    done = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=30)
    found["smi"] = [line for line in done.stdout.splitlines() if line.startswith("GPU ")]
    found["smi_says"] = done.returncode
except OSError as error:
    found["smi_says"] = str(error)
print(json.dumps(found))
"""


class Trial:
    def __init__(self, machine, options):
        self.machine, self.options = machine, options
        self.gpus = options.gpus.split(",")
        self.devices = self.make_devices() if machine.is_emulated else "/dev"
        os.chmod(machine.folder, 0o755)  # a person reads the device files of the emulated ones

    def make_devices(self):
        folder = os.path.join(self.machine.folder, "dev")
        os.mkdir(folder)
        for gpu in self.gpus:
            os.mknod(f"{folder}/nvidia{gpu}", stat.S_IFCHR | 0o666, os.makedev(195, int(gpu)))
            os.chmod(f"{folder}/nvidia{gpu}", 0o666)
        return folder

    def note(self, name, **row):
        write(self.options.out, {"result": f"closed, {name}", **row})

    def daemon(self, **settings):
        return ct.Daemon(self.machine, self.options.gpus, sharing="streams", **settings)

    def run_task(self, daemon, options, words):
        """Returns what the task printed, when it has ended."""
        done = daemon.ask("submit", "--json", *options, "--", *words)
        if done.returncode:
            return {"refused": done.stderr.strip()[-300:]}
        task = json.loads(done.stdout)["id"]
        daemon.tasks.append(task)
        until(lambda: daemon.show(task)["state"] in ct.ENDED, 60, "the end of a task", 0.05)
        text = daemon.ask("logs", str(task)).stdout
        return {"state": daemon.show(task)["state"], "text": text}

    def probe(self, daemon, *options):
        words = [sys.executable, "-c", PROBE, self.devices, "", "0"]
        row = self.run_task(daemon, options, words)
        found = found_in(row.pop("text", ""))
        return {**row, "found": found}

    def probe_outside(self, cgroup, uid):
        words = [sys.executable, "-c", PROBE, self.devices, cgroup, str(uid)]
        done = subprocess.run(
            words, env=self.machine.env, capture_output=True, text=True, timeout=60, check=False
        )
        return found_in(done.stdout) or {"says": done.stderr[-300:]}

    def train(self, daemon, gives_way=False):
        """A training that is suspended and resumed, or not. Returns its steps and its end."""
        task = ct.Task(daemon, "resnet18", STEPS, batch=16, mib=64)
        task.wait_steps(3)
        if gives_way:
            daemon.ask("suspend", str(task.id))
            task.wait("SUSPENDED", limit_s=60)
            daemon.ask("resume", str(task.id))
            task.wait("RUNNING", limit_s=60)
            task.wait_steps(3)
        steps = len(task.losses())
        daemon.ask("cancel", str(task.id))
        task.wait("CANCELLED", "FAILED", limit_s=60)
        return {"steps": steps, "attempts": task.show()["attempt_count"]}

    # ---- parts ----

    def told(self):
        daemon = self.daemon()
        doctor = daemon.ask("doctor").stdout.splitlines()
        rows = [line for line in doctor if line.startswith(("gpu-filter", "outside", "cgroup"))]
        names = ("docker", "podman", "crun", "nvidia-ctk")
        self.note("told", doctor=rows, programs={name: shutil.which(name) for name in names})
        daemon.close()

    def filter(self):
        daemon = self.daemon(gpu_filter="yes", suspend="no")
        for n in sorted({0, 1, len(self.gpus)}):
            row = self.probe(daemon, f"--gpus={n}")
            if self.machine.is_emulated:  # its CUDA opens no device file
                row["found"].pop("cuda", None)
            self.note(f"filter, {n} GPUs", **row, as_granted=is_granted(row, n))
        self.note("filter, training", **self.train(daemon), says=daemon.warnings())
        daemon.close()

    def limit(self):
        cgroup = make_cgroup()
        daemon = self.daemon(outside="limit")
        try:
            until(lambda: is_open(self.probe_outside(cgroup, PERSON)) is False, 15, "the filter")
            self.watch(daemon, cgroup)
        except TimeoutError as error:
            self.note("limit", as_meant=False, error=str(error), says=daemon.warnings())
        daemon.close()
        os.rmdir(cgroup)

    def watch(self, daemon, cgroup):
        for name, uid, is_meant in (("person", PERSON, False), ("root", 0, True)):
            found = self.probe_outside(cgroup, uid)
            self.note(f"limit, {name}", found=found, as_meant=is_open(found) is is_meant)
        row = self.probe(daemon, "--gpus=1")
        self.note("limit, task", **row, as_meant=is_open(row["found"]) is True)
        self.note("limit, training", **self.train(daemon, gives_way=True))
        daemon.kill()
        found = self.probe_outside(cgroup, PERSON)
        self.note("limit, after collocd", found=found, as_meant=is_open(found) is True)
        daemon.start()

    def container(self):
        image = self.options.image
        if not image:
            self.note("container", left_out="no --image")
            return
        daemon = self.daemon()
        row = self.run_task(daemon, (f"--container={image}", "--gpus=1"), ("nvidia-smi", "-L"))
        self.note("container", **row, as_granted=count_gpus(row) == 1)
        words = ("docker", "run", "--rm", "--gpus", "all", image, "nvidia-smi", "-L")
        row = self.run_task(daemon, ("--gpus=1",), words)
        self.note("container, docker run --gpus all", **row, as_granted=count_gpus(row) == 1)
        daemon.close()


def found_in(text):
    lines = [line for line in text.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else {}


def is_open(found):
    """All device files: True or False; None: some."""
    files = set(found.get("files", {}).values())
    return files.pop() if len(files) == 1 else None


def is_granted(row, n):
    """Could a task with `n` GPUs open `n` device files, and did CUDA and nvidia-smi count `n`?"""
    found = row["found"]
    if sum(found.get("files", {}).values()) != n:
        return False
    seen = found.get("cuda", n), len(found["smi"]) if "smi" in found else n
    return seen == (n, n)


def count_gpus(row):
    return sum(line.startswith("GPU ") for line in row.get("text", "").splitlines())


def make_cgroup():
    """A cgroup beside that of collocd, as a login has one."""
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        mounts = [line.split()[4] for line in file if " - cgroup2 " in line]
    path = os.path.join(mounts[0] if mounts else "/sys/fs/cgroup", f"closed-trial-{os.getpid()}")
    os.mkdir(path)
    return path


def trial(machine, options):
    own = Trial(machine, options)
    end = time.monotonic() + options.seconds
    ct.run_parts(own, options.parts, end, PART_S)


if __name__ == "__main__":
    ct.run(__doc__, trial, gpus="0", image="", parts="told,filter,limit,container")
