#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fine-tunings: their estimates, and what they take on a GPU.

    tests/gpu/tuning_trial.py measure BUNDLE OUTPUT SECONDS [NAME ...]   on the machine with the GPU
    tests/gpu/tuning_trial.py keep ROWS FILE.xz                      anywhere: the rows, smaller
    tests/gpu/tuning_trial.py page COLLOC FILE.xz PAGE               anywhere: the tables of a page

BUNDLE is a folder of scripts/bundle; beside this file (or in its folder `tuning`) are the scripts
and their list `tunings.list`. NAMEs choose lines of it. `measure` writes rows of JSON to
OUTPUT/rows.jsonl as they are known, by `what`:

    run       a script on the GPU: after each step of its optimizer the allocator's peaks, and the
              most that NVML said of its process at any time
    export    the script followed without a GPU (LZMA, base64), and what `colloc estimate` says
    print     what the script printed of its network, and what `colloc estimate` says of that
"""
import base64
import concurrent.futures
import contextlib
import importlib.util
import json
import lzma
import os
import runpy
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPTS = next(p for p in (os.path.join(HERE, "tuning"), HERE) if os.path.exists(p))
MIB = 1 << 20
FOLLOW_LIMIT_S, RUN_LIMIT_S = 150, 60
FOLLOWED_AT_ONCE, RUN_AT_ONCE = 8, 3
EXPORTS_MOST = 2_500_000  # bytes of exports in the rows
SURROUNDINGS = {
    **os.environ, "PYTORCH_NVML_BASED_CUDA_CHECK": "1", "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
}  # fmt: skip
LIBRARIES = (
    "torch timm torchvision transformers transformers.models.auto"
    " transformers.models.llama.modeling_llama transformers.models.gpt2.modeling_gpt2"
    " transformers.models.bert.modeling_bert"
)
FORK_FAILED = (
    "re-initialize CUDA",
    "CUDA error: initialization",
    "cuda initialization: CUDA unknown",
)


# ---- inside the script's process ----


def run_as_main(words):
    """As `python3 SCRIPT ARGUMENTS` would."""
    sys.argv = words
    sys.path.insert(0, os.path.dirname(words[0]))
    runpy.run_path(words[0], run_name="__main__")


def run_script(words):
    """Notes the allocator's peaks after each step of an optimizer, and the time."""
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook

    report = {"pid": os.getpid(), "steps": [], "started": time.time()}

    def note(*_):
        report["steps"].append(
            [
                round(torch.cuda.max_memory_reserved() / MIB, 1),
                round(torch.cuda.max_memory_allocated() / MIB, 1),
                round(torch.cuda.memory_reserved() / MIB, 1),
                round(time.time(), 4),
            ]
        )

    register_optimizer_step_post_hook(note)
    run_as_main(words)
    torch.cuda.synchronize()
    report["end"] = [
        round(torch.cuda.max_memory_reserved() / MIB, 1),
        round(torch.cuda.max_memory_allocated() / MIB, 1),
    ]
    time.sleep(0.1)  # for the poll of the other process
    print("REPORT " + json.dumps(report), flush=True)


# ---- the lists ----


def read_list(name, names=()):
    with open(os.path.join(SCRIPTS, name), encoding="utf-8") as file:
        lines = [line.strip().split("|") for line in file if line.strip() and line[0] != "#"]
    return [(name, words.split()) for name, words in lines if not names or name in names]


def option_of(words, option, default):
    return words[words.index(option) + 1] if option in words else default


def script_command(words, *more):
    return [os.path.join(SCRIPTS, words[0]), *words[1:], *more]


# ---- rows ----


class Rows:
    """The output, written as it comes by several threads."""

    def __init__(self, path):
        self._file, self._lock, self.exported = (
            open(path, "w", encoding="utf-8"),
            threading.Lock(),
            0,
        )

    def write(self, what, **row):
        with self._lock:
            self._file.write(json.dumps({"what": what, **row}) + "\n")
            self._file.flush()


def packed(text):
    return base64.b64encode(lzma.compress(text.encode(), preset=9)).decode()


def unpacked(text):
    return lzma.decompress(base64.b64decode(text)).decode()


def log(*words):
    print(time.strftime("%H:%M:%S"), *words, flush=True)


