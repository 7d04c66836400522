#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the training steps of many networks alone on a GPU, for the roofline of a step.

    tests/gpu/step_trial.py measure OUT SECONDS [GPU]

The networks are those of colloc_collect: each family of real ones first, then the others, random
ones between them. A run goes through two processes, one after the other on the GPU, while the
other builds its next network on the CPU:

    timer       steps without synchronisation between them (step_ms, and the GPU's activity by
                GPM), steps with it (sync_ms), and the host's time to launch the parts of a step
                (host_ms)
    profiler    one step under PyTorch's profiler: the kernels with their operator, its shapes and
                the blocks of the launch. In a second process, since the profiler leaves its hooks
                behind

More processes export the networks meanwhile, on the CPU. OUT gets three files; each run is written
when it is known, as one xz stream where the name says so:

    steps.jsonl        a row for each run
    kernels.jsonl.xz   {"id", "ops": [[operator, calls]], "kernels": [[operator, shapes, types,
                       options, kernel, blocks, threads, launches, microseconds]]}
    exports.jsonl.xz   {"id", "export"}: the description by colloc_export

Needs PyTorch, torchvision, timm, transformers and nvidia-ml-py; changes no setting of the GPU.
With GPU "cpu" it is a dry run.
"""
import collections
import contextlib
import json
import lzma
import os
import random
import select
import signal
import statistics
import sys
import tempfile
import time
import traceback
import warnings

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))

from colloc_collect.forks import fork  # noqa: E402

SEED = 8
PASSES = 4  # over all architectures, each with another batch, optimizer and precision
RANDOM_EVERY = 6  # real networks, then a random one
EXPORTERS = 5
RUN_LIMIT_S, EXPORT_LIMIT_S = 25, 60
LAST_RUN_S = 5  # before the end, none begins
WARM_STEPS, WARM_S = 3, 0.15
WINDOW_S, WINDOW_STEPS = 0.6, 4
SYNC_S, HOST_S, HOST_STEPS = 0.1, 0.15, 3
STEP_LIMIT_S = 1.2
DRY_BATCH = 2


# ---- what to run


def make_rows():
    """The rows of the plan, the most different first."""
    from colloc_collect import plan, real, synthetic

    rng = random.Random(SEED)
    families = collections.defaultdict(list)
    for architecture in real.ARCHITECTURES:
        families[architecture.family].append(architecture)
    for group in families.values():
        rng.shuffle(group)
    names = sorted(families)
    rng.shuffle(names)
    longest = max(map(len, families.values()))
    ordered = [families[n][i] for i in range(longest) for n in names if i < len(families[n])]
    rows = {}

    def add(row):
        rows.setdefault(row["id"], row)

    for again in range(PASSES):
        for place, architecture in enumerate(ordered):
            batches = architecture.batches
            add(
                plan.make_configuration(
                    "real",
                    architecture.family,
                    architecture.name,
                    batches[(place + 2 * again + 1) % min(4, len(batches))],
                    architecture.sequence_length,
                    ("sgd", "adamw", "momentum", "adam")[(place // 2 + again) % 4],
                    plan.PRECISIONS[(place + again) % 2],
                )
            )
            if place % RANDOM_EVERY == RANDOM_EVERY - 1:
                kind = rng.choice(("mlp", "cnn", "cnn", "transformer"))
                spec, batch, sequence = synthetic.DRAW[kind](rng)
                add(
                    plan.make_configuration(
                        kind,
                        kind,
                        spec,
                        batch,
                        sequence,
                        rng.choice(plan.OPTIMIZERS),
                        rng.choice(plan.PRECISIONS),
                    )
                )
    return list(rows.values())


# ---- files


class Writer:
    """Appends whole lines, and whole xz streams, so that several processes may share the files."""

    def __init__(self, folder):
        self.folder = folder

    def _append(self, name, data):
        fd = os.open(os.path.join(self.folder, name), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.write(fd, data)
        os.close(fd)

    def line(self, name, value):
        data = (json.dumps(value, separators=(",", ":")) + "\n").encode()
        self._append(name, lzma.compress(data, preset=6) if name.endswith(".xz") else data)

    def say(self, text):
        text = f"{time.strftime('%H:%M:%S')} {text}\n"
        sys.stderr.write(text)
        self._append("log.txt", text.encode())


# ---- one training


def make_training(row, device):
    """Builds the training on the CPU, with its batch in pinned memory as a loader leaves it."""
    from colloc_collect.worker import Training

    class Pinned(Training):
        def _to_device(self, value):
            import torch

            if isinstance(value, torch.Tensor):
                return value.to(self.device, non_blocking=True)
            return super()._to_device(value)

    return Pinned(row, device)


def pin(value):
    """The same value, its tensors in pinned memory."""
    import torch

    if isinstance(value, torch.Tensor):
        return value.pin_memory()
    if isinstance(value, (list, tuple)):
        return type(value)(pin(item) for item in value)
    return {key: pin(item) for key, item in value.items()} if isinstance(value, dict) else value


def place(training):
    training.place()
    if training.device == "cuda":
        training.source = pin(training.source)


def warm_up(training, seconds):
    """Trains until the libraries are loaded and for so long. Returns the seconds of the first
    step."""
    times, begin = [], time.perf_counter()
    while len(times) < WARM_STEPS or time.perf_counter() - begin < seconds:
        before = time.perf_counter()
        training.step()
        training.finish()
        times.append(time.perf_counter() - before)
        if len(times) > 1 and times[-1] > STEP_LIMIT_S:
            raise RuntimeError(f"a step takes {times[-1]:.1f} s")
    return times[0]


def _marks(training, seconds):
    """Trains for so long without waiting for the GPU. Returns milliseconds between the ends of
    steps, as the GPU saw them."""
    import torch

    on_gpu = training.device == "cuda"
    marks, begin = [], time.perf_counter()
    while len(marks) <= WINDOW_STEPS or time.perf_counter() - begin < seconds:
        training.step()
        if on_gpu:
            marks.append(torch.cuda.Event(enable_timing=True))
            marks[-1].record()
        else:
            marks.append(time.perf_counter())
    training.finish()
    if on_gpu:
        return [a.elapsed_time(b) for a, b in zip(marks, marks[1:])]
    return [1000 * (b - a) for a, b in zip(marks, marks[1:])]


def _synchronous(training):
    times, begin = [], time.perf_counter()
    while len(times) < 3 or time.perf_counter() - begin < SYNC_S:
        before = time.perf_counter()
        training.step()
        training.finish()
        times.append(1000 * (time.perf_counter() - before))
    return statistics.median(times)


def _host(training):
    """Milliseconds in which the host launches forward pass, backward pass and update, each from an
    idle GPU."""
    parts = [[], [], []]
    begin = time.perf_counter()
    calls = (training.forward, lambda: training.loss.backward(), training.update)
    while len(parts[0]) < HOST_STEPS or time.perf_counter() - begin < HOST_S:
        for part, call in zip(parts, calls):
            training.finish()
            before = time.perf_counter()
            call()
            part.append(1000 * (time.perf_counter() - before))
    training.finish()
    return [round(statistics.median(part), 4) for part in parts]


def time_training(training, gpu):
    """The timer's part of a row."""
    place(training)
    first = warm_up(training, WARM_S)  # the GPU's clocks go up
    before, begin = gpu.snapshot(), time.perf_counter()
    steps = sorted(_marks(training, WINDOW_S))
    window = time.perf_counter() - begin
    activity = gpu.activity(before, gpu.snapshot())
    return {
        "first_ms": round(1000 * first, 2),
        "step_ms": round(statistics.median(steps), 4),
        "mean_ms": round(1000 * window / (len(steps) + 1), 4),
        "least_ms": round(steps[0], 4),
        "steps": len(steps) + 1,
        "window_s": round(window, 3),
        **{key: round(value, 5) for key, value in activity.items()},
        "sync_ms": round(_synchronous(training), 4),
        "host_ms": _host(training),
        "tensors": sum(1 for p in training.model.parameters() if p.requires_grad),
        "parameters": sum(p.numel() for p in training.model.parameters() if p.requires_grad),
    }


