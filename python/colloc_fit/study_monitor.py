# SPDX-License-Identifier: Apache-2.0
"""The monitoring study on this machine's GPU: chapter 3 of the thesis.

It measures what the GPU metrics report of known loads, and what monitoring costs.

    scripts/study-monitor measure PROGRAMS RAW.json [PART ...]
        measures the parts (default: all); needs a GPU, PyTorch, torchvision, transformers and nvcc
    scripts/study-monitor draw RAW.json FOLDER
        draws pictures (SVG), tables (CSV) and a page; runs anywhere

PROGRAMS is a folder with collocd, colloc and colloc-shim (scripts/bundle makes one). The parts:

    square     GPU metrics against the blocks and threads of a kernel (figure 3.1)
    sms        SMACT while a kernel keeps a known number of SMs busy
    short      means that `colloc record` prints of loads of 2 to 30 s, sampled once a second
    memory     memory of a process as colloc reports it, against allocator plus context
    calls      processor time of each driver query, on an idle and on a busy GPU
    daemon     processor time of collocd beside a training, in slices of ten seconds
    light, heavy
               epochs of a small and of a large training with and without monitors, in turns
               (table 3.2, figures 3.2 and 3.3)
    light-profilers, heavy-profilers
               the same trainings beside one monitor of each kind, under PyTorch's profiler and
               under Nsight Systems, as a task that is ready for `colloc profile`, and while that
               records (table 3.2); about 90 s each
    light-counters, heavy-counters
               the same ways with longer epochs, and `colloc record` beside all of them: SMACT,
               SMOCC, DRAM activity and power of each (figure 3.4); about 90 s each
    light-ncu, heavy-ncu
               one step under Nsight Compute and without

No setting of the GPU is changed. Each part is written when it is measured: an interrupted study
keeps what it has.
"""
import contextlib
import csv
import ctypes
import glob
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from colloc_fit.machine import nvidia_smi, run_action, wait_for_daemon

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BLOCKS, THREADS = (1, 32, 132, 1024, 4224), (1, 32, 128, 1024)
STAYING_SMS = (1, 4, 8, 16, 33, 50, 66, 99, 116, 132)
LOAD_S = 2
SHORT_S, SHORT_SMS = (2, 5, 10, 30), (33, 79)
RECORD = ("--interval=100ms", "--gpus=0")
MEMORY_MODELS = ("digits", "small", "medium", "heavy", "decoder", "encoder")
EPOCHS = {
    "light": ("digits", 938, 3),
    "heavy": ("heavy", 20, 3),
}  # the model, steps of an epoch, epochs in a turn
ROUNDS = 5
# Of the profilers: shorter epochs, since a trace has a line for each kernel; fewer rounds.
PROFILED_EPOCHS = {"light": ("digits", 300, 3), "heavy": ("heavy", 15, 2)}
PROFILED_ROUNDS, PROFILED_FOR_S, TRACE_LIMIT_S = 3, 1, 25
PROFILED_LIMIT_S = 55  # no round begins later
# Of the counters: epochs of about three seconds, one round.
COUNTED_EPOCHS = {"light": ("digits", 1500, 2), "heavy": ("heavy", 50, 2)}
COUNTER_AGE_S = 0.5  # a counter tells of the time since it was last read, at most this
COUNTERS = ("smact", "smocc", "dram_active", "power_w")
NCU_STEPS, NCU_LIMIT_S = 1, 45
# Nsight Systems, also the one that Nsight Compute brings.
NSYS_PLACES = ("/opt/nvidia/nsight-systems/*/bin/nsys", "/opt/nvidia/nsight-compute/*/host/*/nsys")
CALLS = 100
SLICES, SLICE_S = 5, 10
SMI_QUERY = [
    "--query-gpu=timestamp,utilization.gpu,utilization.memory,memory.used,power.draw",
    "--format=csv",
]
HOST_ENGINE = "nv-hostengine"
DCGMI_FIELDS = "203,204,1001,1002,1003,1004,1005,155"


