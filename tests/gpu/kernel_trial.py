#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Convolutional trainings whose kernels are asked from cuDNN, against what they take on a GPU.

    tests/gpu/kernel_trial.py measure BUNDLE OUTPUT SECONDS [--alone|--tries] [NAME ...]
                                                                 on the machine with the GPU
    tests/gpu/kernel_trial.py keep ROWS FILE.xz          anywhere: the rows, smaller
    tests/gpu/kernel_trial.py page COLLOC FILE.xz,ENDS.xz PAGE
                                                         anywhere: the tables; what the asking
                                                         processes held is of ENDS.xz, where FILE.xz
                                                         is older than that figure
    tests/gpu/kernel_trial.py alone COLLOC FILE.xz,FILE.xz PAGE
                                                         anywhere: that of trials with --alone
    tests/gpu/kernel_trial.py again FILE.xz,FILE.xz,... PAGE
                                                         anywhere: what differs when asked again
    tests/gpu/kernel_trial.py all FILE.xz ALL.xz PAGE    anywhere: all plans of colloc-cudnn --all

BUNDLE is a folder of scripts/bundle. The trainings are those of tuning/kernels.list; NAMEs choose
some, in that order. Each is followed without the GPU, runs on it twice (without and with
cudnn.benchmark), and its kernels are asked for twice in the same way, as `colloc estimate
--kernels` does; LANES at once. --alone: only with cudnn.benchmark, and nothing else is on the GPU
meanwhile, since the fastest kernel may be another one beside others. --tries: the trainings of
tuning/tries.list only run, each time in another process; they are neither followed nor asked.
GPU names the GPU for NVML (0). `measure` writes rows of JSON to OUTPUT/rows.jsonl, by `what`:

    run     a training: after each step of an optimizer the allocator's peaks, what it holds, and
            what NVML says of the process; the most that NVML said, read every millisecond; the
            requests to the allocator, in order (`trace`, packed)
    export  the training followed without a GPU
    asked   the member `kernels` of the export, as PyTorch's own kernels answered, and what the
            asking process held then (`end`, as of a run): beside the allocator's segments that is
            its context with the code of all kernels that were tried
    plans   the same questions to colloc-cudnn, with the GPU and without one (--device); with
            cudnn.benchmark all plans, without one (--all --device)
"""
import concurrent.futures
import contextlib
import glob
import json
import lzma
import os
import sys
import tempfile
import time

import tuning_trial as trial
from tuning_trial import MIB, log, packed

LANES, FOLLOWED_AT_ONCE = 7, 8
RUN_LIMIT_S, ASK_LIMIT_S = 75, 75
TRACED_MOST = 60_000  # requests to the allocator; six steps of the largest network have 25,000
ALL_PLANS = "all plans, without a GPU"
# The options of colloc-cudnn by what is asked; None is the description of a GPU.
PLANS = {"with the GPU": [], "without a GPU": [None], ALL_PLANS: ["--all", None]}
LAST_START, LAST_END_S = 0.12, 3  # of the time that is left, before it is over


# ---- inside the script's process ----


def own_memory(nvml, handle):
    """MiB that NVML says of this process."""
    for one in nvml.nvmlDeviceGetComputeRunningProcesses(handle):
        if one.pid == os.getpid():
            return round((one.usedGpuMemory or 0) / MIB, 1)
    return None


def requests_of(torch):
    """The allocator's trace as text: the size of each request, for each release how many requests
    ago that was, and the segments that came (+) and went (~)."""
    events = torch.cuda.memory._snapshot()["device_traces"][torch.cuda.current_device()]
    words, where, n = [], {}, 0
    for event in events[:TRACED_MOST]:
        kind = event["action"]
        if kind == "alloc":
            where[event["addr"]], n = n, n + 1
            words.append(str(event["size"]))
        elif kind == "free_completed" and event["addr"] in where:
            words.append(f"-{n - where.pop(event['addr'])}")
        elif kind in ("segment_alloc", "segment_free"):
            words.append("+~"[kind == "segment_free"] + str(event["size"]))
    return " ".join(words)


def reader_of_memory():
    """A function that says what this process holds: the allocator's most, the most of tensors, what
    the allocator has now, and what NVML says; MiB."""
    import pynvml
    from torch import cuda

    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(int(os.environ.get("GPU", "0")))

    def held():
        values = (cuda.max_memory_reserved(), cuda.max_memory_allocated(), cuda.memory_reserved())
        return [round(value / MIB, 1) for value in values] + [own_memory(pynvml, handle)]

    return held


def run_script(words):
    """Notes the allocator's peaks after each step of an optimizer, and all its requests."""
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook

    held = reader_of_memory()
    report, cuda = {"pid": os.getpid(), "steps": [], "started": time.time()}, torch.cuda

    def note(*_):
        report["steps"].append([*held(), round(time.time(), 4)])

    register_optimizer_step_post_hook(note)
    try:
        cuda.memory._record_memory_history("all", context=None, max_entries=TRACED_MOST)
    except (TypeError, RuntimeError) as error:
        report["no_trace"] = repr(error)
    trial.run_as_main(words)
    cuda.synchronize()
    report["end"] = held()
    with contextlib.suppress(Exception):  # the numbers count even without it
        report["trace"] = packed(requests_of(torch))
    print("REPORT " + json.dumps(report), flush=True)


