# SPDX-License-Identifier: Apache-2.0
"""A dockerd of the test, beside its collocd.

Needs root and Debian's docker.io. The image is an empty folder: the container gets this machine's
programs by mounts, so that no registry is needed.
"""

import os
import shutil
import subprocess
import unittest

from daemon_case import (
    LIMIT_S,
    SANITIZED,
    DaemonCase,
    cgroups_of,
    processes_with,
    cgroup_of,
    program,
    read,
    until,
)

DOCKERD = shutil.which("dockerd", path="/usr/bin:/usr/sbin:/usr/local/bin")


@unittest.skipUnless(os.geteuid() == 0 and DOCKERD, "needs root and docker")
@unittest.skipIf(SANITIZED, "programs of the sanitizer's build want all of /proc")
class DockerCase(DaemonCase):
    gpus = "2xA100-40GB"
    driver = "cgroupfs"
    settings = {"outside": "message", "outside-after": "0"}

    def setUp(self):
        super().setUp()
        if not cgroups_of(self.state) and not self.has_cgroups():
            self.skipTest("tasks have no cgroups here")
        self.host = f"unix://{self.folder}/docker.sock"
        self.env["DOCKER_HOST"] = self.host
        log = os.path.join(self.folder, "dockerd.log")  # a pipe would be full one day
        with open(log, "wb") as file:
            self.dockerd = subprocess.Popen(
                [
                    DOCKERD,
                    "--iptables=false",
                    "--ip6tables=false",
                    "--bridge=none",
                    "--storage-driver=vfs",
                    f"--exec-opt=native.cgroupdriver={self.driver}",
                    f"--host={self.host}",
                    f"--data-root={self.folder}/data",
                    f"--exec-root={self.folder}/exec",
                    f"--pidfile={self.folder}/docker.pid",
                ],
                env=self.env,
                stdout=file,
                stderr=file,
            )
        self.addCleanup(self.end_dockerd)
        until(
            lambda: self.dockerd.poll() is not None or self.docker("version").returncode == 0,
            "dockerd's start",
        )
        if self.dockerd.poll() is not None:
            self.skipTest("dockerd does not start here: " + read(log))
        root = os.path.join(self.folder, "root")
        for name in ("lib", "usr", "proc", "dev", "etc", "tmp"):
            os.makedirs(os.path.join(root, name))
        for name in ("bin", "lib64"):
            os.symlink(f"usr/{name}", os.path.join(root, name))
        tar = subprocess.run(["tar", "c", "-C", root, "."], stdout=subprocess.PIPE, check=True)
        done = self.docker("import", "-", "lab/train:1", text=tar.stdout)
        if done.returncode != 0 or self.docker(*self.words("true")).returncode != 0:
            self.skipTest("docker starts no container here: " + done.stderr.decode())

    def has_cgroups(self):
        task = self.submit('echo "$COLLOC_CGROUP"')
        self.wait(task)
        return bool(self.read(f"colloc-{task}.out").strip())

    def end_dockerd(self):
        self.dockerd.terminate()
        self.dockerd.wait(LIMIT_S)
        for line in read("/proc/self/mounts").splitlines():
            if self.folder in line:
                subprocess.run(["umount", "-l", line.split()[1]], check=False)

    def docker(self, *words, text=b""):
        docker = shutil.which("docker", path="/usr/bin:/usr/local/bin")
        return subprocess.run(
            [docker, *words], env=self.env, input=text, capture_output=True, timeout=LIMIT_S
        )

    def mounts(self):
        paths = [self.folder, os.path.dirname(os.path.abspath(program("emulator")))]
        words = [word for path in paths for word in ("-v", f"{path}:{path}")]
        variables = [f"-e{name}" for name in ("COLLOC_EMULATOR", "LD_LIBRARY_PATH", "PATH")]
        return [*words, "-v", "/lib:/lib:ro", "-v", "/usr:/usr:ro", *variables]

    def words(self, *command, options=()):
        common = ["--network=none", "--pid=host"]
        return ["run", "--rm", *common, *options, *self.mounts(), "lab/train:1", *command]

    def containers(self):
        return self.docker("ps", "-q").stdout.decode().split()

    def process_of(self, container, text):
        """The one process with this in its command line that is in the container."""
        found = [pid for pid in processes_with(text) if container in (cgroup_of(pid) or "")]
        self.assertEqual(len(found), 1, text)
        return found[0]
