# SPDX-License-Identifier: Apache-2.0
"""Plans which configurations to run, and in which order.

The same seed gives the same plan; every configuration has a stable name.
"""
import random

from colloc_export import Task

from . import real, synthetic
from .names import identify, model_key

OPTIMIZERS = ("sgd", "momentum", "adam", "adamw")
PRECISIONS = ("fp32", "amp")
SYNTHETIC_SHARE = {"mlp": 0.25, "cnn": 0.42, "transformer": 0.33}


def make_configuration(kind, family, model, batch, sequence, optimizer, precision):
    """A row of the plan, with its stable name."""
    row = {
        "kind": kind,
        "family": family,
        "model": model,
        "batch": batch,
        "sequence": sequence,
        "optimizer": optimizer,
        "precision": precision,
    }
    return {"id": identify(row), **row}


def synthetic_rows(rng, count):
    """Some `count` drawn configurations: first MLPs, then CNNs, then Transformers."""
    kinds = [kind for kind, share in SYNTHETIC_SHARE.items() for _ in range(round(count * share))]
    for kind in kinds:
        spec, batch, sequence = synthetic.DRAW[kind](rng)
        # The thesis's Transformers and CNNs are trained with Adam, as most are; the others follow.
        optimizer = rng.choice(("adam", *OPTIMIZERS))
        family = f"{kind}-{spec['shape']}" if "shape" in spec else kind
        yield make_configuration(
            kind, family, spec, batch, sequence, optimizer, rng.choice(("fp32", *PRECISIONS))
        )


def _real_rows(rng, per_architecture):
    for architecture in real.ARCHITECTURES:
        combinations = [
            (b, o, p) for b in architecture.batches for o in OPTIMIZERS for p in PRECISIONS
        ]
        for batch, optimizer, precision in rng.sample(
            combinations, min(per_architecture, len(combinations))
        ):
            yield make_configuration(
                "real",
                architecture.family,
                architecture.name,
                batch,
                architecture.sequence_length,
                optimizer,
                precision,
            )


def make_plan(seed, synthetic_count, per_architecture, alone):
    """Rows in a random order, so that an interrupted plan is balanced.

    alone: number of rows that have a GPU to themselves
    """
    rng = random.Random(seed)
    rows = list(
        {
            row["id"]: row
            for row in [*synthetic_rows(rng, synthetic_count), *_real_rows(rng, per_architecture)]
        }.values()
    )
    rng.shuffle(rows)
    real_first = sorted(rows, key=lambda row: row["kind"] != "real")
    n_real = min(alone // 2, sum(row["kind"] == "real" for row in rows))
    chosen = {row["id"] for row in real_first[:n_real]}
    others = [row for row in rows if row["kind"] != "real"][: alone - n_real]
    chosen |= {row["id"] for row in others}
    for row in rows:
        row["alone"] = row["id"] in chosen
    return rows


def task_of(row):
    """The training task of a row."""
    common = {
        "optimizer": row["optimizer"],
        "precision": row["precision"],
        "sequence_length": row["sequence"],
    }
    if row["kind"] == "real":
        architecture = real.BY_NAME[row["model"]]
        return Task(
            lambda: real.make_model(architecture),
            lambda n: real.make_batch(architecture, n),
            real.loss_of(architecture),
            name=row["model"],
            **common,
        )
    spec = row["model"]
    return Task(
        lambda: synthetic.make_model(spec),
        lambda n: synthetic.make_batch(spec, n),
        name=model_key(row),
        **common,
    )


# Memory that is reserved for a real model before its first run: enough for all batches of the plan.
REAL_BYTES = 20 << 30
CONTEXT_BYTES = 800 << 20


def reserve_bytes(row, measured):
    """Bytes to reserve for a run beside others.

    measured: (batch, bytes) of the model's earlier runs; may be empty
    """
    if measured:
        return max(size * max(1, row["batch"] / batch) for batch, size in measured) + CONTEXT_BYTES
    if row["kind"] == "real":
        batches = real.BY_NAME[row["model"]].batches
        return REAL_BYTES * (0.3 + 0.7 * row["batch"] / max(batches))
    return 1.2 * synthetic.rough_size(row["model"], row["batch"])[0] + 2 * CONTEXT_BYTES
