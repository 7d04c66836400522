#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fine-tunings and convolutional trainings: their estimates, and what they take on a GPU.

    tests/gpu/tuning_trial.py measure BUNDLE OUTPUT SECONDS [NAME ...]   on the machine with the GPU
    tests/gpu/tuning_trial.py keep ROWS FILE.xz                      anywhere: the rows, smaller
    tests/gpu/tuning_trial.py page COLLOC FILE.xz PAGE               anywhere: the tables of a page

BUNDLE is a folder of scripts/bundle; beside this file (or in its folder `tuning`) are the scripts,
their lists `tunings.list` and `convolutions.list`, and the build's src/kernels/colloc-cudnn (a
program of the same questions for cuDNN's legacy interface, colloc-cudnn-legacy, is optional). NAMEs
choose lines of the lists. `measure` writes rows of JSON to OUTPUT/rows.jsonl as they are known, by
`what`:

    run       a script on the GPU: after each step of its optimizer the allocator's peaks, and the
              most that NVML said of its process at any time
    export    the script followed without a GPU (LZMA, base64), and what `colloc estimate` says
    print     what the script printed of its network, and what `colloc estimate` says of that
    asked     the workspaces of the export's convolutions: as PyTorch takes them (`torch`), with
              cudnn.benchmark the largest tried and the one taken (`tried`), and as colloc-cudnn
              answers
    device    the GPU's properties for cuDNN, by which it answers without a GPU
    neighbour times of the steps of a training, and when cuDNN was asked beside it
