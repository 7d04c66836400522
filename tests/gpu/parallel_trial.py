#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What one process of a training on several GPUs holds, by how the processes divide the model.

    tests/gpu/parallel_trial.py measure OUTPUT [SECONDS [GPU,GPU]]         on a machine with GPUs
    tests/gpu/parallel_trial.py measure-split OUTPUT [SECONDS [GPU,GPU]]   the same
    tests/gpu/parallel_trial.py price COLLOC OUTPUT                        anywhere

`measure` trains each model in each way for a few steps, on GPUs 0 and 1 unless others are named,
and writes to OUTPUT/runs.jsonl what PyTorch's allocator and the GPU held at the most in each rank,
and to OUTPUT/MODEL.txt what print(model) says. No new run starts after SECONDS (default 120).
`measure-split` does so for the models and ways in SPLITS. `price` compares with `colloc estimate
--parallel=WAY` and prints a table. The ways are those of --parallel and --offload:

    none, ddp
    zero1            ZeroRedundancyOptimizer
    zero2            fully_shard that keeps the weights between forward and backward pass
    fsdp             fully_shard
    tp               parallelize_module: columns, then rows, of attention and feed-forward layers
    pp               Schedule1F1B with 4 micro-batches, the blocks divided evenly
    ddp+optimizer    DDP, and AdamW on a copy of the weights on the host
    fsdp+parameters  fully_shard with CPUOffloadPolicy