# ---- the profiler


@contextlib.contextmanager
def profile(path, on_gpu):
    """Writes a trace of what runs within."""
    from torch.profiler import ProfilerActivity, profile as record

    kinds = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if on_gpu else [])
    with record(activities=kinds, record_shapes=True) as profiler:
        yield
    profiler.export_chrome_trace(path)


KERNELS = ("kernel", "gpu_memcpy", "gpu_memset")


def summarise(events):
    """The kernels of a trace by operator, shapes and launch; and the calls of operators."""
    names = collections.Counter()
    by_id, groups = {}, collections.defaultdict(lambda: [0, 0.0])
    for event in events:
        if event.get("cat") == "cpu_op":
            names[event["name"]] += 1
            arguments = event.get("args", {})
            by_id[arguments.get("External id")] = (event["name"], arguments)
    kernels = [event for event in events if event.get("cat") in KERNELS]
    for event in kernels:
        arguments = event.get("args", {})
        name, caller = by_id.get(arguments.get("External id"), ("", {}))
        shapes = caller.get("Input Dims", [])
        if len(shapes) > 24 or any(len(str(shape)) > 200 for shape in shapes):
            shapes = []
        options = caller.get("Concrete Inputs", []) if "conv" in name else []
        key = (
            name,
            json.dumps([shapes, caller.get("Input type", [])[:4], options]),
            event["name"],
            json.dumps([arguments.get("grid"), arguments.get("block")]),
        )
        groups[key][0] += 1
        groups[key][1] += event.get("dur", 0)
    begin = min((event["ts"] for event in kernels), default=0)
    end = max((event["ts"] + event.get("dur", 0) for event in kernels), default=0)
    return {
        "ops": names.most_common(),
        "kernels": [
            [name, *json.loads(shapes), kernel, *json.loads(launch), count, round(us, 2)]
            for (name, shapes, kernel, launch), (count, us) in groups.items()
        ],
        "launches": len(kernels),
        "busy_ms": round(sum(event.get("dur", 0) for event in kernels) / 1000, 4),
        "span_ms": round((end - begin) / 1000, 4),
    }