"""
import base64
import concurrent.futures
import contextlib
import glob
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
FOLLOW_LIMIT_S, RUN_LIMIT_S, ASK_LIMIT_S = 150, 60, 60
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
    sys.argv = words
    sys.path.insert(0, os.path.dirname(words[0]))
    runpy.run_path(words[0], run_name="__main__")
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


# ---- cuDNN ----


def size_of(conv, batch):
    fixed, per_sample = conv["batch"]
    return fixed + per_sample * batch


def with_two(shape):
    """A convolution over one dimension runs as one over two."""
    return [shape[0], 1, shape[1]] if len(shape) == 2 else list(shape)


def question(conv, batch, benchmark_pass):
    """The line for colloc-cudnn about a pass of an entry of `convs`."""
    n = size_of(conv, batch)
    outer, inner = [n, *conv["input"]], [n, *conv["output"]]
    numbers = [list(conv[name]) for name in ("stride", "padding", "dilation")]
    weight = list(conv["weight"])
    if len(conv["input"]) == 2:
        outer, inner = [n, *with_two(conv["input"])], [n, *with_two(conv["output"])]
        weight = [*weight[:2], 1, weight[2]]
        numbers = [[first, *one] for first, one in zip((1, 0, 1), numbers)]
    kind = benchmark_pass
    if conv["transposed"]:
        outer, inner = inner, outer
        kind = {"forward": "input", "input": "forward", "weight": "weight"}[kind]
    layout = "nhwc" if conv.get("channels_last") else "nchw"
    lists = [",".join(map(str, one)) for one in (outer, weight, inner, *numbers)]
    return " ".join([kind, conv["dtype"], layout, "1", "0", *lists])


def questions_of(export):
    """The distinct ones, with the places where each is asked."""
    places = {}
    for i, conv in enumerate(export["convs"]):
        passes = ("forward",) if conv["phase"] != "backward" else ("input", "weight")
        for j, one in enumerate(passes):
            places.setdefault(question(conv, export["batch"], one), []).append((i, j))
    return places


def library():
    """The libcudnn that PyTorch uses."""
    import importlib.metadata

    for name in ("nvidia-cudnn-cu13", "nvidia-cudnn-cu12"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            for file in importlib.metadata.files(name) or []:
                if file.name == "libcudnn.so.9":
                    return str(file.locate())
    return "libcudnn.so.9"


def cudnn_environment(path):
    others = glob.glob(os.path.join(os.path.dirname(path), "..", "..", "*", "lib"))
    own = os.environ.get("LD_LIBRARY_PATH")
    folders = [os.path.dirname(path), *others, *([own] if own else [])]
    return {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(filter(None, folders))}


def ask_helper(lines, program, *options, **variables):
    """The answers of a program that asks cuDNN, and when it began and ended."""
    path = library()
    places = (os.path.join(folder, program) for folder in (HERE, SCRIPTS))
    helper = next((place for place in places if os.path.exists(place)), program)
    started = time.time()
    with tempfile.TemporaryFile("w+") as file:
        file.write("\n".join(lines) + "\n")
        file.seek(0)
        _, text = run([helper, *options, path], ASK_LIMIT_S, stdin=file,
                      env={**cudnn_environment(path), **variables})  # fmt: skip
    return text, started, time.time()


def answers(text):
    """[first, most, count] or None for each question; and other lines."""
    lines = text.splitlines()
    known = [
        [int(word) for word in line.split()[1:4]] if line.startswith("answer") else None
        for line in lines
        if line.startswith(("answer", "unknown"))
    ]
    return known, [line for line in lines if not line.startswith(("answer", "unknown"))][:5]


def ask_torch(path, until):
    """In a separate process: rows for each export, by running the convolutions."""
    import torch

    from colloc_export import kernels

    for line in open(path, encoding="utf-8"):
        name, place = line.split()
        with open(place, encoding="utf-8") as file:
            export = json.load(file)
        for benchmark in (False, True):
            torch.backends.cudnn.benchmark = benchmark
            started, scratch = time.time(), kernels.Scratch(torch.cuda)
            known, skipped = {}, 0
            for conv in export["convs"]:
                key = kernels._question(conv)
                if key in known:
                    continue
                if time.time() > float(until):
                    skipped += 1
                    continue
                known[key] = [kernels._answer(conv, export["batch"], scratch)]
                if benchmark:
                    known[key].append(kernels._answer(conv, export["batch"], scratch))
            values = [known.get(kernels._question(conv)) for conv in export["convs"]]
            print("ROW " + json.dumps({
                "name": name, "how": "benchmark" if benchmark else "plain", "skipped": skipped,
                "seconds": round(time.time() - started, 2), "values": values,
                "cudnn": torch.backends.cudnn.version()}), flush=True)  # fmt: skip
            torch.cuda.empty_cache()


WAYS = (
    ("colloc-cudnn",),
    ("colloc-cudnn", "--all"),
    ("colloc-cudnn", "--device"),
    ("colloc-cudnn-legacy",),
)


def exports_of(output, names):
    places = [(name, os.path.join(output, "work", name, "result")) for name in names]
    return [(name, place) for name, place in places if os.path.exists(place)]


def ask_helpers(output, names, followed, rows, deadline, gpu):
    """By programs that run no kernel, in each way."""
    concurrent.futures.wait(followed, max(1, deadline - time.monotonic()))
    device = os.path.join(output, "device")
    for name, place in exports_of(output, names):
        with open(place, encoding="utf-8") as file:
            asked = list(questions_of(json.load(file)))
        for program, *options in WAYS:
            if time.monotonic() > deadline:
                return
            options = [f"--device={device}" if one == "--device" else one for one in options]
            before = dict(gpu.most)
            text, started, ended = ask_helper(asked, program, *options)
            memory = [most / MIB for pid, most in gpu.most.items() if pid not in before]
            how = program + ("" if not options else " " + options[0].partition("=")[0])
            first = program == WAYS[0][0] and not options
            rows.write("asked", name=name, how=how, seconds=round(ended - started, 2),
                       nvml_mib=max(memory, default=0), questions=asked if first else None,
                       text=packed(text))  # fmt: skip
            log("asked", name, how, f"{len(asked)} in {ended - started:.2f} s,",
                text.count("unknown"), "unknown,", max(memory, default=0), "MiB")  # fmt: skip


def ask_by_torch(bundle, output, names, rows, deadline):
    """By running the convolutions."""
    with tempfile.NamedTemporaryFile("w") as file:
        places = exports_of(output, names)
        file.write("".join(f"{name} {place}\n" for name, place in places))
        file.flush()
        left = max(5, deadline - time.monotonic())
        environment = {**os.environ, "PYTHONPATH": os.path.join(bundle, "python")}
        command = [sys.executable, os.path.abspath(__file__), "ask", file.name,
                   str(time.time() + left)]  # fmt: skip
        _, text = run(command, left + 15, env=environment)
    for line in text.splitlines():
        if line.startswith("ROW "):
            row = json.loads(line[4:])
            rows.write("asked", **row)
            log(
                "asked torch", row["name"], row["how"], row["seconds"], "s, skipped", row["skipped"]
            )
    if "ROW " not in text:
        log("asked torch FAILED", text[-600:])


LOGGED = """
import torch
from torch.nn.functional import conv1d, conv2d, conv3d
def one(conv, input, weight, last=False):
    input = torch.randn(input, device="cuda", dtype=TYPE).requires_grad_()
    weight = torch.randn(weight, device="cuda", dtype=TYPE).requires_grad_()
    if last:
        input, weight = (t.to(memory_format=torch.channels_last) for t in (input, weight))
    print("CASE", conv.__name__, TYPE, last, flush=True)
    conv(input, weight).sum().backward()
    torch.cuda.synchronize()
