#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Suspends, resumes and moves real trainings by colloc-checkpoint, on a machine with two free GPUs.

    checkpoint_trial.py PROGRAMS [RESULT.json [CLAIM...]]
                                     PROGRAMS: the folder with colloc-checkpoint

Needs root (or the same user for all), PyTorch, nvidia-smi, and about eight minutes for all. For
each claim (all of them, or those that are named) it prints "ok" or "FAILED" with what was measured,
and exits with 1 when one failed:

    probe        a tiny process keeps its memory over suspension, resumption and move
    resnet, gpt, vit, lstm, workers
                 a training that is suspended, moved to GPU 1 and back has bit for bit the losses of
                 an undisturbed run: convolutions; a language model; a vision transformer in half
                 precision with gradient scaling; cuDNN's recurrent layers; a DataLoader with four
                 worker processes
    ddp, ddp-shm, ddp-net
                 two processes that train together by NCCL, one on each GPU, are suspended and
                 resumed together: as NCCL connects them by itself; by the host's shared memory
                 (NCCL_P2P_DISABLE=1); by sockets (NCCL_SHM_DISABLE=1 and no cuMem as well)
    full         memory cannot be reserved on a full GPU, and the process survives that
    fits         a process that just fits comes back: the placeholder needs no context
    killed       the helper is killed in the middle of a checkpoint and of a restore
    neighbour    the steps of a training beside one that is suspended and resumed
    sizes        seconds and host memory by GPU memory
    mps          an MPS client is refused and runs on

Trainings that were restored are suspended again before they are killed: drivers with the open
kernel module were seen to hang when a restored process is killed (NVIDIA/cuda-checkpoint issue 53).
"""
import json
import os
import re
import select
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

GIB = 1 << 30
LIMIT_S = 120
CALL_LIMIT_S = 60  # of one call of the driver
STEPS = 160

COMMON = r"""
import os, sys, time, torch
torch.manual_seed(0)
torch.backends.cudnn.deterministic = True
torch.backends.cudnn.benchmark = False
torch.use_deterministic_algorithms(True, warn_only=True)
nn, F = torch.nn, torch.nn.functional
def run(model, optimizer, batch, loss_of, steps):
    print("pid", os.getpid(), flush=True)
    for i in range(steps):
        begin = time.time()
        optimizer.zero_grad()
        loss = loss_of(model, *batch)
        loss.backward()
        optimizer.step()
        value = loss.item()
        took_ms = 1000 * (time.time() - begin)
        print(i, f"{time.time():.4f}", f"{took_ms:.2f}", value.hex(), flush=True)
"""

RESNET = r"""
class Block(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.body = nn.Sequential(
            nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(True),
            nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs))
        same = stride == 1 and inputs == outputs
        self.skip = nn.Identity() if same else nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x))
layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(True)]
layers, inputs = layers + [nn.MaxPool2d(3, 2, 1)], 64
for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
    for i in range(count):
        layers.append(Block(inputs, width, stride if i == 0 else 1))
        inputs = 4 * width
model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 100)).cuda()
batch = int(sys.argv[2])
x, y = torch.randn(batch, 3, 224, 224), torch.randint(0, 100, (batch,))
run(model, torch.optim.SGD(model.parameters(), 1e-3, momentum=0.9), (x, y),
    lambda m, x, y: F.cross_entropy(m(x.cuda()), y.cuda()), int(sys.argv[1]))
"""

GPT = r"""
class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.before, self.after = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        up, down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.mlp = nn.Sequential(up, nn.GELU(), down)
    def forward(self, x):
        b, t, c = x.shape
        parts = self.qkv(self.before(x)).chunk(3, 2)
        q, k, v = (part.view(b, t, self.heads, -1).transpose(1, 2) for part in parts)
        mask = torch.full((t, t), float("-inf"), device=x.device).triu(1)
        seen = ((q @ k.transpose(2, 3)) * q.shape[-1] ** -0.5 + mask).softmax(3) @ v
        x = x + self.out(seen.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.after(x))