def profile_training(training, folder):
    """Trains one step under the profiler. Returns the path of its trace."""
    place(training)
    warm_up(training, 0)
    path = os.path.join(folder, f"trace-{os.getpid()}.json")
    with profile(path, training.device == "cuda"):
        training.step()
        training.finish()
    return path


# ---- the processes


class Worker:
    """A process that takes rows by a pipe: it builds one, says "built", waits for "go", measures,
    and says what it found. It is replaced when it fails."""

    def __init__(self, work, others):
        self._work, self._others = work, others
        self.pid = None

    def _start(self):
        ours, theirs = os.pipe(), os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(ours[0])
                os.close(theirs[1])
                for other in self._others:
                    if other is not self and other.pid:
                        os.close(other.source)
                        os.close(other.sink)
                self._work(os.fdopen(theirs[0]), os.fdopen(ours[1], "w"))
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(0)
        os.close(ours[1])
        os.close(theirs[0])
        self.source, self.sink, self._buffer = ours[0], theirs[1], b""

    def say(self, message):
        if not self.pid:
            self._start()
        try:
            os.write(self.sink, json.dumps(message).encode() + b"\n")
        except OSError:
            self.end()

    def hear(self):
        """The next message, or one with an error when the process ended or took too long."""
        limit = time.monotonic() + RUN_LIMIT_S
        while self.pid and b"\n" not in self._buffer:
            ready = select.select([self.source], [], [], max(0, limit - time.monotonic()))[0]
            data = os.read(self.source, 1 << 20) if ready else b""
            if not data:
                self.end()
                return {"error": "died" if ready else "too long"}
            self._buffer += data
        if not self.pid:
            return {"error": "died"}
        text, self._buffer = self._buffer.split(b"\n", 1)
        message = json.loads(text)
        if "error" in message:
            self.end()
        return message

    def end(self):
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            os.close(self.source)
            os.close(self.sink)
            self.pid = None


