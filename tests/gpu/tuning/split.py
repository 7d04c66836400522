# SPDX-License-Identifier: Apache-2.0
"""Trains a network on several GPUs: one rank, as a launcher starts it.

    split.py --model gpt2|llama|bert|resnet50 --way ddp|zero1|fsdp|fsdp1 [--precision fp32|bf16]

fsdp is `fully_shard`, fsdp1 FullyShardedDataParallel, each block a unit; bf16 is autocast with ddp
and zero1, and FSDP's own mixed precision otherwise.
"""
import argparse
import contextlib
import functools
import os

import torch
from torch import distributed
from torch.nn import functional


def resnet50():
    import torchvision

    model = torchvision.models.resnet50()
    blocks = [block for part in (1, 2, 3, 4) for block in getattr(model, f"layer{part}")]
    return model, blocks, 64, (3, 224, 224), 1000


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config())
    return model, list(model.transformer.h), 8, 512, 50257


def bert():
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(
        hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096
    )
    model = BertForMaskedLM(config)
    return model, list(model.bert.encoder.layer), 8, 512, 30522


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=2048, intermediate_size=5632, num_hidden_layers=16, num_attention_heads=16
    )
    model = LlamaForCausalLM(config)
    return model, list(model.model.layers), 4, 1024, 32000


def shard(model, blocks, precision):
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    half = {"param_dtype": torch.bfloat16, "reduce_dtype": torch.float32}
    policy = MixedPrecisionPolicy(**(half if precision == "bf16" else {}))
    for part in [*blocks, model]:
        fully_shard(part, mp_policy=policy)
    return model


def wrap(model, blocks, precision):
    from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision
    from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy

    policy = functools.partial(
        transformer_auto_wrap_policy, transformer_layer_cls={type(block) for block in blocks}
    )
    half = MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    return FullyShardedDataParallel(
        model, auto_wrap_policy=policy, use_orig_params=True, device_id=torch.cuda.current_device(),
        mixed_precision=half if precision == "bf16" else None,
    )  # fmt: skip


def divide(model, blocks, args):
    """The model as this way divides it, and its optimizer."""
    if args.way in ("fsdp", "fsdp1"):
        model = {"fsdp": shard, "fsdp1": wrap}[args.way](model, blocks, args.precision)
        return model, torch.optim.AdamW(model.parameters(), lr=1e-4)
    gpu = torch.cuda.current_device()
    model = torch.nn.parallel.DistributedDataParallel(model.cuda(), device_ids=[gpu])
    if args.way == "ddp":
        return model, torch.optim.AdamW(model.parameters(), lr=1e-4)
    from torch.distributed.optim import ZeroRedundancyOptimizer

    return model, ZeroRedundancyOptimizer(
        model.parameters(), optimizer_class=torch.optim.AdamW, lr=1e-4
    )


def batch_of(size, shape, classes):
    if isinstance(shape, int):
        words = torch.randint(classes, (size, shape)).cuda()
        return words, words
    return torch.randn(size, *shape).cuda(), torch.randint(classes, (size,)).cuda()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=("gpt2", "llama", "bert", "resnet50"), default="gpt2")
    parser.add_argument("--way", choices=("ddp", "zero1", "fsdp", "fsdp1"), default="ddp")
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--steps", type=int, default=5)
    args = parser.parse_args()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    distributed.init_process_group("nccl")
    model, blocks, size, shape, classes = globals()[args.model]()
    model, optimizer = divide(model.train(), blocks, args)
    half = args.precision == "bf16" and args.way in ("ddp", "zero1")
    cast = torch.autocast("cuda", torch.bfloat16) if half else contextlib.nullcontext()
    for _ in range(args.steps):
        data, target = batch_of(size, shape, classes)
        with cast:
            output = model(data)
            output = getattr(output, "logits", output)
            loss = functional.cross_entropy(output.flatten(0, -2), target.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize()
    distributed.barrier()
    print(f"loss {loss.item():.3f}")


main()
