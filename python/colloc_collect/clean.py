# SPDX-License-Identifier: Apache-2.0
"""Turns the collector's files into the data that are shipped. Needs no PyTorch.

    python3 -m colloc_collect.clean RAW... --out FOLDER
        from these runs only
    python3 -m colloc_collect.clean RAW... --onto data/memory --out FOLDER
        in addition to what was shipped before

It writes a row per configuration with the features of the thesis, the layers of each model, the
exporter's descriptions, and a data card with the counts. A run that ran out of memory is a lower
bound, never a label. A run that raised an error is kept with its status, without memory. A run that
took too long or was killed is left out.
"""
import argparse
import collections
import csv
import glob
import hashlib
import io
import json
import lzma
import os
import statistics

from .names import model_key
from .shipped import read_lines, read_runs

# Leaf types by what the features count, in the order of their columns.
COUNTED = {
    "n_conv": (
        "Conv1d",
        "Conv2d",
        "Conv3d",
        "ConvTranspose2d",
        "Conv2dSame",
        "StdConv2d",
        "ScaledStdConv2d",
    ),
    "n_linear": ("Linear", "NonDynamicallyQuantizableLinear", "Conv1D", "LinearNorm"),
    "n_batch_norm": ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "BatchNormAct2d"),
    "n_layer_norm": ("LayerNorm", "LayerNorm2d", "RMSNorm", "GroupNorm"),
    "n_dropout": ("Dropout", "Dropout1d", "Dropout2d", "StochasticDepth", "DropPath"),
    "n_pool": (
        "MaxPool1d",
        "MaxPool2d",
        "AvgPool2d",
        "AdaptiveAvgPool2d",
        "AdaptiveAvgPool1d",
        "AvgPool2dSame",
    ),
    "n_embedding": ("Embedding", "EmbeddingBag"),
    "n_recurrent": ("LSTM", "GRU", "RNN"),
    "n_attention": ("MultiheadAttention",),
}
COLUMNS = [
    "id",
    "kind",
    "family",
    "split",
    "model",
    "shape",
    "activation",
    "batch",
    "sequence",
    "optimizer",
    "precision",
    "status",
    "layers",
    *COUNTED,
    "parameters",
    "trainable",
    "parameter_bytes",
    "buffer_bytes",
    "activations",
    "driver_mib",
    "driver_from",
    "context_mib",
    "reserved_mib",
    "allocated_mib",
    "active_mib",
    "requested_mib",
    "bound_mib",
    "alone",
    "neighbours",
    "alloc_retries",
    "steps",
    "step_ms",
    "smact",
    "smocc",
    "tensor",
    "dram",
    "fp32",
    "power_w",
    "observed_s",
    "gpu",
]
HELD_OUT_SHARE = 0.3
LEFT_OVER_MIB = 1
SAYS_NOTHING = ("timeout", "died")
DICTIONARY_MIN_BYTES, DICTIONARY_MAX_BYTES = 4096, 64 << 20  # the least of xz; that of preset 9
GPU = "NVIDIA H200"


def _fraction(text):
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) / 2**32


def split_of(row):
    """The part of the data set that the row belongs to.

    Real families are wholly in training or wholly held out; synthetic rows are divided 70 % / 20 %
    / 10 % as in the thesis.
    """
    if row["kind"] == "real":
        return "held-out" if _fraction("family " + row["family"]) < HELD_OUT_SHARE else "train"
    place = _fraction("row " + row["id"])
    return "train" if place < 0.7 else "validation" if place < 0.9 else "test"


def _lines(folders, pattern):
    for folder in folders:
        for path in sorted(glob.glob(os.path.join(folder, pattern))):
            opener = lzma.open if path.endswith(".xz") else open
            with opener(path, "rt", encoding="utf-8") as file:
                for line in file:
                    yield json.loads(line)


# --- runs