class Study:
    def __init__(self, programs, folder):
        self.colloc = os.path.join(os.path.abspath(programs), "colloc")
        self.collocd = os.path.join(os.path.abspath(programs), "collocd")
        self.shim = os.path.join(os.path.abspath(programs), "colloc-shim")
        self.folder = folder
        self.square = os.path.join(folder, "square")

    def build_square(self):
        if not os.path.exists(self.square):
            subprocess.run(
                ["nvcc", "-O2", "-o", self.square, os.path.join(TOP, "workloads", "square.cu")],
                check=True,
            )

    def steady(self, *command):
        """Medians of what `colloc record` measured on GPU 0 in the second half of the run.

        Start and end of the program are in the first half and in the last samples.
        """
        out = os.path.join(self.folder, "record.csv")
        subprocess.run(
            [
                self.colloc,
                "record",
                *RECORD,
                f"--output={out}",
                f"--summary={os.devnull}",
                "--",
                *command,
            ],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        with open(out, encoding="utf-8") as file:
            samples = list(csv.DictReader(file))
        middle = samples[len(samples) // 2 : -4]
        return {
            key: median_of(sample[key] for sample in middle)
            for key in ("utilisation", "gract", "smact", "smocc", "dram_active", "power_w")
        }


def median_of(texts):
    numbers = [float(text) for text in texts if text]
    return statistics.median(numbers) if numbers else None


def measure_square(study):
    study.build_square()
    return [
        {
            "blocks": blocks,
            "threads": threads,
            **study.steady(study.square, str(blocks), str(threads), str(LOAD_S)),
        }
        for blocks in BLOCKS
        for threads in THREADS
    ]


def measure_sms(study):
    study.build_square()
    return [
        {"sms": sms, **study.steady(study.square, str(sms), "1024", str(LOAD_S), "stay")}
        for _ in range(2)
        for sms in STAYING_SMS
    ]


def record_square(study, sms, seconds):
    """The default summary of `colloc record` of one run, and the seconds that the kernel ran."""
    summary = os.path.join(study.folder, "summary.json")
    done = subprocess.run(
        [
            study.colloc,
            "record",
            "--gpus=0",
            "--json",
            f"--summary={summary}",
            "--",
            study.square,
            str(sms),
            "1024",
            str(seconds),
            "stay",
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    with open(summary, encoding="utf-8") as file:
        return json.load(file), json.loads(done.stdout.splitlines()[-1])["seconds"]


def measure_short(study):
    """Measures short runs: the kernel runs for a part of the command's time, while CUDA starts and
    ends in the rest, so SMACT should be that part of the SMs that are busy."""
    study.build_square()
    total, rows = max(STAYING_SMS), []
    for seconds in SHORT_S:
        for sms in SHORT_SMS:
            summary, kernel_s = record_square(study, sms, seconds)
            gpu = summary["gpus"][0]
            rows.append(
                {
                    "seconds": seconds,
                    "sms": sms,
                    "elapsed_s": summary["elapsed_s"],
                    "kernel_s": kernel_s,
                    "expected_smact": sms / total * kernel_s / summary["elapsed_s"],
                    **{key: gpu[key] for key in ("smact", "command_smact", "power_w", "energy_j")},
                }
            )
    return rows


class Worker:
    """A training process (workloads/worker.py) that runs epochs on request."""

    def __init__(self, model, wrapper=()):
        worker = [sys.executable, os.path.join(TOP, "workloads", "worker.py")]
        self.process = subprocess.Popen(
            [*wrapper, *worker], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.input, self.output = self.process.stdin, self.process.stdout
        self.reply()
        self.call(do="load", model=model)

    def reply(self):
        for line in self.output:  # a profiler may print lines as well
            if line.startswith("{"):
                return json.loads(line)
        raise EOFError("the training process has ended")

    def call(self, **command):
        self.input.write(json.dumps(command) + "\n")
        self.input.flush()
        return self.reply()

    def close(self):
        """A profiler that still writes is not waited for."""
        self.input.close()
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def gpu_used_mib():
    return float(nvidia_smi("memory.used")[0])


def measure_memory(study):
    """The context is what the process takes of the GPU beyond its allocator.

    Nothing else may run on the GPU.
    """
    rows = []
    for model in MEMORY_MODELS:
        summary = os.path.join(study.folder, "summary.json")
        before_mib = gpu_used_mib()
        worker = Worker(
            model, (study.colloc, "record", *RECORD, "--json", f"--summary={summary}", "--")
        )
        epoch = worker.call(do="epoch", steps=50)
        truth_mib = gpu_used_mib() - before_mib
        worker.close()
        with open(summary, encoding="utf-8") as file:
            seen_mib = json.load(file)["gpus"][0]["command_mem_peak_mib"]
        rows.append(
            {
                "model": model,
                "reserved_mib": epoch["reserved_mib"],
                "context_mib": truth_mib - epoch["reserved_mib"],
                "truth_mib": truth_mib,
                "colloc_mib": seen_mib,
                "error": seen_mib / truth_mib - 1,
            }
        )
    return rows


# ---- what monitors cost ----


def processor_s(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return sum(int(fields[i]) for i in (11, 12, 13, 14)) / os.sysconf("SC_CLK_TCK")


def resident_mib(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return max(
            (int(line.split()[1]) / 1024 for line in file if line.startswith("VmRSS")), default=0.0
        )


def bytes_in(folder):
    return sum(
        os.path.getsize(os.path.join(where, name))
        for where, _, names in os.walk(folder)
        for name in names
    )


# Runs a command once a second.
SPAWN = """\
import subprocess, sys, time
while True:
    began = time.monotonic()
    subprocess.run(sys.argv[1:])
    time.sleep(max(0, 1 - time.monotonic() + began))
"""


# Runs collocd with its state in the working folder.
HERE = 'exec "$0" "$@" --state-dir="$PWD"'


def daemon_command(study, period):
    settings = ("--socket=s", f"--shim={study.shim}", f"--sample-period={period}")
    return ["sh", "-c", HERE, study.collocd, *settings]


def monitors(study):
    """The monitors by name: commands that write their samples into their working folder."""
    smi = ["nvidia-smi", *SMI_QUERY]
    found = {
        "none": None,
        "top": ["top", "-b", "-d", "1"],
        "colloc, 1 s": daemon_command(study, "1s"),
        "colloc, 0.1 s": daemon_command(study, "100ms"),
        "nvidia-smi, staying": [*smi, "-l", "1"],
        "nvidia-smi, each second": [sys.executable, "-c", SPAWN, *smi],
        "dcgmi, staying": ["dcgmi", "dmon", "-e", DCGMI_FIELDS, "-d", "1000"],
    }
    return {
        name: command
        for name, command in found.items()
        if command is None or shutil.which(command[0])
    }


@contextlib.contextmanager
def running(command, folder):
    with open(os.path.join(folder, "output"), "w", encoding="utf-8") as output:
        process = subprocess.Popen(
            command, cwd=folder, stdout=output, stderr=output, stdin=subprocess.DEVNULL
        )
        time.sleep(0.7)  # the start of the monitor is not measured
        if process.poll() is not None:
            raise OSError(f"{' '.join(command)} has ended")
        try:
            yield process
        finally:
            process.terminate()
            process.wait(timeout=30)


def processes_named(name):
    """The PIDs of a program that runs beside this one."""
    found = []
    for folder in glob.glob("/proc/[0-9]*"):
        with contextlib.suppress(OSError), open(f"{folder}/comm", encoding="utf-8") as file:
            if file.read().strip() == name:
                found.append(int(os.path.basename(folder)))
    return found


def turn(worker, command, steps, epochs):
    """Times of `epochs` epochs beside one monitor, and what the monitor took: with the host engine
    that reads the GPU for `dcgmi`."""
    if command is None:
        return {"epochs": [worker.call(do="epoch", steps=steps) for _ in range(epochs)]}
    with tempfile.TemporaryDirectory() as folder, running(command, folder) as monitor:
        pids = [monitor.pid] + (processes_named(HOST_ENGINE) if command[0] == "dcgmi" else [])
        before = sum(map(processor_s, pids)), bytes_in(folder), time.monotonic()
        times = [worker.call(do="epoch", steps=steps) for _ in range(epochs)]
        took = time.monotonic() - before[2]
        return {
            "epochs": times,
            "cores": (sum(map(processor_s, pids)) - before[0]) / took,
            "resident_mib": sum(map(resident_mib, pids)),
            "bytes_per_s": (bytes_in(folder) - before[1]) / took,
        }


def measure_overhead(study, name):
    model, steps, epochs = EPOCHS[name]
    worker, seen = Worker(model), monitors(study)
    turns = [
        {"monitor": monitor, **turn(worker, command, steps, epochs)}
        for _ in range(ROUNDS)
        for monitor, command in seen.items()
    ]
    worker.close()
    return {"model": model, "steps": steps, "turns": turns}


# ---- what profilers cost ----


class TaskWorker(Worker):
    """The same process as a task of a collocd, ready for `colloc profile`. It reads and writes
    named pipes, since a task's standard input is empty."""

    def __init__(self, study, model, folder):
        self.command = [study.colloc, f"--socket={folder}/s"]
        self.folder = folder
        pipes = [os.path.join(folder, name) for name in ("commands", "replies")]
        for pipe in pipes:
            os.mkfifo(pipe)
        worker = [sys.executable, os.path.join(TOP, "workloads", "worker.py")]
        through = ["sh", "-c", 'in=$1 out=$2; shift 2; exec "$@" <"$in" >"$out"', "sh", *pipes]
        self.task = json.loads(
            self.colloc("submit", "--json", "--profile=torch", "--gpus=1", "--", *through, *worker)
        )["id"]
        # Both ends open at the same time, in the order in which the task's shell opens them.
        self.input = open(pipes[0], "w", encoding="utf-8")
        self.output = open(pipes[1], encoding="utf-8")
        self.reply()
        self.call(do="load", model=model)

    def colloc(self, *arguments):
        return subprocess.run(
            [*self.command, *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stdout

    def traces(self):
        """How many traces are complete."""
        return sum(map(is_complete_json, glob.glob(f"{self.folder}/colloc-{self.task}.torch*")))

    def close(self):
        self.input.close()
        self.output.close()
        self.colloc("wait", str(self.task))


def is_complete_json(path):
    try:
        with open(path, encoding="utf-8") as file:
            json.load(file)
    except ValueError:
        return False
    return True


def recorded_epochs(worker, steps):
    """The epochs from the request of a recording until its trace is complete, and how long that
    took."""
    before, began, epochs = worker.traces(), time.monotonic(), []
    worker.colloc("profile", f"--for={PROFILED_FOR_S}s", str(worker.task))
    while worker.traces() == before:
        if time.monotonic() - began > TRACE_LIMIT_S:
            raise TimeoutError(f"no trace within {TRACE_LIMIT_S} s")
        epochs.append(worker.call(do="epoch", steps=steps))
    return {"epochs": epochs, "until_trace_s": time.monotonic() - began}


def find_nsys():
    found = [shutil.which("nsys")] + [path for place in NSYS_PLACES for path in glob.glob(place)]
    return next(filter(None, found), None)


def nsys_worker(study, model):
    """The training process under Nsight Systems, which traces it from its start to its end. No
    report is made of the trace: the training has ended then. None: there is no nsys."""
    program = find_nsys()
    trace = os.path.join(study.folder, "nsys")
    traced = ("--trace=cuda,nvtx", "--sample=none", "--cpuctxsw=none")
    options = (*traced, f"--output={trace}", "--force-overwrite=true")  # a part may come before
    return Worker(model, (program, "profile", *options)) if program else None


def profiler_turns(study, steps, epochs, workers):
    """One round: each way once, without a profiler first."""
    plain, profiled, task, *under_nsys = workers
    seen = monitors(study)
    for monitor in ("none", "top", "nvidia-smi, staying", "colloc, 1 s", "dcgmi, staying"):
        if monitor in seen:
            yield {"monitor": monitor, **turn(plain, seen[monitor], steps, epochs)}
    yield {
        "monitor": "torch profiler",
        "epochs": [profiled.call(do="epoch", steps=steps, profiled=True) for _ in range(epochs)],
    }
    yield {"monitor": "torch profiler, after it", **turn(profiled, None, steps, epochs)}
    for worker in under_nsys:
        yield {"monitor": "nsys", **turn(worker, None, steps, epochs)}
    yield {"monitor": "colloc profile, ready", **turn(task, None, steps, epochs)}
    yield {"monitor": "colloc profile, recording", **recorded_epochs(task, steps)}


def measure_ncu(model):
    """Few steps under Nsight Compute, and the same without; or why that does not work."""
    if not shutil.which("ncu"):
        return {"error": "there is no ncu"}
    script = (
        f"import sys; sys.path.insert(0, {os.path.join(TOP, 'workloads')!r})\n"
        "import json, torch, worker\n"
        f"step = worker.load({model!r})\n"
        "torch.cuda.profiler.start()\n"
        f"print(json.dumps(worker.epoch(step, {NCU_STEPS})))\n"
    )
    command, wrapper = [sys.executable, "-c", script], ["ncu", "--profile-from-start=off"]
    try:
        done = [
            subprocess.run(
                arguments, capture_output=True, text=True, timeout=NCU_LIMIT_S, check=False
            )
            for arguments in (command, [*wrapper, *command])
        ]
    except subprocess.TimeoutExpired:
        return {"error": f"longer than {NCU_LIMIT_S} s"}
    lines = [[line for line in run.stdout.splitlines() if line[:1] == "{"] for run in done]
    failed = [line for line in done[1].stdout.splitlines() if "==ERROR==" in line]
    if failed or not all(lines):
        return {"error": "\n".join(failed) or (done[0].stderr + done[1].stderr)[-2000:]}
    return {"plain": json.loads(lines[0][0]), "ncu": json.loads(lines[1][0]), "steps": NCU_STEPS}


def measure_profilers(study, model, steps, epochs, rounds=PROFILED_ROUNDS):
    """The daemon of the task runs throughout: what it takes is that of the row "colloc, 1 s"."""
    turns, limit = [], time.monotonic() + PROFILED_LIMIT_S
    with tempfile.TemporaryDirectory() as folder:
        command = [study.collocd, f"--socket={folder}/s", f"--state-dir={folder}/state"]
        with running([*command, f"--shim={study.shim}", "--gpus=0"], folder) as daemon:
            if not wait_for_daemon(os.path.dirname(study.colloc), f"{folder}/s", daemon):
                raise OSError("collocd does not answer")
            task = TaskWorker(study, model, folder)  # first: it is placed on an idle GPU
            workers = list(
                filter(None, (Worker(model), Worker(model), task, nsys_worker(study, model)))
            )
            workers[1].call(do="epoch", steps=2, profiled=True)  # CUPTI's start is not measured
            for _ in range(rounds):
                if time.monotonic() < limit:
                    turns += profiler_turns(study, steps, epochs, workers)
            for worker in workers:
                worker.close()
    return {"model": model, "steps": steps, "turns": turns}


# ---- what the tools do to the counters ----


@contextlib.contextmanager
def counting(study):
    """`colloc record` reads the counters of GPU 0. Its samples are in the list once that has ended:
    the recorded command tells when the recording began."""
    samples, zero = [], "date +%s.%N >began; exec sleep infinity"
    options = (*RECORD, "--output=samples.csv", f"--summary={os.devnull}")
    with tempfile.TemporaryDirectory() as folder:
        with running([study.colloc, "record", *options, "--", "sh", "-c", zero], folder):
            yield samples
        with open(os.path.join(folder, "began"), encoding="utf-8") as file:
            began = float(file.read())
        with open(os.path.join(folder, "samples.csv"), encoding="utf-8") as file:
            samples += [{**row, "at": began + float(row["time_s"])} for row in csv.DictReader(file)]


def counters_of(epochs, samples):
    """Mean counters of the samples that tell of these epochs alone. None: never read in them."""
    inside = [
        sample
        for sample in samples
        for epoch in epochs
        if COUNTER_AGE_S - epoch["epoch_s"] <= sample["at"] - epoch["ended_at"] <= 0
    ]
    known = {key: [float(row[key]) for row in inside if row[key]] for key in COUNTERS}
    return {key: statistics.mean(values) if values else None for key, values in known.items()}


def measure_counters(study, name):
    with counting(study) as samples:
        part = measure_profilers(study, *COUNTED_EPOCHS[name], rounds=1)
    for each in part["turns"]:
        each["counters"] = counters_of(each["epochs"], samples)
    return part


class Nvml:
    """The driver queries that one sample consists of."""

    def __init__(self):
        self.library, self.device = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p()
        self.library.nvmlInit_v2()
        self.library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.device))
        self.buffer, self.count = ctypes.create_string_buffer(1 << 16), ctypes.c_uint()

    def queries(self):
        """Functions by name: each queries once and returns NVML's result."""
        out = ctypes.byref(self.buffer)
        memory = ctypes.create_string_buffer((40 | 2 << 24).to_bytes(4, "little"), 40)
        memory_1 = ctypes.create_string_buffer(24)
        plain = {
            "utilisation": "UtilizationRates",
            "power": "PowerUsage",
            "energy": "TotalEnergyConsumption",
            "throttling": "CurrentClocksThrottleReasons",
        }
        lists = {
            "compute processes": "ComputeRunningProcesses_v3",
            "graphics processes": "GraphicsRunningProcesses_v3",
            "MPS processes": "MPSComputeRunningProcesses_v3",
        }
        queries = {
            name: lambda function=function: self.call(function, out)
            for name, function in plain.items()
        }
        queries |= {
            name: lambda function=function: self.list(function) for name, function in lists.items()
        }
        return queries | {
            "memory": lambda: self.call("MemoryInfo_v2", ctypes.byref(memory)),
            "memory, version 1": lambda: self.call("MemoryInfo", ctypes.byref(memory_1)),
            "temperature": lambda: self.call("Temperature", 0, out),
            "clock": lambda: self.call("ClockInfo", 1, out),
            "process utilisation": self.process_utilisation,
        }

    def call(self, name, *arguments):
        return getattr(self.library, f"nvmlDeviceGet{name}")(self.device, *arguments)

    def list(self, name):
        self.count.value = 256
        return self.call(name, ctypes.byref(self.count), ctypes.byref(self.buffer))

    def process_utilisation(self):
        self.count.value = 256
        return self.call(
            "ProcessUtilization",
            ctypes.byref(self.buffer),
            ctypes.byref(self.count),
            ctypes.c_ulonglong(0),
        )


def cost_us(query):
    """Processor time and wall time of one query: medians, the first left out."""
    processor, wall, result = [], [], query()
    for _ in range(CALLS):
        before = time.thread_time_ns(), time.perf_counter_ns()
        query()
        processor.append((time.thread_time_ns() - before[0]) / 1e3)
        wall.append((time.perf_counter_ns() - before[1]) / 1e3)
        time.sleep(0.01)
    return {
        "result": result,
        "processor_us": statistics.median(processor),
        "wall_us": statistics.median(wall),
        "worst_us": max(wall),
    }


def measure_calls(study):
    study.build_square()
    nvml = Nvml()
    idle = {name: cost_us(query) for name, query in nvml.queries().items()}
    load = subprocess.Popen([study.square, "4224", "1024", "60"])
    time.sleep(3)
    busy = {name: cost_us(query) for name, query in nvml.queries().items()}
    load.terminate()
    load.wait()
    return {"idle": idle, "busy": busy}


def measure_daemon(study):
    worker, rows = Worker("heavy"), []
    worker.call(do="epoch", steps=5)
    for period in ("1s", "100ms"):
        with tempfile.TemporaryDirectory() as folder:
            with running(daemon_command(study, period), folder) as daemon:
                pid = daemon.pid
                for _ in range(SLICES):
                    began, before = time.monotonic(), processor_s(pid)
                    while time.monotonic() - began < SLICE_S:
                        worker.call(do="epoch", steps=20)
                    cores = (processor_s(pid) - before) / (time.monotonic() - began)
                    rows.append(
                        {"period": period, "cores": cores, "resident_mib": resident_mib(pid)}
                    )
    worker.close()
    return {
        "gpus": len(nvidia_smi("index")),
        "slices": rows,
    }


PARTS = {
    "square": measure_square,
    "sms": measure_sms,
    "short": measure_short,
    "memory": measure_memory,
    "calls": measure_calls,
    "daemon": measure_daemon,
    "light": lambda study: measure_overhead(study, "light"),
    "heavy": lambda study: measure_overhead(study, "heavy"),
    "light-ncu": lambda study: measure_ncu("digits"),
    "heavy-ncu": lambda study: measure_ncu("heavy"),
    "light-profilers": lambda study: measure_profilers(study, *PROFILED_EPOCHS["light"]),
    "heavy-profilers": lambda study: measure_profilers(study, *PROFILED_EPOCHS["heavy"]),
    "light-counters": lambda study: measure_counters(study, "light"),
    "heavy-counters": lambda study: measure_counters(study, "heavy"),
}


def measure(programs, output, *parts):
    raw = {"gpu": "\n".join(nvidia_smi("name", "driver_version"))}
    with tempfile.TemporaryDirectory() as folder:
        study = Study(programs, folder)
        for name in parts or PARTS:
            began = time.monotonic()
            try:
                raw[name] = PARTS[name](study)
            except (
                OSError,
                EOFError,
                ValueError,
                LookupError,
                subprocess.SubprocessError,
            ) as error:
                raw[name] = {"error": f"{error!r} {getattr(error, 'stderr', '') or ''}"}
            print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
            with open(output, "w", encoding="utf-8") as file:
                json.dump(raw, file, indent=1)
    return (
        1
        if any("error" in raw[name] for name in parts or PARTS if isinstance(raw[name], dict))
        else 0
    )


def draw(raw, folder):
    from colloc_report import monitor_study

    monitor_study.draw(raw, folder)
    return 0


def main():
    return run_action(__doc__, {"measure": measure, "draw": draw})


if __name__ == "__main__":
    sys.exit(main())
