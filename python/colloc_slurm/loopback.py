# SPDX-License-Identifier: Apache-2.0
"""A whole Slurm cluster on 127.0.0.1 in a temporary folder, for the tests and the demo.

It is the distribution's Slurm: one munged, one slurmctld and N slurmd's with pretend GPUs, without
cgroups, systemd and database, on free ports. It needs no root; as root its jobs belong to any user
of the machine. It is up in about two seconds.

    reason = why_not()                  # None, or why this machine cannot run it: skip the test
    with Loopback(nodes=4) as slurm:    # typed shards i0..i3, 80 each; partitions gpu and gpu-run
        job = slurm.sbatch("sleep 1", "--partition=gpu-run", "--gres=shard:i2:20")
        slurm.wait_job(job, "COMPLETED")["GRES"]

Every process belongs to a guard process, which is the parent of all that is started here and the
reaper of what becomes an orphan. When the `with` block ends, or the program that created the
cluster is killed, the guard's standard input closes. Then it kills all descendants (daemons, job
steps and tasks) and removes the folder.

Cluster:  `Loopback(nodes, gpus, shards, settings, lines, files, keep)`
    nodes     n0, n1, ...; each claims 64 CPUs and 64000 MB
    gpus      of a node; GPU k has the type ik and the device dev/nvidiak, a link to /dev/null
    shards    of each GPU, typed like it; 0: a cluster without shards, where gres is gpu:4
    settings  {"SlurmdTimeout": "30"}: more and other settings of slurm.conf; None removes one
    lines     more lines of slurm.conf; a line that begins with PartitionName= replaces the two
              default partitions: gpu (State=DOWN: the intake) and gpu-run (State=UP)
    files     {"job_submit.lua": text}: more files beside slurm.conf; text may name {folder}.
              job_submit.lua, jobcomp.lua and cli_filter.lua also switch on their plugin
    keep      leave the folder, to look at its logs
Values:   folder, conf (path of slurm.conf), env (for clients: SLURM_CONF, PATH), nodes (names),
          version (22, 5), wake_file (FOLDER/run/wake; the folder is open to all users)
Clients:  run(*command, user=None, check=True, text=None) -> subprocess.CompletedProcess
          sbatch(script, *options, user=None) -> job id as text; job(id) -> {"JobState": ...} as
          `scontrol show job` names them; wait_job(id, *states); until(condition, what)
Daemons:  slurmctld, slurmd["n0"]: a Process, or None; start_slurmctld(), start_slurmd(name) start
          it, again after kill(); wait_up() waits until slurmctld answers and each node is usable;
          spawn(*command, log=NAME, user=None, **env) starts one more process under the guard
Process:  pid, log (path), is_alive(), kill(signal), wait()
"""

import contextlib
import ctypes
import json
import os
import pwd
import random
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

LIMIT_S = 120  # for anything to happen at all, on a busy machine and with sanitizers
PROGRAMS = "munged slurmctld slurmd sbatch scontrol sinfo".split()
PATH = os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin"
LUA_PLUGINS = {
    "job_submit.lua": ("JobSubmitPlugins", "lua"),
    "jobcomp.lua": ("JobCompType", "jobcomp/lua"),
    "cli_filter.lua": ("CliFilterPlugins", "lua"),
}
INTAKE = "PartitionName=gpu Nodes=ALL State=DOWN Default=YES MaxTime=INFINITE"
RUN = "PartitionName=gpu-run Nodes=ALL State=UP MaxTime=INFINITE"
CLAIMS = []  # sockets that keep ports for this process
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY")


def why_not():
    """Why this machine cannot run a cluster, or None."""
    missing = [name for name in PROGRAMS if not shutil.which(name, path=PATH)]
    return f"Slurm is not installed: no {', '.join(missing)}" if missing else None


def until(condition, what="it", limit_s=LIMIT_S, explain=lambda: ""):
    """The first value of `condition` that is true. `explain()` is part of the failure's message."""
    end = time.monotonic() + limit_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not happen within {limit_s} s\n{explain()}")
        time.sleep(0.005)


