# SPDX-License-Identifier: Apache-2.0
"""Language models with random weights, made from a configuration: nothing is downloaded."""
import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSequenceClassification


def _llama(hidden, inner, layers, heads, groups, words, tied):
    return dict(
        model_type="llama", hidden_size=hidden, intermediate_size=inner, num_hidden_layers=layers,
        num_attention_heads=heads, num_key_value_heads=groups, vocab_size=words,
        tie_word_embeddings=tied, max_position_embeddings=4096,
    )  # fmt: skip


def _gpt2(hidden, layers, heads):
    return dict(model_type="gpt2", n_embd=hidden, n_layer=layers, n_head=heads)


def _bert(kind, hidden, layers, heads, words):
    return dict(
        model_type=kind, hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=heads,
        intermediate_size=4 * hidden, vocab_size=words,
    )  # fmt: skip


CONFIGS = {
    "gpt2": _gpt2(768, 12, 12),
    "gpt2-medium": _gpt2(1024, 24, 16),
    "gpt2-large": _gpt2(1280, 36, 20),
    "opt-1.3b": dict(
        model_type="opt", hidden_size=2048, ffn_dim=8192, num_hidden_layers=24,
        num_attention_heads=32, vocab_size=50272, word_embed_proj_dim=2048,
    ),  # fmt: skip
    "qwen-0.5b": {**_llama(896, 4864, 24, 14, 2, 151936, True), "model_type": "qwen2"},
    "llama-1b": _llama(2048, 8192, 16, 32, 8, 128256, True),
    "llama-3b": _llama(3072, 8192, 28, 24, 8, 128256, True),
    "llama-7b": _llama(4096, 11008, 32, 32, 32, 32000, False),
    "bert-base": _bert("bert", 768, 12, 12, 30522),
    "roberta-large": _bert("roberta", 1024, 24, 16, 50265),
}
TYPES = {"fp32": torch.float32, "amp": torch.float32, "bf16": torch.bfloat16}


def load(name, precision, classes=0):
    """On the GPU from the start."""
    words = dict(CONFIGS[name])
    config = AutoConfig.for_model(words.pop("model_type"), **words)
    kind = AutoModelForCausalLM
    if classes:
        config.num_labels, kind = classes, AutoModelForSequenceClassification
    with torch.device("cuda"):
        model = kind.from_config(config, dtype=TYPES[precision])
    model.config.use_cache = False
    return model


def print_trained(model):
    """The line that PEFT prints."""
    weights = {id(p): p for p in model.parameters()}.values()
    trained = sum(p.numel() for p in weights if p.requires_grad)
    every = sum(p.numel() for p in weights)
    print(
        f"trainable params: {trained:,} || all params: {every:,} "
        f"|| trainable%: {100 * trained / every:.4f}"
    )