def ask_kernels(path, benchmark):
    """The member `kernels` of an export, by running its convolutions."""
    import torch

    sys.path[:0] = os.environ["PYTHONPATH"].split(os.pathsep)  # of a fork, too
    from colloc_export import kernels

    with open(path, encoding="utf-8") as file:
        description = json.load(file)
    description["flags"]["cudnn_benchmark"] = benchmark == "benchmark"
    started = time.time()
    answer = kernels.ask(description)
    torch.cuda.synchronize()
    seconds = round(time.time() - started, 2)
    report = {"kernels": answer, "seconds": seconds, "end": reader_of_memory()()}
    print("REPORT " + json.dumps(report), flush=True)


# ---- cuDNN ----


def chosen(file, names):
    """The trainings of a list with these names, in their order; without names all."""
    trainings = trial.read_list(file, names)
    missing = set(names) - {name for name, _ in trainings}
    if missing:
        sys.exit(f"kernel_trial: {file} has no {', '.join(sorted(missing))}")
    return sorted(trainings, key=lambda one: names.index(one[0])) if names else trainings


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


def ask_helper(lines, helper, *options, **variables):
    """The answers of a program that asks cuDNN, and when it began and ended."""
    path, started = library(), time.time()
    with tempfile.TemporaryFile("w+") as file:
        file.write("\n".join(lines) + "\n")
        file.seek(0)
        _, text = trial.run([helper, *options, path], ASK_LIMIT_S, stdin=file,
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


# ---- on the machine with the GPU ----


class Trial:
    def __init__(self, bundle, output, seconds, options, names):
        self.bundle, self.output = os.path.abspath(bundle), os.path.abspath(output)
        self.deadline = time.monotonic() + float(seconds)
        self.last_start_s = LAST_START * float(seconds)
        self.is_asked = "--tries" not in options
        self.lanes, self.ways = LANES, (False, True)
        if "--alone" in options:
            self.lanes, self.ways = 1, (True,)
        self.trainings = chosen("kernels.list" if self.is_asked else "tries.list", names)
        self.work = os.path.join(self.output, "work")
        os.makedirs(self.work, exist_ok=True)
        self.rows = trial.Rows(os.path.join(self.output, "rows.jsonl"))
        self.gpu = trial.Gpu(int(os.environ.get("GPU", "0")), 0.001)
        self.server = None
        self.followers = concurrent.futures.ThreadPoolExecutor(FOLLOWED_AT_ONCE)
        self.beside = []

    def left(self):
        return self.deadline - LAST_END_S - time.monotonic()

    def run_forked(self, name, words, limit):
        """The report of this program in a fork of the server, and its text."""
        status, text = self.server.run_program(
            [os.path.abspath(__file__), *words],
            max(1, min(limit, self.left())),
            PYTHONPATH=os.path.join(self.bundle, "python"),
            XDG_CACHE_HOME=os.path.join(self.work, name),  # no network knows another's answers
        )
        _, _, last = text.rpartition("REPORT ")
        return status, json.loads(last) if "REPORT " in text else {"text": text[-1500:]}

    def run(self, name, words, benchmark):
        more = ["--benchmark"] if benchmark else []
        command = ["run", *trial.script_command(words, *more)]
        status, known = self.run_forked(name, command, RUN_LIMIT_S)
        most = self.gpu.most.get(known.get("pid"), 0) / MIB
        self.rows.write("run", name=name, benchmark=benchmark, status=status,
                        nvml_mib=round(most, 1), **known)  # fmt: skip
        log("run", name, more, status, "nvml", round(most), known.get("end"),
            known.get("no_trace"), known.get("text", "")[-300:])  # fmt: skip

    def ask(self, name, result, benchmark):
        how = "benchmark" if benchmark else "plain"
        status, known = self.run_forked(name, ["ask", result, how], ASK_LIMIT_S)
        self.rows.write("asked", name=name, benchmark=benchmark, status=status, **known)
        log("asked", name, how, status, known.get("seconds"), known.get("text", "")[-300:])

    def plan(self, name, result, kinds):
        """Without running a kernel. `kinds`: those of PLANS."""
        with open(result, encoding="utf-8") as file:
            questions = list(questions_of(json.load(file)))
        device = f"--device={os.path.join(self.output, 'device')}"
        for how in kinds:
            if self.left() < 15:
                continue
            options = [one or device for one in PLANS[how]]
            hidden = {"CUDA_VISIBLE_DEVICES": ""} if options else {}
            text, started, ended = ask_helper(
                questions, os.path.join(self.bundle, "colloc-cudnn"), *options, **hidden
            )
            self.rows.write("plans", name=name, how=how, seconds=round(ended - started, 2),
                            xz=packed(text))  # fmt: skip
            log("plans", name, how, len(questions), "in", round(ended - started, 2), "s,",
                text.count("unknown"), "unknown", text[:80].replace("\n", " "))  # fmt: skip

    def chain(self, name, words, followed):
        ways = self.ways if words[0] == "convolve.py" else [False]
        result = os.path.join(self.work, name, "result")
        for benchmark in ways:
            if self.left() > self.last_start_s:
                self.run(name, words, benchmark)
        if not self.is_asked:
            return
        concurrent.futures.wait([followed], max(0, self.left()))
        if os.path.exists(result):
            for benchmark in ways:
                if self.left() > self.last_start_s:
                    self.ask(name, result, benchmark)
            if False in ways:
                self.plan(name, result, ("with the GPU", "without a GPU"))
            if True in ways:  # beside the GPU's work, since it needs none
                one = self.followers.submit(self.guarded, self.plan, name, result, (ALL_PLANS,))
                self.beside.append(one)

    def guarded(self, what, *words):
        try:
            what(*words)
        except Exception as error:
            log(what.__name__, words[0], "FAILED", repr(error))

    def measure(self):
        self.rows.write("facts", **self.gpu.facts(), **trial.versions())

        def follow(name, words):
            if self.is_asked and self.left() > self.last_start_s:
                place = os.path.join(self.work, name)
                trial.follow(self.bundle, name, words, self.rows, place)

        followed = [self.followers.submit(self.guarded, follow, *one) for one in self.trainings]
        self.server = trial.ForkServer(self.bundle, "torch torchvision timm")
        log("fork server ready")
        device = os.path.join(self.output, "device")
        ask_helper(["none"], os.path.join(self.bundle, "colloc-cudnn"),
                         f"--write-device={device}")  # fmt: skip
        with concurrent.futures.ThreadPoolExecutor(self.lanes) as lanes:
            jobs = [lanes.submit(self.guarded, self.chain, *one, its)
                    for one, its in zip(self.trainings, followed)]  # fmt: skip
            concurrent.futures.wait(jobs)
        concurrent.futures.wait(self.beside, max(0, self.left()))
        log("ended with", round(self.left(), 1), "s left")
        self.server.close()
        self.gpu.close()
        os._exit(0)


def measure(bundle, output, seconds, *words):
    options = [word for word in words if word.startswith("--")]
    unknown = set(options) - {"--alone", "--tries"}
    if unknown:
        sys.exit(f"kernel_trial: unknown: {' '.join(sorted(unknown))}")
    Trial(bundle, output, seconds, options, [one for one in words if one not in options]).measure()


# ---- the page ----

GOAL = 0.02


class Measured:
    def __init__(self, path):
        with lzma.open(path, "rt") as file:
            self.rows = [json.loads(line) for line in file]

    def of(self, what, benchmark=None):
        """The rows by network."""
        return {row["name"]: row for row in self.rows if row["what"] == what
                and (benchmark is None or row["benchmark"] == benchmark)}  # fmt: skip

    def add_ends(self, other):
        """What the asking processes held, where these rows lack it."""
        for benchmark in (False, True):
            known = other.of("asked", benchmark)
            for name, row in self.of("asked", benchmark).items():
                if "end" not in row and "end" in known.get(name, {}):
                    row["end"] = known[name]["end"]

    def taken(self, benchmark):
        """The most that NVML said, by network."""
        runs = self.of("run", benchmark).items()
        return {name: row["nvml_mib"] for name, row in runs if row["status"] == 0}


def thread_of(conv):
    """Of a training: autograd runs the backward pass in another one."""
    return "backward" if conv["phase"] == "backward" else "forward"


def passes_of(conv):
    return ("input", "weight") if conv["phase"] == "backward" else ("forward",)


def most_tried(export, kernels):
    """By question what its tries took, where it was asked first."""
    most = {}
    for conv, tried in zip(export["convs"], kernels["tried"]):
        for one, taken in zip(passes_of(conv), tried):
            asked = question(conv, export["batch"], one)
            most[asked] = max(most.get(asked, 0), taken or 0)
    return most


def with_joined_tries(export, kernels):
    """The answers as the exporter gives them since it asks each in its own thread
    (colloc_export/kernels.py): each thread of a training tries what it asks first, also where
    the other one did."""
    most, seen, joined = most_tried(export, kernels), set(), []
    for conv in export["convs"]:
        asked = [question(conv, export["batch"], one) for one in passes_of(conv)]
        places = [(thread_of(conv), one) for one in asked]
        tried = [None if where in seen else most[where[1]] for where in places]
        seen.update(places)
        joined.append(tried if any(taken is not None for taken in tried) else [])
    return {**kernels, "tried": joined}


def kernels_of(export, row):
    """The member `kernels` as the exporter writes it today; None without an answer."""
    kernels = (row or {}).get("kernels")
    if kernels and "tried" in kernels:
        kernels = with_joined_tries(export, kernels)
        if row.get("end") and "process" not in kernels:
            kernels["process"] = int((row["end"][3] - row["end"][2]) * MIB)
    return kernels


def estimates_of(colloc, export, kernels, benchmark):
    """By rules and with the kernels that were asked: MiB, or None."""
    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
    from colloc_fit.joined_sums import with_joined_sums  # not on the machine with the GPU

    flags = {**export["flags"], "cudnn_benchmark": benchmark}
    export = {**with_joined_sums(export), "flags": flags}
    rule = trial.estimate_text(colloc, json.dumps(export), "--export")
    if kernels is None:
        return rule, None
    kernels = {**kernels, "gpu": "H200"}
    return rule, trial.estimate_text(colloc, json.dumps({**export, "kernels": kernels}), "--export")


def convolution_tables(colloc, measured):
    exports = measured.of("export")
    errors, lines = {}, {}
    for benchmark in (False, True):
        asked, taken = measured.of("asked", benchmark), measured.taken(benchmark)
        for name, _ in trial.read_list("kernels.list"):
            took, text = taken.get(name), exports.get(name, {}).get("value")
            line = lines.setdefault(name, [name])
            if not took or not text:
                line += ["", "", ""]
                continue
            export = json.loads(text)
            kernels = kernels_of(export, asked.get(name))
            values = estimates_of(colloc, export, kernels, benchmark)
            line += [f"{took:.0f}", *(trial.error_text(value, took) for value in values)]
            for how, value in zip(("rules", "asked"), values):
                if value is not None:
                    errors.setdefault((how, benchmark), []).append((value, took))
    summary = ["| kernels | `benchmark` | trainings | median | p95 | worst | within 2 % |",
               "| --- | --- | --- | --- | --- | --- | --- |"]  # fmt: skip
    for (how, benchmark), pairs in errors.items():
        cells = trial.summary_line("", pairs).split("|")[2:6]
        near = sum(abs(value / took - 1) <= GOAL for value, took in pairs)
        shown = "|".join(cells)
        summary.append(f"| {how} | {'on' if benchmark else 'off'} |{shown}| {near} |")
    head = [
        "| network | measured MiB | rules | asked | with `benchmark`, MiB | rules | asked |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    return summary, head + [f"| {' | '.join(line)} |" for line in lines.values()]


def plan_lines(measured):
    """How often colloc-cudnn says what PyTorch took."""
    exports, asked = measured.of("export"), measured.of("asked", False)
    lines = ["| colloc-cudnn | networks | passes | as PyTorch took | seconds for a network |",
             "| --- | --- | --- | --- | --- |"]  # fmt: skip
    for how in ("with the GPU", "without a GPU"):
        equal = count = 0
        seconds = []
        for row in (row for row in measured.rows if row["what"] == "plans" and row["how"] == how):
            took = asked.get(row["name"], {}).get("kernels", {}).get("scratch")
            said, _ = answers(row["value"])
            if not took or not said:
                continue
            seconds.append(row["seconds"])
            questions = questions_of(json.loads(exports[row["name"]]["value"]))
            for places, answer in zip(questions.values(), said):
                i, j = places[0]
                known = took[i][j] if j < len(took[i]) else None
                count += known is not None
                equal += known is not None and answer is not None and abs(answer[0] - known) <= 512
        if count:
            lines.append(f"| {how} | {len(seconds)} | {count} | {100 * equal / count:.1f} % "
                         f"| {min(seconds):.1f} to {max(seconds):.1f} |")  # fmt: skip
    return lines


def context_lines(measured):
    """What the processes took beside the allocator's segments, at their ends."""
    lines = []
    for benchmark in (False, True):
        runs = [row for row in measured.of("run", benchmark).values() if row["status"] == 0]
        rest = sorted(row["end"][3] - row["end"][2] for row in runs if row["end"][3])
        if rest:
            seen = rest[0] - 64  # chosen: contexts grow by less while kernels load
            missed = [row["name"] for row in runs if row["nvml_mib"] < row["end"][0] + seen]
            lines.append(f"`benchmark` {'on' if benchmark else 'off'}: {rest[0]:.0f} to "
                         f"{rest[-1]:.0f} MiB; peaks that NVML's reading missed: "
                         f"{', '.join(missed) or 'none'}.")  # fmt: skip
    return lines


def page(colloc, paths, target):
    """Writes the tables between the page's markers."""
    measured, ends = (Measured(path) for path in paths.split(","))
    measured.add_ends(ends)
    summary, networks = convolution_tables(colloc, measured)
    fill_page(
        target,
        summary=summary,
        networks=networks,
        plans=plan_lines(measured),
        contexts=context_lines(measured),
    )


def beside_segments(row):
    """What a process had beside the allocator's segments at its end, in MiB."""
    return f"{row['end'][3] - row['end'][2]:.0f}" if row.get("end") else ""


def fill_page(target, **tables):
    """Writes the tables between the page's markers."""
    with open(target, encoding="utf-8") as file:
        text = file.read()
    for marker, lines in tables.items():
        text = trial.fill(text, marker, lines)
    with open(target, "w", encoding="utf-8") as file:
        file.write(text)


def alone_lines(colloc, number, measured):
    exports, asked, runs = measured.of("export"), measured.of("asked", True), measured.of("run")
    for name, took in measured.taken(True).items():
        export, row = json.loads(exports[name]["value"]), asked.get(name)
        values = estimates_of(colloc, export, kernels_of(export, row), True)
        cells = [trial.error_text(value, took) if value else "" for value in values]
        rest = [beside_segments(runs[name]), beside_segments(row or {})]
        yield name, f"| {' | '.join([name, str(number), f'{took:.0f}', *cells, *rest])} |"


def alone(colloc, paths, target):
    """Writes the table of trainings that had the GPU for themselves."""
    head = [
        "| network | run | measured MiB | rules | asked | beside segments, MiB | when asked |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    runs = [alone_lines(colloc, i, Measured(path)) for i, path in enumerate(paths.split(","), 1)]
    lines = [line for some in runs for line in some]
    order = list(dict.fromkeys(name for name, _ in lines))
    lines.sort(key=lambda one: order.index(one[0]))
    fill_page(target, alone=head + [line for _, line in lines])


def differences(export, one, other):
    """Passes, those with another fastest kernel, by how many bytes at most, and those with another
    largest one."""
    pairs = [(a, b) for left, right in zip(one["scratch"], other["scratch"])
             for a, b in zip(left, right)]  # fmt: skip
    most, others = most_tried(export, one), most_tried(export, other)
    return (
        len(pairs),
        sum(a != b for a, b in pairs),
        max(abs(a - b) for a, b in pairs),
        sum(most[question] != others[question] for question in most),
    )


def again(paths, target):
    """Writes the table of networks whose kernels were asked several times with benchmark."""
    measured = [Measured(path) for path in paths.split(",")]
    asked = [one.of("asked", True) for one in measured]
    exports = measured[0].of("export")
    lines = ["| network | asked | passes | another fastest kernel | by MiB, at most "
             "| another largest |", "| --- | --- | --- | --- | --- | --- |"]  # fmt: skip
    for name in asked[0]:
        found = [some[name]["kernels"] for some in asked if name in some]
        if len(found) < 2:
            continue
        export = json.loads(exports[name]["value"])
        values = [differences(export, found[0], one) for one in found[1:]]
        passes, fastest, by, largest = (max(column) for column in zip(*values))
        lines.append(f"| {name} | {len(found)} | {passes} | {fastest} | {by / MIB:.0f} "
                     f"| {largest} |")  # fmt: skip
    fill_page(target, again=lines)


def is_of_cudnn(line):
    """PyTorch has own kernels for depthwise convolutions, unless channels are last."""
    words = line.split()
    channels, of_weight = (int(words[at].split(",")[1]) for at in (5, 6))
    return words[2] == "nhwc" or channels == of_weight or of_weight != 1


def largest_of_all(measured, plans):
    """(row, answers by question) of each asking for all plans."""
    exports = measured.of("export")
    for row in plans.rows:
        yield row, dict(zip(row["questions"], answers(row["text"])[0]))
    for row in measured.rows:
        if row["what"] == "plans" and row["how"] == ALL_PLANS:
            questions = questions_of(json.loads(exports[row["name"]]["value"]))
            yield row, dict(zip(questions, answers(row["value"])[0]))


def all_plans(path, all_path, target):
    """Writes the table of what colloc-cudnn --all answered, took, and how long it took."""
    measured = Measured(path)
    exports, asked = measured.of("export"), measured.of("asked", True)
    lines = ["| network | colloc-cudnn | seconds | MiB of the process | passes "
             "| largest as PyTorch tried |", "| --- | --- | --- | --- | --- | --- |"]  # fmt: skip
    for row, answered in largest_of_all(measured, Measured(all_path)):
        name = row["name"]
        tried = most_tried(json.loads(exports[name]["value"]), asked[name]["kernels"])
        known = [(answered[one][1], tried[one]) for one in tried
                 if answered.get(one) and is_of_cudnn(one)]  # fmt: skip
        how = "--all --device" if row["how"] == ALL_PLANS else "--all"
        taken = f"{row['nvml_mib']:.0f}" if "nvml_mib" in row else ""
        equal = sum(abs(a - b) <= 512 for a, b in known)
        lines.append(f"| {name} | {how} | {row['seconds']:.1f} | {taken} | {len(known)} "
                     f"| {equal} |")  # fmt: skip
    fill_page(target, all=lines)


ACTIONS = {
    "measure": measure,
    "ask": ask_kernels,
    "keep": trial.keep,
    "page": page,
    "alone": alone,
    "again": again,
    "all": all_plans,
}


if __name__ == "__main__":
    trial.act(ACTIONS, run_script, __doc__)
