#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What one process of a training on several GPUs holds, by how the processes divide the model.

    tests/gpu/parallel_trial.py measure OUTPUT [SECONDS [GPU,GPU]]    on a machine with GPUs
    tests/gpu/parallel_trial.py price COLLOC OUTPUT                   anywhere

`measure` trains each model in each way for a few steps, on GPUs 0 and 1 unless others are named,
and writes to OUTPUT/runs.jsonl what PyTorch's allocator and the GPU held at the most in each rank,
and to OUTPUT/MODEL.txt what print(model) says. No new run starts after SECONDS (default 120).
`price` compares with `colloc estimate --parallel=WAY` and prints a table. The ways are those of
--parallel: none, ddp, zero1 (ZeroRedundancyOptimizer), zero2 (fully_shard that keeps the weights
between forward and backward pass) and fsdp (fully_shard).

This process imports the libraries once and forks for each run; it must not use CUDA itself.
"""
import ctypes
import json
import os
import select
import signal
import statistics
import subprocess
import sys
import time
import traceback

RANKS = 2
STEPS = 5
LIMIT_S = 40
PORT = 29600
PR_SET_PDEATHSIG = 1  # prctl(2)
WAYS = ("none", "ddp", "zero1", "zero2", "fsdp")
MIB = 1 << 20


# ---- the models ----


def resnet50():
    import torchvision

    model = torchvision.models.resnet50(num_classes=1000)
    return model, [block for part in (1, 2, 3, 4) for block in getattr(model, f"layer{part}")]


def vit_b_16():
    import torchvision

    model = torchvision.models.vit_b_16(num_classes=1000)
    return model, list(model.encoder.layers)


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config())
    return model, list(model.transformer.h)


def bert_large():
    from transformers import BertConfig, BertForMaskedLM

    model = BertForMaskedLM(
        BertConfig(
            hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096
        )
    )
    return model, list(model.bert.encoder.layer)


# How to build it and its blocks, the batch of each process, the words of a text or 0, and the
# classes.
MODELS = {
    "gpt2": (gpt2, 8, 512, 50257),
    "resnet50": (resnet50, 64, 0, 1000),
    "bert_large": (bert_large, 8, 512, 30522),
    "vit_b_16": (vit_b_16, 32, 0, 1000),
}


def batch_of(batch, words, classes):
    import torch

    if words:
        data = torch.randint(classes, (batch, words), device="cuda")
        return data, data
    images = torch.randn(batch, 3, 224, 224, device="cuda")
    return images, torch.randint(classes, (batch,), device="cuda")


# ---- one rank ----


def divide(model, blocks, way):
    """The model as this way divides it, and its optimizer."""
    import torch
    from torch.nn.parallel import DistributedDataParallel

    adam = torch.optim.AdamW
    if way in ("zero2", "fsdp"):
        from torch.distributed.fsdp import fully_shard

        for part in [*blocks, model]:
            fully_shard(part, reshard_after_forward=way == "fsdp")
        return model, adam(model.parameters(), lr=1e-4)
    if way == "none":
        return model, adam(model.parameters(), lr=1e-4)
    whole = DistributedDataParallel(model, device_ids=[torch.cuda.current_device()])
    if way == "ddp":
        return whole, adam(whole.parameters(), lr=1e-4)
    from torch.distributed.optim import ZeroRedundancyOptimizer

    return whole, ZeroRedundancyOptimizer(whole.parameters(), optimizer_class=adam, lr=1e-4)


def train_rank(name, way, rank):
    import torch

    build, batch, words, classes = MODELS[name]
    os.environ.update(
        RANK=str(rank), WORLD_SIZE=str(RANKS), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(PORT)
    )
    torch.cuda.set_device(rank)
    free_before, total = torch.cuda.mem_get_info()  # the context is there
    torch.distributed.init_process_group("nccl")
    with torch.device("cuda"):
        model, blocks = build()
    model, optimizer = divide(model.train(), blocks, way)
    data, target = batch_of(batch, words, classes)
    for _ in range(STEPS):
        optimizer.zero_grad()
        output = model(data)
        output = getattr(output, "logits", output)
        loss = torch.nn.functional.cross_entropy(output.flatten(0, -2), target.flatten())
        loss.backward()
        optimizer.step()
        del output
    torch.cuda.synchronize()
    torch.distributed.barrier()
    free, total = torch.cuda.mem_get_info()
    return {
        "model": name,
        "way": way,
        "rank": rank,
        "gpu_mib": (total - free) / MIB,
        "context_mib": (total - free_before) / MIB,
        "reserved_mib": torch.cuda.max_memory_reserved() / MIB,
        "allocated_mib": torch.cuda.max_memory_allocated() / MIB,
    }


def fork_rank(name, way, rank):
    """A child that trains; its process id and the end of a pipe for its line."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            os.close(reading)
            line = json.dumps(train_rank(name, way, rank))
        except Exception as error:  # the next run is to come
            traceback.print_exc()
            line = json.dumps({"model": name, "way": way, "rank": rank, "error": repr(error)})
        os.write(writing, line.encode())
        os._exit(0)
    os.close(writing)
    return child, reading