def run(command, limit, **options):
    """Status and output of a command, which is ended after the limit."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as file:
        process = subprocess.Popen(
            command, stdin=options.pop("stdin", subprocess.DEVNULL), stdout=file, stderr=file,
            start_new_session=True, **options
        )  # fmt: skip
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            status = "time"
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        file.seek(0)
        return status, file.read()


# ---- estimates ----


def estimate(colloc, *options):
    """Its first estimate, or the reason why there is none."""
    status, text = run([colloc, "estimate", "--json", "--gpu=H200", *options], 60)
    try:
        row = json.loads(text[text.index("{") :])["estimates"][0]
    except (ValueError, KeyError, IndexError):
        return {"status": status, "text": text[-400:]}
    return {name: row.get(name) for name in ("mib", "p50_mib", "p90_mib", "p99_mib", "evidence")}


def follow(bundle, name, words, rows, place, variables=(), **more):
    """The script without a GPU, in an environment with `variables`; `more` goes into its row."""
    os.makedirs(place, exist_ok=True)
    python = os.path.join(bundle, "python")
    paths = [os.path.join(python, "colloc_script", "inject"), python]
    environment = {
        **SURROUNDINGS,
        "PYTHONPATH": os.pathsep.join(paths),
        "COLLOC_SCRIPT_FOLDER": place,
        "CUDA_VISIBLE_DEVICES": "",
        "PYTORCH_JIT": "0",
        "TORCHDYNAMO_DISABLE": "1",
        "OMP_NUM_THREADS": "2",
        **dict(variables),
    }
    started = time.monotonic()
    status, text = run(
        ["nice", "-n", "19", sys.executable, *script_command(words)],
        FOLLOW_LIMIT_S,
        env=environment,
        cwd=SCRIPTS,
    )
    seconds, result = round(time.monotonic() - started, 1), os.path.join(place, "result")
    if not os.path.exists(result):
        reason = ""
        with contextlib.suppress(OSError), open(os.path.join(place, "failure")) as file:
            reason = file.read()
        rows.write("export", name=name, seconds=seconds, status=status, reason=reason[:600],
                   text=text[-1500:], **more)  # fmt: skip
        log("follow", name, "FAILED", seconds, reason[:300] or text[-300:])
        return
    with open(result, encoding="utf-8") as file:
        export = file.read()
    said = estimate(os.path.join(bundle, "colloc"), f"--export={result}")
    small = packed(export)
    rows.exported += len(small)
    keep = {"xz": small} if rows.exported < EXPORTS_MOST else {"left_out": len(small)}
    rows.write("export", name=name, seconds=seconds, estimate=said, **more, **keep)
    log("follow", name, seconds, "s", json.dumps(said)[:160], len(small))


def print_options(words):
    """What a user would say beside a print of the network."""
    script = words[0]
    amp = "--amp" in words
    method = option_of(words, "--method", "")
    half = script == "tune_language.py" or method == "peft"
    usual = "bf16" if half else "amp" if script == "tune_libraries.py" else "fp32"
    precision = option_of(words, "--precision", usual).replace("bf16", "bf16-true")
    batch = "64" if script == "tune_pictures.py" else "4"
    options = [f"--batch={option_of(words, '--batch-size', batch)}"]
    if "--checkpointing" in words:
        options.append("--checkpointing")
    if script == "convolve.py":
        options.append("--optimizer=momentum")
    else:
        options.append("--optimizer=adamw")
    options.append(f"--precision={'amp' if amp else precision}")
    if script in ("convolve.py", "tune_pictures.py"):
        channels = 1 if "upscaler" in words else 3
        side = int(option_of(words, "--size", "224")) // (3 if channels == 1 else 1)
        options.append(f"--input={channels}x{side}x{side}")
    if script in ("tune_language.py", "tune_libraries.py"):
        options.append(f"--seq={option_of(words, '--length', '512')}")
    return options


def price_print(bundle, name, words, text, rows):
    kept = text.partition("REPORT ")[0]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(kept)
        file.flush()
        said = estimate(os.path.join(bundle, "colloc"), f"--summary={file.name}",
                        *print_options(words))  # fmt: skip
    rows.write("print", name=name, options=print_options(words), xz=packed(kept), estimate=said)


# ---- the GPU ----


class Gpu:
    """What each process holds by NVML, at most so far."""

    def __init__(self, number=0, every_s=0.005):
        import pynvml

        pynvml.nvmlInit()
        self._nvml, self._handle = pynvml, pynvml.nvmlDeviceGetHandleByIndex(number)
        self._every_s = every_s
        self.most, self.device_most, self._ended = {}, 0, threading.Event()
        self._poller = threading.Thread(target=self._poll, daemon=True)
        self._poller.start()

    def _poll(self):
        while not self._ended.wait(self._every_s):
            with contextlib.suppress(self._nvml.NVMLError):
                for one in self._nvml.nvmlDeviceGetComputeRunningProcesses(self._handle):
                    self.most[one.pid] = max(self.most.get(one.pid, 0), one.usedGpuMemory or 0)
            self.device_most = max(self.device_most, self.used())

    def used(self):
        return self._nvml.nvmlDeviceGetMemoryInfo(self._handle).used

    def facts(self):
        name = self._nvml.nvmlDeviceGetName(self._handle)
        return {"gpu": name, "driver": self._nvml.nvmlSystemGetDriverVersion()}

    def close(self):
        self._ended.set()
        self._poller.join()


class ForkServer:
    """A process that has imported the libraries: its forks start at once."""

    def __init__(self, bundle, libraries=LIBRARIES):
        self._folder = tempfile.TemporaryDirectory()
        self._program = os.path.join(bundle, "workloads", "fork_server.py")
        self._socket = os.path.join(self._folder.name, "socket")
        here = [one for one in libraries.split() if _is_here(one)]
        self._server = subprocess.Popen(
            [sys.executable, self._program, "serve", self._socket, *here],
            stdout=subprocess.PIPE, env=SURROUNDINGS,
        )  # fmt: skip
        self._server.stdout.readline()

    def run(self, words, *more, limit=RUN_LIMIT_S):
        """A script of the lists."""
        return self.run_program(
            [os.path.abspath(__file__), "run", *script_command(words, *more)], limit
        )

    def run_program(self, program, limit, **variables):
        """In a fork, or in a new process where the server's libraries have touched CUDA."""
        client, environment = [self._program, "run", self._socket], {**SURROUNDINGS, **variables}
        for start in (client, []):
            status, text = run(
                [sys.executable, *start, *program], limit, cwd=SCRIPTS, env=environment
            )
            if not any(sign in text for sign in FORK_FAILED):
                break
        return status, text

    def close(self):
        self._server.kill()
        self._server.wait()
        self._folder.cleanup()


