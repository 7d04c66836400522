#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The carrier of libcolloc-preload.so (docs/carrier.md) on a real GPU. Prints one JSON object.

    tests/gpu/carrier_trial.py LIBRARY OUTPUT [PART ...]

LIBRARY: libcolloc-preload.so. Needs python3 with PyTorch, torchvision, timm and transformers, and
a GPU without other users. The other end of the library is tests/lib/preload_daemon.py, so no colloc
has to run. Results are written to OUTPUT after each part.

Parts:
    attributes   all that the driver says of a pointer, with and without the carrier
    speed        ResNet-50 and ResNet-152: out and in by the carrier, as a client of MPS too, and by
                 the driver's checkpoint, in turns
    losses       trainings that leave and come back at random instants, beside undisturbed ones
    mps-losses   the same as clients of MPS
    cost         the step time without any suspension, with and without the carrier, in pairs
    neighbour    the steps of a training beside one that leaves and comes back; NVML's answers
    more-losses  the same with torch.compile, CuPy and JAX
    daemon       `colloc suspend` and `colloc resume` with and without the setting carrier; LIBRARY
                 lies beside the programs of scripts/bundle
    killed       a process that is killed in each phase, and the memory that it leaves behind
"""
import ctypes
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import preload_daemon as pd  # noqa: E402
from trial import TrialDaemon  # noqa: E402

# Prints "begun", then for each step its seconds and its loss, bit for bit. It sleeps for PACE
# seconds after a step, and while the file PAUSE exists.
TRAIN = r"""
import os, sys, time
name, steps, batch = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
if name == "jax":
    import jax, jax.numpy as jnp
    w = jax.random.normal(jax.random.PRNGKey(0), (4096, 4096)) * 0.01
    x = jax.random.normal(jax.random.PRNGKey(1), (batch, 4096))
    f = jax.jit(jax.value_and_grad(lambda w: jnp.mean((jnp.tanh(x @ w) - 1) ** 2)))
    def step():
        global w
        loss, g = f(w); w = w - 0.1 * g
        return float(loss)
elif name == "cupy":
    import cupy
    rng = cupy.random.RandomState(0)
    w, x = rng.standard_normal((4096, 4096)) * 0.01, rng.standard_normal((batch, 4096))
    def step():
        global w
        y = cupy.tanh(x @ w); e = y - 1
        w = w - 0.1 * (x.T @ (e * (1 - y * y))) / batch
        return float((e * e).mean())
else:
    import torch
    torch.manual_seed(0)
    torch.backends.cudnn.deterministic = True
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cuda.enable_flash_sdp(False); torch.backends.cuda.enable_mem_efficient_sdp(False)
    if hasattr(torch.backends.cuda, "enable_cudnn_sdp"): torch.backends.cuda.enable_cudnn_sdp(False)
    g = torch.Generator().manual_seed(1)
    F = torch.nn.functional
    half = name == "vit"
    scaler = torch.amp.GradScaler("cuda", enabled=half)
    if name == "lstm":
        net = torch.nn.ModuleList([torch.nn.LSTM(512, 1024, 2), torch.nn.Linear(1024, 512)]).cuda()
        x = torch.randn(128, batch, 512, generator=g).cuda()
        loss_of = lambda: (net[1](net[0](x)[0]) - x).square().mean()
    elif name == "gpt2":
        import transformers
        net = transformers.GPT2LMHeadModel(transformers.GPT2Config(
            attn_implementation="eager", resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)).cuda().train()
        x = torch.randint(0, 50000, (batch, 512), generator=g).cuda()
        loss_of = lambda: net(x, labels=x).loss
    else:
        if name == "vit":
            import timm
            net = timm.create_model("vit_small_patch16_224", num_classes=100).cuda()
        else:
            import torchvision
            kind = {"graph": "resnet50", "compile": "resnet50", "compile-graphs": "resnet50",
                    "loader": "resnet18"}.get(name, name)
            net = getattr(torchvision.models, kind)(num_classes=100).cuda()
        if name.startswith("compile"):
            net = torch.compile(net, mode="reduce-overhead" if name == "compile-graphs" else None)
        x = torch.randn(batch, 3, 224, 224, generator=g)
        y = torch.randint(0, 100, (batch,), generator=g)
        if name == "loader":
            data = torch.utils.data.TensorDataset(x.repeat(4, 1, 1, 1), y.repeat(4))
            def batches():
                while True:
                    yield from torch.utils.data.DataLoader(
                        data, batch, num_workers=2, pin_memory=True)
            source = batches()
            def loss_of():
                a, b = (t.cuda(non_blocking=True) for t in next(source))
                return F.cross_entropy(net(a), b)
        else:
            x, y = x.cuda(), y.cuda()
            def loss_of():
                with torch.autocast("cuda", torch.float16, enabled=half):
                    return F.cross_entropy(net(x), y)
    o = torch.optim.AdamW(net.parameters(), 1e-4) if name == "gpt2" else \
        torch.optim.SGD(net.parameters(), 1e-3, momentum=.9)
    def whole_step():
        o.zero_grad(set_to_none=name != "graph")
        loss = loss_of(); scaler.scale(loss).backward()
        if half: scaler.step(o); scaler.update()
        else: o.step()
        return loss
    step = lambda: whole_step().item()
    if name == "graph":
        side = torch.cuda.Stream(); side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3): whole_step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph): held = whole_step()
        def step():
            graph.replay()
            return held.item()