This process imports the libraries once and forks for each run; it must not use CUDA itself.
"""
import ctypes
import gc
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
LIMIT_S, AFTER_ERROR_S = 40, 3
PORT = 29600
PR_SET_PDEATHSIG = 1  # prctl(2)
WAYS = ("none", "ddp", "zero1", "zero2", "fsdp")
MICRO_BATCHES = 4
MIB = 1 << 20
# The most telling first: the time is short.
SPLITS = (
    ("gpt2", "ddp+optimizer"),
    ("resnet50", "pp"),
    ("llama", "ddp"),
    ("bert_large", "tp"),
    ("bert_large", "pp"),
    ("gpt2", "pp"),
    ("llama", "tp"),
    ("gpt2", "fsdp+parameters"),
)


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


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    model = LlamaForCausalLM(
        LlamaConfig(
            hidden_size=1024, intermediate_size=2816, num_hidden_layers=16, num_attention_heads=16
        )
    )
    return model, list(model.model.layers)


# How to build it and its blocks, the batch of each process, the words of a text or 0, and the
# classes.
MODELS = {
    "gpt2": (gpt2, 8, 512, 50257),
    "resnet50": (resnet50, 64, 0, 1000),
    "bert_large": (bert_large, 8, 512, 30522),
    "vit_b_16": (vit_b_16, 32, 0, 1000),
    "llama": (llama, 8, 512, 32000),
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
    if way in ("zero2", "fsdp", "fsdp+parameters"):
        from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard

        options = {"offload_policy": CPUOffloadPolicy()} if way == "fsdp+parameters" else {}
        for part in [*blocks, model]:
            fully_shard(part, reshard_after_forward=way != "zero2", **options)
        return model, adam(model.parameters(), lr=1e-4)
    if way == "tp":
        divide_tensors(blocks)
        return model, adam(by_kind(model.parameters()), lr=1e-4)
    if way == "none":
        return model, adam(model.parameters(), lr=1e-4)
    whole = DistributedDataParallel(model, device_ids=[torch.cuda.current_device()])
    if way == "ddp":
        return whole, adam(whole.parameters(), lr=1e-4)
    if way == "ddp+optimizer":
        return whole, HostAdam(whole.parameters())
    from torch.distributed.optim import ZeroRedundancyOptimizer

    return whole, ZeroRedundancyOptimizer(whole.parameters(), optimizer_class=adam, lr=1e-4)


class HostAdam:
    """AdamW on the host: its states and a copy of the weights are there, gradients are copied to
    it and weights back."""

    def __init__(self, parameters):
        import torch

        self.parameters = list(parameters)
        self.copies = [torch.nn.Parameter(each.detach().cpu()) for each in self.parameters]
        self.adam = torch.optim.AdamW(self.copies, lr=1e-4)

    def zero_grad(self):
        for each in self.parameters:
            each.grad = None

    def step(self):
        for each, copy in zip(self.parameters, self.copies):
            copy.grad = each.grad.cpu()
        self.adam.step()
        for each, copy in zip(self.parameters, self.copies):
            each.data.copy_(copy.data)


def by_kind(parameters):
    """Groups of an optimizer, since its operations over lists do not mix kinds of tensors."""
    groups = {}
    for each in parameters:
        groups.setdefault(type(each.data), []).append(each)
    return [{"params": group} for group in groups.values()]


COLUMNS = {"query", "key", "value", "intermediate", "q_proj", "k_proj", "v_proj", "gate_proj"}
COLUMNS |= {"up_proj"}
ROWS = {"o_proj", "down_proj", "output"}


def divide_tensors(blocks):
    """Divides the products of attention and feed-forward layers: the first of each pair by columns,
    the second by rows. Embeddings, normalisations and the head stay whole."""
    import torch
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    mesh = init_device_mesh("cuda", (RANKS,))
    for block in blocks:
        plan = {}
        for path, module in block.named_modules():
            names = set(path.split(".")[-2:])
            if isinstance(module, torch.nn.Linear) and names & COLUMNS:
                plan[path] = ColwiseParallel()
            elif isinstance(module, torch.nn.Linear) and names & ROWS:
                plan[path] = RowwiseParallel()
            for count in ("num_attention_heads", "all_head_size"):
                if hasattr(module, count):  # of this process
                    setattr(module, count, getattr(module, count) // RANKS)
        parallelize_module(block, mesh, plan)


# ---- pipelines ----


def parts_of(name, model, blocks):
    """The network as a list of functions of one tensor, about as even as its blocks."""
    import torch

    if name == "resnet50":
        stem = torch.nn.Sequential(model.conv1, model.bn1, model.relu, model.maxpool)
        head = torch.nn.Sequential(model.avgpool, torch.nn.Flatten(), model.fc)
        return [stem, *blocks, head]
    if name == "gpt2":
        return [
            sum_of_embeddings(model.transformer),
            *blocks,
            model.transformer.ln_f,
            model.lm_head,
        ]
    return [model.bert.embeddings, *blocks, model.cls]


def sum_of_embeddings(transformer):
    import torch

    class Sum(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.wpe, self.drop = transformer.wte, transformer.wpe, transformer.drop

        def forward(self, words):
            places = torch.arange(words.shape[1], device=words.device)
            return self.drop(self.wte(words) + self.wpe(places))

    return Sum()


def stage_module(parts):
    import torch

    class Stage(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = torch.nn.ModuleList(parts)

        def forward(self, value):
            for part in self.parts:
                value = part(value)
                value = value if isinstance(value, torch.Tensor) else value[0]
            return value

    return Stage()


def loss_of(output, target):
    import torch

    return torch.nn.functional.cross_entropy(output.flatten(0, -2), target.flatten())


def train_stage(name, network, blocks, rank, batch):
    """Steps of one stage. Blocks are divided evenly; the first stage has what is before them.

    network: a list of the model, which is emptied: the other stages are not kept.
    """
    import torch
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    parts = parts_of(name, network.pop(), blocks)
    before = next(i for i, part in enumerate(parts) if part is blocks[0])
    cut = before + len(blocks) // RANKS
    stage = stage_module(parts[:cut] if rank == 0 else parts[cut:]).train()
    del parts, blocks[:]
    forget_building()
    optimizer = torch.optim.AdamW(stage.parameters(), lr=1e-4)
    schedule = Schedule1F1B(
        PipelineStage(stage, rank, RANKS, torch.device("cuda", rank)),
        n_microbatches=MICRO_BATCHES,
        loss_fn=loss_of,
    )
    data, target = batch
    for _ in range(STEPS):
        optimizer.zero_grad()
        if rank == 0:
            schedule.step(data)
        else:
            schedule.step(target=target)
        optimizer.step()


# ---- a run ----


def train_whole(model, optimizer, batch):
    data, target = batch
    for _ in range(STEPS):
        optimizer.zero_grad()
        output = model(data)
        output = getattr(output, "logits", output)
        loss_of(output, target).backward()
        optimizer.step()
        del output


def forget_building():
    """What building the network took is no part of the training."""
    import torch

    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()


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
    if way == "pp":
        network = [model.train()]
        del model
        train_stage(name, network, blocks, rank, batch_of(batch, words, classes))
    else:
        model, optimizer = divide(model.train(), blocks, way)
        if way in ("tp", "fsdp+parameters"):
            forget_building()
        train_whole(model, optimizer, batch_of(batch, words, classes))
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
    lines, end, pipes = [], time.monotonic() + LIMIT_S, [pipe for _, pipe in ranks]
    while pipes:
        ready = select.select(pipes, [], [], max(0, end - time.monotonic()))[0]
        if not ready:
            break
        for pipe in ready:
            text = os.read(pipe, 1 << 16)
            lines += [json.loads(text)] if text else []
            pipes.remove(pipe)
        if any("error" in line for line in lines):
            end = min(end, time.monotonic() + AFTER_ERROR_S)  # the others wait for that rank
    for _, pipe in ranks:
        os.close(pipe)
    for child, _ in ranks:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return lines


def print_models(output, names):
    """In a child: a model that was built here would start threads, and a fork has none. Returns
    the child."""
    child = os.fork()
    if child == 0:
        for name in names:
            with open(os.path.join(output, f"{name}.txt"), "w", encoding="utf-8") as file:
                file.write(str(MODELS[name][0]()[0]) + "\n")
        os._exit(0)
    return child


def measure(output, seconds="120", gpus="0,1"):
    return measure_runs(output, seconds, gpus, [(n, w) for n in MODELS for w in WAYS])


def measure_split(output, seconds="60", gpus="0,1"):
    for library in ("torch.distributed.tensor.parallel", "torch.distributed.pipelining"):
        __import__(library)
    return measure_runs(output, seconds, gpus, SPLITS)


def measure_runs(output, seconds, gpus, runs):
    os.environ["CUDA_VISIBLE_DEVICES"] = gpus
    os.makedirs(output, exist_ok=True)
    for library in ("torch", "torchvision", "torch.distributed.fsdp", "torch.distributed.optim"):
        __import__(library)
    end = time.monotonic() + float(seconds)
    printing = print_models(output, sorted({name for name, _ in runs}))
    with open(os.path.join(output, "runs.jsonl"), "w", encoding="utf-8") as file:
        for name, way in runs:
            if time.monotonic() > end:
                break
            began = time.monotonic()
            for line in run(name, way) or [{"model": name, "way": way, "error": "no answer"}]:
                file.write(json.dumps(line) + "\n")
                print(line, f"{time.monotonic() - began:.1f} s", flush=True)
            file.flush()
    os.waitpid(printing, 0)
    return int(time.monotonic() > end)


# ---- against the estimates ----


def estimate(colloc, output, name, way, gpu):
    _, batch, words, _ = MODELS[name]
    shape = f"--seq={words}" if words else "--input=3x224x224"
    parallel, _, offload = way.partition("+")
    more = [f"--offload={offload}"] if offload else []
    more += [f"--micro-batches={MICRO_BATCHES}"] if way == "pp" else []
    done = subprocess.run(
        [
            colloc, "estimate", os.path.join(output, f"{name}.txt"), f"--batch={batch}", shape,
            "--optimizer=adamw", "--precision=fp32", f"--gpus={RANKS}", f"--parallel={parallel}",
            f"--gpu={gpu}", "--json", *more,
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
    actions = {"measure": measure, "measure-split": measure_split, "price": price}
    if len(sys.argv) < 3 or sys.argv[1] not in actions:
        sys.exit(__doc__)
    return actions[sys.argv[1]](*sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
