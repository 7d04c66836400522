#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tasks in podman's containers with the GPU that they were given by CDI (docs/containers.md).

    tests/gpu/container_trial.py PROGRAMS OUT.jsonl --seconds=S [--gpus=0] [--emulated]
                                 [--parts=told,plain,task,filter,limit,outside]

Needs root, podman, crun, cgroup v2 and cc. The image is made of this machine's shell, and where
there is no CDI specification one is written from the driver's device files and libraries: no
registry and no nvidia-ctk. Writes JSON lines; `as_meant`: is a row as docs/containers.md has it?
PROGRAMS: a folder made by scripts/bundle; with --emulated a build folder, with /dev/null for each
GPU.

    told        the programs and CDI files of this machine, and `colloc doctor`'s rows of cgroups
    plain       podman without colloc, with and without a GPU: does CDI work here at all?
    task        `colloc submit --container`: one GPU, its memory as the task's; no GPU; cancelled:
                the container is gone
    filter      the same with `gpu-filter: yes`
    limit       the same with `outside: limit`
    outside     a container beside the queue: `colloc gpus` names it, with its image
"""
import ctypes
import glob
import json
import os
import re
import shutil
import subprocess
import tempfile
import time

import carrier_tasks as ct
from groups_trial import until, write

HERE = os.path.dirname(os.path.abspath(__file__))
IMAGE = "localhost/lab/probe:1"
PROGRAMS = ("/bin/sh", "/bin/sleep", "/bin/cat")
LIBRARIES = ("libdl.so.2", "libpthread.so.0", "librt.so.1", "libm.so.6")  # that the driver loads
DRIVER = re.compile(r"lib(cuda|nvidia-ml|nvidia-ptxjitcompiler|nvidia-gpucomp)\.so")
CDI_FOLDERS = ("/etc/cdi", "/run/cdi", "/var/run/cdi")
CONTROL = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")
MIB, BUSY_S = 2048, 4  # of the load
STORAGE = (
    "/run/containers/storage",
    "/var/lib/containers/storage",
)  # podman's own: images have names
# podman asks for 1,048,576 open files and more processes than it has itself, which root is refused
# where it may not raise a limit (Debian's 4.3.1 in a virtual machine; crun says EPERM).
CONTAINERS_CONF = """[containers]
netns = "none"
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
"""
PART_S = 8  # chosen: no part begins later before the end


# ---- the CDI specification ----


def driver_libraries():
    """Those in the folder from which the loader takes libcuda here."""
    ctypes.CDLL("libcuda.so.1")
    with open("/proc/self/maps", encoding="ascii", errors="replace") as maps:
        path = next(line.split()[-1] for line in maps if "/libcuda.so" in line)
    folder = os.path.dirname(path)
    return [f"{folder}/{name}" for name in sorted(os.listdir(folder)) if DRIVER.match(name)]


def device_of(name, files):
    return {"name": name, "containerEdits": {"deviceNodes": files}}


def specification(gpus, is_emulated):
    """gpus: indices of nvidia-smi, which are the numbers of the device files on a usual machine."""
    files = {
        gpu: [{"path": f"/dev/nvidia{gpu}", **({"hostPath": "/dev/null"} if is_emulated else {})}]
        for gpu in gpus
    }
    control = [] if is_emulated else [{"path": path} for path in CONTROL if os.path.exists(path)]
    libraries = [] if is_emulated else driver_libraries()
    mounts = [
        {"hostPath": path, "containerPath": path, "options": ["ro", "nosuid", "nodev", "bind"]}
        for path in libraries
    ]
    folders = ":".join(sorted({os.path.dirname(path) for path in libraries}))
    common = {"mounts": mounts, "deviceNodes": control, "env": [f"LD_LIBRARY_PATH={folders}"]}
    devices = [device_of(gpu, files[gpu]) for gpu in gpus]
    kind = "nvidia.com/gpu"
    return {"cdiVersion": "0.5.0", "kind": kind, "devices": devices, "containerEdits": common}


def cdi_files():
    return sorted(path for folder in CDI_FOLDERS for path in glob.glob(folder + "/*"))


# ---- the trial ----


class Trial:
    def __init__(self, machine, options):
        self.machine, self.options, self.gpus = machine, options, options.gpus.split(",")
        self.cdi = None
        env = machine.env
        folders = [os.path.dirname(machine.program(name)) for name in ("colloc", "collocd")]
        env["PATH"] = ":".join([*folders, env["PATH"]])

    def note(self, name, **row):
        write(self.options.out, {"result": f"container, {name}", **row})

    def call(self, *words, text=None, limit_s=60):
        return subprocess.run(
            words, env=self.machine.env, input=text, capture_output=True, timeout=limit_s
        )

    def prepare(self):
        if not cdi_files():
            os.makedirs(CDI_FOLDERS[1], exist_ok=True)
            self.cdi = os.path.join(CDI_FOLDERS[1], "nvidia.json")
            with open(self.cdi, "w", encoding="utf-8") as file:
                json.dump(specification(self.gpus, self.machine.is_emulated), file)
        root = os.path.join(self.machine.folder, "image")
        os.makedirs(f"{root}/tmp")
        probe = os.path.join(self.machine.folder, "probe")
        words = ["cc", "-o", probe, os.path.join(HERE, "container_probe.c"), "-ldl"]
        subprocess.run(words, check=True)
        self.copy_with_libraries(root, [*PROGRAMS, probe])
        shutil.copy(probe, f"{root}/bin/probe")
        tar = self.call("tar", "c", "-C", root, ".").stdout
        done = self.call("podman", "import", "-", IMAGE, text=tar)
        if done.returncode:
            raise RuntimeError(done.stderr[-300:])

    def copy_with_libraries(self, root, programs):
        said = self.call("ldd", *programs).stdout.decode()
        paths = {word.rstrip(":") for word in said.split() if word.startswith("/")} - {programs[-1]}
        near = os.path.dirname(next(path for path in paths if "/libc.so" in path))
        paths |= {os.path.join(near, name) for name in LIBRARIES}
        for path in (path for path in paths if os.path.exists(path)):
            os.makedirs(root + os.path.dirname(path), exist_ok=True)
            shutil.copy(path, root + path)

    def close(self):
        self.call("podman", "rm", "--all", "--force")
        self.call("podman", "rmi", "--force", IMAGE)
        if self.cdi:
            os.unlink(self.cdi)

    def daemon(self, **settings):
        return ct.Daemon(self.machine, self.options.gpus, sharing="streams", **settings)

    # ---- parts ----

    def told(self):
        names = ("docker", "podman", "crun", "runc", "nvidia-ctk", "nvidia-container-cli")
        programs = {name: shutil.which(name, path=self.machine.env["PATH"]) for name in names}
        version = self.call("podman", "--version").stdout.decode().strip()
        daemon = self.daemon()
        doctor = daemon.ask("doctor").stdout.splitlines()
        rows = [line for line in doctor if line.startswith(("cgroup", "gpu-filter", "outside"))]
        daemon.close()
        self.note("told", programs=programs, podman=version, cdi=cdi_files(), doctor=rows)

    def plain(self):
        for name, words in (("a GPU", [f"--device=nvidia.com/gpu={self.gpus[0]}"]), ("no GPU", [])):
            given = ["podman", "run", "--rm", "--cgroups=disabled", *words, IMAGE, "/bin/probe"]
            done = self.call(*given, "64", "1")
            found = found_in(done.stdout.decode())
            wanted = self.gpus[:1] if words else []
            row = {"found": found, "as_meant": self.is_meant(found, wanted)}
            self.note(f"plain, {name}", **row, says=done.stderr.decode()[-300:])

    def task(self, name="task", **settings):
        daemon = self.daemon(**settings)
        for count in (1, 0):
            row = self.run_task(daemon, count)
            self.note(f"{name}, {count} GPUs", **row, says=daemon.warnings())
        self.note(f"{name}, cancelled", **self.cancel_task(daemon))
        daemon.close()

    def filter(self):
        self.task("filter", gpu_filter="yes", suspend="no")

    def limit(self):
        self.task("limit", outside="limit")

    def outside(self):
        if self.machine.is_emulated:
            self.note("outside", left_out="no process of a container is on an emulated GPU")
            return
        daemon = self.daemon()
        device = f"--device=nvidia.com/gpu={self.gpus[0]}"
        manager = "--cgroup-manager=cgroupfs"  # the cgroup names a container
        given = ["podman", manager, "run", "--detach", device, IMAGE, "/bin/probe"]
        done = self.call(*given, str(MIB), "20")
        until(lambda: "podman container" in self.gpus_text(daemon), 15, "its name in colloc gpus")
        notes = self.gpus_text(daemon)
        self.note("outside", notes=notes, as_meant=IMAGE in notes, says=done.stderr.decode()[-300:])
        self.call("podman", "rm", "--all", "--force")
        daemon.close()

    @staticmethod
    def gpus_text(daemon):
        return daemon.ask("gpus").stdout

    def submit(self, daemon, count, *words):
        given = (f"--container={IMAGE}", f"--gpus={count}", "--requeue=no", "--json")
        done = daemon.ask("submit", *given, "--", *words)
        if done.returncode:
            raise RuntimeError(done.stderr)
        task = json.loads(done.stdout)["id"]
        daemon.tasks.append(task)
        return task

    def run_task(self, daemon, count):
        task = self.submit(daemon, count, "/bin/probe", str(MIB), str(BUSY_S))
        until(lambda: daemon.show(task)["state"] in ct.ENDED, 60, "the end of a task", 0.05)
        shown, text = daemon.show(task), daemon.ask("logs", str(task)).stdout
        given = [self.gpus[0]] if count else []
        found, peak = found_in(text), shown.get("mem_peak_mib")
        is_meant = shown["state"] == "COMPLETED" and self.is_meant(found, given)
        if count and not self.machine.is_emulated:
            is_meant = is_meant and bool(peak) and peak >= MIB
        row = {"state": shown["state"], "found": found, "mem_peak_mib": peak}
        return {**row, "as_meant": is_meant, **({} if found else {"text": text[-300:]})}

    def cancel_task(self, daemon):
        task = self.submit(daemon, 1, "/bin/sleep", "1000")
        until(lambda: self.containers(), 30, "a container")
        began = time.monotonic()
        daemon.ask("cancel", str(task))
        until(lambda: not self.containers(), 30, "the end of the container")
        return {"gone_after_s": round(time.monotonic() - began, 2), "as_meant": True}

    def containers(self):
        return self.call("podman", "ps", "--all", "--quiet").stdout.split()

    def is_meant(self, found, gpus):
        """Could the container open the device files of these GPUs, and has CUDA as many?"""
        if found.get("opened") != [int(gpu) for gpu in gpus]:
            return False
        return self.machine.is_emulated or found.get("cuda", 0) == len(gpus)


def found_in(text):
    lines = [line for line in text.splitlines() if line.startswith('{"opened"')]
    return json.loads(lines[-1]) if lines else {}


def trial(machine, options):
    own = Trial(machine, options)
    end = time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory() as folder:
        run, graph = (f"{folder}/run", f"{folder}/graph") if machine.is_emulated else STORAGE
        places = f'[storage]\ndriver = "vfs"\nrunroot = "{run}"\ngraphroot = "{graph}"\n'
        settings = {"STORAGE_CONF": places, "CONF": CONTAINERS_CONF}
        for name, text in settings.items():
            machine.env[f"CONTAINERS_{name}"] = path = os.path.join(folder, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        try:
            own.prepare()
            ct.run_parts(own, options.parts, end, PART_S)
        except Exception as error:  # noqa: BLE001 - a part of the result
            own.note("error", error=repr(error)[-600:])
        own.close()


if __name__ == "__main__":
    ct.run(__doc__, trial, gpus="0", parts="told,plain,task,filter,limit,outside")