for i in range(2): step()
print("begun", flush=True)
for i in range(steps):
    begin = time.perf_counter()
    loss = step()
    print("step", time.perf_counter() - begin, loss.hex(), flush=True)
    if os.environ.get("PACE"): time.sleep(float(os.environ["PACE"]))
    while os.path.exists(os.environ.get("PAUSE", "")): time.sleep(0.01)
"""

# What the driver says of a pointer in the middle of an allocation.
ATTRIBUTES = r"""
import ctypes as c, json, sys
cuda = c.CDLL("libcuda.so.1")
context, at = c.c_void_p(), c.c_uint64()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(c.byref(context), 0) == 0
cuda.cuCtxSetCurrent(context)
answers = {}
for mib in (1, 3, 64):
    assert cuda.cuMemAlloc_v2(c.byref(at), c.c_size_t(mib << 20)) == 0
    for which in list(range(1, 22)):
        room = (c.c_ubyte * 64)()
        r = cuda.cuPointerGetAttribute(room, which, c.c_uint64(at.value + 4096))
        value = int.from_bytes(bytes(room[:8]), "little")
        names = {at.value: "start", context.value: "context", at.value + 4096: "itself"}
        value = names.get(value, value)
        answers[f"{mib} MiB, attribute {which}"] = [r, "some id" if which in (7, 20) else value]
    base, size = c.c_uint64(), c.c_size_t()
    r = cuda.cuMemGetAddressRange_v2(c.byref(base), c.byref(size), c.c_uint64(at.value + 4096))
    answers[f"{mib} MiB, range"] = [r, base.value == at.value, size.value]
    handle = c.c_uint64()
    answers[f"{mib} MiB, retain"] = [
        cuda.cuMemRetainAllocationHandle(c.byref(handle), c.c_void_p(at.value))]
    answers[f"{mib} MiB, export"] = [cuda.cuMemGetHandleForAddressRange(
        c.byref(handle), at, c.c_size_t(mib << 20), 1, c.c_ulonglong(0))]
    answers[f"{mib} MiB, unmap"] = [cuda.cuMemUnmap(at, c.c_size_t(mib << 20))]
    answers[f"{mib} MiB, ipc"] = [cuda.cuIpcGetMemHandle((c.c_ubyte * 64)(), at)]
    pitch, rows = c.c_size_t(), c.c_uint64()
    r = cuda.cuMemAllocPitch_v2(
        c.byref(rows), c.byref(pitch), c.c_size_t(5000), c.c_size_t(mib << 10), 4)
    answers[f"{mib} MiB, pitch"] = [r, pitch.value, cuda.cuMemFree_v2(rows)]
    answers[f"{mib} MiB, free inside, free, free again"] = [
        cuda.cuMemFree_v2(c.c_uint64(at.value + 512)), cuda.cuMemFree_v2(at), cuda.cuMemFree_v2(at)]