def free_ports(count):
    """TCP ports of 127.0.0.1 that are free, and below those that the kernel gives to clients. No
    other process gets one of them by this function while this process runs."""
    found = []
    for port in random.sample(range(12000, 32000), 2000):
        claim = socket.socket(socket.AF_UNIX)
        with socket.socket() as trial:
            try:
                claim.bind(f"\0colloc-port-{port}")
                trial.bind(("127.0.0.1", port))
            except OSError:
                claim.close()
                continue
        CLAIMS.append(claim)
        found.append(port)
        if len(found) == count:
            break
    return found


class Process:
    """A process that the guard has started."""

    def __init__(self, pid, log):
        self.pid, self.log = pid, log
        try:
            self.pidfd = os.pidfd_open(pid)
        except ProcessLookupError:  # it has ended already
            self.pidfd = None

    def __del__(self):
        if self.pidfd is not None:
            os.close(self.pidfd)

    def is_alive(self):
        return self.pidfd is not None and not select.select([self.pidfd], [], [], 0)[0]

    def kill(self, number=signal.SIGKILL):
        """Sends the signal, and waits for the end of the process where the signal means that."""
        with contextlib.suppress(ProcessLookupError):
            if self.pidfd is not None:
                signal.pidfd_send_signal(self.pidfd, number)
        if number in (signal.SIGKILL, signal.SIGTERM):
            self.wait()

    def wait(self, limit_s=LIMIT_S):
        if self.pidfd is not None and not select.select([self.pidfd], [], [], limit_s)[0]:
            raise AssertionError(f"process {self.pid} ({self.log}) goes on")


