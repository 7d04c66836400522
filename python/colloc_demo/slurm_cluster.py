# SPDX-License-Identifier: Apache-2.0
"""Slurm on 127.0.0.1 with emulated GPUs: plain with exclusive GPUs, or under colloc.

Each job notes when its attempts begin and end, because Slurm's own times are whole seconds, which
are many of the emulated ones. Energy and SM activity are the emulator's sums.
"""

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import time

from colloc_demo.server import PROGRAMS
from colloc_demo.trace import Trouble, memory_mib, train_command
from colloc_slurm.loopback import INTAKE, RUN, Loopback, free_ports

USERS = ("daemon", "bin", "sys", "games")  # accounts that every Debian has
SAMPLE_S = 0.25  # the controller refuses more than five reports of a node in a second
START_S = 3  # within which a pinned job has started and has its memory, as far as was seen
GPU_KIND = "A100-40GB"
CONTROLLER = "src/slurm/colloc-slurm"
PLUGIN = "src/spank/spank_colloc.so"
PRELOADED = "src/preload/libcolloc-preload.so"
COPIED = (
    "colloc-pretend-train",
    "nvidia-cuda-mps-control",
    "nvidia-cuda-mps-server",
    "libcuda.so.1",
    "libnvidia-ml.so.1",
)
# The names of the processes of a job say nothing about their node: its script has to.
JOB = """#!/bin/sh
#COLLOC --memory={memory}MiB
note() {{ echo "$*" "$(date +%s.%N)" >>{folder}/work/times/$SLURM_JOB_ID; }}
export PATH={programs}:$PATH COLLOC_EMULATOR={folder}/work/gpus/$SLURMD_NODENAME
note start
{command}
status=$?
note end $status
exit $status
"""


def copy_programs(folder, options):
    """The build's folder may be closed to the users of the jobs."""
    os.chmod(folder, 0o755)
    programs = os.path.join(folder, "programs")
    os.mkdir(programs)
    emulator = os.path.dirname(PROGRAMS["emulator"])
    for name in [*(os.path.join(emulator, name) for name in COPIED), PLUGIN, PRELOADED]:
        shutil.copy(os.path.join(options.build, name), programs)
    return programs


def suspends(programs, options, **agent):
    """The settings of agents that let allocations of jobs wait, and take jobs off their GPUs."""
    return {
        "preload-library": os.path.join(programs, os.path.basename(PRELOADED)),
        "checkpoint": os.path.join(options.build, "src/checkpoint/colloc-checkpoint"),
        "carrier": "yes",
        **agent,
    }