print(json.dumps(answers))
"""


def used_mib():
    out = subprocess.run(
        ["nvidia-smi", "-i", "0", "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
        capture_output=True,
        text=True,
    ).stdout
    return int(out)


class Training:
    """With the carrier, another daemon for each training gives the orders."""

    def __init__(self, trial, name, steps, batch, carrier=True, mps=False, **env):
        self.folder = tempfile.mkdtemp()
        env = {key: str(value) for key, value in env.items()}
        env = {"TORCHINDUCTOR_CACHE_DIR": self.folder, **env}
        env = dict(os.environ, CUBLAS_WORKSPACE_CONFIG=":4096:8", **env)
        self.daemon = None
        if carrier:
            socket = os.path.join(self.folder, "socket")
            self.daemon = pd.PreloadDaemon(socket, lambda wait: [(pd.FAIL, 0)])
            env.update(LD_PRELOAD=trial.library, COLLOC_PRELOAD_SOCKET=socket, COLLOC_TASK_ID="1")
            env.update(COLLOC_ATTEMPT_NUMBER="1", COLLOC_PRELOAD_CARRIER="1")
        if mps:
            env.update(trial.mps_environment())
        self.steps, self.losses, self.others = [], [], []
        self.has_begun = threading.Event()
        self.process = subprocess.Popen(
            [sys.executable, "-c", TRAIN, name, str(steps), str(batch)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=env,
        )
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            words = line.split()
            if words[:1] == ["begun"]:
                self.has_begun.set()
            elif words[:1] == ["step"] and len(words) == 3:
                self.steps.append(float(words[1]))
                self.losses.append(words[2])
            else:
                self.others.append(line.rstrip())

    def wait_begun(self, limit=150):
        end = time.monotonic() + limit
        while not self.has_begun.wait(0.1):
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"did not begin: {self.others[-8:]}")

    @property
    def page(self):
        return self.daemon.pages[self.process.pid]

    def leave(self):
        begin = time.monotonic()
        self.page.set_gate(True)
        why = self.page.carry(pd.AWAY)
        if why != "can":
            self.open_gate()
        return why, time.monotonic() - begin

    def open_gate(self):
        self.page.set_gate(False)
        self.page.wake(pd.GATE)

    def come_back(self):
        begin = time.monotonic()
        why = self.page.carry(pd.HERE)
        if why == "can":
            self.open_gate()
        return why, time.monotonic() - begin

    def swap(self, hold_s=0.0, looks=False):
        """One way out and back, in seconds."""
        why, out_s = self.leave()
        if why != "can":
            return {"why": why, "error": self.page.u32(pd.CARRY_ERROR)}
        used = used_mib() if looks else None
        time.sleep(hold_s)
        why, in_s = self.come_back()
        swap = {"why": why, "out_s": round(out_s, 4), "in_s": round(in_s, 4)}
        if looks:
            swap["used_away_mib"] = used
        return swap

    def end(self, limit=240):
        """Returns whether it ended by itself with success."""
        try:
            self.process.wait(limit)
        except subprocess.TimeoutExpired:
            pass
        rc = self.process.poll()
        self.kill()
        self.reader.join(10)
        return rc

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        if self.daemon:
            self.daemon.close()

    def step_ms(self):
        return round(1000 * statistics.median(self.steps), 3) if self.steps else None


def linked_libraries(pid):
    """Which libraries of the process import functions of the driver."""
    with open(f"/proc/{pid}/maps") as maps:
        paths = sorted({line.split()[-1] for line in maps if ".so" in line})
    found = {}
    for path in paths:
        if "libcuda.so" in path or "libnvidia" in path or not os.path.exists(path):
            continue
        out = subprocess.run(
            ["nm", "-D", "--undefined-only", path], capture_output=True, text=True
        ).stdout
        names = [w for w in out.split() if w.startswith("cu") and w[2:3].isupper()]
        if names:
            found[os.path.basename(path)] = names
    return found


class Driver:
    """The driver's checkpoint, by ctypes."""

    class Arguments(ctypes.Structure):
        _fields_ = [("words", ctypes.c_uint64 * 8)]

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.cuda.cuInit(0)

    def call(self, name, pid, first=0):
        arguments = self.Arguments()
        arguments.words[0] = first
        begin = time.monotonic()
        r = getattr(self.cuda, "cuCheckpointProcess" + name)(pid, ctypes.byref(arguments))
        return r, time.monotonic() - begin

    def swap(self, pid):
        calls = {
            name: self.call(name, pid, 10000 if name == "Lock" else 0)
            for name in ("Lock", "Checkpoint", "Restore", "Unlock")
        }
        return {
            "results": [r for r, _ in calls.values()],
            "out_s": round(calls["Lock"][1] + calls["Checkpoint"][1], 4),
            "in_s": round(calls["Restore"][1] + calls["Unlock"][1], 4),
        }


