# SPDX-License-Identifier: Apache-2.0
"""Transformers drawn as those of GPUMemNet were (the dissertation's section 5.4.3, table 5.6).

Its 5,010 networks come from two campaigns, which the published table still shows: some 2,000 of up
to 11 layers at batches of 8 to 64, then 3,000 of up to 39 layers, wider, at batches of 1 to 128.
All are encoders with the norm after each sum, one answer for a sequence, trained with Adam in fp32.
Each property is drawn by itself, so that a part of them needs more memory than their GPU has.
"""
from dataclasses import dataclass


@dataclass(frozen=True)
class Campaign:
    """Each property is drawn uniformly: ranges include both ends."""

    share: float
    widths: tuple
    layers: tuple
    heads: tuple
    sequences: tuple
    batches: tuple
    classes: tuple


CAMPAIGNS = (
    Campaign(
        share=0.4,
        widths=(128, 256, 512, 768, 1024),
        layers=(2, 11),
        heads=(2, 4, 8, 16),
        sequences=(128, 256, 512),
        batches=(8, 16, 32, 64),
        classes=(2, 1000),
    ),
    Campaign(
        share=0.6,
        widths=(128, 256, 512, 768, 1024, 2048),
        layers=(2, 39),
        heads=(2, 4, 8, 12, 16),
        sequences=(128, 256, 512, 1024),
        batches=(1, 2, 4, 8, 16, 32, 64, 128),
        classes=(400, 1000),
    ),
)
VOCABULARY = (50_000, 1_000_000)
DROPOUT = (0.1, 0.5)
HIDDEN = (2, 4)  # times the width


PROPERTIES = "classes width layers heads hidden dropout sequence vocabulary".split()


def published_spec(dropout, **counts):
    """A specification of synthetic.Transformer of the kind that GPUMemNet's are, by PROPERTIES."""
    return {
        "kind": "transformer",
        "dropout": dropout,
        **{name: int(count) for name, count in sorted(counts.items())},
        "activation": "relu",
        "norm_first": False,
        "per_token": False,
    }


def draw_published(rng):
    """(spec of synthetic.Transformer, batch)."""
    campaign = CAMPAIGNS[0] if rng.random() < CAMPAIGNS[0].share else CAMPAIGNS[1]
    while True:
        width, heads = rng.choice(campaign.widths), rng.choice(campaign.heads)
        if width % heads == 0:  # PyTorch refuses the others, so they left no row
            break
    spec = published_spec(
        classes=rng.randint(*campaign.classes),
        width=width,
        layers=rng.randint(*campaign.layers),
        heads=heads,
        hidden=rng.randrange(HIDDEN[0] * width, HIDDEN[1] * width),
        dropout=rng.uniform(*DROPOUT),
        sequence=rng.choice(campaign.sequences),
        vocabulary=rng.randrange(*VOCABULARY),
    )
    return spec, rng.choice(campaign.batches)