def _rank(row):
    """Ranks runs of a configuration: completed, in a new process, alone on the GPU."""
    return (
        row["status"] == "ok",
        row["status"] == "oom" and not row["neighbours"],
        row.get("runs_before", 0) == 0,
        row["alone"],
    )


def _chosen(rows):
    best = {}
    for row in rows:
        if row["id"] not in best or _rank(row) > _rank(best[row["id"]]):
            best[row["id"]] = row
    return [best[key] for key in sorted(best)]


def _is_fresh(row):
    """Whether the row's memory is the driver's figure for this run alone. MPS clients have smaller
    contexts."""
    if row.get("mps"):
        return False
    return (
        row.get("runs_before", 0) == 0
        and row.get("told_by_driver", True)
        and row["driver_end_mib"] > row.get("reserved_end_mib", 1e18)
    )


def _context_key(row):
    """The libraries that the task loads, whose code is part of the context.

    cuDNN for convolutions and recurrent layers, cuBLAS for products.
    """
    counts = row["counts"]
    return (
        row["precision"],
        "cuDNN" if counts["n_conv"] or counts["n_recurrent"] else "",
        "cuBLAS" if counts["n_linear"] or counts["n_attention"] or counts["n_recurrent"] else "",
    )


def _contexts(rows, shipped):
    """The context, which is the driver's figure minus the allocator's, by precision and libraries.

    From processes that made one run.
    """
    contexts = [
        (_context_key(row), row["driver_end_mib"] - row["reserved_end_mib"])
        for row in rows
        if row["status"] == "ok" and _is_fresh(row)
    ]
    contexts += [
        (_context_key({**row, "counts": row}), row["context_mib"])
        for row in shipped
        if row["driver_from"] == "driver"
    ]
    seen = collections.defaultdict(list)
    for key, context in contexts:
        seen[key].append(context)
        seen[None].append(context)
    return {
        key: (statistics.median(values), statistics.pstdev(values), len(values))
        for key, values in seen.items()
    }


def _memory(row, contexts):
    if row["status"] == "oom":
        had = (
            row["limit_mib"]
            if not row["neighbours"]
            else min(row["limit_mib"], row.get("reserved_mib") or 0)
        )
        return {"bound_mib": had}
    if row["status"] != "ok":
        return {}
    values = {
        key: row[key] for key in ("reserved_mib", "allocated_mib", "active_mib", "requested_mib")
    }
    if _is_fresh(row):
        return {
            **values,
            "driver_mib": row["driver_mib"],
            "driver_from": "driver",
            "context_mib": row["driver_end_mib"] - row["reserved_end_mib"],
        }
    context = contexts.get(_context_key(row), contexts[None])[0]
    return {
        **values,
        "driver_mib": row["reserved_mib"] + context,
        "driver_from": "allocator",
        "context_mib": context,
    }


def _is_dirty(row):
    """Whether the allocator held other memory, or freed blocks: then the peak is not the task's."""
    return row["status"] == "ok" and (
        row.get("left_over_mib", 0) > LEFT_OVER_MIB or row.get("alloc_retries", 0) > 0
    )


def _activity(row):
    if not row["alone"] or row["status"] != "ok" or not row.get("observed_s"):
        return {}
    return {
        **{key: row.get(key) for key in ("smact", "smocc", "tensor", "dram", "fp32", "observed_s")},
        "power_w": row["energy_j"] / row["observed_s"] if "energy_j" in row else None,
    }


def _flat(row, model, contexts):
    spec = row["model"] if row["kind"] != "real" else {}
    return {
        **{
            key: row.get(key)
            for key in (
                "id",
                "kind",
                "family",
                "batch",
                "sequence",
                "optimizer",
                "precision",
                "status",
                "neighbours",
                "steps",
            )
        },
        **(model or {}),
        **row["counts"],
        **_memory(row, contexts),
        **_activity(row),
        "model": model_key(row),
        "split": split_of(row),
        "shape": spec.get("shape"),
        "activation": spec.get("activation"),
        "alone": int(row["alone"]),
        "gpu": GPU,
        "alloc_retries": row.get("alloc_retries"),
        "step_ms": row.get("step_ms") if row["alone"] and row["status"] == "ok" else None,
    }