def _is_here(module):
    with contextlib.suppress(ImportError, ValueError):
        return importlib.util.find_spec(module) is not None
    return False


def run_on_gpu(gpu, server, name, words, rows, *more):
    """Returns what the script printed."""
    gpu.device_most = 0
    status, text = server.run(words, *more)
    _, _, last = text.rpartition("REPORT ")
    known = json.loads(last) if "REPORT " in text else {"text": text[-1500:]}
    nvml = gpu.most.get(known.get("pid"), 0) / MIB
    rows.write("run", name=name, more=more, status=status, nvml_mib=round(nvml, 1),
               device_mib=round(gpu.device_most / MIB, 1), **known)  # fmt: skip
    steps = known.get("steps", [])
    shown = f"{len(steps)} steps, end {known.get('end')}, nvml {nvml:.0f}"
    log("run", name, *more, shown if status == 0 and steps else f"FAILED {status} {text[-300:]}")
    return text if status == 0 else ""


# ---- together ----


def measure(bundle, output, seconds, *names):
    bundle, output = os.path.abspath(bundle), os.path.abspath(output)
    work = os.path.join(output, "work")
    os.makedirs(work, exist_ok=True)
    started, seconds = time.monotonic(), float(seconds)
    deadline = started + seconds
    tunings = read_list("tunings.list", names)
    rows, gpu = Rows(os.path.join(output, "rows.jsonl")), Gpu()
    rows.write("facts", **gpu.facts(), **versions())
    followers = concurrent.futures.ThreadPoolExecutor(FOLLOWED_AT_ONCE)

    def follow_one(name, words):
        if time.monotonic() < deadline - 20:
            try:
                follow(bundle, name, words, rows, os.path.join(work, name))
            except Exception as error:
                log("follow", name, "FAILED", repr(error))

    followed = [followers.submit(follow_one, name, words) for name, words in tunings]
    server = ForkServer(bundle)
    log("fork server ready after", round(time.monotonic() - started, 1), "s")

    def run_one(name, words, *more):
        if time.monotonic() > deadline - 0.22 * seconds:
            log("run", name, *more, "not run: no time")
            return
        try:
            text = run_on_gpu(gpu, server, name, words, rows, *more)
            if text and not more:
                price_print(bundle, name, words, text, rows)
        except Exception as error:
            log("run", name, "FAILED", repr(error))

    try:
        with concurrent.futures.ThreadPoolExecutor(RUN_AT_ONCE) as lanes:
            jobs = [lanes.submit(run_one, name, words) for name, words in tunings]
            concurrent.futures.wait(jobs)
        log("runs done after", round(time.monotonic() - started, 1), "s")
        concurrent.futures.wait(followed, max(1, deadline - time.monotonic()))
    finally:
        followers.shutdown(wait=False, cancel_futures=True)
        server.close()
        gpu.close()
        log("ended after", round(time.monotonic() - started, 1), "s")
        os._exit(0)


