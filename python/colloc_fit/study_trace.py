# SPDX-License-Identifier: Apache-2.0
"""A trace of the dissertation, compressed, as real trainings on this machine's GPUs.

It measures the run exclusively and collocated, and compares it with the simulator.

    scripts/study-trace [--trace=philly-90.txt] [--first=N] [--tasks=N] [--compress=C]
                        [--gpus=0,1,2,3] [--spare-gpus=4,5,6,7]
                        [--alone=EARLIER.json | --catalogue=MEANS.csv]
                        [--fork] [--loaders=N] PROGRAMS OUTPUT.json [WAY ...]
    scripts/study-trace --mixed=8 [--longest=SECONDS] ... OUTPUT.json fifo slots
        that many trainings at once, few long and many short, the longest first, instead of the
        trace
    scripts/study-trace --simulate PROGRAMS OUTPUT.json [EXCLUSIVE.json]
        prints what `colloc simulate` predicts of the runs in OUTPUT.json; runs anywhere. What each
        task takes alone comes from the way "exclusive", of another output if that is named.
    scripts/study-trace --draw OUTPUT.json PICTURE.svg [EXCLUSIVE.json]
        draws memory and SM activity of the GPUs in each run
    scripts/study-trace --table OUTPUT.json [OUTPUT.json ...]
        prints a table of the runs in these outputs, each relative to MAGM with exact memory there
    (OUTPUT.json may be packed by xz here.)

PROGRAMS is a folder with collocd, colloc and colloc-shim (scripts/bundle makes one). Needs PyTorch,
torchvision, timm, transformers and MPS.

Arrivals and run times are those of a trace in data/traces (60 tasks, or philly-90.txt), C times
faster. Each task trains the model that the trace names (workloads/train.py), for as many steps as
it makes alone in its compressed run time. That speed is measured first, one training on each GPU at
a time, or taken from an earlier output of the same kind of GPU (--alone), or from what
tests/gpu/catalogue_trial.py has measured of all trainings (--catalogue). A task allocates unused
memory until it has the same share of the GPU as it had of an A100's 40 GiB. Tasks on two GPUs are
left out, except with --catalogue. The ways run one after another, or two at a time when
--spare-gpus names as many GPUs as --gpus. Each result is written at once.

With --fork the trainings are forked by workloads/fork_server.py, so that a task starts in 1 s
instead of 9. Forks are as their server is: ways with and without libcolloc-preload.so or the
carrier have a server each. That needs root and cgroups, and times that are nearer to those of the
trace are set: --first and --tasks then choose a window of the trace, and the windows' totals add
up.

With --loaders=N the trainings of ImageNet read JPEGs (workloads/pictures.py), which N processes of
each decode. How fast these are is measured first, without a training, for as many trainings at a
time as there are GPUs. A training that waits for them makes fewer steps a second alone, with less
SM activity.

For ways with estimates `colloc estimate -- train.py ...` estimates each training beforehand; the
unused memory is added to that.
"""
import argparse
import concurrent.futures
import csv
import json
import lzma
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from colloc_fit.machine import ForkServer, nvidia_smi, wait_for_daemon
from colloc_fit.tables import markdown

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TRACES = os.path.join(TOP, "data", "traces")
TRAIN = os.path.join(TOP, "workloads", "train.py")
PICTURES = os.path.join(TOP, "workloads", "pictures.py")
LOADER_RATE = os.path.join(TOP, "workloads", "loaders.py")
RATE_S = 3
LOG_MAX = 1 << 18  # characters of the log that are kept: a stall begins long before its end
LIBRARIES = (
    "torch", "torchvision", "timm", "transformers.models.bert.modeling_bert",
    "transformers.models.gpt2.modeling_gpt2", "transformers.models.xlnet.modeling_xlnet",
    "torch.nn.parallel", "torch.distributed",
)  # fmt: skip
A100_MIB = 40960
CONTEXT_MIB = 700  # of a PyTorch process on an H200, outside its allocator: docs/measured/h200.md
MODELS = {  # of the catalogue: what train.py calls it
    "bert_base": "encoder",
    "bert_large": "decoder",
    "efficientnet_b0": "torchvision/efficientnet_b0",
    "inception_v3": "timm/inception_v3",
    "mobilenet_v2": "torchvision/mobilenet_v2",
    "resnet50": "torchvision/resnet50",
    "vgg16": "torchvision/vgg16",
    "xception": "timm/legacy_xception",
    "mobilenet_v3_small": "torchvision/mobilenet_v3_small",
    "resnet18": "torchvision/resnet18",
    "resnet34": "torchvision/resnet34",
    "mnist_cnn": "digits",
}
SHAPES = {"cifar100": ("--side=32", "--classes=100")}
OWN_NAMES = ("bert_base", "bert_large", "gpt2_large", "xlnet_base", "xlnet_large")
SIDES = {"inception_v3": 299, "xception": 299}  # as tests/gpu/catalogue_trial.py trains them
# The times of the thesis, compressed like the trace: memory that settles in seconds is sampled more
# often. A start takes 2 to 3 s, which are not compressed: memory must not settle within them.
SETTINGS = ["--sample-period=100ms", "--window=4s", "--settle=1s", "--settle-max=6s"]
FORK_SETTINGS = ["--sample-period=100ms", "--window=1s", "--settle=1500ms", "--settle-max=4s"]
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "STOPPED")
# No estimates, no margins, no limits: each task starts at once on the next GPU.
ANYWHERE = ["--policy=rr", "--sharing=streams", "--smact-max=1", "--min-free=0", "--margin=0"]
# A slot is never shorter than 20 times what a suspension costs: about 25 s for 1.2 GiB; 5 s for a
# client of MPS, whose memory alone is carried away.
TURNS = ["--carrier=no", "--slots=yes", "--slot-length=20s"]
SHORT_TURNS = ["--carrier=yes", "--slots=yes", "--slot-length=5s"]
WAYS = {
    "exclusive": (["--policy=exclusive", "--sharing=streams"], ()),
    "magm-mps": (["--policy=magm", "--sharing=mps"], ()),
    "magm-mps-declared": (["--policy=magm", "--sharing=mps"], ("memory",)),
    "magm-mps-estimated": (["--policy=magm", "--sharing=mps"], ("estimate",)),
    "predictive-mps": (
        ["--policy=predictive", "--sharing=mps"],
        ("memory", "smact", "expect"),
    ),
    "predictive-streams-preempt": (
        ["--policy=predictive", "--sharing=streams", "--preload=yes", "--preempt=yes"],
        ("memory", "smact", "expect"),
    ),
    "anywhere-recovery": ([*ANYWHERE, "--preload=no"], ()),
    "anywhere-waiting": ([*ANYWHERE, "--preload=yes", "--carrier=no"], ()),
    # Of a virtual machine whose memory grows as it is used, half of that of its start is little.
    "anywhere-carrier": (
        [*ANYWHERE, "--preload=yes", "--carrier=yes", "--suspend-memory-max=100GiB"],
        (),
    ),
    "default": ([], ()),  # as installed, nothing declared
    "magm-streams-declared": (["--policy=magm", "--sharing=streams"], ("memory",)),
    "magm-streams-waiting": (["--policy=magm", "--sharing=streams", "--preload=yes"], ()),
    "fifo": (["--policy=exclusive", "--sharing=streams"], ()),
    "slots": (
        ["--policy=exclusive", "--sharing=streams", "--preload=yes", *TURNS],
        (),
    ),
    "slots-carrier": (
        ["--policy=exclusive", "--sharing=streams", "--preload=yes", *SHORT_TURNS],
        (),
    ),
    # A client that is away keeps its context there: no GPU is idle for an exclusive task.
    "fifo-mps": (["--sharing=mps", "--tasks-per-gpu=1"], ("memory",)),
    "slots-carrier-mps": (
        ["--sharing=mps", "--tasks-per-gpu=1", "--preload=yes", *SHORT_TURNS],
        ("memory",),
    ),
}