# --- layers


def _layer_sequence(layers):
    """Rows of the leaves and of the modules with parameters.

    [type, activations per sample, parameters, arguments, shape without batch, in place]
    """
    keys, batch = layers["keys"], layers["batch"]
    rows = [dict(zip(keys, values)) for values in layers["rows"]]
    return [
        [
            r["type"],
            r["activations"] / batch,
            r["parameters"],
            r["args"],
            r["shape"] and r["shape"][1:],
            int(r["in_place"]),
            int(r["shared"]),
        ]
        for r in rows
        if r["leaf"] or r["parameters"]
    ]


def _summary(layers):
    sequence = _layer_sequence(layers)
    return {
        "layers": len(sequence),
        "activations": round(sum(row[1] for row in sequence)),
        **{
            key: layers[key]
            for key in ("parameters", "trainable", "parameter_bytes", "buffer_bytes")
        },
    }


def _counts(layers):
    types = collections.Counter(row[0] for row in _layer_sequence(layers)) if layers else {}
    return {column: sum(types.get(name, 0) for name in names) for column, names in COUNTED.items()}


# --- files


def _write_xz(path, text):
    """With a dictionary no longer than the text: that of preset 9 has 64 MiB, and the compressor
    ten times as much, which is most of the time for a short text."""
    data = text.encode()
    size = min(max(len(data), DICTIONARY_MIN_BYTES), DICTIONARY_MAX_BYTES)
    best = {"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": size}
    with open(path, "wb") as file:
        file.write(lzma.compress(data, filters=[best]))


def _number(value):
    return (
        f"{value:.6g}"
        if isinstance(value, float) and value != int(value)
        else f"{int(value)}"
        if isinstance(value, float)
        else value
    )


def _write_runs(path, rows):
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: _number(value) for key, value in row.items()})
    _write_xz(path, out.getvalue())


def _compact(value):
    return json.dumps(value, separators=(",", ":")) + "\n"


def _write_layers(path, models, shipped):
    lines = {line["model"]: line for line in shipped}
    lines |= {
        key: {"model": key, **_summary(layers), "rows": _layer_sequence(layers)}
        for key, layers in models.items()
    }
    _write_xz(path, "".join(_compact(lines[key]) for key in sorted(lines)))


def _write_exports(path, folders, wanted, shipped):
    """Writes one export per model, optimizer and precision: the one that is valid for all batch
    sizes."""
    best = {
        (line["model_key"], line["optimizer"]["name"], line["precision"]): line for line in shipped
    }
    for row in _lines(folders, "exports*.jsonl.xz"):
        key = (row["model_key"], row["optimizer"], row["precision"])
        if (
            row["export"]
            and row["model_key"] in wanted
            and (key not in best or row["export"]["every_batch"])
        ):
            best[key] = {"model_key": key[0], **row["export"]}
    _write_xz(path, "".join(_compact(best[key]) for key in sorted(best)))
    return best


# --- the card


def _table(header, rows):
    return "\n".join(
        [
            "| " + " | ".join(header) + " |",
            "|" + "---|" * len(header),
            *("| " + " | ".join(map(str, row)) + " |" for row in rows),
        ]
    )