class SlurmCluster:
    """Nodes of emulated GPUs and their Slurm; `start` and `close` them. Offers what `Server` does.

    programs:   the folder that copy_programs made
    slurm:      other settings of slurm.conf
    partitions: lines of slurm.conf beside those of colloc's partitions
    has_tls:    colloc-slurm and the agents have a key instead of munge
    agents:     other settings of the agents, by node
    kind:       of the GPUs: a name, and a file with it where the emulator does not know the name
    settings:   those of colloc-slurm; none: plain Slurm with exclusive GPUs
    """

    def __init__(
        self,
        name,
        programs,
        options,
        slurm=None,
        partitions=(),
        has_tls=False,
        agents=None,
        kind=(GPU_KIND, None),
        **settings,
    ):
        self.name, self.programs = name, programs
        self.options, self.settings = options, settings
        self.agent_settings, self.kind = agents or {}, kind
        self.slurm_settings = {"MinJobAge": 36000, **(slurm or {})}
        self.partitions, self.has_tls = partitions, has_tls
        self.began, self.submitted = 0, {}
        self.parts = contextlib.ExitStack()
        self.first_sums, self.final = None, None

    # ---- its life ----

    def start(self):
        size = {"nodes": self.options.nodes, "gpus": self.options.gpus, "keep": self.options.keep}
        if self.settings:
            files = self.slurm_files()
            lines = [INTAKE, RUN, *self.partitions]
        else:
            files, size["shards"] = {}, 0
            lines = ["PartitionName=gpu Nodes=ALL State=UP Default=YES MaxTime=INFINITE"]
        slurm = Loopback(**size, settings=self.slurm_settings, lines=lines, files=files)
        self.slurm = self.parts.enter_context(slurm)
        self.make_folders()
        self.create_gpus()
        if self.settings:
            self.start_colloc()

    def close(self):
        self.parts.close()

    def program(self, name):
        return os.path.join(self.options.build, PROGRAMS.get(name, name))

    def slurm_files(self):
        return {
            "job_submit.lua": self.lua_script("job_submit.lua"),
            "jobcomp.lua": self.lua_script("jobcomp.lua"),
            "plugstack.conf": f"optional {self.programs}/{os.path.basename(PLUGIN)}"
            " socket={folder}/run/agent-%n.sock\n",
        }

    def lua_script(self, name):
        """As `colloc slurm script` prints it; {folder} is filled in when it is written."""
        with tempfile.TemporaryDirectory(prefix="colloc-demo-") as folder:
            with open(os.path.join(folder, "slurm.conf"), "w", encoding="utf-8") as file:
                file.write("ClusterName=demo\n")
            words = ["slurm", "script", name, f"--folder={folder}"]
            done = subprocess.run(
                [self.program("colloc"), *words, "--wake-file={folder}/run/wake"],
                capture_output=True,
                text=True,
                check=False,
                timeout=30,
            )
        if done.returncode != 0:
            raise Trouble(f"colloc {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def make_folders(self):
        for name in ("work/gpus", "work/times"):
            os.mkdir(self.slurm.path(name))
        os.chmod(self.slurm.path("work/times"), 0o1777)

    def create_gpus(self):
        name, path = self.kind
        for node in self.slurm.nodes:
            self.slurm.run(
                self.program("emulator"),
                "create",
                f"--gpus={self.options.gpus}x{name}",
                *([f"--gpu-kinds={path}"] if path else []),
                f"--speed={self.options.speed}",
                self.gpu_file(node),
            )

    def gpu_file(self, node):
        return self.slurm.path(f"work/gpus/{node}")

    def compressed(self, seconds, least_s):
        """Slurm's own delays, and the rate of reports that the controller accepts, are not
        compressed: `least_s` is what they leave."""
        return f"{max(least_s, seconds / self.options.speed):.6f}s"

    def start_colloc(self):
        slurm, self.address = self.slurm, f"127.0.0.1:{free_ports(1)[0]}"
        self.link = self.link_settings()
        self.start_controller()
        self.agents = {node: self.start_agent(node) for node in slurm.nodes}
        slurm.until(
            lambda: all(map(self.is_connected, self.agents.values())), "the agents' first reports"
        )

    def start_controller(self):
        slurm = self.slurm
        settings = {
            "intake-partition": "gpu",
            "run-partition": "gpu-run",
            "wake-file": slurm.wake_file,
            "state-dir": slurm.path("run/colloc-slurm"),
            "listen": self.address,
            "socket": slurm.path("run/api/socket"),
            **self.link,
            "gpu-memory": "40GiB",
            "mps-users-together": "yes",  # the emulated MPS serves all users as one
            "smact-max": "0.80",
            "min-free": "5GiB",
            "poll": "200ms",
            "window": self.compressed(90, 4 * SAMPLE_S),
            "settle": self.compressed(10, 2 * SAMPLE_S),
            "settle-max": self.compressed(60, START_S),
            **self.settings,
        }
        given = [f"--{key}={value}" for key, value in settings.items()]
        self.controller = slurm.spawn(self.program(CONTROLLER), *given, log="colloc-slurm")

    def link_settings(self):
        """How colloc-slurm and the agents authenticate each other."""
        if not self.has_tls:
            return {"munge-socket": self.slurm.path("munge/socket")}
        self.slurm.write("etc/node.key", os.urandom(32).hex() + "\n", mode=0o400)
        return {
            "node-auth": "tls",
            "node-key-file": self.slurm.path("etc/node.key"),
            "munge-socket": self.slurm.path("munge/none"),
        }

    def start_agent(self, node):
        slurm = self.slurm
        settings = {
            "controller": self.address,
            "node-name": node,
            **self.link,
            "node-socket": slurm.path(f"run/agent-{node}.sock"),
            "state-dir": slurm.path(f"run/agent-{node}"),
            "nvml-library": os.path.join(self.programs, "libnvidia-ml.so.1"),
            "sample-period": self.compressed(1, SAMPLE_S),
            "gpm-interval": self.compressed(0.5, SAMPLE_S / 2),
            **self.agent_settings.get(node, {}),
        }
        return slurm.spawn(
            self.program("collocd"),
            "--node",
            *(f"--{key}={value}" for key, value in settings.items()),
            log=f"agent-{node}",
            COLLOC_EMULATOR=self.gpu_file(node),
            PATH=self.programs + ":" + slurm.env["PATH"],
            LD_LIBRARY_PATH=self.programs,
        )

    def is_connected(self, agent):
        with open(agent.log, encoding="utf-8", errors="replace") as file:
            return "accepts the reports" in file.read()

    # ---- jobs ----

    def submit(self, number, task):
        job = self.slurm.sbatch(
            JOB.format(
                folder=self.slurm.folder,
                programs=self.programs,
                memory=memory_mib(task),
                command=train_command(task),
            ),
            f"--job-name={task['task']}",
            f"--gres=gpu:{task['gpus']}",
            user=USERS[number % len(USERS)],
        )
        if not self.submitted:
            self.first_sums = self.sums()
        self.submitted[job] = time.time()

    def attempts(self, job):
        """[(begin, end or None, exit status or None)]"""
        found = []
        with contextlib.suppress(FileNotFoundError):
            with open(self.slurm.path(f"work/times/{job}"), encoding="utf-8") as file:
                for line in file:
                    words = line.split()
                    if words[0] == "start":
                        found.append((float(words[1]), None, None))
                    elif found:
                        found[-1] = (found[-1][0], float(words[2]), int(words[1]))
        return found

    def states(self):
        words = ["squeue", "--noheader", "--states=all", "--format=%i %T"]
        return dict(line.split() for line in self.slurm.run(*words).stdout.splitlines())

    def progress(self):
        states = list(self.states().values())
        running = sum(state in ("RUNNING", "COMPLETING") for state in states)
        waiting = sum(state in ("PENDING", "CONFIGURING") for state in states)
        return {
            "done": len(states) - running - waiting,
            "running": running,
            "waiting": waiting,
            "oom": self.count_crashes(),
        }

    def count_crashes(self):
        return sum(
            bool(status) for job in list(self.submitted) for _, _, status in self.attempts(job)
        )

    def bad_ends(self):
        logs = f"its logs are in {self.slurm.folder}" if self.options.keep else "see --keep"
        return [
            f"{self.name}: job {job} ended as {state} ({logs})"
            for job, state in self.states().items()
            if state != "COMPLETED"
        ]

    # ---- figures ----

    def sums(self):
        """Emulated seconds, energy in MJ and SM activity times seconds, of all GPUs together."""
        found = [0.0, 0.0, 0.0]
        for node in self.slurm.nodes:
            text = subprocess.run(
                [self.program("emulator"), "show"],
                env={**os.environ, "COLLOC_EMULATOR": self.gpu_file(node)},
                capture_output=True,
                text=True,
                check=True,
                timeout=30,
            ).stdout
            found[0] += float(re.search(r"emulated time ([\d.]+)", text)[1]) * self.options.gpus
            for energy, smact in re.findall(r"([\d.]+) MJ +([\d.]+) s x SMACT", text):
                found[1] += float(energy)
                found[2] += float(smact)
        return found

    def result(self):
        """As /v1/stats of the daemon, in emulated seconds; of the time when it is first wanted."""
        self.final = self.final or self.compute_result()
        return self.final

    def compute_result(self):
        span_s, energy_mj, smact_s = (
            last - first for first, last in zip(self.first_sums, self.sums())
        )
        states, speed = self.states(), self.options.speed
        jobs = {job: self.attempts(job) for job in self.submitted}
        ended = {job: tries for job, tries in jobs.items() if tries and tries[-1][1]}
        jct_s = [tries[-1][1] - self.submitted[job] for job, tries in ended.items()]
        exec_s = [sum(end - begin for begin, end, _ in tries) for tries in ended.values()]
        ends_s = [tries[-1][1] for tries in ended.values()]
        n = max(1, len(ended))
        return {
            "tasks_completed": sum(state == "COMPLETED" for state in states.values()),
            "tasks_failed": sum(state != "COMPLETED" for state in states.values()),
            "oom": self.count_crashes(),
            "recovered": sum(
                states.get(job) == "COMPLETED" and len(tries) > 1 for job, tries in jobs.items()
            ),
            "total_s": speed * (max(ends_s, default=0) - min(self.submitted.values())),
            "avg_wait_s": speed * (sum(jct_s) - sum(exec_s)) / n,
            "avg_exec_s": speed * sum(exec_s) / n,
            "avg_jct_s": speed * sum(jct_s) / n,
            "mean_smact": smact_s / span_s if span_s > 0 else None,
            "energy_mj": energy_mj,
            "speed": speed,
        }
