# SPDX-License-Identifier: Apache-2.0
"""Containers of a user's own dockerd (rootless): of one that runs in the task, and of one outside.

A real systemd is PID 1 of a namespace, as on a server (booted_systemd.py), where /etc is a copy
with ranges of users for newuidmap. Needs Debian's docker.io, rootlesskit and uidmap.
"""

import os
import pwd
import shutil
import subprocess
import sys
import unittest

import booted_systemd
from daemon_case import LIMIT_S, SANITIZED, DaemonCase, cgroup_of, processes_with, program, until

USER = 65534  # a person by its number, with a name on every Linux
AS_USER = ("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups")
STARTERS = [
    path
    for path in ("/usr/bin/dockerd-rootless.sh", "/usr/share/docker.io/contrib/dockerd-rootless.sh")
    if os.path.exists(path)
]
NEEDED = ("dockerd", "docker", "rootlesskit", "newuidmap", "setpriv")
MISSING = [name for name in NEEDED if not shutil.which(name)] or (not STARTERS and ["its script"])

# The user's dockerd; in the host's network, since another needs slirp4netns
START = """
mkdir -p -m 700 $XDG_RUNTIME_DIR
sh {starter} {driver} --storage-driver=vfs --bridge=none --iptables=false --ip6tables=false \\
    --data-root=$XDG_RUNTIME_DIR/data >$XDG_RUNTIME_DIR/log 2>&1 &
until docker version >/dev/null 2>&1; do kill -0 $! || exit 1; sleep 0.1; done
tar c -C {root} . | docker import - lab/train:1 >&2
"""


