# SPDX-License-Identifier: Apache-2.0
"""Containers that a task starts by the real docker, with its cgroup driver cgroupfs."""

import json
import os
import pwd
import shutil
import subprocess
import tempfile
import unittest

from daemon_case import LIMIT_S, cgroups_of, program, until
from docker_case import DockerCase

A_PERSON = 65534  # a person by its number, with a name on every Linux


class Docker(DockerCase):
    def test_a_container_is_a_part_of_the_task(self):
        train = f"{program('pretend-train')} --memory-mib=3000 --seconds=1e6"
        for options in ((), ("--detach",)):
            words = self.words(*train.split(), options=options)
            task = self.submit("docker " + " ".join(words) + "\nexec sleep 1000")
            until(lambda: (self.task(task).get("mem_used_mib") or 0) > 2900, "the task's memory")
            gpu = self.get("/v1/gpus")["gpus"][0]
            self.assertEqual(gpu["foreign_processes"], [], gpu)
            [container] = self.containers()
            pid = self.process_of(container, "--memory-mib=3000")
            label = '{{index .Config.Labels "colloc.task"}}'
            shown = self.docker("inspect", "--format", label, container).stdout.decode()
            self.assertEqual(shown.strip(), str(task))
            self.act("cancel", task)
            self.wait(task, "CANCELLED")
            self.wait_gone(pid)
            until(lambda: not self.containers(), "the container's end")
            until(lambda: not cgroups_of(self.state), "the end of the task's cgroup")

    def test_a_container_of_no_task_is_named(self):
        train = f"{program('pretend-train')} --memory-mib=3100 --seconds=1e6"
        done = self.docker(*self.words(*train.split(), options=["--detach"]))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.wait_gpu(lambda gpu: gpu["foreign_processes"], 0)
        container = done.stdout.decode()[:12]
        until(
            lambda: f"docker container {container} of lab/train:1" in self.colloc("gpus").stdout,
            "the image's name",
        )
        self.env["DOCKER_HOST"] = "unix:///nowhere"
        said = self.colloc("gpus").stdout
        self.assertIn(f"docker container {container})", said)
        self.env["DOCKER_HOST"] = self.host
        self.docker("kill", container)

    def test_its_owner_gets_the_message(self):
        """Its processes are root's. The user whose home is mounted gets the message; a container
        without a home has no known owner."""
        user = pwd.getpwuid(A_PERSON).pw_name
        home = os.path.join("/home", user)
        made = not os.path.exists(home)
        os.makedirs(home, exist_ok=True)
        if made:
            self.addCleanup(os.rmdir, home)
        data = tempfile.mkdtemp(prefix="colloc-test-", dir=home)
        self.addCleanup(os.rmdir, data)
        train = f"{program('pretend-train')} --memory-mib=3200 --seconds=1e6".split()
        labels = ["--label=com.docker.compose.project=sweep", "-v", f"{data}:/data"]
        containers = []
        for options in ([], labels):
            done = self.docker(*self.words(*train, options=["--detach", *options]))
            self.assertEqual(done.returncode, 0, done.stderr)
            containers.append(done.stdout.decode()[:12])
            self.wait_gpu(lambda gpu: len(gpu["foreign_processes"]) == len(containers), 0)
        message = f"docker container {containers[1]}) of user {A_PERSON} uses GPU 0: its user gets"
        until(lambda: message in "\n".join(self.log), "the message to the owner")
        said = [line for line in self.log if "its user gets a message" in line]
        self.assertEqual(len(said), 1, said)
        shown = f"docker container {containers[1]} of lab/train:1, compose project sweep"
        self.assertIn(shown, self.colloc("gpus").stdout)
        self.assertIn(f"with files of {user}", self.colloc("gpus").stdout)
        for container in containers:
            self.docker("kill", container)

    def test_colloc_container_by_docker(self):
        mounts = " ".join(f"-v {path}:{path}:ro" for path in ("/usr", "/lib"))
        # The image has no programs, so its mounts come by docker's wrapper below.
        wrapper = self.write(
            "docker",
            "#!/bin/sh\n"
            'verb=$1; [ "$verb" = run ] || exec /usr/bin/docker "$@"; shift\n'
            f'exec /usr/bin/docker run --network=none {mounts} "$@"\n',
        )
        os.chmod(wrapper, 0o755)
        script = (
            f"PATH={self.work}:$PATH\n"
            f"{program('colloc')} container --with=docker lab/train:1 -- "
            "/usr/bin/sh -c 'id -u; pwd; echo $COLLOC_TASK_ID; cat /proc/self/cgroup; exit 7'"
        )
        task = self.submit(script, gpus=0)
        ended = self.wait(task, "FAILED")
        self.assertEqual(ended["exit_code"], 7, self.read(f"colloc-{task}.out"))
        lines = self.read(f"colloc-{task}.out").splitlines()
        self.assertEqual(lines[:3], [str(os.geteuid()), self.work, str(task)])

    def test_outside_of_tasks_and_other_drivers(self):
        link = os.path.join(self.folder, "bin", "docker")
        os.mkdir(os.path.dirname(link))
        os.symlink(program("colloc"), link)
        done = subprocess.run(
            [link, "ps", "--quiet"],
            env={**self.env, "PATH": f"{os.path.dirname(link)}:/usr/bin:/bin"},
            capture_output=True,
            timeout=LIMIT_S,
        )
        self.assertEqual((done.returncode, done.stdout), (0, b""), done.stderr)
        for answer, words in (
            ("none []", "rootless"),
            ("systemd [name=seccomp name=rootless]", "rootless"),
        ):
            pretend = self.write(
                "docker", f'#!/bin/sh\n[ $1 = info ] && echo "{answer}" || echo "$@"\n'
            )
            os.chmod(pretend, 0o755)
            path = f"PATH={os.path.dirname(link)}:{self.work}"
            task = self.submit(f"{path}; echo $COLLOC_GPUS; docker run --gpus all img")
            self.wait(task, "COMPLETED")
            said = self.read(f"colloc-{task}.out")
            self.assertIn(words, said)
            gpu = said.split()[0]
            run = f"run --label=colloc.task={task} --env=NVIDIA_VISIBLE_DEVICES={gpu} "
            self.assertIn(f"{run}--gpus=device={gpu} img", said)
            task = self.submit(f"{path}; docker compose up -d")
            self.wait(task, "COMPLETED")
            said = self.read(f"colloc-{task}.out")
            self.assertIn(words, said)
            self.assertIn("compose up -d", said)

    def test_compose_as_a_program_of_its_own(self):
        """Where docker has no plugin `compose`: compose 2 is a part of the task, 1 is warned of."""
        docker = self.write(
            "docker", '#!/bin/sh\n[ $1 = info ] && echo "cgroupfs []" && exit; exit 1\n'
        )
        two = (
            'case "$*" in *config*) echo \'{"name": "n", "services": {"a": {"image": "i"}}}\';;\n'
            '*) echo "ran $*"; cat $(echo "$1" | sed -n s/--file=//p);; esac\n'
        )
        one = 'case "$*" in *config*) echo no such option >&2; exit 1;; *) echo "ran $*";; esac\n'
        compose = os.path.join(self.work, "docker-compose")
        os.chmod(docker, 0o755)
        for version, expected in ((two, "ran --file=/proc/self/fd/"), (one, "ran up -d")):
            self.write("docker-compose", "#!/bin/sh\n" + version)
            os.chmod(compose, 0o755)
            task = self.submit(f"PATH=${{PATH%%:*}}:{self.work}:$PATH\ndocker-compose up -d")
            self.wait(task, "COMPLETED")
            said = self.read(f"colloc-{task}.out")
            self.assertIn(expected, said)
            self.assertEqual("(compose 2) printed no project" in said, version == one, said)
            self.assertEqual('"cgroup_parent": "/' in said, version == two, said)

    def test_the_real_compose_1(self):
        """Debian 12 has it: a warning, and what it starts is shown as a container of no task."""
        said = (
            subprocess.run(
                ["docker-compose", "version", "--short"],
                capture_output=True,
                text=True,
                check=False,
            )
            if shutil.which("docker-compose")
            else None
        )
        if not said or not said.stdout.startswith("1."):
            self.skipTest("docker-compose 1 is not installed")
        train = f"{program('pretend-train')} --memory-mib=3300 --seconds=1e6"
        service = {
            "image": "lab/train:1",
            "command": train,
            "network_mode": "none",
            "pid": "host",
            "volumes": [word for word in self.mounts() if word.startswith("/")],
            "environment": {
                name: self.env.get(name, "")
                for name in ("COLLOC_EMULATOR", "LD_LIBRARY_PATH", "PATH")
            },
        }
        project = {"version": "3", "services": {"train": service}}
        self.write("docker-compose.yml", json.dumps(project))
        task = self.submit("docker-compose up -d 2>&1")
        self.wait(task, "COMPLETED")
        self.assertIn("no part of task", self.read(f"colloc-{task}.out"))
        [container] = self.containers()
        shown = f"docker container {container} of lab/train:1, compose project work"
        until(lambda: shown in self.colloc("gpus").stdout, "the container's name")
        self.docker("kill", container)


if __name__ == "__main__":
    unittest.main()
