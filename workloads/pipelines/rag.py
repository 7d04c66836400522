# SPDX-License-Identifier: Apache-2.0
"""Stages of retrieval-augmented generation with small models of random weights: rag.py STAGE

    question   makes a question of 16 words
    embed      its vector, by an encoder of 6 layers and 384 channels
    retrieve   the four nearest of 200,000 passages, by a product with all their vectors
    generate   32 tokens after the passages and the question, by a decoder of 8 layers and 512
               channels that keeps the keys and values of what it has read

All but `question` need PyTorch. It is the load that counts: what is generated means nothing.
"""

import random
import sys

from stage import run_stage

VOCABULARY = 8000
CHANNELS, PASSAGES, NEAREST = 384, 200000, 4
PASSAGE_TOKENS, NEW_TOKENS = 48, 32
DECODER_CHANNELS, DECODER_LAYERS, HEADS = 512, 8, 8


def run_question():
    chance = random.Random(1)

    def work(items):
        for item in items:
            item["question"] = [chance.randrange(VOCABULARY) for _ in range(16)]
        return items

    run_stage(work, lambda n: [{"id": i} for i in range(n)])


def sample_questions(n):
    return [{"id": i, "question": [i % VOCABULARY] * 16} for i in range(n)]


def run_embed():
    import torch
    from torch_stage import DEVICE, HALF, resources, synchronize

    layer = torch.nn.TransformerEncoderLayer(CHANNELS, 12, 4 * CHANNELS, 0.0, batch_first=True)
    words = torch.nn.Embedding(VOCABULARY, CHANNELS).to(DEVICE, HALF)
    encoder = torch.nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)
    encoder = encoder.to(DEVICE, HALF).eval()

    def work(items):
        with torch.inference_mode():
            tokens = torch.tensor([item["question"] for item in items], device=DEVICE)
            vectors = encoder(words(tokens)).mean(1).float().cpu().tolist()
        for item, vector in zip(items, vectors):
            item["vector"] = [round(value, 4) for value in vector]
        return items

    work(sample_questions(1))
    synchronize()
    run_stage(work, sample_questions, resources)


def run_retrieve():
    import torch
    from torch_stage import DEVICE, HALF, resources, synchronize

    torch.manual_seed(1)
    index = torch.randn(PASSAGES, CHANNELS, device=DEVICE, dtype=HALF)

    def work(items):
        with torch.inference_mode():
            vectors = torch.tensor([item.pop("vector") for item in items], device=DEVICE)
            nearest = (vectors.to(HALF) @ index.T).topk(NEAREST).indices.tolist()
        for item, passages in zip(items, nearest):
            item["passages"] = passages
        return items

    def sample(n):
        return [{**item, "vector": [0.1] * CHANNELS} for item in sample_questions(n)]

    work(sample(1))
    synchronize()
    run_stage(work, sample, resources)


def make_decoder(torch, device, dtype):
    """A decoder as small language models have it, and the function that runs it."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm_1, self.norm_2 = nn.LayerNorm(DECODER_CHANNELS), nn.LayerNorm(
                DECODER_CHANNELS
            )
            self.qkv = nn.Linear(DECODER_CHANNELS, 3 * DECODER_CHANNELS)
            self.out = nn.Linear(DECODER_CHANNELS, DECODER_CHANNELS)
            self.up = nn.Linear(DECODER_CHANNELS, 4 * DECODER_CHANNELS)
            self.down = nn.Linear(4 * DECODER_CHANNELS, DECODER_CHANNELS)

        def forward(self, x, cache):
            n, length, _ = x.shape
            parts = self.qkv(self.norm_1(x)).view(n, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
            q, k, v = parts
            if cache is not None:
                k, v = torch.cat((cache[0], k), 2), torch.cat((cache[1], v), 2)
            attended = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=cache is None)
            x = x + self.out(attended.transpose(1, 2).reshape(n, length, -1))
            return x + self.down(nn.functional.gelu(self.up(self.norm_2(x)))), (k, v)

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(VOCABULARY, DECODER_CHANNELS)
            self.blocks = nn.ModuleList(Block() for _ in range(DECODER_LAYERS))

        def forward(self, tokens, caches):
            x, kept = self.words(tokens), []
            for block, cache in zip(self.blocks, caches):
                x, cache = block(x, cache)
                kept.append(cache)
            return (x[:, -1] @ self.words.weight.T).argmax(-1, keepdim=True), kept

    return Decoder().to(device, dtype).eval()


def run_generate():
    import torch
    from torch_stage import DEVICE, HALF, resources, synchronize

    decoder = make_decoder(torch, DEVICE, HALF)

    def prompt(item):
        tokens = [
            (p * 31 + i) % VOCABULARY for p in item["passages"] for i in range(PASSAGE_TOKENS)
        ]
        return tokens + item["question"]

    def work(items):
        with torch.inference_mode():
            tokens = torch.tensor([prompt(item) for item in items], device=DEVICE)
            caches, answer = [None] * DECODER_LAYERS, []
            for _ in range(NEW_TOKENS):
                tokens, caches = decoder(tokens, caches)
                answer.append(tokens)
            answers = torch.cat(answer, 1).tolist()
        return [{"id": item["id"], "answer": words} for item, words in zip(items, answers)]

    def sample(n):
        return [{**item, "passages": [1, 2, 3, 4]} for item in sample_questions(n)]

    work(sample(1))
    synchronize()
    run_stage(work, sample, resources)


def main():
    stages = {
        "question": run_question,
        "embed": run_embed,
        "retrieve": run_retrieve,
        "generate": run_generate,
    }
    stages[sys.argv[1]]()


if __name__ == "__main__":
    main()