def _work(measure, device, begin):
    """The loop of a worker. measure(training, row, say): says the result."""

    def loop(source, sink):
        import torch

        def say(**message):
            sink.write(json.dumps(message) + "\n")
            sink.flush()

        from colloc_collect.worker import reset_allocator

        torch.set_num_threads(2)
        state, is_new = None, True
        for text in source:
            row, training = json.loads(text), None
            try:
                training = make_training(row, device)
                say(built=True)
                if json.loads(source.readline()) != "go":
                    continue
                if is_new:
                    state, is_new = begin(), False
                finish = measure(training, state)
                training = None
                reset_allocator()
                say(measured=True)
                say(**finish())
            except Exception as error:
                say(error=f"{type(error).__name__}: {error}"[:300])

    return loop


def timer(device, index):
    from colloc_collect.device import NoDevice, Nvml

    def begin():
        if device != "cuda":
            return NoDevice()
        try:
            return Nvml(index)
        except Exception as error:
            print(f"no NVML: {error}", file=sys.stderr)
            return NoDevice()

    def measure(training, gpu):
        result = time_training(training, gpu)
        return lambda: result

    return _work(measure, device, begin)


def profiler(device, folder):
    def begin():
        """The first trace loads CUPTI and may miss kernels."""
        import torch

        with profile(os.path.join(folder, "first.json"), device == "cuda"):
            torch.ones(1, device=device).add_(1)
        return folder

    def measure(training, where):
        path = profile_training(training, where)

        def finish():
            with open(path, encoding="utf-8", errors="replace") as file:
                events = json.load(file, strict=False)["traceEvents"]
            os.unlink(path)
            return summarise(events)

        return finish

    return _work(measure, device, begin)


def _stage(worker, word="go"):
    """Lets a worker measure what it built, or with another word forget it. Returns an error, or
    None: it left the GPU."""
    message = worker.hear()
    if "error" not in message:
        worker.say(word)
        message = worker.hear() if word == "go" else {}
    return message.get("error")


class Session:
    """The runs of a plan, one after the other on the GPU."""

    def __init__(self, writer, device, index, scratch):
        workers = []
        self.timer = Worker(timer(device, index), workers)
        self.profiler = Worker(profiler(device, scratch), workers)
        workers += [self.timer, self.profiler]
        self.writer = writer
        self.pending = None  # the row whose trace is still being read
        self.done = 0

    def _time(self, row, following):
        error = _stage(self.timer)
        found = {"error": error} if error else self.timer.hear()
        if following:
            self.timer.say(following)
        return {**row, **found, "status": "error" if "error" in found else "ok"}

    def _collect(self):
        if self.pending:
            _write(self.writer, self.pending, self.profiler.hear())
        self.pending = None

    def _profile(self, row, result):
        self._collect()
        if not self.profiler.pid:
            self.profiler.say(row)
        if result["status"] != "ok":
            _stage(self.profiler, "no")
            self.writer.line("steps.jsonl", result)
            return
        error = _stage(self.profiler)
        if error:
            _write(self.writer, result, {"error": error})
        else:
            self.pending = result
        self.done += 1

    def run(self, rows, deadline):
        """Measures the rows until the deadline."""
        self.timer.say(rows[0])
        for row, following in zip(rows, [*rows[1:], None]):
            began = time.monotonic()
            if began > deadline - LAST_RUN_S:
                break
            self.profiler.say(row)
            result = self._time(row, following)
            self._profile(row, result)
            self.writer.say(
                f"{self.done} {row['family']} {row['batch']} {row['precision']} "
                f"{result.get('step_ms')} ms {result.get('error', '')} "
                f"{result.get('profile_error', '')} in {time.monotonic() - began:.1f} s"
            )
        self._collect()
        self.timer.end()
        self.profiler.end()


def _write(writer, result, found):
    if "error" in found:
        result["profile_error"] = found["error"]
    else:
        kernels = {key: found.pop(key) for key in ("ops", "kernels")}
        writer.line("kernels.jsonl.xz", {"id": result["id"], **kernels})
        result.update(found)
    writer.line("steps.jsonl", result)


# ---- exports