for TYPE in (torch.float32, torch.bfloat16):
    one(conv2d, (8, 64, 28, 28), (256, 64, 1, 1))
    one(conv2d, (8, 64, 28, 28), (64, 64, 3, 3), True)
    one(conv1d, (8, 64, 280), (64, 64, 3))
    one(conv3d, (2, 16, 8, 28, 28), (16, 16, 3, 3, 3))
"""


def log_calls(rows):
    """Which functions of cuDNN PyTorch calls, by cuDNN's own log."""
    environment = {**os.environ, "CUDNN_LOGLEVEL_DBG": "3", "CUDNN_LOGDEST_DBG": "stdout"}
    _, text = run([sys.executable, "-c", LOGGED], 40, env=environment)
    counts = {}
    for word in text.replace("(", " ").replace(")", " ").split():
        if word.startswith(("cudnnGet", "cudnnBackend", "cudnnFind", "cudnnConv", "CASE")):
            counts[word] = counts.get(word, 0) + 1
    rows.write("calls", counts=counts, text=packed(text[:400_000]))
    log("calls", len(text), json.dumps(counts)[:600])


def write_device(output, rows):
    path, known = os.path.join(output, "device"), ""
    text, *_ = ask_helper(["none"], "colloc-cudnn", f"--write-device={path}")
    with contextlib.suppress(OSError), open(path, encoding="utf-8") as file:
        known = file.read()
    rows.write("device", text=known, said=text[:400])
    log("device", len(known), "bytes", text[:200].replace("\n", " "))


def measure_neighbour(server, output, rows, seconds):
    """A training's steps, while cuDNN is asked beside it twice."""
    place = os.path.join(output, "work", "resnet50", "result")
    if not os.path.exists(place):
        return
    with open(place, encoding="utf-8") as file:
        asked = list(questions_of(json.load(file)))
    words = ["convolve.py", "--model", "resnet50", "--batch-size", "32", "--amp", "--steps"]
    steps = int(seconds * 25)
    times = []
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        running = pool.submit(server.run, words, str(steps), limit=seconds + 40)
        ways = (("colloc-cudnn",), ("colloc-cudnn", "--all"), ("colloc-cudnn-legacy",))
        for i, way in enumerate(ways):
            time.sleep(seconds / 4 if i else seconds / 3)
            _, started, ended = ask_helper(asked, *way)
            times.append([started, ended, " ".join(way)])
        status, text = running.result()
    _, _, last = text.rpartition("REPORT ")
    known = json.loads(last) if "REPORT " in text else {}
    rows.write("neighbour", asked=times, status=status,
               steps=[one[3] for one in known.get("steps", [])])  # fmt: skip
    log("neighbour", status, len(known.get("steps", [])), "steps, asked in",
        [round(b - a, 2) for a, b, _ in times], "" if known else text[-300:])  # fmt: skip