class Loopback:
    def __init__(self, nodes=4, gpus=4, shards=80, settings=None, lines=(), files=None, keep=False):
        self.gpus, self.shards, self.keep = gpus, shards, keep
        self.settings, self.lines, self.files = settings or {}, list(lines), files or {}
        self.nodes = [f"n{i}" for i in range(nodes)]
        self.slurmctld, self.slurmd, self.guard = None, dict.fromkeys(self.nodes), None
        self.version = find_version()

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="colloc-slurm-")
        os.chmod(self.folder, 0o755)
        self.conf = self.path("etc/slurm.conf")
        self.wake_file = self.path("run/wake")
        self.env = {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith(("SLURM", "SBATCH_", "SALLOC_", "SRUN_"))
            },
            "PATH": PATH,
            "SLURM_CONF": self.conf,
        }
        self.guard = Guard(self.folder, self.keep)
        try:
            self.write_files()
            self.start()
        except BaseException:
            self.guard.close()
            raise
        return self

    def __exit__(self, *_):
        self.guard.close()

    def path(self, name):
        return os.path.join(self.folder, name)

    # ---- configuration ----

    def write_files(self):
        for name in ("etc", "munge", "state", "spool", "log", "dev", "run", "work"):
            os.mkdir(self.path(name))
        for name in ("run", "work"):
            os.chmod(self.path(name), 0o1777)
        for k in range(self.gpus):
            os.symlink("/dev/null", self.path(f"dev/nvidia{k}"))  # Slurm wants a device
        for name in self.nodes:
            os.mkdir(self.path(f"spool/{name}"))
        self.write("munge/key", os.urandom(128).hex(), mode=0o400)
        self.write("etc/slurm.conf", self.slurm_conf())
        self.write("etc/gres.conf", self.gres_conf())
        if self.version >= (23, 11):
            self.write("etc/cgroup.conf", "CgroupPlugin=disabled\n")
        for name, text in self.files.items():
            self.write(f"etc/{name}", text.replace("{folder}", self.folder))

    def write(self, name, text, mode=0o644):
        with open(self.path(name), "w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), mode)
            file.write(text)

    def slurm_conf(self):
        user = pwd.getpwuid(os.geteuid()).pw_name
        self.port, *self.node_ports = free_ports(1 + len(self.nodes))
        settings = {
            "ClusterName": "loopback_" + self.folder.rpartition("-")[2],
            "SlurmctldHost": "localhost(127.0.0.1)",
            "SlurmctldPort": self.port,
            "SlurmUser": user,
            "SlurmdUser": user,
            "AuthType": "auth/munge",
            "AuthInfo": f"socket={self.path('munge/socket')}",
            "CommunicationParameters": "NoInAddrAny,NoCtldInAddrAny",
            "StateSaveLocation": self.path("state"),
            "SlurmdSpoolDir": self.path("spool/%n"),
            "SlurmctldPidFile": self.path("run/slurmctld.pid"),
            "SlurmdPidFile": self.path("run/slurmd-%n.pid"),
            "ProctrackType": "proctrack/linuxproc",
            "TaskPlugin": "task/none",
            "JobAcctGatherType": "jobacct_gather/linux",
            "SelectType": "select/cons_tres",
            "SelectTypeParameters": "CR_Core_Memory",
            "DefMemPerNode": 100,
            "SlurmdParameters": "config_overrides",
            "ReturnToService": 2,
            "KillWait": 2,
            "MpiDefault": "none",
            "GresTypes": "gpu,shard" if self.shards else "gpu",
            "SchedulerParameters": "batch_sched_delay=0,sched_min_interval=1000,"
            "bf_interval=2,bf_continue,default_queue_depth=1000",
            **{key: value for name, (key, value) in LUA_PLUGINS.items() if name in self.files},
            **self.settings,
        }
        gres = self.node_gres()
        nodes = [
            f"NodeName={name} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port}"
            f" CPUs=64 RealMemory=64000 Gres={gres}"
            for name, port in zip(self.nodes, self.node_ports)
        ]
        lines = list(self.lines)
        if not any(line.startswith("PartitionName=") for line in lines):
            lines += [INTAKE, RUN]
        given = [f"{key}={value}" for key, value in settings.items() if value is not None]
        return "\n".join([*given, *nodes, *lines, ""])

    def node_gres(self):
        if not self.shards:
            return f"gpu:{self.gpus}"
        each = [f"gpu:i{k}:1" for k in range(self.gpus)]
        return ",".join(each + [f"shard:i{k}:{self.shards}" for k in range(self.gpus)])

    def gres_conf(self):
        names = ",".join(self.nodes)
        lines = []
        for k in range(self.gpus):
            device = self.path(f"dev/nvidia{k}")
            kind = f" Type=i{k}" if self.shards else ""
            lines.append(f"NodeName={names} Name=gpu{kind} File={device}")
            if self.shards:
                lines.append(f"NodeName={names} Name=shard{kind} Count={self.shards} File={device}")
        return "\n".join([*lines, ""])

    # ---- daemons ----

    def start(self):
        self.spawn(
            "munged",
            "--foreground",
            "--force",
            "--num-threads=2",
            f"--key-file={self.path('munge/key')}",
            f"--socket={self.path('munge/socket')}",
            f"--pid-file={self.path('munge/pid')}",
            f"--log-file={self.path('log/munged.log')}",
            f"--seed-file={self.path('munge/seed')}",
            log="munged",
        )
        self.until(lambda: os.path.exists(self.path("munge/socket")), "munged's socket")
        self.start_slurmctld()
        for name in self.nodes:
            self.start_slurmd(name)
        self.wait_up()

    def start_slurmctld(self):
        self.slurmctld = self.spawn("slurmctld", "-D", log="slurmctld")

    def start_slurmd(self, name):
        self.slurmd[name] = self.spawn("slurmd", "-D", "-N", name, log=f"slurmd-{name}")

    def wait_up(self):
        self.until(self.is_up, "the cluster's start")

    def is_up(self):
        done = self.run("sinfo", "--noheader", "--Node", "--format=%N %t", check=False)
        states = [line.split()[1] for line in set(done.stdout.splitlines())]
        return len(states) == len(self.nodes) and all(s in ("idle", "mix", "alloc") for s in states)

    def spawn(self, *command, log, user=None, **env):
        """Starts a process; its output is appended to FOLDER/log/LOG.log."""
        path = self.path(f"log/{log}.log")
        if user is not None:
            command = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", *command]
        return Process(self.guard.spawn(command, {**self.env, **env}, path), path)

    def logs(self):
        """The last lines of all logs, for the message of a test that failed."""
        texts = []
        for name in sorted(os.listdir(self.path("log"))):
            with open(self.path(f"log/{name}"), encoding="utf-8", errors="replace") as file:
                texts.append(f"== {name}\n" + "".join(file.readlines()[-30:]))
        return "\n".join(texts)

    # ---- clients ----

    def run(self, *command, user=None, check=True, text=None):
        """Runs a client of Slurm in FOLDER/work, as `user` where this process is root."""
        identity = {}
        if user is not None:
            entry = pwd.getpwnam(user)
            identity = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
        done = subprocess.run(
            command,
            env=self.env,
            cwd=self.path("work"),
            input=text or "",
            text=True,
            errors="replace",
            capture_output=True,
            timeout=LIMIT_S,
            check=False,
            **identity,
        )
        if check and done.returncode != 0:
            raise AssertionError(f"{' '.join(command)}: {done.stderr.strip()}\n{self.logs()}")
        return done

    def sbatch(self, script, *options, user=None):
        if not script.startswith("#!"):
            script = "#!/bin/bash\n" + script + "\n"
        done = self.run("sbatch", "--parsable", *options, user=user, text=script)
        return done.stdout.strip().split(";")[0]

    def job(self, job):
        text = self.run("scontrol", "--oneliner", "show", "job", str(job)).stdout
        return dict(re.findall(r"(?:^| )([A-Z][\w/:]*)=(.*?)(?=\s+[A-Z][\w/:]*=|\s*$)", text))

    def wait_job(self, job, *states):
        """The job once it is in one of the states; without states, once it has ended."""
        wanted = states or ENDED

        def look():
            found = self.job(job)
            state = found["JobState"]
            if state not in wanted and state in ENDED and found.get("Restarts") == "0":
                raise AssertionError(f"job {job} is {state}: {found}\n{self.logs()}")
            return found if state in wanted else None

        return self.until(look, f"job {job}: {' or '.join(wanted)}")

    def until(self, condition, what="it", limit_s=LIMIT_S):
        """The first value of `condition` that is true; without one it fails with the logs."""
        return until(condition, what, limit_s, self.logs)


def find_version():
    done = subprocess.run(
        ["slurmctld", "-V"],
        env={**os.environ, "PATH": PATH},
        capture_output=True,
        text=True,
        check=True,
    )
    return tuple(int(part) for part in re.findall(r"\d+", done.stdout)[:2])


# ---- the guard ----


class Guard:
    """The client of the guard process: starts processes there, and lets it end all of them."""

    def __init__(self, folder, keep):
        self.lock = threading.Lock()
        self.process = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), folder, *(["keep"] if keep else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for the program that uses the cluster
        )

    def spawn(self, command, env, log):
        with self.lock:
            self.process.stdin.write(json.dumps([list(command), env, log]) + "\n")
            self.process.stdin.flush()
            answer = json.loads(self.process.stdout.readline())
        if isinstance(answer, str):
            raise OSError(answer)
        return answer

    def close(self):
        """Returns once every process has ended and the folder is gone."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait(LIMIT_S)
        self.process.stdout.close()


def start_process(command, env, log):
    """The process ID, or a message."""
    path = shutil.which(command[0], path=env.get("PATH"))
    if path is None:
        return f"{command[0]} is not installed"
    appended = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    try:
        return os.posix_spawn(
            path,
            command,
            env,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, log, appended, 0o644),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
            setsigdef=[signal.SIGCHLD],
        )
    except OSError as error:
        return f"{path}: {error}"


def descendants():
    """All processes below this one. Orphans become children of this process, the subreaper."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                state, parent = file.read().rpartition(")")[2].split()[:2]
            if state != "Z":
                parents[int(name)] = int(parent)
    found, last = set(), {os.getpid()}
    while last:
        last = {pid for pid, parent in parents.items() if parent in last} - found
        found |= last
    return found


def end_descendants():
    end = time.monotonic() + LIMIT_S
    left = descendants()
    while left and time.monotonic() < end:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
        left = descendants()


def guard(folder, keep):
    """Starts what the lines of standard input ask for, until it is closed."""
    PR_SET_CHILD_SUBREAPER = 36
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps
    try:
        # A creator that was killed in the middle of a request leaves half a line, or no reader.
        with contextlib.suppress(ValueError, BrokenPipeError):
            for line in sys.stdin:
                print(json.dumps(start_process(*json.loads(line))), flush=True)
    finally:
        end_descendants()
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    guard(sys.argv[1], "keep" in sys.argv[2:])
    os._exit(0)  # standard output may be a broken pipe, which Python would report