class Model(nn.Module):
    def __init__(self, vocabulary, width, depth, length):
        super().__init__()
        self.token = nn.Linear(vocabulary, width, bias=False)
        self.place = nn.Parameter(torch.zeros(length, width))
        self.blocks = nn.Sequential(*(Block(width, 12) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.vocabulary = vocabulary
    def forward(self, tokens):
        one_hot = F.one_hot(tokens, self.vocabulary).float()
        return self.head(self.norm(self.blocks(self.token(one_hot) + self.place)))
model = Model(8192, 768, 12, 512).cuda()
tokens = torch.randint(0, 8192, (int(sys.argv[2]), 513))
run(model, torch.optim.AdamW(model.parameters(), 3e-4), (tokens,),
    lambda m, t: F.cross_entropy(m(t[:, :-1].cuda()).flatten(0, 1), t[:, 1:].cuda().flatten()),
    int(sys.argv[1]))
"""

VIT = r"""
class Model(nn.Module):
    def __init__(self, width, depth, heads, patch):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.place = nn.Parameter(torch.zeros((224 // patch) ** 2, width))
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, 0.1, batch_first=True)
        self.body = nn.TransformerEncoder(layer, depth)
        self.head = nn.Linear(width, 100)
    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2) + self.place
        return self.head(self.body(x).mean(1))
model = Model(768, 12, 12, 16).cuda()
optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
scaler = torch.amp.GradScaler("cuda")
x = torch.randn(int(sys.argv[2]), 3, 224, 224)
y = torch.randint(0, 100, (int(sys.argv[2]),))
print("pid", os.getpid(), flush=True)
for i in range(int(sys.argv[1])):
    begin = time.time()
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.float16):
        loss = F.cross_entropy(model(x.cuda()), y.cuda())
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    value = loss.item()
    print(i, f"{time.time():.4f}", f"{1000 * (time.time() - begin):.2f}", value.hex(), flush=True)
"""

LSTM = r"""
class Model(nn.Module):
    def __init__(self, vocabulary, width, depth):
        super().__init__()
        self.embed = nn.Linear(vocabulary, width, bias=False)
        self.body = nn.LSTM(width, width, depth, batch_first=True, dropout=0.2)
        self.head = nn.Linear(width, vocabulary)
        self.vocabulary = vocabulary
    def forward(self, tokens):
        out, _ = self.body(self.embed(F.one_hot(tokens, self.vocabulary).float()))
        return self.head(out)
model = Model(4096, 1024, 3).cuda()
tokens = torch.randint(0, 4096, (int(sys.argv[2]), 257))
run(model, torch.optim.Adam(model.parameters(), 1e-3), (tokens,),
    lambda m, t: F.cross_entropy(m(t[:, :-1].cuda()).flatten(0, 1), t[:, 1:].cuda().flatten()),
    int(sys.argv[1]))
"""

WORKERS = r"""
class Pictures(torch.utils.data.Dataset):
    def __len__(self):
        return 1 << 20
    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.randn(3, 96, 96, generator=generator), index % 100
loader = torch.utils.data.DataLoader(
    Pictures(), int(sys.argv[2]), num_workers=4, pin_memory=True, persistent_workers=True)
model = nn.Sequential(
    nn.Conv2d(3, 64, 3, 2, 1), nn.BatchNorm2d(64), nn.ReLU(True),
    nn.Conv2d(64, 256, 3, 2, 1), nn.BatchNorm2d(256), nn.ReLU(True),
    nn.Conv2d(256, 512, 3, 2, 1), nn.ReLU(True), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
    nn.Linear(512, 100)).cuda()
optimizer = torch.optim.SGD(model.parameters(), 1e-2, momentum=0.9)
print("pid", os.getpid(), flush=True)
for i, (x, y) in enumerate(loader):
    if i == int(sys.argv[1]):
        break
    begin = time.time()
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x.cuda(non_blocking=True)), y.cuda(non_blocking=True))
    loss.backward()
    optimizer.step()
    value = loss.item()
    print(i, f"{time.time():.4f}", f"{1000 * (time.time() - begin):.2f}", value.hex(), flush=True)
