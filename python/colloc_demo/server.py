# SPDX-License-Identifier: Apache-2.0
"""A collocd on emulated GPUs."""

import os
import subprocess
import time

from colloc import Client
from colloc_demo.trace import Trouble, task_script

PROGRAMS = {
    "collocd": "src/daemon/collocd",
    "colloc": "src/cli/colloc",
    "shim": "src/exec/colloc-shim",
    "emulator": "emulator/colloc-emulator",
    "nvml": "emulator/libnvidia-ml.so.1",
}


class Server:
    """Emulated GPUs, such as 4xA100-40GB, and their collocd, in a folder of their own."""

    def __init__(self, name, folder, gpus, options, declares_memory=False, **settings):
        self.name, self.folder, self.gpus, self.options = name, folder, gpus, options
        self.declares_memory, self.settings = declares_memory, settings
        self.socket, self.log = os.path.join(folder, "socket"), os.path.join(folder, "collocd.log")
        emulator = os.path.dirname(self.program("emulator"))
        self.env = {
            **os.environ,
            "PATH": emulator + ":" + os.environ["PATH"],
            "COLLOC_SOCKET": self.socket,
            "COLLOC_EMULATOR": os.path.join(folder, "gpus"),
        }
        self.client = Client(self.socket, timeout_s=30)
        self.began = 0

    def program(self, name):
        return os.path.join(self.options.build, PROGRAMS[name])

    def compressed(self, seconds):
        """The time in the form of collocd's settings."""
        return f"{max(0.001, seconds / self.options.speed):.6f}s"

    def command(self):
        settings = {
            "socket": self.socket,
            "state-dir": os.path.join(self.folder, "state"),
            "shim": self.program("shim"),
            "nvml-library": self.program("nvml"),
            "estimator": "none",
            "smact-max": "0.80",
            "min-free": "5GiB",
            "window": self.compressed(90),
            "settle": self.compressed(10),
            "settle-max": self.compressed(60),
            "sample-period": self.compressed(1),
            "gpm-interval": self.compressed(0.5),
            **self.settings,
        }
        return [self.program("collocd"), *(f"--{key}={value}" for key, value in settings.items())]

    def start(self):
        os.mkdir(self.folder)
        subprocess.run(
            [
                self.program("emulator"),
                "create",
                f"--gpus={self.gpus}",
                f"--speed={self.options.speed}",
                self.env["COLLOC_EMULATOR"],
            ],
            env=self.env,
            check=True,
        )
        with open(self.log, "wb") as log:
            self.daemon = subprocess.Popen(
                self.command(),
                env=self.env,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        end = time.monotonic() + 30
        while not self.answers():
            if self.daemon.poll() is not None or time.monotonic() > end:
                raise Trouble(f"collocd ({self.name}) does not answer")
            time.sleep(0.01)

    def answers(self):
        try:
            return self.client.get("/v1/info")
        except OSError:
            return None

    def submit(self, number, task):
        path = os.path.join(self.folder, f"{number:02}-{task['task']}.sh")
        with open(path, "w", encoding="utf-8") as file:
            file.write(task_script(task, self.declares_memory))
        subprocess.run(
            [self.program("colloc"), "submit", path],
            env=self.env,
            cwd=self.folder,
            check=True,
            timeout=30,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )

    def progress(self):
        info, stats = self.client.get("/v1/info"), self.client.get("/v1/stats")
        return {
            "done": stats["tasks_completed"] + stats["tasks_failed"],
            "running": info["running"],
            "waiting": info["queued"],
            "oom": stats["oom"],
        }

    def settled_result(self):
        """The figures once the sample after the last task's end has been counted."""
        before = self.result()
        for _ in range(50):  # chosen: 10 s, more than a poll takes on a busy machine
            time.sleep(0.2)
            now = self.result()
            if now["energy_mj"] == before["energy_mj"]:
                return now
            before = now
        return before

    def result(self):
        """The daemon's figures in emulated seconds."""
        stats = self.client.get("/v1/stats")
        in_seconds = {
            key: value * self.options.speed for key, value in stats.items() if key.endswith("_s")
        }
        return {**stats, **in_seconds, "speed": self.options.speed}

    def bad_ends(self):
        return [
            f"{self.name}: task {task['id']} ({task['name']}) ended as {task['state']}: "
            + (task["reason_text"] or task["reason"])
            for task in self.client.tasks(state="all")
            if task["state"] != "COMPLETED"
        ]