class Trial:
    def __init__(self, library, output):
        self.library, self.output, self.results = os.path.abspath(library), output, {}
        self.pipe = None

    def note(self, key, value):
        self.results[key] = value
        with open(self.output, "w") as out:
            json.dump(self.results, out, indent=1)
        print(key, json.dumps(value)[:1500], flush=True)

    def mps_environment(self):
        if not self.pipe:
            self.pipe = tempfile.mkdtemp()
            env = dict(
                os.environ, CUDA_MPS_PIPE_DIRECTORY=self.pipe, CUDA_MPS_LOG_DIRECTORY=self.pipe
            )
            subprocess.run(["nvidia-cuda-mps-control", "-d"], env=env, check=True)
            time.sleep(1)
        return {"CUDA_MPS_PIPE_DIRECTORY": self.pipe, "CUDA_MPS_LOG_DIRECTORY": self.pipe}

    def end_mps(self):
        if self.pipe:
            env = dict(os.environ, **self.mps_environment())
            subprocess.run(["nvidia-cuda-mps-control"], input="quit\n", text=True, env=env)
            self.pipe = None

    # ---- parts ----

    def attributes(self):
        env = dict(os.environ)
        native = json.loads(subprocess.check_output([sys.executable, "-c", ATTRIBUTES], env=env))
        env.update(LD_PRELOAD=self.library, COLLOC_PRELOAD_CARRIER="1")
        carried = json.loads(subprocess.check_output([sys.executable, "-c", ATTRIBUTES], env=env))
        differ = {key: [native[key], carried[key]] for key in native if native[key] != carried[key]}
        self.note("attributes", {"asked": len(native), "differ": differ})

    def speed_of(self, name, batch, times, mps):
        training = Training(self, name, 100000, batch, mps=mps)
        try:
            training.wait_begun()
            time.sleep(1)
            result = {
                "why": training.page.why(),
                "gib": round(training.page.u64(pd.CARRY_BYTES) / 2**30, 2),
                "used_mib": used_mib(),
            }
            if training.page.why() == "linked":
                result["linked"] = linked_libraries(training.process.pid)
            result["swaps"] = [training.swap(0.3, looks=True) for _ in range(times)]
            n = len(training.steps)
            time.sleep(2)
            result["goes_on"] = len(training.steps) > n
        finally:
            training.kill()
        return result

    def driver_speed_of(self, name, batch):
        training = Training(self, name, 100000, batch, carrier=False)
        try:
            training.wait_begun()
            time.sleep(1)
            result = Driver().swap(training.process.pid)
            n = len(training.steps)
            time.sleep(2)
            result["goes_on"] = len(training.steps) > n
        finally:
            training.kill()
        return result

    def speed(self):
        for name, batch, times in (("resnet50", 64, 5), ("resnet152", 256, 3)):
            result = self.speed_of(name, batch, times, mps=False)
            self.note(f"speed {name}", result)
            if any(swap["why"] != "can" for swap in result["swaps"]):
                sys.exit("it is not carried: the other parts would show nothing")
            self.note(f"speed {name}, driver", self.driver_speed_of(name, batch))
        for name, batch, times in (("resnet50", 64, 5), ("resnet152", 256, 3)):
            self.note(f"speed {name}, MPS", self.speed_of(name, batch, times, mps=True))
        self.end_mps()

    KINDS = (("resnet50", 400, 64), ("vit", 400, 64), ("lstm", 400, 64), ("gpt2", 300, 8))
    KINDS += (("graph", 400, 32), ("loader", 300, 32))
    MORE_KINDS = (
        ("compile", 300, 32),
        ("compile-graphs", 300, 32),
        ("cupy", 2000, 512),
        ("jax", 2000, 512),
    )

    def disturb(self, training, swaps, seed):
        """Leaves and comes back at random instants."""
        instants, done = random.Random(seed), []
        try:
            training.wait_begun()
            while len(done) < swaps and training.process.poll() is None:
                time.sleep(instants.uniform(0.02, 0.3))
                if training.process.poll() is not None:
                    break
                done.append(training.swap(instants.uniform(0, 0.2)))
        except Exception as error:  # noqa: BLE001 - a part of the result
            done.append({"why": repr(error)})
        return done

    def compare(self, kinds, swaps, mps):
        undisturbed = {k[0]: Training(self, *k, carrier=False) for k in kinds}
        disturbed = {k[0]: Training(self, *k, mps=mps) for k in kinds}
        done = {}

        def run(name, seed):
            done[name] = self.disturb(disturbed[name], swaps, seed)

        threads = [
            threading.Thread(target=run, args=(k[0], seed)) for seed, k in enumerate(kinds, start=1)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for name, training in disturbed.items():
            rc, reference_rc = training.end(), undisturbed[name].end()
            swapped = [s for s in done[name] if s.get("why") == "can"]
            reference = undisturbed[name].losses
            result = {
                "rc": [reference_rc, rc],
                "steps": [len(reference), len(training.losses)],
                "equal": bool(reference) and training.losses == reference,
                "out_and_in": len(swapped),
                "refused": sorted({s["why"] for s in done[name] if s.get("why") != "can"}),
            }
            if swapped:
                for way in ("out_s", "in_s"):
                    result[way] = round(statistics.median(s[way] for s in swapped), 3)
            if not result["equal"]:
                pairs = list(zip(reference, training.losses))
                result["first_difference"] = next(
                    (i for i, (a, b) in enumerate(pairs) if a != b), None
                )
                result["says"] = [undisturbed[name].others[-4:], training.others[-4:]]
            self.note(f"losses {name}" + (", MPS" if mps else ""), result)

    def losses(self):
        self.compare(self.KINDS, 50, mps=False)

    def mps_losses(self):
        self.compare(self.KINDS, 50, mps=True)
        self.end_mps()

    def more_losses(self):
        self.compare(self.MORE_KINDS, 20, mps=False)

    def cost(self):
        """In turns; the first of a pair is once one and once the other."""
        for name, steps, batch in (("resnet50", 200, 64),):
            pairs = []
            for i in range(int(os.environ.get("PAIRS", "20"))):
                pair = {}
                for carrier in (True, False) if i % 2 else (False, True):
                    training = Training(self, name, steps, batch, carrier=carrier)
                    training.end()
                    pair[carrier] = training.step_ms()
                pairs.append([pair[False], pair[True]])
                ratio = statistics.median(b / a for a, b in pairs)
                self.note(
                    f"cost {name}", {"ms_without_and_with": pairs, "median_ratio": round(ratio, 5)}
                )

    def neighbour(self):
        for mps in (False, True):
            victim = Training(self, "resnet50", 100000, 64, mps=mps)
            neighbour = Training(self, "resnet50", 100000, 32, carrier=False, mps=mps)
            try:
                victim.wait_begun()
                neighbour.wait_begun()
                time.sleep(15)
                calm = neighbour.steps[:]
                n, swaps = len(neighbour.steps), []
                for _ in range(20):
                    swaps.append(victim.swap(0.1))
                    time.sleep(0.3)
                beside = neighbour.steps[n:]
                p99 = [round(1000 * sorted(s)[int(0.99 * len(s))], 2) for s in (calm, beside)]
                self.note(
                    "neighbour" + (", MPS" if mps else ""),
                    {
                        "p99_ms_calm_and_beside": p99,
                        "steps": [len(calm), len(beside)],
                        "swaps": swaps[:3],
                    },
                )
            finally:
                victim.kill()
                neighbour.kill()
        self.end_mps()

    def suspensions(self, carrier, reference):
        """Of one task by its user, and whether its losses are those of an undisturbed run."""
        programs = os.path.dirname(self.library)
        settings = {
            "sharing": "streams",
            "carrier": carrier,
            "checkpoint": f"{programs}/colloc-checkpoint",
        }
        daemon = TrialDaemon(programs, preload_library=self.library, **settings)
        script, rows = os.path.join(daemon.folder, "train.py"), []
        with open(script, "w") as out:
            out.write(TRAIN)
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
        task, _ = daemon.submit(script, "resnet50", "400", "64")
        end = time.monotonic() + 60
        while "step" not in daemon.colloc("logs", str(task)) and time.monotonic() < end:
            time.sleep(0.2)
        time.sleep(1.5)
        for _ in range(3):
            times = []
            for verb in ("suspend", "resume"):
                begin = time.monotonic()
                daemon.colloc(verb, str(task), check=False)
                while daemon.show(task)["state"] not in (
                    "SUSPENDED",
                    "RUNNING",
                    "COMPLETED",
                    "FAILED",
                ):
                    time.sleep(0.01)
                times.append(round(time.monotonic() - begin, 3))
                if verb == "suspend":
                    used = used_mib()
            rows.append({"suspend_s": times[0], "resume_s": times[1], "used_away_mib": used})
            time.sleep(0.7)
        state = daemon.wait(task)[0]["state"]
        lines = [line.split() for line in daemon.colloc("logs", str(task)).splitlines()]
        losses = [words[2] for words in lines if words[:1] == ["step"] and len(words) == 3]
        log = [line for line in open(daemon.log.name) if "memory" in line][-4:]
        daemon.close()
        return {"state": state, "equal": losses == reference, "rows": rows, "log": log}

    def daemon(self):
        undisturbed = Training(self, "resnet50", 400, 64, carrier=False)
        undisturbed.end()
        for carrier in ("yes", "no"):
            self.note(f"daemon, carrier: {carrier}", self.suspensions(carrier, undisturbed.losses))

    def killed(self):
        """In each phase by a delay after the order; a neighbour goes on, no memory is left."""
        for mps in (False, True):
            neighbour = Training(self, "resnet18", 100000, 16, carrier=False, mps=mps)
            neighbour.wait_begun()
            before, result = used_mib(), []
            victims = [Training(self, "resnet50", 100000, 64, mps=mps) for _ in range(10)]
            delays = [0, 0.01, 0.03, 0.08, 0.15, 0.25, 0.35, 0.5, 0.5, 0.6]
            try:
                for victim, delay in zip(victims, delays):
                    victim.wait_begun()
                for victim, delay in zip(victims, delays):
                    victim.page.set_gate(True)
                    victim.page.set_order(pd.AWAY)
                    time.sleep(delay)
                    if delay >= 0.5:
                        victim.page.set_order(pd.HERE)
                        time.sleep(delay - 0.5)
                    phase = victim.page.where()
                    os.kill(victim.process.pid, signal.SIGKILL)
                    result.append([delay, phase])
                for victim in victims:
                    victim.kill()
                end = time.monotonic() + 20
                while used_mib() > before + 64 and time.monotonic() < end:
                    time.sleep(0.2)
                n = len(neighbour.steps)
                time.sleep(1)
                self.note(
                    "killed" + (", MPS" if mps else ""),
                    {
                        "delay_and_phase": result,
                        "used_mib_before_and_after": [before, used_mib()],
                        "neighbour_goes_on": len(neighbour.steps) > n,
                    },
                )
            finally:
                for victim in victims + [neighbour]:
                    victim.kill()
        self.end_mps()

    def run(self, parts):
        for part in parts:
            begin = time.monotonic()
            try:
                getattr(self, part.replace("-", "_"))()
            except Exception as error:  # noqa: BLE001 - the other parts are still of use
                self.note(f"error of {part}", repr(error))
            self.note(f"seconds of {part}", round(time.monotonic() - begin))


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    trial = Trial(sys.argv[1], sys.argv[2])
    trial.run(
        sys.argv[3:]
        or ["attributes", "speed", "losses", "mps-losses", "cost", "neighbour", "killed"]
    )
    json.dump(trial.results, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