"""

DDP = r"""
import torch.distributed as dist
rank = int(os.environ["RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
torch.manual_seed(0)
width = int(sys.argv[2])
model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                      nn.Linear(width, 100)).cuda()
model = nn.parallel.DistributedDataParallel(model, device_ids=[rank])
torch.manual_seed(rank)
x, y = torch.randn(256, width), torch.randint(0, 100, (256,))
run(model, torch.optim.SGD(model.parameters(), 1e-2, momentum=0.9), (x, y),
    lambda m, x, y: F.cross_entropy(m(x.cuda()), y.cuda()), int(sys.argv[1]))
"""

HOLD = r"""
import os, sys, time, torch
size = int(sys.argv[1])
if size < 0:
    size = torch.cuda.mem_get_info(0)[0] + size
x = torch.empty(size, dtype=torch.uint8, device="cuda:0").fill_(7)
torch.cuda.synchronize()
print("pid", os.getpid(), flush=True)
i = 0
while True:
    time.sleep(0.1)
    print(i, f"{time.time():.4f}", "0", int(x[:: 1 << 24].sum()), flush=True)
    i += 1
"""

CODE = {
    "resnet": COMMON + RESNET,
    "gpt": COMMON + GPT,
    "vit": COMMON + VIT,
    "lstm": COMMON + LSTM,
    "workers": COMMON + WORKERS,
    "ddp": COMMON + DDP,
    "hold": HOLD,
}
BATCH = {"resnet": 64, "gpt": 8, "vit": 32, "lstm": 32, "workers": 64}  # of the trainings
results, failed = {}, []


def note(name, ok, **values):
    results[name] = {"ok": bool(ok), **values}
    if not ok:
        failed.append(name)
    print("ok    " if ok else "FAILED", name, json.dumps(values), flush=True)
    if len(sys.argv) > 2:
        with open(sys.argv[2], "w") as file:
            json.dump(results, file, indent=1)


def born(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[19]


def gpu_mib():
    done = subprocess.run(
        ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
        capture_output=True,
        text=True,
        check=True,
    )
    return [int(line) for line in done.stdout.split()]


def rss_gib(pid):
    with open(f"/proc/{pid}/status") as file:
        return round(int(re.search(r"VmRSS:\s+(\d+)", file.read())[1]) / (1 << 20), 2)


class Helper:
    """colloc-checkpoint, spoken to by lines (src/checkpoint/helper_line.h)."""

    def __init__(self, path):
        self.path = path
        self.start()
        reply = self.ask("gpus")
        assert reply[0] == 0, f"colloc-checkpoint: {reply}"
        version, gpus = reply[3].split(" ")
        self.version, self.gpus = int(version), gpus.split(",")

    def start(self):
        self.process = subprocess.Popen(
            [self.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def send(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def answer(self, limit_s=CALL_LIMIT_S):
        if not select.select([self.process.stdout], [], [], limit_s)[0]:
            self.kill()
            return -110, float(limit_s), "-", "no answer in time; the helper was replaced"
        line = self.process.stdout.readline()
        if not line:
            return (-32, 0, "-", "the helper has ended")
        words = line.rstrip("\n").split(" ", 3)
        return int(words[0]), int(words[1]) / 1e6, words[2], words[3] if len(words) > 3 else ""

    def ask(self, *words):
        self.send(*words)
        return self.answer()

    def call(self, name, pid, *words):
        return self.ask(name, pid, born(pid), *words)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.start()

    def suspend(self, pid):
        """(seconds of the lock, of the checkpoint), or the failing reply."""
        lock = self.call("lock", pid, 10000)
        if lock[0]:
            return lock
        copy = self.call("checkpoint", pid)
        if copy[0]:
            self.call("unlock", pid)
            return copy
        return 0, round(lock[1], 4), round(copy[1], 2)

    def resume(self, pid, mib, source=None, target=None):
        """Memory reserved, restored there, unlocked: (0, seconds), or the failing reply."""
        gpu = self.gpus[0 if target is None else target]
        reply = self.call("reserve", pid, gpu, mib << 20)
        if reply[0]:
            return reply
        moves = [] if target is None else [f"{self.gpus[source]}>{self.gpus[target]}"]
        reply = self.call("restore", pid, *moves)
        if reply[0]:
            return reply
        unlock = self.call("unlock", pid)
        return unlock[0], round(reply[1], 2)


class Training:
    def __init__(self, kind, *arguments, gpu="0", **env):
        self.lines, self.pid = [], None
        self.process = subprocess.Popen(
            [sys.executable, "-c", CODE[kind], *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            env={
                **os.environ,
                "CUDA_VISIBLE_DEVICES": gpu,
                "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
                **env,
            },
        )
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            words = line.split()
            if words[:1] == ["pid"]:
                self.pid = int(words[1])
            elif words and words[0].isdigit():
                self.lines.append(words)
            else:
                print("    " + line.rstrip(), flush=True)

    def wait_steps(self, count, limit_s=LIMIT_S):
        end = time.time() + limit_s
        while len(self.lines) < count and self.process.poll() is None and time.time() < end:
            time.sleep(0.01)
        return len(self.lines) >= count

    def more_steps(self, count=5, limit_s=LIMIT_S):
        return self.wait_steps(len(self.lines) + count, limit_s)

    def losses(self):
        return [words[3] for words in self.lines]

    def step_ms(self, begin, end):
        """Median and worst of the steps that ended in that time."""
        times = [float(words[2]) for words in self.lines if begin <= float(words[1]) <= end]
        return (round(statistics.median(times), 1), round(max(times), 1)) if times else (None, None)

    def end(self, helper=None):
        if helper and self.process.poll() is None:
            helper.suspend(self.pid)
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def try_probe(helper):
    probe = subprocess.Popen(
        [helper.path, "--probe"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    ready = probe.stdout.readline().strip()
    suspended = helper.suspend(probe.pid)
    resumed = helper.resume(probe.pid, 512)
    again = helper.suspend(probe.pid)
    moved = helper.resume(probe.pid, 512, 0, 1)
    probe.stdin.write("look\n")
    probe.stdin.flush()
    seen = probe.stdout.readline().strip()
    note(
        "probe",
        seen == "same",
        ready=ready,
        suspended=suspended,
        resumed=resumed,
        again=again,
        moved=moved,
    )
    helper.suspend(probe.pid)
    probe.kill()
    probe.wait()


def try_training(helper, kind, batch, reference):
    """Suspended and resumed on GPU 0, moved to GPU 1, moved back; to the end."""
    training = Training(kind, STEPS, batch)
    if not training.wait_steps(8):
        note(kind, False, error="it did not start")
        return training.end()
    mib, rss, notes = gpu_mib()[0], rss_gib(training.pid), {}
    for name, source, target in (("resumed", None, None), ("moved", 0, 1), ("moved back", 1, 0)):
        training.more_steps()
        suspended = helper.suspend(training.pid)
        state = helper.call("state", training.pid)[2]
        before, left, host = len(training.lines), gpu_mib(), rss_gib(training.pid)
        time.sleep(0.5)
        steps = len(training.lines) - before
        resumed = helper.resume(training.pid, mib, source, target)
        went_on = training.more_steps()
        notes[name] = dict(
            suspended=suspended,
            state=state,
            gpu_mib_suspended=left,
            host_gib=host,
            steps_suspended=steps,
            restored=resumed,
            went_on=went_on,
            gpu_mib=gpu_mib(),
        )
    training.process.wait(LIMIT_S)
    time.sleep(0.2)
    same = training.losses() == reference and len(reference) == STEPS
    note(
        kind,
        same,
        bit_identical=same,
        steps=len(training.losses()),
        gpu_mib=mib,
        host_gib_before=rss,
        **notes,
    )


def try_full_gpu(helper):
    held = Training("hold", 8 * GIB)
    held.wait_steps(2)
    mib = gpu_mib()[0]
    suspended = helper.suspend(held.pid)
    filler = Training("hold", -2 * GIB)
    filler.wait_steps(1)
    refused = helper.resume(held.pid, mib)
    state = helper.call("state", held.pid)[2]
    filler.end()
    time.sleep(0.5)
    resumed = helper.resume(held.pid, mib)
    went_on = held.more_steps(3)
    note(
        "full",
        refused[0] == 2 and state == "suspended" and went_on,
        suspended=suspended,
        refused=refused,
        state=state,
        resumed=resumed,
        went_on=went_on,
    )
    # As much again is free as it holds, and nothing beside: no room for the placeholder's context.
    suspended = helper.suspend(held.pid)
    total = int(
        subprocess.run(
            ["nvidia-smi", "-i", "0", "--query-gpu=memory.free", "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )
    filler = Training("hold", (total - mib - 700) << 20)
    filler.wait_steps(1)
    free = total - gpu_mib()[0]
    resumed = helper.resume(held.pid, mib)
    note(
        "fits",
        resumed[0] == 0 and held.more_steps(3),
        free_mib=free,
        wanted_mib=mib,
        resumed=resumed,
    )
    filler.end()
    held.end(helper)


def settle(helper, pid):
    """The state once the copy that was under way has ended."""
    return helper.call("state", pid)


def try_killed_helper(helper, reference):
    training = Training("resnet", STEPS, 64)
    training.wait_steps(8)
    mib, notes = gpu_mib()[0], []
    for delay in (0.3, 1.5):
        training.more_steps()
        helper.call("lock", training.pid, 10000)
        helper.send("checkpoint", training.pid, born(training.pid))
        time.sleep(delay)
        helper.kill()
        state = settle(helper, training.pid)
        if state[2] == "locked":
            helper.call("checkpoint", training.pid)
        helper.call("reserve", training.pid, helper.gpus[0], mib << 20)
        helper.send("restore", training.pid, born(training.pid))
        time.sleep(delay / 2)
        helper.kill()
        back = settle(helper, training.pid)
        if back[2] == "suspended":
            back = helper.call("restore", training.pid)
        unlocked = helper.call("unlock", training.pid)
        notes.append(
            dict(
                after_checkpoint=state[:3],
                after_restore=back[:3],
                unlocked=unlocked[0],
                went_on=training.more_steps(),
            )
        )
    try:
        training.process.wait(LIMIT_S)
    except subprocess.TimeoutExpired:
        training.end()
    time.sleep(0.2)
    same = training.losses() == reference
    note("killed", same, bit_identical=same, kills=notes)


def try_neighbour(helper):
    neighbour, other = Training("resnet", 100000, 32), Training("resnet", 100000, 64)
    neighbour.wait_steps(20)
    other.wait_steps(20)
    mib = gpu_mib()[0]
    time.sleep(3)
    marks = [time.time()]
    suspended = helper.suspend(other.pid)
    marks.append(time.time())
    time.sleep(3)
    marks.append(time.time())
    resumed = helper.resume(other.pid, mib // 2)
    marks.append(time.time())
    time.sleep(3)
    beside = neighbour.step_ms(marks[0] - 3, marks[0])
    during = neighbour.step_ms(marks[0] + 0.1, marks[1])
    alone = neighbour.step_ms(marks[1] + 0.1, marks[2])
    restoring = neighbour.step_ms(marks[2], marks[3])
    after = neighbour.step_ms(marks[3] + 0.2, marks[3] + 3)
    ok = during[0] and alone[0] and during[0] < 1.05 * alone[0]
    note(
        "neighbour",
        ok,
        unit="ms: median, worst",
        beside=beside,
        while_suspending=during,
        alone=alone,
        while_restoring=restoring,
        after=after,
        suspended=suspended,
        resumed=resumed,
    )
    other.end(helper)
    neighbour.end()


def try_sizes(helper):
    rows = []
    for gib in (2, 8, 24, 40):
        held = Training("hold", gib * GIB)
        held.wait_steps(2)
        mib, before = gpu_mib()[0], rss_gib(held.pid)
        suspended = helper.suspend(held.pid)
        host = rss_gib(held.pid)
        resumed = helper.resume(held.pid, mib)
        rows.append(
            dict(
                gib=gib,
                suspended=suspended,
                resumed=resumed,
                host_gib=round(host - before, 2),
                went_on=held.more_steps(2),
            )
        )
        held.end(helper)
    note("sizes", all(row["went_on"] for row in rows), rows=rows)


def try_mps(helper):
    with tempfile.TemporaryDirectory() as pipe:
        env = {"CUDA_MPS_PIPE_DIRECTORY": pipe, "CUDA_MPS_LOG_DIRECTORY": pipe}
        control = ["nvidia-cuda-mps-control"]
        subprocess.run([*control, "-d"], env={**os.environ, **env}, check=False)
        client = Training("hold", GIB, **env)
        client.wait_steps(2)
        refused = helper.suspend(client.pid)
        note("mps", refused[0] == 801 and client.more_steps(3), refused=refused)
        client.end()
        subprocess.run(
            control, input="quit -t 2\n", text=True, env={**os.environ, **env}, check=False
        )


def try_ddp(helper, name, **env):
    """Two ranks suspended and resumed together: locked both, then copied; a lock that fails because
    the other rank is waited for is tried again. The losses are those of an undisturbed run."""

    def ranks():
        with socket.socket() as listener:  # a port that is free
            listener.bind(("127.0.0.1", 0))
            port = str(listener.getsockname()[1])
        together = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2", **env}
        return [
            Training("ddp", 10 * STEPS, 4096, gpu="0,1", RANK=str(rank), **together)
            for rank in (0, 1)
        ]

    def ended(trainings):
        for training in trainings:
            training.process.wait(LIMIT_S)
        time.sleep(0.2)
        return [training.losses() for training in trainings]

    reference = ended(ranks())
    both = ranks()
    if not all(rank.wait_steps(20) for rank in both):
        note(name, False, error="they did not start")
        return [rank.end() for rank in both] and None
    mib, tries, held = max(gpu_mib()), [], False
    for _ in range(10):
        locks = [helper.call("lock", rank.pid, 1000) for rank in both]
        tries.append([lock[0] for lock in locks])
        held = not any(lock[0] for lock in locks)
        if held:
            break
        for rank, lock in zip(both, locks):
            if not lock[0]:
                helper.call("unlock", rank.pid)
    copied = [helper.call("checkpoint", rank.pid) for rank in both] if held else []
    left = gpu_mib() if held else []
    restored = []
    for gpu, rank in enumerate(both if held and not any(c[0] for c in copied) else []):
        reserved = helper.call("reserve", rank.pid, helper.gpus[gpu], mib << 20)
        restored.append([reserved[0], helper.call("restore", rank.pid)[0]])
    for rank in both if held else []:
        restored.append(helper.call("unlock", rank.pid)[0])
    states = [helper.call("state", rank.pid)[:3] for rank in both]
    lost = any(state[2] != "running" for state in states)
    alive = [False if lost else rank.more_steps(limit_s=30) for rank in both]
    same = all(alive) and ended(both) == reference
    note(
        name,
        same and held,
        bit_identical=same,
        locks=tries,
        copied=copied,
        gpu_mib=mib,
        gpu_mib_suspended=left,
        restored=restored,
        states=states,
        went_on=alive,
    )
    for rank in both:
        rank.end()


def trials_of(helper, references):
    kinds = {
        kind: lambda kind=kind: try_training(helper, kind, BATCH[kind], references[kind])
        for kind in BATCH
    }
    return {
        "probe": lambda: try_probe(helper),
        **kinds,
        "mps": lambda: try_mps(helper),
        "ddp": lambda: try_ddp(helper, "ddp"),
        "ddp-shm": lambda: try_ddp(helper, "ddp-shm", NCCL_P2P_DISABLE="1"),
        "ddp-net": lambda: try_ddp(
            helper, "ddp-net", NCCL_P2P_DISABLE="1", NCCL_SHM_DISABLE="1", NCCL_CUMEM_ENABLE="0"
        ),
        "killed": lambda: try_killed_helper(helper, references["resnet"]),
        "full": lambda: try_full_gpu(helper),
        "neighbour": lambda: try_neighbour(helper),
        "sizes": lambda: try_sizes(helper),
    }


def undisturbed(kinds):
    """Losses of each training run alone on its GPU, two at a time."""
    losses = {}
    for i in range(0, len(kinds), 2):
        runs = {
            kind: Training(kind, STEPS, BATCH[kind], gpu=str(gpu))
            for gpu, kind in enumerate(kinds[i : i + 2])
        }
        for run in runs.values():
            run.process.wait(LIMIT_S)
        time.sleep(0.2)
        losses.update({kind: run.losses() for kind, run in runs.items()})
    return losses


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    begin = time.time()
    helper = Helper(os.path.join(sys.argv[1], "colloc-checkpoint"))
    assert len(helper.gpus) >= 2, "two GPUs are needed"
    with open("/proc/driver/nvidia/version") as file:
        results["driver"] = file.readline().strip()
    results["cuda"] = helper.version
    every = trials_of(helper, {})
    names = sys.argv[3:] or list(every)
    unknown = set(names) - set(every)
    if unknown:
        sys.exit(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(every)}")
    wanted = ["resnet" if name == "killed" else name for name in names]
    trials = trials_of(helper, undisturbed(list(dict.fromkeys(k for k in wanted if k in BATCH))))
    for name in names:
        if time.time() - begin > 540:
            note("time", False, error="no time left for the remaining trials")
            break
        try:
            trials[name]()
        except Exception as error:  # the others go on
            note(name, False, error=repr(error))
    print(
        "FAILED: " + ", ".join(failed) if failed else "all as it should be",
        f"in {time.time() - begin:.0f} s",
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