def versions():
    import importlib.metadata

    found = {"python": sys.version.split()[0]}
    for name in ("torch", "timm", "torchvision", "transformers", "peft", "accelerate", "lightning"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


# ---- the page ----


def keep(path, output):
    """The rows without the log of cuDNN, and with exports and texts as they are: one xz stream."""
    with open(path, encoding="utf-8") as file, lzma.open(output, "wt", preset=9) as out:
        for line in file:
            row = json.loads(line)
            if row["what"] == "calls":
                del row["text"]
            elif "xz" in row:
                row["value"] = unpacked(row.pop("xz"))
            elif "trace" in row:
                row["trace"] = unpacked(row["trace"])
            elif row["what"] == "asked" and "text" in row:
                row["text"] = unpacked(row["text"])
            out.write(json.dumps(row) + "\n")


class Measured:
    def __init__(self, path):
        with lzma.open(path, "rt") as file:
            self.rows = [json.loads(line) for line in file]

    def of(self, what):
        """By name; runs with --benchmark have it in their name."""
        return {
            row["name"] + (" --benchmark" if row.get("more") else ""): row
            for row in self.rows
            if row["what"] == what
        }

    def known_runs(self):
        runs = self.of("run")
        return {name: row for name, row in runs.items() if row["status"] == 0 and row["nvml_mib"]}

    def asked(self, how):
        return {row["name"]: row for row in self.rows
                if row["what"] == "asked" and row["how"] == how}  # fmt: skip


def estimate_text(colloc, text, *options):
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(text)
        file.flush()
        return estimate(colloc, f"{options[0]}={file.name}", *options[1:]).get("mib")


def error_text(value, measured):
    return "" if value is None else f"{100 * (value / measured - 1):+.1f} %"


def summary_line(title, pairs):
    errors = sorted(abs(value / measured - 1) for value, measured in pairs if value is not None)
    if not errors:
        return f"| {title} | 0 | | | |"
    p95 = errors[min(len(errors) - 1, round(0.95 * (len(errors) - 1)))]
    return (
        f"| {title} | {len(errors)} | {100 * statistics.median(errors):.1f} % "
        f"| {100 * p95:.1f} % | {100 * errors[-1]:.1f} % |"
    )


HEAD = ["| from | trainings | median | p95 | worst |", "| --- | --- | --- | --- | --- |"]


def tuning_tables(colloc, measured):
    runs, exports, prints = measured.known_runs(), measured.of("export"), measured.of("print")
    lines, script, printed = [], [], []
    for name, words in read_list("tunings.list"):
        if name not in runs:
            lines.append(f"| {name} | not run | | | |")
            continue
        took = runs[name]["nvml_mib"]
        export = exports.get(name, {}).get("value")
        by_script = estimate_text(colloc, export, "--export") if export else None
        text = prints.get(name, {}).get("value")
        by_print = estimate_text(colloc, text, "--summary", *print_options(words)) if text else None
        script.append((by_script, took))
        printed.append((by_print, took))
        lines.append(
            f"| {name} | {took:.0f} | {error_text(by_script, took)} "
            f"| {error_text(by_print, took)} |"
        )
    table = ["| fine-tuning | measured MiB | script | print |", "| --- | --- | --- | --- |", *lines]
    return [*HEAD, summary_line("script", script), summary_line("print", printed)], table


def step_lines(measured):
    """How many runs held at their second step what they held at the end, by the allocator."""
    ratios = {
        name: row["steps"][1][0] / row["end"][0]
        for name, row in measured.known_runs().items()
        if len(row.get("steps", [])) > 2
    }
    less = {name: ratio for name, ratio in ratios.items() if ratio < 0.999}
    listed = ", ".join(f"{name} {100 * (1 - r):.0f} % less" for name, r in sorted(less.items()))
    return [f"{len(ratios) - len(less)} of {len(ratios)} runs. The others: {listed or 'none'}."]


def fill(text, marker, lines):
    head, _, rest = text.partition(f"<!-- {marker} -->")
    _, _, tail = rest.partition("<!-- end -->")
    body = "\n".join(lines)
    return f"{head}<!-- {marker} -->\n\n{body}\n\n<!-- end -->{tail}"


def page(colloc, path, target):
    """Writes the tables between the page's markers."""
    measured = Measured(path)
    tunings, each_tuning = tuning_tables(colloc, measured)
    with open(target, encoding="utf-8") as file:
        text = file.read()
    for marker, lines in (
        ("tunings", tunings),
        ("each tuning", each_tuning),
        ("steps", step_lines(measured)),
    ):
        text = fill(text, marker, lines)
    with open(target, "w", encoding="utf-8") as file:
        file.write(text)


ACTIONS = {"measure": measure, "keep": keep, "page": page}


def act(actions, run, usage):
    """Does what the command line says: `run` in a script's own process, or one of the actions."""
    what, *words = sys.argv[1:] or [""]
    if what == "run":
        run(words)
    elif what in actions:
        actions[what](*words)
    else:
        sys.exit(usage)


if __name__ == "__main__":
    act(ACTIONS, run_script, __doc__)