FORMER_NAMES = {"foresee-mps": "predictive-mps"}  # check-words: alias (stored results have it)


def rows_of(name):
    with open(os.path.join(TRACES, name), encoding="utf-8") as file:
        lines = [line.split() for line in file if line.strip() and not line.startswith("#")]
    return [dict(zip(lines[0], line)) for line in lines[1:]]


def arguments_of(task):
    return (MODELS[task["model"]], f"--batch={task['batch']}", *SHAPES.get(task["dataset"], ()))


def catalogue_arguments_of(task):
    """The training itself, not one that stands for it."""
    if task["model"] in OWN_NAMES:
        return (task["model"], f"--batch={task['batch']}")
    name = MODELS[task["model"]]
    if name == "digits":
        return (name, f"--batch={task['batch']}")
    shapes = SHAPES.get(task["dataset"]) or (
        f"--side={SIDES.get(task['model'], 224)}",
        "--classes=1000",
    )
    return (name, f"--batch={task['batch']}", *shapes)


def measured_alone(programs, arguments, gpu):
    """Steps per second, memory and SMACT of a training that runs alone on the GPU."""
    steps = 40 if "side" not in " ".join(arguments) and arguments[0] != "digits" else 400
    with tempfile.TemporaryDirectory() as folder:
        samples = os.path.join(folder, "samples.csv")
        command = [
            os.path.join(programs, "colloc"),
            "record",
            "--interval=100ms",
            f"--gpus={gpu}",
            f"--output={samples}",
            f"--summary={os.devnull}",
            "--",
            sys.executable,
            TRAIN,
            *arguments,
            "--epochs=2",
            f"--steps={steps}",
        ]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": gpu},
        )
        printed = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode or len(printed) < 5:
            raise RuntimeError(f"{' '.join(arguments)}: {done.stderr[-600:]}")
        with open(samples, encoding="utf-8") as file:
            rows = [
                dict(zip(header, line.rstrip("\n").split(",")))
                for header in [next(file).rstrip("\n").split(",")]
                for line in file
            ]
    at_work = [float(row["smact"]) for row in rows if row["smact"] and float(row["smact"]) > 0.02][
        -8:-2
    ]
    return {
        "steps_per_s": steps / printed[3]["seconds"],
        "memory_mib": printed[4]["reserved_mib"] + CONTEXT_MIB,
        "smact": statistics.median(at_work) if at_work else None,
    }


