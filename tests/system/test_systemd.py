# SPDX-License-Identifier: Apache-2.0
"""The unit for systemd under a manager that really runs.

It is a user manager, in a mount namespace and a cgroup that are made for it. The tests run where
systemd is installed but has not booted the machine, as in a container: the manager of a machine is
left alone.
"""

import contextlib
import os
import re
import signal
import subprocess
import unittest

from daemon_case import LIMIT_S, DaemonCase, cgroup_of, is_alive, read, until

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SYSTEMD = "/lib/systemd/systemd"
CAP_SYS_TIME = 25  # linux/capability.h
# A manager for a user asks whether systemd has booted the machine: by that folder.
BOOT = f"""echo $$ >"$0/cgroup.procs" && mkdir -p /run/systemd &&
mount -t tmpfs tmpfs /run/systemd && mkdir /run/systemd/system &&
exec {SYSTEMD} --user --unit=basic.target"""
SETTINGS = """[Service]
StandardOutput=append:{log}
StandardError=append:{log}
Environment={environment}
"""


@unittest.skipIf(os.geteuid() != 0, "a mount namespace needs root")
@unittest.skipUnless(os.path.exists(SYSTEMD), "systemd is not installed")
@unittest.skipIf(os.path.exists("/run/systemd/system"), "systemd has booted this machine")
class UnderSystemd(DaemonCase):
    gpus = "1xA100-40GB"

    def start(self, **settings):
        """The manager, and the unit as `make install` would make it, but for its paths."""
        self.manager_env = {
            "HOME": self.work,
            "XDG_RUNTIME_DIR": os.path.join(self.folder, "run"),
            "PATH": os.environ["PATH"],
        }
        self.config = self.write("collocd.yaml", "smact-max: 0.7\n")
        self.output = os.path.join(self.folder, "log")
        units = os.path.join(self.work, ".config", "systemd", "user")
        os.makedirs(os.path.join(units, "collocd.service.d"))
        os.mkdir(self.manager_env["XDG_RUNTIME_DIR"], 0o700)
        collocd, *words = self.command(config=self.config)
        unit = read(os.path.join(ROOT, "dist", "collocd.service.in"))
        unit = unit.replace(
            "@sbindir@/collocd --check", f"{collocd} --check --config={self.config}"
        )
        unit = unit.replace("@sbindir@/collocd", " ".join([collocd, *words]))
        environment = " ".join(f'"{name}={value}"' for name, value in self.env.items())
        settings = SETTINGS.format(log=self.output, environment=environment)
        self.write(".config/systemd/user/collocd.service", unit)
        self.write(".config/systemd/user/collocd.service.d/test.conf", settings)
        self.begin_manager()
        self.systemctl("start", "collocd")

    def begin_manager(self):
        """In a new cgroup: a manager moves all processes that are in its cgroup."""
        parent = cgroup_of("self")
        self.cgroup = os.path.join(parent or "/nonexistent", os.path.basename(self.folder))
        try:
            os.mkdir(self.cgroup)
        except OSError as error:
            self.skipTest(f"no cgroup for systemd: {error}")
        self.addCleanup(self.remove_cgroups)
        self.manager = subprocess.Popen(
            ["unshare", "--mount", "bash", "-c", BOOT, self.cgroup],
            env=self.manager_env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.addCleanup(self.end_manager)
        until(lambda: self.manager.poll() is not None or self.is_up(), "a manager that answers")
        if self.manager.poll() is not None:
            self.skipTest("systemd does not run here")

    def is_up(self):
        state = self.systemctl("show", "--property=SystemState", "--value", code=None)
        return state in ("running", "degraded")

    def end_manager(self):
        if self.manager.poll() is None:
            self.systemctl("stop", "collocd", code=None)
            self.manager.terminate()
        self.manager.wait(LIMIT_S)

    def remove_cgroups(self):
        with open(os.path.join(self.cgroup, "cgroup.kill"), "w", encoding="ascii") as file:
            file.write("1")
        until(self.are_removed, "the removal of the cgroups")

    def are_removed(self):
        """In all hierarchies: systemd makes the same folders in those of version 1."""
        mounts = [line.split()[1:3] for line in read("/proc/self/mounts").splitlines()]
        hierarchies = [path for path, kind in mounts if kind in ("cgroup", "cgroup2")]
        unified = next(path for path, kind in mounts if kind == "cgroup2")
        name = os.path.relpath(self.cgroup, unified)
        for hierarchy in hierarchies:
            for folder, _, _ in os.walk(os.path.join(hierarchy, name), topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(folder)
        return not any(os.path.exists(os.path.join(path, name)) for path in hierarchies)

    def systemctl(self, *words, code=0):
        done = subprocess.run(
            ["systemctl", "--user", *words],
            env=self.manager_env,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        if code is not None:
            self.assertEqual(done.returncode, code, done.stderr + self.read_output())
        return done.stdout.strip()

    def read_output(self):
        return read(self.output) if os.path.exists(self.output) else ""

    def shown(self, name):
        return self.systemctl("show", "collocd", f"--property={name}", "--value")

    def test_a_task_outlives_kills_reloads_and_stops(self):
        """`systemctl start` has returned when collocd listens (Type=notify)."""
        first = int(self.shown("MainPID"))
        self.assertEqual(self.get("/v1/info")["pid"], first)
        task = self.submit("echo $$ >pid; while [ ! -e go ]; do sleep 0.02; done; exit 7")
        pid = int(self.wait_file("pid"))
        self.assertIn("/collocd.service/", cgroup_of(pid))

        self.write("collocd.yaml", "smact-max: 0.6\n")
        self.systemctl("reload", "collocd")
        until(lambda: self.get("/v1/info")["settings"]["smact_max"] == 0.6, "the reload")
        self.write("collocd.yaml", "smact-mx: 0.5\n")
        self.systemctl("reload", "collocd", code=1)
        self.assertEqual(self.get("/v1/info")["settings"]["smact_max"], 0.6)
        self.write("collocd.yaml", "smact-max: 0.6\n")

        os.kill(first, signal.SIGKILL)
        until(lambda: self.shown("NRestarts") == "1", "its next start")
        until(lambda: self.shown("ActiveState") == "active", "its being ready again")
        self.assertNotEqual(int(self.shown("MainPID")), first)
        self.assertEqual(self.task(task)["state"], "RUNNING")

        self.systemctl("stop", "collocd")
        self.assertTrue(is_alive(pid))
        self.write("go", "")
        self.wait_gone(pid)
        self.systemctl("start", "collocd")
        found = self.wait(task, "FAILED")
        self.assertEqual((found["exit_code"], found["attempt_count"]), (7, 1))

    def test_what_tasks_need_is_open_and_the_rest_is_not(self):
        """A container has its own /proc and host name; no task may set the machine's clock."""
        container = "unshare -Urpf --uts --mount-proc sh -c 'hostname inside && hostname'"
        self.submit(f"{container} >contained 2>&1; cat /proc/self/status >status; echo >over")
        self.wait_file("over")
        self.assertEqual(read(os.path.join(self.work, "contained")), "inside\n")
        status = dict(re.findall(r"^(\w+):\s*(\w+)$", self.read("status"), re.M))
        self.assertFalse(int(status["CapBnd"], 16) & 1 << CAP_SYS_TIME)
        self.assertEqual(status["Seccomp"], "2", "with a filter")

    def test_wrong_settings_are_not_tried_again(self):
        self.write("collocd.yaml", "smact-mx: 0.5\n")
        self.systemctl("restart", "collocd", code=1)
        until(lambda: self.shown("ActiveState") == "failed", "its failure")
        self.assertEqual((self.shown("NRestarts"), self.shown("ExecMainStatus")), ("0", "2"))
        self.assertIn("did you mean smact-max?", self.read_output())


if __name__ == "__main__":
    unittest.main()