def run(name, way):
    """A line of each rank that came in time."""
    ranks = [fork_rank(name, way, rank) for rank in range(RANKS)]
    lines, end = [], time.monotonic() + LIMIT_S
    for _, pipe in ranks:
        if select.select([pipe], [], [], max(0, end - time.monotonic()))[0]:
            text = os.read(pipe, 1 << 16)
            lines += [json.loads(text)] if text else []
        os.close(pipe)
    for child, _ in ranks:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return lines


def print_models(output):
    """In a child: a model that was built here would start threads, and a fork has none."""
    child = os.fork()
    if child == 0:
        for name, (build, *_) in MODELS.items():
            with open(os.path.join(output, f"{name}.txt"), "w", encoding="utf-8") as file:
                file.write(str(build()[0]) + "\n")
        os._exit(0)
    os.waitpid(child, 0)


def measure(output, seconds="120", gpus="0,1"):
    os.environ["CUDA_VISIBLE_DEVICES"] = gpus
    os.makedirs(output, exist_ok=True)
    for library in ("torch", "torchvision", "torch.distributed.fsdp", "torch.distributed.optim"):
        __import__(library)
    end = time.monotonic() + float(seconds)
    print_models(output)
    with open(os.path.join(output, "runs.jsonl"), "w", encoding="utf-8") as file:
        for name in MODELS:
            for way in WAYS:
                if time.monotonic() > end:
                    return 1
                began = time.monotonic()
                for line in run(name, way) or [{"model": name, "way": way, "error": "no answer"}]:
                    file.write(json.dumps(line) + "\n")
                    print(line, f"{time.monotonic() - began:.1f} s", flush=True)
                file.flush()
    return 0


# ---- against the estimates ----


def estimate(colloc, output, name, way, gpu):
    _, batch, words, _ = MODELS[name]
    shape = f"--seq={words}" if words else "--input=3x224x224"
    done = subprocess.run(
        [
            colloc, "estimate", os.path.join(output, f"{name}.txt"), f"--batch={batch}", shape,
            "--optimizer=adamw", "--precision=fp32", f"--gpus={RANKS}", f"--parallel={way}",
            f"--gpu={gpu}", "--json",
        ],
        capture_output=True,
        text=True,
        check=True,
    )  # fmt: skip
    return json.loads(done.stdout)["estimates"][0]


def price(colloc, output, gpu="NVIDIA H100 80GB HBM3"):
    with open(os.path.join(output, "runs.jsonl"), encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    found, errors = {}, []
    for line in lines:
        if "error" not in line:
            found.setdefault((line["model"], line["way"]), []).append(line)
    print("| model | way | GPU, MiB | of it PyTorch's | estimate | error | P99 |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for (name, way), ranks in found.items():
        most = max(ranks, key=lambda line: line["gpu_mib"])
        said = estimate(colloc, output, name, way, gpu)
        errors.append(said["mib"] / most["gpu_mib"] - 1)
        print(
            f"| {name} | {way} | {most['gpu_mib']:,.0f} | {most['reserved_mib']:,.0f} | "
            f"{said['mib']:,.0f} | {100 * errors[-1]:+.1f} % | {said['p99_mib'] or 0:,.0f} |"
        )
    if errors:
        print(f"\nMedian error {100 * statistics.median(map(abs, errors)):.1f} %.")
    return 0


def main():
    actions = {"measure": measure, "price": price}
    if len(sys.argv) < 3 or sys.argv[1] not in actions:
        sys.exit(__doc__)
    return actions[sys.argv[1]](*sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
