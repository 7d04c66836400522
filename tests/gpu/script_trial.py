#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training scripts followed without a GPU, and the same scripts on a real one.

    tests/gpu/script_trial.py measure LIST OUTPUT [SECONDS [GPU]]   on the machine with a GPU
    tests/gpu/script_trial.py follow LIST OUTPUT [NAME ...]         without one
    tests/gpu/script_trial.py price COLLOC OUTPUT...                anywhere: rows of JSON
    tests/gpu/script_trial.py again COLLOC ROWS EXPORTS             the same rows, by this colloc
    tests/gpu/script_trial.py page ROWS PAGE                        the tables of a page

LIST has a line for each script, with four parts separated by "|": its name, the folder that it
runs in (relative to LIST), its words (as Python takes them: a script, `-m MODULE` or `-c CODE`),
and the libraries that it imports.

`measure` follows each script (on the CPU, several at once) and runs it for a few steps on
one GPU (one at a time). It leaves in OUTPUT/NAME, as soon as they are known, the export or the
reason, and the peak of the GPU's used memory above what it was before: context, workspaces and all.
After SECONDS (default 120) no new script starts. `price` estimates from the exports.
script_hooks.py tells what is changed in the scripts' processes, script_data.py makes data.

On the GPU a script starts as a fork of a process that has imported its libraries
(workloads/fork_server.py): importing them takes longer than the steps. That process has not touched
CUDA, so the fork's context is the one that a new process would have.
"""
import concurrent.futures
import contextlib
import json
import os
import runpy
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from tuning_trial import act, fill

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
PYTHON = os.path.join(ROOT, "python")
FORK_SERVER = os.path.join(ROOT, "workloads", "fork_server.py")
STEPS = 6  # of each optimizer on the GPU: the allocator's peak is steady
ENOUGH_S = 8  # after which half as many do
FOLLOW_LIMIT_S, RUN_LIMIT_S = 90, 30
PATIENT_LIMIT_S = 240  # without a GPU: machines that are busy or have two cores
FREE_LIMIT_S, STEADY_READINGS = 10, 4  # of used memory, 0.1 s apart
AT_ONCE = min(6, os.cpu_count() or 1)
MIB = 1 << 20
OTHERS_MOST = 64 * MIB  # that the driver keeps; less than any context


# ---- inside the script's process ----


def run_script(words):
    import script_hooks

    script_hooks.install()
    has_option = words[0] in ("-m", "-c")
    sys.argv = words[1:] if has_option else words
    sys.path[0] = os.getcwd() if has_option else os.path.dirname(os.path.abspath(words[0]))
    if words[0] == "-m":
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    elif words[0] == "-c":
        exec(sys.argv[0], {"__name__": "__main__"})
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")


# ---- starting scripts ----


class Script:
    """A line of the list."""

    def __init__(self, line, folder):
        name, place, words, libraries = (line.rstrip("\n") + "|").split("|")[:4]
        self.name, self.words = name, words.split()
        self.folder = os.path.join(folder, place)
        self.libraries = ("torch", *libraries.split())


def read_list(path):
    folder = os.path.dirname(os.path.abspath(path))
    with open(path, encoding="utf-8") as file:
        return [Script(line, folder) for line in file if line.strip() and line[0] != "#"]


def python_path(*folders):
    own = os.environ.get("PYTHONPATH")
    return os.pathsep.join([*map(os.path.abspath, folders), *([own] if own else [])])


def surroundings(bundle, *folders, **more):
    """The environment of a script: the hooks of every Python in it, and the data."""
    return {
        **os.environ,
        "PYTHONPATH": python_path(
            *folders, os.path.join(HERE, "script_inject"), HERE, os.path.join(bundle, "site")
        ),
        "PATH": os.path.join(HERE, "standins", "bin") + os.pathsep + os.environ["PATH"],
        "COLLOC_TRIAL_DATA": os.path.join(bundle, "data"),
        "TORCH_HOME": os.path.join(bundle, "data"),
        "HF_HUB_OFFLINE": "1",
        "NO_ALBUMENTATIONS_UPDATE": "1",
        "MPLBACKEND": "Agg",
        "TOKENIZERS_PARALLELISM": "false",
        **more,
    }


def run(command, script, environment, log, limit):
    """Runs a command in its own process group, which is gone afterwards. Its status, or "time"."""
    with open(log, "w", encoding="utf-8") as file:
        process = subprocess.Popen(
            command, cwd=script.folder, env=environment, stdin=subprocess.DEVNULL,
            stdout=file, stderr=file, start_new_session=True,
        )  # fmt: skip
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            return "time"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def follow(script, bundle, place, limit):
    """Runs the script on the GPU that is not there. Returns seconds."""
    for name in ("result", "failure"):
        with contextlib.suppress(FileNotFoundError):
            os.remove(os.path.join(place, name))
    environment = surroundings(
        bundle, os.path.join(PYTHON, "colloc_script", "inject"), PYTHON,
        COLLOC_SCRIPT_FOLDER=place, CUDA_VISIBLE_DEVICES="", PYTORCH_JIT="0",
        TORCHDYNAMO_DISABLE="1", OMP_NUM_THREADS="2",
    )  # fmt: skip
    started = time.monotonic()
    log = os.path.join(place, "follow.log")
    run([sys.executable, *script.words], script, environment, log, limit)
    return round(time.monotonic() - started, 1)


# ---- the GPU ----


class Gpu:
    """One GPU by NVML; what this process starts sees no other."""

    def __init__(self, number):
        import pynvml

        pynvml.nvmlInit()
        self._nvml, self._handle = pynvml, pynvml.nvmlDeviceGetHandleByIndex(number)
        os.environ.update(CUDA_DEVICE_ORDER="PCI_BUS_ID", CUDA_VISIBLE_DEVICES=str(number))

    def used(self):
        return self._nvml.nvmlDeviceGetMemoryInfo(self._handle).used

    def facts(self):
        return {
            "gpu": self._nvml.nvmlDeviceGetName(self._handle),
            "driver": self._nvml.nvmlSystemGetDriverVersion(),
        }


class Peak:
    """The most memory in use while it is entered, by a poll every 5 ms."""

    def __init__(self, gpu):
        self._gpu, self._ended, self.bytes = gpu, threading.Event(), 0

    def _poll(self):
        while not self._ended.wait(0.005):
            self.bytes = max(self.bytes, self._gpu.used())

    def __enter__(self):
        self._poller = threading.Thread(target=self._poll)
        self._poller.start()
        return self

    def __exit__(self, *error):
        self._ended.set()
        self._poller.join()


def settled_use(gpu, most=float("inf")):
    """Used memory once it no longer changes and is at most `most`, or None.

    What ended may hold memory for a while.
    """
    end, steady, used = time.monotonic() + FREE_LIMIT_S, 0, gpu.used()
    while time.monotonic() < end:
        time.sleep(0.1)
        before, used = used, gpu.used()
        steady = steady + 1 if used == before and used <= most else 0
        if steady == STEADY_READINGS:
            return used
    return None


def use_after_a_context(gpu):
    """Used memory of the idle GPU. The driver keeps a few MiB after the first context."""
    subprocess.run(
        [sys.executable, "-c", "import torch; torch.zeros(1).cuda()"], check=False, timeout=60
    )
    return settled_use(gpu) or gpu.used()


class ForkServers:
    """One for each set of libraries that scripts import."""

    def __init__(self, scripts, bundle):
        self._folder, self._servers = tempfile.TemporaryDirectory(), {}
        for libraries in {script.libraries for script in scripts}:
            socket = os.path.join(self._folder.name, str(len(self._servers)))
            words = [sys.executable, FORK_SERVER, "serve", socket, *libraries]
            server = subprocess.Popen(words, env=surroundings(bundle), stdout=subprocess.PIPE)
            self._servers[libraries] = socket, server

    def command(self, script):
        """That runs the script in a fork, or in a new process if its libraries are not here."""
        socket, server = self._servers[script.libraries]
        if server.poll() is None and server.stdout and server.stdout.readline():
            server.stdout.close()
            server.stdout = None
        is_ready = server.poll() is None and server.stdout is None
        start = [FORK_SERVER, "run", socket] if is_ready else []
        return [sys.executable, *start, os.path.abspath(__file__), "run", *script.words]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for _, server in self._servers.values():
            server.kill()
            server.wait()
        self._folder.cleanup()


def run_on_gpu(gpu, idle, script, bundle, place, servers):
    """What is known of the run: the peak above the idle GPU, and what PyTorch says itself."""
    report = os.path.join(place, "report.json")
    environment = surroundings(
        bundle, COLLOC_TRIAL_STEPS=str(STEPS), COLLOC_TRIAL_SECONDS=str(ENOUGH_S),
        COLLOC_TRIAL_REPORT=report,
    )  # fmt: skip
    command, log = servers.command(script), os.path.join(place, "run.log")
    before = settled_use(gpu, idle + OTHERS_MOST)
    is_idle, before, started = before is not None, before or gpu.used(), time.monotonic()
    with Peak(gpu) as peak:
        status = run(command, script, environment, log, RUN_LIMIT_S)
    return {
        "before_mib": before / MIB,
        "peak_mib": (peak.bytes - before) / MIB,
        # A script that sets CUDA_VISIBLE_DEVICES itself may run on another GPU.
        "is_known": is_idle and status == 0 and peak.bytes > before,
        "status": status,
        "seconds": round(time.monotonic() - started, 1),
        **(load(place, "report.json") or {}),
    }


def save(place, name, value):
    with open(os.path.join(place, name), "w", encoding="utf-8") as file:
        json.dump(value, file)


def follow_all(scripts, bundle, output, deadline, limit=FOLLOW_LIMIT_S):
    """Starts to follow the scripts, AT_ONCE at a time. Returns the futures."""
    pool = concurrent.futures.ThreadPoolExecutor(AT_ONCE)

    def one(script):
        if time.monotonic() < deadline:
            place = os.path.join(output, script.name)
            seconds = follow(script, bundle, place, limit)
            save(place, "follow.json", seconds)
            is_followed = os.path.exists(os.path.join(place, "result"))
            reason = "followed" if is_followed else load(place, "failure") or "no answer in time"
            print(f"{script.name}: {reason} ({seconds} s)", flush=True)

    return [pool.submit(one, script) for script in scripts]


def measure(path, output, seconds="120", number="0"):
    gpu, scripts, output = Gpu(int(number)), read_list(path), os.path.abspath(output)
    bundle, deadline = os.path.dirname(os.path.abspath(path)), time.monotonic() + float(seconds)
    for script in scripts:
        os.makedirs(os.path.join(output, script.name), exist_ok=True)
    with ForkServers(scripts, bundle) as servers:
        followed = follow_all(scripts, bundle, output, deadline)
        idle = use_after_a_context(gpu)
        save(output, "gpu.json", {**gpu.facts(), "idle_mib": idle / MIB})
        for script in scripts:
            if time.monotonic() > deadline:
                break
            place = os.path.join(output, script.name)
            known = run_on_gpu(gpu, idle, script, bundle, place, servers)
            save(place, "run.json", known)
            print(f"{script.name}: {json.dumps(known)}", flush=True)
        for one in followed:
            one.result()


def follow_only(path, output, *names):
    scripts = [one for one in read_list(path) if not names or one.name in names]
    bundle, output = os.path.dirname(os.path.abspath(path)), os.path.abspath(output)
    for script in scripts:
        os.makedirs(os.path.join(output, script.name), exist_ok=True)
    for one in follow_all(scripts, bundle, output, float("inf"), PATIENT_LIMIT_S):
        one.result()


# ---- pricing ----


def load(place, name):
    with contextlib.suppress(OSError), open(os.path.join(place, name), encoding="utf-8") as file:
        return json.load(file) if name.endswith("json") else file.read().strip()
    return None


def estimate(colloc, place, gpu):
    """What colloc says of the export: MiB, its P99, its note, or nothing."""
    return estimate_export(colloc, os.path.join(place, "result"), gpu)


def estimate_export(colloc, export, gpu):
    words = [colloc, "estimate", "--json", f"--gpu={gpu}", f"--export={export}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        return {}
    row = json.loads(done.stdout)["estimates"][0]
    with open(export, encoding="utf-8") as file:
        description = json.load(file)
    return {
        "estimate_mib": row["mib"],
        "p99_mib": round(row["p99_mib"]),
        "tries_kernels": description["flags"]["cudnn_benchmark"],
        "convolves": bool(description["convs"]),
    }


def answer_of(place):
    """Why there is no export, without the folders of this machine."""
    if os.path.exists(os.path.join(place, "result")):
        return None
    reason = load(place, "failure") or "no answer in time"
    words = (word.rpartition("bundle-scripts/")[2] for word in reason.split(" "))
    return " ".join(words)[:200]


def rows_of(colloc, output):
    """One row for each script of an output folder."""
    facts = load(output, "gpu.json") or {}
    gpu = "H100" if "H100" in facts.get("gpu", "") else "H200"
    for name in sorted(os.listdir(output)):
        place = os.path.join(output, name)
        if os.path.isdir(place):
            known = {
                "name": name,
                "gpu": facts.get("gpu"),
                "driver": facts.get("driver"),
                "follow_s": load(place, "follow.json"),
                "reason": answer_of(place),
                **estimate(colloc, place, gpu),
                **(load(place, "run.json") or {}),
            }
            yield {key: value for key, value in known.items() if value is not None}


def error_of(row):
    """Of the estimate relative to the measured peak, or None where one of them is missing."""
    is_known = row.get("is_known") and "estimate_mib" in row
    return row["estimate_mib"] / row["peak_mib"] - 1 if is_known else None


def summary_line(title, rows):
    errors = sorted(abs(error_of(row)) for row in rows)
    above = sum(row["peak_mib"] > row["p99_mib"] for row in rows)
    within = errors[int(0.9 * (len(errors) - 1))]
    return (
        f"| {title} | {len(errors)} | {100 * statistics.median(errors):.1f} % | "
        f"{100 * within:.1f} % | {100 * errors[-1]:.0f} % | {above} |"
    )


def price(colloc, *outputs):
    """Later outputs replace what earlier ones say of a script."""
    rows = {}
    for output in outputs:
        for row in rows_of(colloc, output):
            rows[row["name"]] = {**rows.get(row["name"], {}), **row}
    for row in rows.values():
        print(json.dumps(row))


def price_again(colloc, path, exports):
    """Prints rows with the estimates of this colloc. `exports`: a folder with NAME.json."""
    for row in read_rows(path):
        export = os.path.join(exports, row["name"] + ".json")
        gpu = "H100" if "H100" in row.get("gpu", "") else "H200"
        known = estimate_export(colloc, export, gpu) if os.path.exists(export) else {}
        print(json.dumps({**row, **known}))


def read_rows(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


KINDS = [
    ("without convolutions", lambda row: not row["convolves"] and not row["tries_kernels"]),
    ("with convolutions", lambda row: row["convolves"] and not row["tries_kernels"]),
    ("it tries kernels (`cudnn.benchmark`)", lambda row: row["tries_kernels"]),
    ("all", lambda _: True),
]


def script_lines(rows):
    lines = ["| script | measured MiB | estimate | error | P99 |",
             "| --- | ---: | ---: | ---: | ---: |"]  # fmt: skip
    for row in sorted(rows, key=lambda row: abs(error_of(row))):
        lines.append(
            f"| {row['name']} | {row['peak_mib']:,.0f} | {row['estimate_mib']:,.0f} "
            f"| {100 * error_of(row):+.1f} % | {row['p99_mib']:,} |"
        )
    return lines


def page(path, target):
    """Writes the tables between the page's markers."""
    rows = [row for row in read_rows(path) if error_of(row) is not None]
    kinds = ["| what cuDNN does, and the network | scripts | median | nine of ten within | largest "
             "| above P99 |", "| --- | ---: | ---: | ---: | ---: | ---: |"]  # fmt: skip
    kinds += [summary_line(title, list(filter(is_of, rows))) for title, is_of in KINDS]
    with open(target, encoding="utf-8") as file:
        text = file.read()
    tries = [row for row in rows if row["tries_kernels"]]
    others = [row for row in rows if not row["tries_kernels"]]
    for marker, lines in (("kinds", kinds), ("scripts", script_lines(others)),
                          ("trying scripts", script_lines(tries))):  # fmt: skip
        text = fill(text, marker, lines)
    with open(target, "w", encoding="utf-8") as file:
        file.write(text)


ACTIONS = {
    "measure": measure,
    "follow": follow_only,
    "price": price,
    "again": price_again,
    "page": page,
}


if __name__ == "__main__":
    act(ACTIONS, run_script, __doc__)
