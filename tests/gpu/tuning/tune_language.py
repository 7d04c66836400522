# SPDX-License-Identifier: Apache-2.0
"""Fine-tunes a language model on random text: LoRA, QLoRA, prefixes, prompts, adapters, BitFit."""
import argparse
import contextlib

import torch
from torch import nn

import language_models
from low_rank import Linear4bit, add_lora

TARGETS = {
    "gpt2": ["c_attn"],
    "opt": ["q_proj", "v_proj"],
    "qwen": ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
    "llama": ["q_proj", "v_proj"],
    "bert": ["query", "value"],
    "roberta": ["query", "value"],
}
EVERY = TARGETS["qwen"]


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="gpt2")
    parser.add_argument("--method", default="lora")
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--all-layers", action="store_true")
    parser.add_argument("--precision", choices=("fp32", "amp", "bf16"), default="bf16")
    parser.add_argument("--checkpointing", action="store_true")
    parser.add_argument("--classes", type=int, default=0)
    parser.add_argument("--steps", type=int, default=6)
    return parser.parse_args()


@contextlib.contextmanager
def layers_of_4_bits(words):
    """Linear layers are made of 4 bits, but for the head."""
    linear = nn.Linear

    class Either(linear):
        def __new__(cls, inputs, outputs, *args, **kwargs):
            kind = linear if outputs == words else Linear4bit
            return kind(inputs, outputs, *args, **kwargs)

    nn.Linear = Either
    try:
        yield
    finally:
        nn.Linear = linear


class Adapter(nn.Module):
    """A bottleneck behind a frozen layer."""

    def __init__(self, layer, size, width, dtype):
        super().__init__()
        self.layer = layer
        self.down = nn.Linear(size, width, device="cuda", dtype=dtype)
        self.up = nn.Linear(width, size, device="cuda", dtype=dtype)

    def forward(self, *inputs, **options):
        result = self.layer(*inputs, **options)
        return result + self.up(torch.nn.functional.gelu(self.down(result)))


def add_adapters(model, width, dtype):
    for weight in model.parameters():
        weight.requires_grad = False
    size = model.config.hidden_size
    for path, layer in list(model.named_modules()):
        owner, _, name = path.rpartition(".")
        if name == "mlp" or path.endswith(".output.dense"):
            setattr(model.get_submodule(owner), name, Adapter(layer, size, width, dtype))


class Prompt(nn.Module):
    """Trained embeddings before those of the text."""

    def __init__(self, model, length):
        super().__init__()
        for weight in model.parameters():
            weight.requires_grad = False
        self.model = model
        table = model.get_input_embeddings().weight
        self.prompt = nn.Parameter(torch.randn(length, table.shape[1], device="cuda"))

    def forward(self, input_ids, labels):
        text = self.model.get_input_embeddings()(input_ids)
        prompt = self.prompt.to(text.dtype).expand(len(text), -1, -1)
        nothing = torch.full(prompt.shape[:2], -100, device="cuda", dtype=labels.dtype)
        return self.model(
            inputs_embeds=torch.cat((prompt, text), 1), labels=torch.cat((nothing, labels), 1)
        )


class Prefix(nn.Module):
    """Trained keys and values before those of the text, in each layer."""

    def __init__(self, model, length):
        super().__init__()
        for weight in model.parameters():
            weight.requires_grad = False
        self.model, config = model, model.config
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        size = config.hidden_size // config.num_attention_heads
        layers = config.num_hidden_layers
        shape = (layers, 2, heads, length, size)
        self.prefix = nn.Parameter(torch.randn(shape, device="cuda") * 0.02)

    def forward(self, input_ids, labels):
        from transformers import DynamicCache

        cache = DynamicCache()
        dtype = self.model.dtype
        for i, (key, value) in enumerate(self.prefix.to(dtype)):
            size = (len(input_ids), -1, -1, -1)
            cache.update(key.expand(*size), value.expand(*size), i)
        length = self.prefix.shape[3] + input_ids.shape[1]
        mask = torch.ones(len(input_ids), length, device="cuda", dtype=torch.long)
        return self.model(
            input_ids, labels=labels, past_key_values=cache, attention_mask=mask, use_cache=True
        )


def make_model(args):
    config = language_models.CONFIGS[args.model]
    if args.method == "qlora":
        with layers_of_4_bits(config.get("vocab_size", 50257)):
            model = language_models.load(args.model, args.precision, args.classes)
    else:
        model = language_models.load(args.model, args.precision, args.classes)
    if args.checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
        model.enable_input_require_grads()
    if args.method in ("lora", "qlora"):
        names = TARGETS[args.model.partition("-")[0]]
        add_lora(model, EVERY if args.all_layers else names, args.rank)
    elif args.method == "adapters":
        add_adapters(model, args.rank, model.dtype)
    elif args.method == "prompt":
        model = Prompt(model, args.rank)
    elif args.method == "prefix":
        model = Prefix(model, args.rank)
    elif args.method == "bitfit":
        for name, weight in model.named_parameters():
            weight.requires_grad = name.endswith("bias")
    elif args.method == "last":
        for weight in model.parameters():
            weight.requires_grad = False
        for layer in (model.model if hasattr(model, "model") else model.transformer).layers[-2:]:
            layer.requires_grad_(True)
    elif args.method == "head":
        model.requires_grad_(False)
        model.classifier.requires_grad_(True)
    if args.classes:
        model.classifier.requires_grad_(True)
    return model


def main():
    args = parse()
    torch.manual_seed(0)
    model = make_model(args)
    model.train()
    print(model)
    language_models.print_trained(model)
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4)
    words = language_models.CONFIGS[args.model].get("vocab_size", 50257)
    for _ in range(args.steps):
        text = torch.randint(0, words, (args.batch_size, args.length)).to("cuda")
        labels = text
        if args.classes:
            labels = torch.randint(0, args.classes, (args.batch_size,)).to("cuda")
        with torch.autocast("cuda", torch.bfloat16, enabled=args.precision == "amp"):
            loss = model(input_ids=text, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(f"loss {loss.item():.3f}")


main()