def _card(template, rows, contexts, exports, dropped):
    ok = [row for row in rows if row["status"] == "ok"]
    real = [row for row in ok if row["kind"] == "real"]
    families = collections.Counter((row["family"], row["split"]) for row in real)
    statuses = collections.Counter((row["kind"], row["status"]) for row in rows)
    quantiles = []
    for kind in sorted({row["kind"] for row in ok}):
        values = sorted(row["driver_mib"] for row in ok if row["kind"] == kind)
        quantiles.append(
            [
                kind,
                len(values),
                *(round(values[int(q * (len(values) - 1))]) for q in (0, 0.25, 0.5, 0.75, 0.95, 1)),
            ]
        )
    sources = collections.Counter(row["driver_from"] for row in ok)
    return template.format(
        statuses=_table(
            ["kind", "status", "runs"], [[*key, n] for key, n in sorted(statuses.items())]
        ),
        memory=_table(
            ["kind", "runs", "least", "25 %", "median", "75 %", "95 %", "most"], quantiles
        ),
        families=_table(
            ["family", "split", "runs"], [[*key, n] for key, n in sorted(families.items())]
        ),
        contexts=_table(
            ["precision and libraries", "processes", "median MiB", "standard deviation"],
            [
                [" ".join(filter(None, key)) if key else "all", n, round(m), round(d, 1)]
                for key, (m, d, n) in sorted(contexts.items(), key=str)
            ],
        ),
        activity=sum(1 for row in ok if row.get("smact") not in (None, "")),
        architectures=len({row["model"] for row in real}),
        n_families=len(families),
        fresh=sources["driver"],
        reused=sources["allocator"],
        exports=len(exports),
        dropped=dropped,
    )


class _Shipped:
    """The rows of the data that were cleaned before; empty when there are none."""

    def __init__(self, folder):
        self.runs = (
            [row for row in read_runs(folder) if row["status"] not in SAYS_NOTHING]
            if folder
            else []
        )
        self.layers = read_lines(folder, "layers.jsonl.xz") if folder else []
        self.exports = read_lines(folder, "exports.jsonl.xz") if folder else []


def _with(shipped, rows):
    """Keeps the row of a configuration that was measured earlier."""
    had = {row["id"]: row for row in shipped if row["status"] == "ok"}
    new = {row["id"]: row for row in rows if row["id"] not in had}
    rest = {row["id"]: row for row in shipped if row["id"] not in had and row["id"] not in new}
    every = had | new | rest
    return [every[key] for key in sorted(every)]


def clean(folders, out, template, onto=None):
    shipped, models = _Shipped(onto), {}
    for line in _lines(folders, "layers.jsonl.xz"):
        models.setdefault(line["model"], line)
    raw = [row for row in _lines(folders, "runs.jsonl")]
    for row in raw:
        row["counts"] = _counts(models.get(model_key(row)))
    usable = [row for row in raw if not _is_dirty(row) and row["status"] not in SAYS_NOTHING]
    contexts = _contexts(usable, shipped.runs)
    summaries = {key: _summary(layers) for key, layers in models.items()}
    rows = _with(
        shipped.runs,
        [_flat(row, summaries.get(model_key(row)), contexts) for row in _chosen(usable)],
    )
    os.makedirs(out, exist_ok=True)
    _write_runs(os.path.join(out, "runs.csv.xz"), rows)
    wanted = {row["model"] for row in rows}
    _write_layers(os.path.join(out, "layers.jsonl.xz"), models, shipped.layers)
    exports = _write_exports(
        os.path.join(out, "exports.jsonl.xz"), folders, wanted, shipped.exports
    )
    with open(os.path.join(out, "README.md"), "w", encoding="utf-8") as file:
        file.write(_card(template, rows, contexts, exports, len(raw) - len(usable)))


def main():
    parser = argparse.ArgumentParser(prog="colloc_collect.clean")
    parser.add_argument("raw", nargs="+", help="folders that the collector wrote")
    parser.add_argument("--onto", help="folder with data that were cleaned before")
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    with open(
        os.path.join(os.path.dirname(os.path.abspath(__file__)), "card.md"), encoding="utf-8"
    ) as file:
        clean(options.raw, options.out, file.read(), options.onto)


if __name__ == "__main__":
    main()