def measure_alone(programs, tasks, gpus):
    """Measures each different training alone, one on each GPU at a time."""
    free = list(gpus)
    kinds = sorted({task["arguments"] for task in tasks})

    def measure(kind):
        gpu = free.pop()
        try:
            return measured_alone(programs, kind, gpu)
        finally:
            free.append(gpu)

    with concurrent.futures.ThreadPoolExecutor(len(gpus)) as pool:
        return dict(zip(kinds, pool.map(measure, kinds)))


def read_alone(path):
    return {tuple(kind.split()): seen for kind, seen in read_results(path)["alone"].items()}


def read_catalogue(path):
    """Of each training alone, by its arguments."""
    with open(path, encoding="utf-8") as file:
        return {
            catalogue_arguments_of(row): {
                "steps_per_s": float(row["samples_per_s"]) / float(row["batch"]),
                "memory_mib": float(row["gpu_mib"]),
                "smact": float(row["smact"]),
            }
            for row in csv.DictReader(file)
        }


def read_tasks(trace, first, count, compress, arguments_of):
    """`count` tasks of a trace from number `first` on; those of two GPUs only if all trainings are
    known."""
    catalogue = {row["task"]: row for row in rows_of("tasks.txt")}
    gpus = ("1", "2") if arguments_of is catalogue_arguments_of else ("1",)
    rows = [row for row in rows_of(trace) if catalogue[row["task"]]["gpus"] in gpus]
    return [
        task_of(catalogue[row["task"]], float(row["arrival_s"]), compress, arguments_of)
        for row in rows[first - 1 : first - 1 + count]
    ]


def task_of(task, arrival_s, compress, arguments_of):
    memory_mib = task["memory_mib"] if task["memory_mib"] != "-" else task["rerun_mib"]
    return {
        "name": task["task"],
        "gpus": int(task["gpus"]),
        "at_s": arrival_s / compress,
        "alone_s": float(task["solo_s"]) / compress,
        "is_imagenet": task["dataset"] == "imagenet",
        "memory_share": float(memory_mib) / A100_MIB,
        "arguments": arguments_of(task),
    }


def begin_at_zero(tasks):
    first = tasks[0]["at_s"]
    for task in tasks:
        task["at_s"] -= first
    return tasks


def kind_of(name):
    """The simulator's name of this GPU."""
    return "H100" if "H100" in name else "H200"


def mixed_tasks(count, longest_s):
    """Trainings of ResNet-18 on small images, the longest first and each 0.7 times as long as the
    one before, as when long trainings are in the way of short ones."""
    arguments = ("torchvision/resnet18", "--batch=64", "--side=32", "--classes=100")
    return [
        {
            "name": f"resnet18-{i}",
            "gpus": 1,
            "at_s": 0,
            "alone_s": longest_s * 0.7**i,
            "is_imagenet": False,
            "memory_share": 0,
            "arguments": arguments,
        }
        for i in range(count)
    ]


