# SPDX-License-Identifier: Apache-2.0
"""Jobs in containers of pyxis with enroot, and of apptainer, on a node's loopback cluster: their
allocations wait where the library is in the container, and they work as before where it is not
(docs/slurm-node.md).

    COLLOC_PYXIS=FILE       spank_pyxis.so, built with this Slurm's headers; without it, no test
    COLLOC_ENROOT=FOLDER    bin of an installed enroot; its programs need jq and squashfs-tools
    apptainer               on the PATH; without it, no test
"""

import os
import re
import shutil
import subprocess
import unittest
from unittest.mock import patch

from slurm_node_case import LIBRARY, PROBE, MemoryWaitCase

from colloc_slurm import loopback

PYXIS = os.environ.get("COLLOC_PYXIS", "")
ENROOT = os.environ.get("COLLOC_ENROOT", "")
USER = "games"  # any but root
PROGRAMS = ("/bin/sh", "/usr/bin/env", "/bin/cat", "/bin/sleep", "/bin/true", "/bin/mkdir")
BESIDE = os.path.dirname(PROBE)  # the probe, its pretend CUDA, another library to preload


def libraries(*programs):
    """The files that they are linked with, and the dynamic linker."""
    done = subprocess.run(["ldd", *programs], capture_output=True, text=True)
    return set(re.findall(r"(/\S+)(?= \(0x)", done.stdout))


def make_image(folder):
    """A root with a shell, and what the probe and the library need."""
    files = {*PROGRAMS, *libraries(*PROGRAMS, PROBE, LIBRARY, f"{BESIDE}/libcuda.so.1")}
    for path in files:
        to = folder + os.path.abspath(path)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copy(path, to)
    for name in ("dev", "proc", "sys", "tmp", "etc", "run", "var/tmp", "root"):
        os.makedirs(f"{folder}/{name}", exist_ok=True)
    for name in ("passwd", "group", "hosts", "resolv.conf"):
        open(f"{folder}/etc/{name}", "a").close()


class Containers(MemoryWaitCase):
    """A way to start `script` in a container in which the folders `binds` are visible, too."""

    def in_container(self, binds, script):
        raise NotImplementedError

    def setUp(self):
        super().setUp()
        os.chmod(self.gpu, 0o666)
        self.image = self.slurm.path("image")
        make_image(self.image)
        self.with_library = [os.path.dirname(LIBRARY), BESIDE, self.slurm.folder]

    def start(self, binds, *options, user=None):
        # In the container: apptainer sets its own.
        probe = f"export LD_LIBRARY_PATH={BESIDE}; exec {PROBE} dlsym alloc 15000"
        script = f"echo LD_PRELOAD=$LD_PRELOAD; {probe}"
        setting = self.allocating(15000).split("\n", maxsplit=1)[0]
        script = f"{setting}\n{self.in_container(binds, script)}"
        return self.start_job(script, *options, user=user)

    def check(self, job, library, answer):
        self.slurm.wait_job(job, "COMPLETED", "FAILED")
        said = self.output(job, "err")
        self.assertEqual(self.output(job).split(), [f"LD_PRELOAD={library}", answer], said)
        return said

    def check_with_it(self, user=None):
        self.fill(30000)
        job = self.start(self.with_library, user=user)
        self.wait_waiting(job)
        self.fill(0)
        self.check(job, LIBRARY, "0")


@unittest.skipUnless(PYXIS and ENROOT, "needs pyxis and enroot: COLLOC_PYXIS, COLLOC_ENROOT")
class Pyxis(Containers):
    container_plugin = f"{PYXIS} runtime_path={{folder}}/run/pyxis"

    def setUp(self):
        # pyxis runs enroot with slurmstepd's PATH, and no other variable of a job's.
        patch.object(loopback, "PATH", f"{loopback.PATH}:{ENROOT}").start()
        self.addCleanup(patch.stopall)
        super().setUp()
        self.squashed = self.slurm.path("image.sqsh")
        self.slurm.run("mksquashfs", self.image, self.squashed, "-quiet", "-no-progress")

    def in_container(self, binds, script):
        mounts = ",".join(f"{path}:{path}" for path in binds)
        home = self.slurm.path("work/home-$SLURM_JOB_ID")  # where enroot keeps containers
        container = f"--container-image={self.squashed} --container-mounts={mounts}"
        return (
            f"export HOME={home} XDG_RUNTIME_DIR={home}; unset XDG_DATA_HOME XDG_CACHE_HOME; "
            f"mkdir {home}; srun {container} sh -c '{script}'"
        )

    def test_with_the_library(self):
        self.check_with_it()

    def test_with_the_library_as_a_user(self):
        self.check_with_it(USER)

    def test_without_it(self):
        """It works as before, and no process prints an error of the dynamic linker."""
        self.fill(30000)
        said = self.check(self.start(self.with_library[1:]), "", "2")
        self.assertNotIn("ld.so", said)

    def test_without_it_and_a_library_of_its_own(self):
        self.fill(30000)
        own = f"--export=ALL,LD_PRELOAD={BESIDE}/libinterposer.so"
        said = self.check(self.start(self.with_library[1:], own), f"{BESIDE}/libinterposer.so", "2")
        self.assertNotIn("ld.so", said)

    def test_a_container_that_cannot_be_made(self):
        """The job fails as it does without colloc, and its step is not known any more."""
        self.squashed = self.image + "-is-not-there"
        job = self.start(self.with_library)
        self.slurm.wait_job(job, "FAILED")
        self.assertIn("failed to create container filesystem", self.output(job, "err"))


@unittest.skipUnless(shutil.which("apptainer"), "needs apptainer")
class Apptainer(Containers):
    """As a user: root's containers need capabilities that not every machine of a test has."""

    def in_container(self, binds, script):
        home = self.slurm.path("work/home-$SLURM_JOB_ID")
        mounts = " ".join(f"--bind {path}" for path in binds)
        command = f"apptainer --silent exec --no-home {mounts} {self.image} sh -c '{script}'"
        return f"export HOME={home}; mkdir {home}; {command}"

    def test_with_the_library(self):
        self.check_with_it(USER)

    def test_without_it(self):
        """Its linker says that the library is not there, and the program runs."""
        self.fill(30000)
        said = self.check(self.start(self.with_library[1:], user=USER), LIBRARY, "2")
        self.assertIn("cannot be preloaded", said)

    def test_without_it_and_asked_not_to_have_it(self):
        self.fill(30000)
        options = ("--colloc-preload=no",)
        said = self.check(self.start(self.with_library[1:], *options, user=USER), "", "2")
        self.assertNotIn("preload", said)


if __name__ == "__main__":
    unittest.main()