# ---- together ----


def measure(bundle, output, seconds, *names):
    bundle, output = os.path.abspath(bundle), os.path.abspath(output)
    work = os.path.join(output, "work")
    os.makedirs(work, exist_ok=True)
    started, seconds = time.monotonic(), float(seconds)
    deadline = started + seconds
    tunings = read_list("tunings.list", names)
    convolutions = read_list("convolutions.list", names)
    rows, gpu = Rows(os.path.join(output, "rows.jsonl")), Gpu()
    rows.write("facts", **gpu.facts(), **versions())
    followers = concurrent.futures.ThreadPoolExecutor(FOLLOWED_AT_ONCE)

    def follow_one(name, words):
        if time.monotonic() < deadline - 20:
            try:
                follow(bundle, name, words, rows, os.path.join(work, name))
            except Exception as error:
                log("follow", name, "FAILED", repr(error))

    both = [*convolutions, *tunings]
    followed = [followers.submit(follow_one, name, words) for name, words in both]
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
            jobs = [lanes.submit(run_one, name, words) for name, words in [*tunings, *convolutions]]
            concurrent.futures.wait(jobs)
        log("runs done after", round(time.monotonic() - started, 1), "s")
        write_device(output, rows)
        names = [name for name, _ in convolutions]
        asking = threading.Thread(
            target=ask_helpers,
            args=(output, names, followed[: len(names)], rows, deadline - 0.25 * seconds, gpu),
        )
        asking.start()
        for name, words in convolutions:
            run_one(name, words, "--benchmark")
        asking.join()
        log("benchmark runs done after", round(time.monotonic() - started, 1), "s")
        log_calls(rows)
        measure_neighbour(server, output, rows, 0.06 * seconds)
        ask_by_torch(bundle, output, names, rows, deadline - 4)
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


def with_kernels(export, scratch, tried=None):
    kernels = {"batch": export["batch"], "gpu": "H200", "scratch": scratch}
    if tried:
        kernels["tried"] = tried
    flags = {**export["flags"], "cudnn_benchmark": bool(tried)}
    return json.dumps({**export, "flags": flags, "kernels": kernels})


def by_conv(export, answered, number, first_alone=False):
    """An answer's number for each pass of `convs`."""
    lists = [[None] * (2 if conv["phase"] == "backward" else 1) for conv in export["convs"]]
    for (_, places), answer in zip(questions_of(export).items(), answered):
        for i, j in places[:1] if first_alone else places:
            lists[i][j] = answer[number] if answer else None
    return lists


def convolution_tables(colloc, measured):
    runs, exports = measured.known_runs(), measured.of("export")
    torch_said, helper_said = measured.asked("plain"), measured.asked("colloc-cudnn --all")
    lines, rules, asked, tried_by_rule, tried_by_answer = [], [], [], [], []
    for name, _ in read_list("convolutions.list"):
        export = json.loads(exports[name]["value"])
        took, tried_took = runs[name]["nvml_mib"], runs.get(f"{name} --benchmark", {}).get(
            "nvml_mib"
        )
        rule = estimate_text(colloc, json.dumps(export), "--export")
        values = torch_said.get(name, {})
        known = tried = None
        if values and not values["skipped"]:
            scratch = [value[0] for value in values["values"]]
            known = estimate_text(colloc, with_kernels(export, scratch), "--export")
        if name in helper_said and tried_took:
            said, _ = answers(helper_said[name]["text"])
            tried = estimate_text(
                colloc,
                with_kernels(export, by_conv(export, said, 0), by_conv(export, said, 1, True)),
                "--export",
            )
        rules.append((rule, took))
        asked.append((known, took))
        if tried_took:
            tried_by_rule.append((rule, tried_took))
            tried_by_answer.append((tried, tried_took))
        shown = f"{tried_took:.0f}" if tried_took else "not run"
        lines.append(
            f"| {name} | {took:.0f} | {error_text(rule, took)} | {error_text(known, took)} "
            f"| {shown} | {error_text(rule, tried_took or 1) if tried_took else ''} "
            f"| {error_text(tried, tried_took or 1)} |"
        )
    head = [
        "| network | measured MiB | by rules | kernels asked | with benchmark, MiB | by rules "
        "| asked |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    summary = [
        *HEAD,
        summary_line("rules", rules),
        summary_line("kernels asked", asked),
        summary_line("rules, `benchmark`", tried_by_rule),
        summary_line("asked, `benchmark`", tried_by_answer),
    ]
    return summary, [*head, *lines]


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