class Loading:
    """Images that trainings decode while they run, and how many a second they can."""

    def __init__(self, loaders, trainings):
        self.loaders, self.trainings = loaders, trainings
        self.folder = tempfile.mkdtemp(prefix="colloc-images-")
        subprocess.run([sys.executable, PICTURES, self.folder], check=True)
        self.samples_per_s = {}  # by the side of an image

    def measured(self, side):
        command = [sys.executable, LOADER_RATE, self.folder, side, str(self.loaders), str(RATE_S)]
        running = [
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            for _ in range(self.trainings)
        ]
        printed = [process.communicate()[0] for process in running]
        return statistics.fmean(json.loads(line)["samples_per_s"] for line in printed)

    def steps_per_s(self, arguments):
        """What the training would make if its GPU took no time."""
        options = dict(word.split("=") for word in arguments if word.startswith("--"))
        side = options["--side"]
        if side not in self.samples_per_s:
            self.samples_per_s[side] = self.measured(side)
        return self.samples_per_s[side] / int(options["--batch"])

    def options(self):
        return [f"--data={self.folder}", f"--loaders={self.loaders}"]

    def close(self):
        shutil.rmtree(self.folder)


def plan(tasks, alone, gpu_mib, loading=None):
    """Sets the steps, the memory and the SMACT of each task from its run alone."""
    for task in tasks:
        seen = alone[task["arguments"]]
        ballast_mib = max(0, task["memory_share"] * gpu_mib - seen["memory_mib"])
        steps_per_s, smact, data = seen["steps_per_s"], seen["smact"], []
        if loading and task["is_imagenet"]:
            data = loading.options()
            steps_per_s = min(steps_per_s, loading.steps_per_s(task["arguments"]))
            smact = smact and smact * steps_per_s / seen["steps_per_s"]
        task.update(
            steps=max(1, round(task["alone_s"] * steps_per_s)),
            ballast_gib=round(ballast_mib / 1024, 2),
            smact=smact,
            memory_mib=round(seen["memory_mib"] + ballast_mib),
            data=data,
        )


def estimated_mib(programs, task, gpu):
    """What the daemon would reserve of each GPU for the task's training, from its script; None if
    the script is not followed."""
    words = [*task["arguments"], *task["data"], "--epochs=1", "--steps=4"]
    words.append(f"--processes={task['gpus']}")
    done = subprocess.run(
        [os.path.join(programs, "colloc"), "estimate", "--json", f"--gpu={gpu}", "--",
         sys.executable, TRAIN, *words],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    if done.returncode:
        print(f"no estimate of {' '.join(words)}: {done.stdout[-600:]} {done.stderr[-600:]}")
        return None
    return json.loads(done.stdout)["estimates"][0]["reserved_mib"]


def estimate_all(programs, tasks, gpu):
    """Adds `estimate_mib` to each task whose script is followed: its estimate, and its ballast."""
    kinds = {task["arguments"]: task for task in tasks}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda task: estimated_mib(programs, task, gpu), kinds.values())
        estimates = dict(zip(kinds, found))
    for task in tasks:
        estimate = estimates[task["arguments"]]
        if estimate is not None:
            task["estimate_mib"] = round(estimate + 1024 * task["ballast_gib"])