def _on_alarm(*_):
    raise TimeoutError("too long")


def export_all(rows, writer, deadline):
    """Exports the rows in their order."""
    import torch

    from colloc_collect.plan import task_of
    from colloc_export import export

    os.nice(10)
    torch.set_num_threads(1)
    signal.signal(signal.SIGALRM, _on_alarm)
    for row in rows:
        if time.monotonic() > deadline:
            return
        line, started = {"id": row["id"]}, time.monotonic()
        signal.alarm(EXPORT_LIMIT_S)
        try:
            line["export"] = export(task_of(row), row["batch"])
        except BaseException as problem:
            line["error"] = f"{type(problem).__name__}: {problem}"[:300]
        signal.alarm(0)
        line["seconds"] = round(time.monotonic() - started, 2)
        writer.line("exports.jsonl.xz", line)


# ---- the session


def _probe(device):
    """Microseconds in which this host launches an empty operator, and a small product."""
    import torch

    torch.set_num_threads(1)
    a = torch.ones(16, 16, device=device)
    answer = {}
    for name, call in (("add", lambda: a.add(1)), ("product", lambda: a.mm(a))):
        for _ in range(50):
            call()
        times = []
        for _ in range(7):
            if device == "cuda":
                torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(200):
                call()
            times.append((time.perf_counter() - begin) / 200)
        answer[name] = round(1e6 * statistics.median(times), 3)
    return answer


def _host_name():
    with contextlib.suppress(OSError):
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    return ""


def describe_session(writer, device, index):
    """Writes what the machine is, from a process that ends, since CUDA does not survive a fork."""
    import torch

    values = {
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "host": _host_name(),
        "cores": os.cpu_count(),
        "gpu_index": index,
        "probe_us": _probe(device),
    }
    if device == "cuda":
        values["gpu"] = torch.cuda.get_device_name(0)
        values["cudnn"] = torch.backends.cudnn.version()
    writer.line("session.json", values)


def import_everything(writer):
    """Imports all modules before any fork, with the GPUs hidden."""
    os.environ.update(CUDA_VISIBLE_DEVICES="", PYTORCH_NVML_BASED_CUDA_CHECK="1")
    from colloc_collect import worker
    from colloc_collect.real import ARCHITECTURES

    worker.skip_random_initialisation()
    for name in ("torchvision.models.detection", "torchvision.models.video", "timm"):
        try:
            __import__(name)
        except ImportError as error:
            writer.say(f"{name} is not here: {error}")
    try:
        import transformers
    except ImportError as error:
        writer.say(f"transformers is not here: {error}")
        return
    for row in ARCHITECTURES:
        if row.source == "transformers":
            try:
                getattr(transformers, row.config)
            except Exception as error:
                writer.say(f"{row.config}: {error}")


def measure(folder, seconds, gpu="0"):
    deadline = time.monotonic() + float(seconds)
    warnings.simplefilter("ignore")
    os.makedirs(folder, exist_ok=True)
    writer = Writer(folder)
    device, index = ("cpu", 0) if gpu == "cpu" else ("cuda", int(gpu))
    import_everything(writer)
    rows = make_rows()
    for row in rows if device == "cpu" else []:
        row["batch"] = min(row["batch"], DRY_BATCH)
    writer.say(f"{len(rows)} rows, imports are done")
    exporters = [
        fork(lambda i=i: export_all(rows[i::EXPORTERS], writer, deadline))
        for i in range(EXPORTERS if device == "cuda" else 1)
    ]
    os.environ["CUDA_VISIBLE_DEVICES"] = str(index) if device == "cuda" else ""
    os.waitpid(fork(lambda: describe_session(writer, device, index)), 0)
    with tempfile.TemporaryDirectory() as scratch:
        session = Session(writer, device, index, scratch)
        session.run(rows, deadline)
    for pid in exporters:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    writer.say(f"{session.done} runs")
    return 0 if session.done else 1


if __name__ == "__main__":
    if len(sys.argv) not in (4, 5) or sys.argv[1] != "measure":
        sys.exit(__doc__)
    sys.exit(measure(*sys.argv[2:]))