def answer_lines(measured):
    """How often the ways of asking say what PyTorch took."""
    exports, torch_said = measured.of("export"), measured.asked("plain")
    lines = ["| way | passes | as PyTorch took | seconds for a network | process, MiB |",
             "| --- | --- | --- | --- | --- |"]  # fmt: skip
    for how in (
        "colloc-cudnn",
        "colloc-cudnn --device",
        "colloc-cudnn --all",
        "colloc-cudnn-legacy",
    ):
        equal = count = 0
        seconds, memory = [], []
        for name, row in measured.asked(how).items():
            values = torch_said.get(name)
            if not values or values["skipped"]:
                continue
            said, _ = answers(row["text"])
            seconds.append(row["seconds"])
            memory.append(row["nvml_mib"])
            asked = questions_of(json.loads(exports[name]["value"]))
            for places, answer in zip(asked.values(), said):
                i, j = places[0]
                took = values["values"][i][0][j]
                count += took is not None
                equal += took is not None and answer is not None and abs(answer[0] - took) <= 512
        if count:
            lines.append(
                f"| {how} | {count} | {100 * equal / count:.0f} % | {min(seconds):.1f} to "
                f"{max(seconds):.1f} | {min(memory):.0f} to {max(memory):.0f} |"
            )
    return lines


def neighbour_lines(measured):
    """Mean time of the neighbour's steps, in the 2 s from each asking on and otherwise."""
    row = next((row for row in measured.rows if row["what"] == "neighbour"), None)
    if not row or len(row["steps"]) < 10:
        return ["not measured"]
    times = row["steps"]
    spans = list(zip(times, times[1:]))[5:]
    lines = [
        "| asked by | seconds | median step, ms | otherwise, ms |",
        "| --- | --- | --- | --- |",
    ]
    calm = [b - a for a, b in spans if not any(s - 0.5 <= b <= e + 1 for s, e, _ in row["asked"])]
    for start, end, how in row["asked"]:
        near = [b - a for a, b in spans if start <= b <= max(end, start + 2)]
        if near and calm:
            lines.append(
                f"| {how} | {end - start:.2f} | {1000 * statistics.median(near):.1f} "
                f"| {1000 * statistics.median(calm):.1f} |"
            )
    return lines


def fill(text, marker, lines):
    head, _, rest = text.partition(f"<!-- {marker} -->")
    _, _, tail = rest.partition("<!-- end -->")
    body = "\n".join(lines)
    return f"{head}<!-- {marker} -->\n\n{body}\n\n<!-- end -->{tail}"


def page(colloc, path, target):
    """Writes the tables between the page's markers."""
    measured = Measured(path)
    tunings, each_tuning = tuning_tables(colloc, measured)
    convolutions, each_network = convolution_tables(colloc, measured)
    with open(target, encoding="utf-8") as file:
        text = file.read()
    for marker, lines in (
        ("tunings", tunings),
        ("each tuning", each_tuning),
        ("convolutions", convolutions),
        ("each network", each_network),
        ("steps", step_lines(measured)),
        ("answers", answer_lines(measured)),
        ("neighbour", neighbour_lines(measured)),
    ):
        text = fill(text, marker, lines)
    with open(target, "w", encoding="utf-8") as file:
        file.write(text)


ACTIONS = {"measure": measure, "ask": ask_torch, "keep": keep, "page": page}


def main():
    what, *words = sys.argv[1:] or [""]
    if what == "run":
        run_script(words)
    elif what in ACTIONS:
        ACTIONS[what](*words)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