@unittest.skipUnless(booted_systemd.is_inside(), booted_systemd.why_not() or "runs as a program")
@unittest.skipIf(MISSING, f"not installed: {MISSING}")
@unittest.skipIf(SANITIZED, "programs of the sanitizer's build want all of /proc")
class RootlessDocker(DaemonCase):
    gpus = "2xA100-40GB"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/mnt"], check=True)
        shutil.copytree("/etc", "/mnt/etc", symlinks=True)
        for name in ("subuid", "subgid"):
            with open(f"/mnt/etc/{name}", "w", encoding="ascii") as file:
                file.write(f"{pwd.getpwuid(USER).pw_name}:100000:65536\n")
        subprocess.run(["mount", "--bind", "/mnt/etc", "/etc"], check=True)

    def setUp(self):
        super().setUp()
        if subprocess.run([*AS_USER, program("colloc"), "--version"], check=False).returncode:
            self.skipTest("another user cannot reach the programs of the build")
        words = [*AS_USER, "unshare", "--user", "--map-root-user", "true"]
        if subprocess.run(words, check=False, capture_output=True).returncode:
            self.skipTest("a user may make no namespaces here")
        self.root = os.path.join(self.folder, "root")
        for name in ("lib", "usr", "proc", "dev", "etc", "tmp"):
            os.makedirs(os.path.join(self.root, name))
        for name in ("bin", "lib64"):
            os.symlink(f"usr/{name}", os.path.join(self.root, name))
        os.chown(self.work, USER, USER)
        subprocess.run(["chmod", "-R", "go+rwX", self.env["COLLOC_EMULATOR"]], check=True)
        self.env["XDG_RUNTIME_DIR"] = os.path.join(self.work, "run")
        self.env["DOCKER_HOST"] = f"unix://{self.env['XDG_RUNTIME_DIR']}/docker.sock"
        self.env["DOCKERD_ROOTLESS_ROOTLESSKIT_NET"] = "host"
        self.env["DOCKERD_ROOTLESS_ROOTLESSKIT_PORT_DRIVER"] = "none"
        self.env["PATH"] += ":/usr/sbin:/sbin"

    def start_words(self, driver="--exec-opt=native.cgroupdriver=cgroupfs"):
        return START.format(starter=STARTERS[0], driver=driver, root=self.root)

    def run_words(self, mib):
        paths = [self.folder, os.path.dirname(os.path.abspath(program("emulator")))]
        mounts = " ".join(f"-v {path}:{path}" for path in (*paths, "/lib", "/usr"))
        variables = " ".join(f"-e{n}" for n in ("COLLOC_EMULATOR", "LD_LIBRARY_PATH", "PATH"))
        train = f"{program('pretend-train')} --memory-mib={mib} --seconds=1e6"
        run = "docker run --rm --detach --network=none --pid=host -v /proc:/proc"
        return f"{run} {mounts} {variables} lab/train:1 {train}"

    def submit_as_user(self, script):
        self.write("train.sh", f"#!/bin/bash\n{script}\nexec sleep 1000\n")
        done = self.colloc("submit", "--", "bash", "train.sh", prefix=AS_USER)
        return int(done.stdout.split()[-1])

    def process_with(self, text):
        """The training itself: neither docker, which has the same words, nor dockerd's runtime."""
        found = [
            pid
            for pid in processes_with(text)
            if self.command_of(pid) == os.path.basename(program("pretend-train"))[:15]
        ]
        return found[0] if len(found) == 1 else None

    def command_of(self, pid):
        try:
            with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
                return file.read().strip()
        except OSError:
            return ""

    def output_of(self, task):
        return self.read_if(f"colloc-{task}.out")

    def test_of_a_dockerd_in_the_task(self):
        task = self.submit_as_user(
            f"cd {self.work}; echo cgroup $COLLOC_CGROUP\n{self.start_words()}\n"
            f"{self.run_words(3000)}\n"
            "docker create --gpus=all lab/train:1 true && echo made"
        )
        until(
            lambda: (self.task(task).get("mem_used_mib") or 0) > 2900,
            "the task's memory",
            explain=lambda: self.output_of(task) + self.read_if("run/log"),
        )
        until(lambda: "made" in self.output_of(task), "the second container")
        self.assertNotIn("warning", self.output_of(task))
        cgroup = self.output_of(task).split("cgroup ")[1].split()[0]
        pid = self.process_with("--memory-mib=3000")
        self.assertTrue(cgroup.endswith(cgroup_of(pid)) or cgroup == cgroup_of(pid), cgroup)
        for gpu in self.get("/v1/gpus")["gpus"]:
            self.assertEqual(gpu["foreign_processes"], [], gpu)
        self.act("cancel", task)
        self.wait(task, "CANCELLED")
        self.wait_gone(pid)
        until(lambda: not processes_with("run/docker"), "the end of dockerd and its containerd")

    def test_of_a_dockerd_outside_of_the_task(self):
        login = subprocess.Popen(
            [*AS_USER, "bash", "-c", self.start_words() + "\necho ready; exec sleep 1000"],
            env=self.env,
            cwd=self.work,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.addCleanup(login.stdout.close)
        self.addCleanup(login.wait)
        self.addCleanup(login.kill)
        self.assertEqual(login.stdout.readline(), "ready\n")
        task = self.submit_as_user(f"cd {self.work}; {self.run_words(3100)}")
        self.wait_gpu(lambda gpu: gpu["foreign_processes"], 0)
        until(lambda: "runs outside the task" in self.output_of(task), "the warning")
        self.assertLess(self.task(task).get("mem_used_mib") or 0, 100)
        self.act("cancel", task)
        self.wait(task, "CANCELLED")
        pid = self.process_with("--memory-mib=3100")
        self.assertIsNotNone(pid, "the container goes on: it is of no task")
        done = subprocess.run(
            [*AS_USER, "sh", "-c", "docker kill $(docker ps -q)"],
            env=self.env,
            cwd=self.work,
            capture_output=True,
            timeout=LIMIT_S,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.wait_gone(pid)


if __name__ == "__main__":
    if booted_systemd.is_inside() or booted_systemd.why_not():
        unittest.main()
    sys.exit(booted_systemd.run([sys.executable, *sys.argv]))