class Server:
    """One collocd on some of the GPUs."""

    def __init__(self, programs, gpus, settings):
        self.programs, self.folder = programs, tempfile.mkdtemp(prefix="colloc-trace-")
        self.socket = os.path.join(self.folder, "s")
        command = [
            os.path.join(programs, "collocd"),
            f"--socket={self.socket}",
            f"--state-dir={self.folder}/state",
            f"--shim={programs}/colloc-shim",
            f"--gpus={','.join(gpus)}",
            *settings,
        ]
        self.log = open(os.path.join(self.folder, "log"), "w+", encoding="utf-8")
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=self.log)
        if not wait_for_daemon(programs, self.socket, self.process):
            raise RuntimeError("collocd does not answer: " + self.log_text())

    def log_text(self):
        with open(self.log.name, encoding="utf-8") as file:
            return file.read()[-LOG_MAX:]

    def colloc(self, *arguments):
        done = subprocess.run(
            [os.path.join(self.programs, "colloc"), "--socket", self.socket, *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        return (
            done.stdout
            if done.returncode == 0 or arguments[0] == "wait"
            else self.fail(arguments, done)
        )

    @staticmethod
    def fail(arguments, done):
        raise RuntimeError(f"colloc {' '.join(arguments)}: {done.stderr}")

    def gpus(self):
        return json.loads(self.colloc("gpus", "--json"))["gpus"]

    def processor_s(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="utf-8") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self):
        self.process.terminate()
        self.process.wait(timeout=60)
        return self.log_text()


def needs_of(way):
    """(the library that lets allocations wait, the carrier): a way has both unless it says no."""
    said = WAYS.get(FORMER_NAMES.get(way, way), ((),))[0]
    has_library = "--preload=no" not in said
    return has_library, has_library and "--carrier=no" not in said


def start_fork_servers(programs, ways):
    """A server for each kind of way, whose forks are as it is, by what the ways need."""
    library = os.path.join(programs, "libcolloc-preload.so")
    return {
        (has_library, has_carrier): ForkServer(
            LIBRARIES, library if has_library else None, has_carrier
        )
        for has_library, has_carrier in sorted(set(map(needs_of, ways)))
    }


def submit(server, task, way, launcher):
    options = {
        "memory": f"--memory={task['memory_mib']}MiB",
        "estimate": f"--memory={task['estimate_mib']}MiB" if "estimate_mib" in task else None,
        "smact": f"--smact={task['smact']:.3f}" if task["smact"] is not None else None,
        "expect": f"--expect={task['alone_s'] + launcher.start_s:.1f}s",
    }
    declared = WAYS[FORMER_NAMES.get(way, way)][1]
    chosen = [options[word] for word in declared if options[word]]
    work = [
        *launcher.command_of(way),
        TRAIN,
        *task["arguments"],
        "--epochs=1",
        f"--steps={task['steps']}",
        *task["data"],
        f"--ballast-gib={task['ballast_gib']}",
        f"--processes={task['gpus']}",
    ]
    return json.loads(
        server.colloc(
            "submit", "--json", f"--name={task['name']}", f"--gpus={task['gpus']}", *chosen, "--",
            *work,
        )
    )["id"]  # fmt: skip


class Launcher:
    """How trainings start, and the daemon's settings that are as quick.

    fork_servers: by the needs of the ways; none: each training starts on its own
    """

    def __init__(self, fork_servers):
        self.fork_servers = fork_servers
        self.settings = FORK_SETTINGS if fork_servers else SETTINGS
        self.start_s = 1 if fork_servers else 8
        self.window_s = 1 if fork_servers else 4.5
        self.settle_max_s = 4 if fork_servers else 6

    def command_of(self, way):
        return self.fork_servers[needs_of(way)].command() if self.fork_servers else [sys.executable]

    def close(self):
        for server in self.fork_servers.values():
            server.close()


class Meter(threading.Thread):
    """Energy and mean SMACT of the GPUs, from a sample every half second."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.samples, self.over = server, [], threading.Event()

    def run(self):
        while not self.over.wait(0.5):
            self.samples.append(
                (
                    time.monotonic(),
                    [
                        {key: gpu[key] for key in ("power_w", "smact", "mem_used_mib")}
                        for gpu in self.server.gpus()
                    ],
                )
            )

    def close(self):
        self.over.set()
        self.join()
        powers = [(at, sum(gpu["power_w"] or 0 for gpu in gpus)) for at, gpus in self.samples]
        joule = sum(
            (one[1] + other[1]) / 2 * (other[0] - one[0]) for one, other in zip(powers, powers[1:])
        )
        active = [
            gpu["smact"] for _, gpus in self.samples for gpu in gpus if gpu["smact"] is not None
        ]
        return {
            "energy_j": joule,
            "mean_smact": statistics.fmean(active) if active else None,
            "looks": self.samples,
        }


def end_all(server, ids):
    """No task of a way that took too long runs into the next one."""
    for number in map(str, ids):
        if json.loads(server.colloc("show", number, "--json"))["state"] not in ENDED:
            server.colloc("cancel", number)
            server.colloc("wait", "--timeout=30s", number)


def run_way(programs, gpus, tasks, way, limit_s, launcher):
    settings = WAYS[FORMER_NAMES.get(way, way)][0]
    server = Server(programs, gpus, [*launcher.settings, *settings])
    meter, ids, began = Meter(server), [], time.monotonic()
    meter.start()
    for task in tasks:
        time.sleep(max(0, task["at_s"] - (time.monotonic() - began)))
        ids.append(submit(server, task, way, launcher))
    server.colloc(
        "wait", f"--timeout={max(1, limit_s - (time.monotonic() - began)):.0f}s", *map(str, ids)
    )
    total_s, processor_s = time.monotonic() - began, server.processor_s()
    end_all(server, ids)
    shown = [json.loads(server.colloc("show", str(number), "--json")) for number in ids]
    seen = meter.close()
    keys = (
        "name",
        "state",
        "reason",
        "wait_s",
        "exec_s",
        "attempt_count",
        "oom_count",
        "mem_peak_mib",
        "failure",
        "evidence",
        "memory_waits",
        "memory_wait_s",
        "suspensions",
        "suspended_s",
        "suspension_cost_s",
        "moves",
        "attempts",
    )
    ended = [{key: task.get(key) for key in keys} for task in shown]
    return {
        "total_s": total_s,
        "mean_wait_s": statistics.fmean(task["wait_s"] for task in ended),
        "mean_exec_s": statistics.fmean(task["exec_s"] for task in ended),
        "mean_jct_s": statistics.fmean(
            task["wait_s"] + task["exec_s"] + (task["suspended_s"] or 0) for task in ended
        ),
        "completed": sum(task["state"] == "COMPLETED" for task in ended),
        "oom": sum(task["oom_count"] for task in ended),
        "memory_waits": sum(task["memory_waits"] or 0 for task in ended),
        "suspensions": sum(task["suspensions"] or 0 for task in ended),
        "moves": sum(task["moves"] or 0 for task in ended),
        "suspension_cost_s": sum(task["suspension_cost_s"] or 0 for task in ended),
        "tasks": ended,
        **seen,
        "daemon_processor_s": processor_s,
        "log": server.close(),
    }


IN_ORDER = "--backfill=no"  # the daemon of the first runs knew no backfill
SIMULATED = {
    "exclusive": ["--policy=exclusive", IN_ORDER],
    "magm-mps": ["--policy=magm", IN_ORDER, "--sharing=mps", "--estimator=none"],
    "magm-mps-declared": ["--policy=magm", IN_ORDER, "--sharing=mps"],
    "magm-mps-estimated": ["--policy=magm", IN_ORDER, "--sharing=mps"],  # as if exact
    "predictive-mps": [
        "--policy=predictive",
        "--sharing=mps",
        "--known=all",
    ],
}
WINDOW_S = 90  # over which the simulator averages SMACT; the daemon did so over `window_s`
SMACT_UNKNOWN = 0.5


def memory_of(task, ended):
    """Of one GPU, in MiB."""
    return ended["mem_peak_mib"] / task.get("gpus", 1)


def simulate(programs, seen, way):
    """The simulator's totals for tasks that take alone what they took in the way "exclusive"."""
    stretch, settle_s = WINDOW_S / seen.get("window_s", 4.5), seen.get("settle_max_s", 6)
    starts = [
        ended["exec_s"] - task["alone_s"]
        for task, ended in zip(seen["tasks"], seen["ways"]["exclusive"]["tasks"])
    ]
    # The interpreter loads its libraries: nothing is on the GPU yet.
    start_s = statistics.median(starts)
    with tempfile.TemporaryDirectory() as folder:
        trace, tasks, kinds = (
            os.path.join(folder, name) for name in ("trace.csv", "tasks.csv", "kinds.txt")
        )
        with open(trace, "w", encoding="utf-8") as trace_file, open(
            tasks, "w", encoding="utf-8"
        ) as tasks_file:
            trace_file.write("submit_s,task\n")
            tasks_file.write("task,gpus,solo_s,memory_mib,smact\n")
            for i, (task, ended) in enumerate(
                zip(seen["tasks"], seen["ways"]["exclusive"]["tasks"])
            ):
                active = task["smact"] if task["smact"] and task["smact"] > 0.05 else SMACT_UNKNOWN
                solo_s = stretch * max(0.1, ended["exec_s"] - start_s)
                trace_file.write(f"{stretch * task['at_s']:.3f},t{i}\n")
                tasks_file.write(
                    f"t{i},{task.get('gpus', 1)},{solo_s:.3f},{memory_of(task, ended):.0f},"
                    f"{active:.4f}\n"
                )
        with open(kinds, "w", encoding="utf-8") as file:
            file.write(f"constant startup_s {stretch * start_s:.1f}\n")
        command = [
            os.path.join(programs, "colloc"),
            "simulate",
            "--json",
            f"--trace={trace}",
            f"--tasks={tasks}",
            f"--gpus={seen['gpus']}x{seen.get('gpu', 'H200')}",
            f"--gpu-kinds={kinds}",
            f"--hold-off={settle_s * stretch:.0f}s",
            *SIMULATED[FORMER_NAMES.get(way, way)],
        ]
        totals = json.loads(
            subprocess.run(command, capture_output=True, text=True, check=True).stdout
        )
    return {
        "total_s": totals["total_s"] / stretch,
        "mean_wait_s": totals["avg_wait_s"] / stretch,
        "mean_exec_s": totals["avg_exec_s"] / stretch,
        "mean_jct_s": totals["avg_jct_s"] / stretch,
        "oom": totals["oom"],
        "completed": totals["completed"],
    }


def read_results(path):
    with (lzma.open if path.endswith(".xz") else open)(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def read_with_exclusive(path, path_of_exclusive=None):
    """The results, with the way "exclusive" of another output if that is named."""
    seen = read_results(path)
    if path_of_exclusive:
        exclusive = read_results(path_of_exclusive)["ways"]["exclusive"]
        seen["ways"] = {"exclusive": exclusive, **seen["ways"]}
    return seen


def compare(programs, path, path_of_exclusive=None):
    seen = read_with_exclusive(path, path_of_exclusive)
    for way, result in seen["ways"].items():
        if "error" in result or FORMER_NAMES.get(way, way) not in SIMULATED:
            continue
        predicted = simulate(os.path.abspath(programs), seen, way)
        print(way)
        for key, value in predicted.items():
            error = (
                f"{100 * (value / result[key] - 1):+.1f} %"
                if result[key] and key.endswith("_s")
                else ""
            )
            print(f"    {key:<12} seen {result[key]:8.1f}   simulated {value:8.1f}   {error}")
    return 0


EXACT = "magm-streams-declared"
TABLE_WORDS = {
    "anywhere-carrier": "anywhere, allocations wait, carrier",
    "anywhere-waiting": "anywhere, allocations wait, driver's checkpoint",
    EXACT: "MAGM, exact memory declared",
}
TABLE_HEAD = (
    "run", "way", "completed", "OOM crashes", "total", "of MAGM's", "mean completion",
    "computed, mean", "waits", "suspensions", "moves", "these took",
)  # fmt: skip


def table_row(run, way, result, exact_s):
    """The cells. A way that was ended with tasks left has no total, and no part of another."""
    is_whole = result["completed"] == len(result["tasks"])
    counts = [str(result[key]) for key in ("memory_waits", "suspensions", "moves")]
    return [
        str(run),
        TABLE_WORDS.get(way, way),
        f"{result['completed']} of {len(result['tasks'])}",
        str(result["oom"]),
        f"{result['total_s']:.0f} s" if is_whole else f"> {result['total_s']:.0f} s",
        f"{result['total_s'] / exact_s:.2f}" if is_whole and exact_s else "-",
        f"{result['mean_jct_s']:.0f} s" if is_whole else "-",
        f"{result['mean_exec_s']:.1f} s",
        *counts,
        f"{result['suspension_cost_s']:.0f} s",
    ]


def print_table(paths):
    rows = []
    for run, path in enumerate(paths, 1):
        ways = {way: one for way, one in read_results(path)["ways"].items() if "error" not in one}
        exact = ways.get(EXACT)
        is_whole = exact and exact["completed"] == len(exact["tasks"])
        exact_s = exact["total_s"] if is_whole else None
        rows += [table_row(run, way, result, exact_s) for way, result in ways.items()]
    print(markdown(TABLE_HEAD, rows))
    return 0


def smoothed(values, n=8):
    """The mean of the last `n` values at each; unknown ones are left out."""
    parts = [
        [v for v in values[max(0, i - n + 1) : i + 1] if v is not None] for i in range(len(values))
    ]
    return [statistics.fmean(part) if part else float("nan") for part in parts]


def draw(path, picture, path_of_exclusive=None):
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "colloc"
    import matplotlib.pyplot as plt

    seen = read_with_exclusive(path, path_of_exclusive)
    ways = {way: result for way, result in seen["ways"].items() if "error" not in result}
    longest = max(result["total_s"] for result in ways.values())
    figure, grid = plt.subplots(
        len(ways), 2, figsize=(10, 2.1 * len(ways)), sharex=True, squeeze=False
    )
    for (way, result), row in zip(ways.items(), grid):
        began = result["looks"][0][0]
        times = [at - began for at, _ in result["looks"]]
        for gpu in range(seen["gpus"]):
            used = [gpus[gpu]["mem_used_mib"] for _, gpus in result["looks"]]
            active = [gpus[gpu]["smact"] for _, gpus in result["looks"]]
            row[0].plot(times, [v / 1024 if v is not None else float("nan") for v in used], lw=0.8)
            row[1].plot(times, smoothed(active), lw=0.8, label=f"GPU {gpu}")
        for axes in row:
            axes.axvline(result["total_s"], color="grey", lw=0.8, ls="--")
            axes.set_xlim(0, 1.02 * longest)
        row[0].set_ylabel(f"{way}\nmemory, GiB")
        row[1].set_ylabel("SM activity")
        row[1].set_ylim(0, 1)
    grid[0][1].legend(fontsize=7, ncol=seen["gpus"], loc="lower center")
    for axes in grid[-1]:
        axes.set_xlabel("seconds")
    figure.tight_layout()
    figure.savefig(picture, metadata={"Date": None})
    return 0


def parse_options():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trace", default="philly-60.txt", metavar="FILE", help="in data/traces")
    parser.add_argument("--first", type=int, default=1, help="the number of the first task")
    parser.add_argument("--tasks", type=int, default=24)
    parser.add_argument("--mixed", type=int, metavar="N", help="long and short, not the trace")
    parser.add_argument("--longest", type=float, default=100, help="of --mixed, in seconds")
    parser.add_argument("--compress", type=float, default=150)
    parser.add_argument("--gpus", default="0")
    parser.add_argument("--spare-gpus", default="")
    parser.add_argument("--alone", metavar="EARLIER.json")
    parser.add_argument("--catalogue", metavar="MEANS.csv")
    parser.add_argument("--fork", action="store_true", help="trainings by a fork server")
    parser.add_argument("--loaders", type=int, default=0, help="of images, for each of ImageNet")
    parser.add_argument("--limit", type=float, default=1800, help="seconds of one way")
    parser.add_argument("programs")
    parser.add_argument("output")
    parser.add_argument("ways", nargs="*", default=list(SIMULATED))
    options = parser.parse_args()
    if options.loaders and not options.catalogue:
        parser.error("--loaders needs --catalogue")
    return options


def choose_tasks(options):
    if options.mixed:
        return mixed_tasks(options.mixed, options.longest)
    arguments = catalogue_arguments_of if options.catalogue else arguments_of
    return begin_at_zero(
        read_tasks(options.trace, options.first, options.tasks, options.compress, arguments)
    )


def find_alone(options, programs, tasks, gpus):
    """What each training takes alone: as measured earlier, or measured now."""
    if options.catalogue:
        alone = read_catalogue(options.catalogue)
    elif options.alone:
        alone = read_alone(options.alone)
    else:
        alone = measure_alone(programs, tasks, gpus)
    missing = {task["arguments"] for task in tasks} - set(alone)
    if missing:
        sys.exit(f"{options.alone} has not measured {' '.join(sorted(missing)[0])}")
    return alone


def try_way(*arguments):
    """run_way, but an error is a result: the other ways go on."""
    try:
        return run_way(*arguments)
    except (RuntimeError, OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
        return {"error": repr(error)}


def run_ways(seen, ways, sets, output, run):
    """Runs the ways, on each set of GPUs one after the other, and writes what is seen after each.

    run: a way's function of the GPUs and its name; returns its result"""
    left, lock = list(ways), threading.Lock()

    def work(gpus):
        while True:
            with lock:
                if not left:
                    return
                way = left.pop(0)
            result = run(gpus, way)
            with lock:
                seen["ways"][way] = result
                with open(output, "w", encoding="utf-8") as file:
                    json.dump(seen, file, indent=1)
                hidden = ("tasks", "looks", "log")
                shown = {key: value for key, value in result.items() if key not in hidden}
                print(way, shown, flush=True)

    workers = [threading.Thread(target=work, args=(gpus,)) for gpus in sets]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def study(options):
    programs = os.path.abspath(options.programs)
    sets = [part.split(",") for part in (options.gpus, options.spare_gpus) if part]
    tasks = choose_tasks(options)
    alone = find_alone(options, programs, tasks, [gpu for part in sets for gpu in part])
    loading = Loading(options.loaders, len(sets[0])) if options.loaders else None
    plan(tasks, alone, float(nvidia_smi("memory.total")[0]), loading)
    gpu = kind_of(nvidia_smi("name")[0])
    if any("estimate" in WAYS[way][1] for way in options.ways if way in WAYS):
        estimate_all(programs, tasks, gpu)
    launcher = Launcher(start_fork_servers(programs, options.ways) if options.fork else {})
    seen = {
        "gpu": gpu,
        "window_s": launcher.window_s,
        "settle_max_s": launcher.settle_max_s,
        "trace": options.trace,
        "first": options.first,
        "compress": options.compress,
        "gpus": len(sets[0]),
        "loaders": options.loaders,
        "loaded_samples_per_s": loading.samples_per_s if loading else {},
        "tasks": tasks,
        "alone": {" ".join(kind): value for kind, value in alone.items()},
        "ways": {},
    }

    def run(gpus, way):
        return try_way(programs, gpus, tasks, way, options.limit, launcher)

    run_ways(seen, options.ways, sets, options.output, run)
    launcher.close()
    if loading:
        loading.close()
    return 1 if any("error" in result for result in seen["ways"].values()) else 0


def main():
    if sys.argv[1:2] == ["--simulate"] and len(sys.argv) in (4, 5):
        return compare(*sys.argv[2:])
    if sys.argv[1:2] == ["--table"] and len(sys.argv) > 2:
        return print_table(sys.argv[2:])
    if sys.argv[1:2] == ["--draw"] and len(sys.argv) in (4, 5):
        return draw(*sys.argv[2:])
    return study(parse_options())


if __name__ == "__main__":
    sys.exit(main())
