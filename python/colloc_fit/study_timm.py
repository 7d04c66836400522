# SPDX-License-Identifier: Apache-2.0
"""Estimates of timm's networks against a public table of runs on an A100 of 40 GB.

    scripts/study-timm export SHEET EXPORTS [SECONDS]
    scripts/study-timm judge COLLOC SHEET EXPORTS FOLDER [PAGE]

SHEET is GPUMemNet's table as CSV: timm_model,batch,measured_mib,faketensor_mib; `measured_mib` is
of the whole device. `export` needs PyTorch and timm. It describes the networks in an order that
does not depend on their names' meaning, so that those done after SECONDS are a random part of the
table, and goes on where it stopped. Two at once share the work. `judge` estimates each run from the
export of its network; EXPORTS is that folder, or a file with an export a line, packed by xz. FOLDER
gets a row for each run (runs.csv) and for each family (families.csv); both stay outside of the
project, since the table has no licence. PAGE gets the tables between its markers.

The sheet does not say how the trainings ran. Their optimizer is taken for SGD with momentum, chosen
with the table in view: with Adam, and with plain SGD, the constant of the device differs more
between small networks and large ones. The constant is the median of measured less estimated memory
over the networks whose hash is even; errors are those of the others, and the other way round.

Where P99 is too little, it is asked again for a training in which cuDNN tries kernels, as timm's
own train.py has it. Another table has what that program's loader would have on the GPU beside
the batch of the step, and one what trainings took on an H200 (docs/measured/timm/h200.jsonl).

A run at the device's limit, or one that took less than the tensors that FakeTensor finds alive at
its peak, ran out of memory: it is left out.
"""
import collections
import contextlib
import csv
import hashlib
import json
import lzma
import math
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from colloc_fit.study_baselines import TOP, percentile

OPTIMIZER = "momentum"
# What timm's PrefetchLoader has on the GPU beside the batch of the step, when it makes another one:
# two batches in 32 bit and one as bytes. timm's train.py takes it unless --no-prefetcher is given.
LOADER_BYTES = 2 * 4 + 1  # for each element of a batch
BATCH = 32  # at which networks are exported; an export of these is valid for every batch
GPU = "A100-40GB"
FULL_MIB = 38500  # of 40,960; chosen: the allocator retries from about there
LEAST_RUNS = 10  # of a family in the page's table; chosen: two or three networks
JUMP = 0.1  # above the line between its neighbours; chosen
FEW_CONVOLUTIONS = 4  # of a network of attention, for its patches; chosen
SPAN = 16  # between the batches of a network whose growth counts: 8 and 128 in the table
LIMIT_S = 400  # for the export of one network; chosen
IN_VIEW = 50  # of the study's order: those with which quantiles were chosen are among them
MEASURED = os.path.join(TOP, "data", "memory", "exports.jsonl.xz")
ON_H200 = os.path.join(TOP, "docs", "measured", "timm", "h200.jsonl")
MIB = 1 << 20
MIB_OF_GIB = 1024
KNOWN_FIELDS = ["timm_model", "batch", "measured_mib", "faketensor_mib"]


def rank(name):
    """The place of a network in the order of the study."""
    return int(hashlib.sha256(name.encode()).hexdigest()[:8], 16)


def family_of(name):
    """The letters with which the name of a network begins: resnet of resnet50d."""
    return re.match(r"(legacy_|tf_)?[a-z]*", name).group(0)


def usable_runs(rows):
    """Those that ended well: less than FakeTensor's live tensors cannot have been enough."""
    return [row for row in rows if row["faketensor_mib"] <= row["measured_mib"] < FULL_MIB]


def read_sheet(path):
    """Rows by network."""
    networks = collections.defaultdict(list)
    with open(path, encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        if reader.fieldnames != KNOWN_FIELDS:
            sys.exit(f"study-timm: {path}: the first line is not {','.join(KNOWN_FIELDS)}")
        for row in reader:
            networks[row["timm_model"]].append(
                {"model": row["timm_model"], **{key: int(row[key]) for key in KNOWN_FIELDS[1:]}}
            )
    return networks


# ---- export ----


def _attention_of_scores(query, key, value, mask, dropout, causal, scale, grouped):
    """As `_scaled_dot_product_attention_math`, which PyTorch 1.13 does not have."""
    import torch

    scores = (query * (scale or query.shape[-1] ** -0.5)) @ key.transpose(-2, -1)
    if mask is not None:
        scores = scores + mask
    return torch.dropout(scores.softmax(-1), dropout, dropout > 0) @ value


def _attend_as_newer():
    """Gives PyTorch 1.13 the attention of PyTorch 2, with the exporter's rules."""
    import torch

    from colloc_export import attention

    if not hasattr(torch.nn.functional, "scaled_dot_product_attention"):
        attention._math = _attention_of_scores
        torch.nn.functional.scaled_dot_product_attention = attention.attention_with(lambda *_: None)


def _momentum(parameters):
    import torch

    return torch.optim.SGD(parameters, lr=0.01, momentum=0.9, foreach=True)


def export_network(name, path):
    """Writes what a training of timm's network `name` allocates; `path` exists whole or not."""
    import timm

    from colloc_export.describe import export
    from colloc_export.sources import Input, batch_maker
    from colloc_export.task import Task

    size = "x".join(map(str, timm.models.get_pretrained_cfg(name).input_size))
    task = Task(
        lambda: timm.create_model(name),
        batch_maker([Input.parse(size)], 1000, False),
        optimizer=_momentum,
        name=name,
    )
    description = {**export(task, BATCH), "optimizer": {"name": OPTIMIZER, "foreach": True}}
    description["optimizer"]["fused"] = False
    with open(f"{path}.{os.getpid()}", "w", encoding="utf-8") as file:
        json.dump(description, file, separators=(",", ":"))
    os.replace(f"{path}.{os.getpid()}", path)


def _export_apart(name, path):
    """In a process that ends after LIMIT_S; without a result `path`.failed says why."""
    child = os.fork()
    if not child:
        signal.alarm(LIMIT_S)
        try:
            export_network(name, path)
        except Exception as error:
            with open(f"{path}.failed", "w", encoding="utf-8") as file:
                file.write(f"{type(error).__name__}: {error}\n")
        os._exit(0)
    os.waitpid(child, 0)
    if not os.path.exists(path) and not os.path.exists(f"{path}.failed"):
        with open(f"{path}.failed", "w", encoding="utf-8") as file:
            file.write(f"no result after {LIMIT_S} s\n")


def export_all(sheet, exports, seconds):
    _attend_as_newer()  # before timm, which asks at its import what PyTorch has
    import timm  # before the processes for each network: they inherit it

    os.makedirs(exports, exist_ok=True)
    until = time.monotonic() + seconds
    done = 0
    for name in sorted(read_sheet(sheet), key=rank):
        if time.monotonic() >= until:
            break
        path = os.path.join(exports, f"{name}.json")
        with contextlib.suppress(FileExistsError):
            os.close(os.open(f"{path}.taken", os.O_CREAT | os.O_EXCL))
            _export_apart(name, path)
            done += 1
    print(f"timm {timm.__version__}: {done} networks")


# ---- judge ----


def ask(colloc, export, batch):
    """The answer for one run, as `colloc estimate --json` has it."""
    done = subprocess.run(
        [colloc, "estimate", f"--export={export}", f"--batch={batch}", f"--gpu={GPU}", "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"study-timm: {export}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def unpack_exports(path, networks, folder):
    """The exports of a file that are of these networks, in fp32 and with OPTIMIZER, by name.

    path: a line of JSON each, packed by xz
    """
    found = {}
    with lzma.open(path, "rt") as file:
        for line in file:
            description = json.loads(line)
            name = description.get("model_key", description["model"])
            if (
                name in networks
                and description["precision"] == "fp32"
                and description["optimizer"]["name"] == OPTIMIZER
            ):
                found[name] = os.path.join(folder, f"{name}.json")
                with open(found[name], "w", encoding="utf-8") as out:
                    out.write(line)
    return found


def read_exports(path, networks, scratch):
    """Paths of the exports of this study, by network: of a folder or a file."""
    if os.path.isfile(path):
        return unpack_exports(path, networks, scratch)
    paths = {name: os.path.join(path, f"{name}.json") for name in networks}
    return {name: one for name, one in paths.items() if os.path.exists(one)}


def sources_of(networks, measured, described):
    """By network, how it was described and whether quantiles were chosen with it in view."""
    first = set(sorted(networks, key=rank)[:IN_VIEW])
    sources = {name: "data/memory" for name in measured}
    for name in described:
        sources[name] = f"this study, {'in view' if name in first else 'not in view'}"
    return sources


def estimate_runs(colloc, networks, exports):
    """A row for each usable run of the networks that have an export.

    exports: paths by network
    """
    rows = []
    for name in sorted(networks):
        path = exports.get(name)
        runs = usable_runs(networks[name]) if path else []
        for run in runs:
            answer = ask(colloc, path, run["batch"])["estimates"][0]
            rows.append({**run, **{key: answer[key] for key in ("mib", "p90_mib", "p99_mib")}})
        if runs:
            with open(path, encoding="utf-8") as file:
                description = json.load(file)
            elements = math.prod(description["inputs"][0]["shape"])
            for row in rows[-len(runs) :]:
                row["loader_mib"] = row["batch"] * elements * LOADER_BYTES / MIB
                row["convolutions"] = sum(
                    conv["phase"] == "forward" for conv in description["convs"]
                )
    return rows


def with_loader(rows):
    """The same runs, with the batches of timm's loader."""
    return [
        {**row, **{key: row[key] + row["loader_mib"] for key in ("mib", "p90_mib", "p99_mib")}}
        for row in rows
    ]


def add_tried(colloc, rows, exports):
    """Adds whether P99 is enough for a training that tries kernels, to the rows above P99: it is
    never less than P99 without."""
    for row in rows:
        row["above_tried_p99"] = row["above_p99"]
        if not row["above_p99"]:
            continue
        with open(exports[row["model"]], encoding="utf-8") as file:
            description = json.load(file)
        description["flags"]["cudnn_benchmark"] = True  # as in timm's train.py
        with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
            json.dump(description, file)
            file.flush()
            mib = ask(colloc, file.name, row["batch"])["reserve_mib"]
        row["above_tried_p99"] = mib + row["constant_mib"] < row["measured_mib"]


def add_constants(rows):
    """Adds to each row the device's constant, from the networks of the other half."""
    for half in (0, 1):
        differences = [
            row["measured_mib"] - row["mib"] for row in rows if rank(row["model"]) % 2 != half
        ]
        constant = statistics.median(differences) if differences else 0
        fakes = [
            row["measured_mib"] - row["faketensor_mib"]
            for row in rows
            if rank(row["model"]) % 2 != half
        ]
        for row in rows:
            if rank(row["model"]) % 2 == half:
                row["constant_mib"] = constant
                row["error"] = (row["mib"] + constant) / row["measured_mib"] - 1
                row["above_p90"] = row["p90_mib"] + constant < row["measured_mib"]
                row["above_p99"] = row["p99_mib"] + constant < row["measured_mib"]
                row["fake_error"] = row["faketensor_mib"] / row["measured_mib"] - 1
                fake = row["faketensor_mib"] + (statistics.median(fakes) if fakes else 0)
                row["fake_error_less_constant"] = fake / row["measured_mib"] - 1


def growth(rows):
    """By how much more the largest batch of a network exceeds its estimate than the smallest, in
    MiB: the median of the networks with a batch SPAN times another. None: there is none."""
    networks = collections.defaultdict(dict)
    for row in rows:
        networks[row["model"]][row["batch"]] = row["measured_mib"] - row["mib"]
    found = [
        excess[max(excess)] - excess[min(excess)]
        for excess in networks.values()
        if max(excess) >= SPAN * min(excess)
    ]
    return statistics.median(found) if found else None


def summarize(rows):
    """Median, 95th percentile and worst of three estimators' errors, and how P90 and P99 held."""
    summary = {}
    for name in ("error", "fake_error_less_constant", "fake_error"):
        sizes = [abs(row[name]) for row in rows]
        summary[name] = (statistics.median(sizes), percentile(sizes, 0.95), max(sizes))
    for name in ("above_p90", "above_p99"):
        summary[name] = sum(row[name] for row in rows) / len(rows)
    return summary


def jumps(networks):
    """Runs far above the line between half and twice their batch: no smooth function of the batch
    is near all three.

    networks: rows by network
    Returns ((name, batch) of each, runs with both neighbours, those above the larger neighbour).
    """
    found, inner, above = [], 0, 0
    for name, rows in networks.items():
        taken = {row["batch"]: row["measured_mib"] for row in usable_runs(rows)}
        for batch, mib in taken.items():
            smaller, larger = taken.get(batch // 2), taken.get(2 * batch)
            if smaller is None or larger is None:
                continue
            inner += 1
            above += mib > larger
            if mib > (1 + JUMP) * (smaller + (larger - smaller) / 3):
                found.append((name, batch))
    return found, inner, above


def group_rows(rows, key, least=1):
    """(name, runs, median error, p95, above P99, mean signed error), the largest p95 first."""
    groups = collections.defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    found = []
    for name, members in groups.items():
        if len(members) >= least:
            sizes = [abs(row["error"]) for row in members]
            found.append(
                (
                    name,
                    len(members),
                    statistics.median(sizes),
                    percentile(sizes, 0.95),
                    sum(row["above_p99"] for row in members),
                    statistics.mean(row["error"] for row in members),
                )
            )
    return sorted(found, key=lambda one: one[3], reverse=True)


def _table(heads, lines):
    rows = [heads, ["---"] * len(heads), *lines]
    return "".join(f"| {' | '.join(map(str, row))} |\n" for row in rows)


def _mib(value):
    return "" if value is None else f"{value:+,.0f} MiB"


def _percent(value):
    return f"{100 * value:.1f}%"


def _errors(rows):
    """How far each estimator is from the runs."""
    summary = summarize(rows)
    lines = [
        ["`graph`, from an export", *map(_percent, summary["error"])]
        + [_percent(summary["above_p90"]), _percent(summary["above_p99"])],
        ["`graph`, where kernels are tried", "", "", "", ""]
        + [_percent(sum(row["above_tried_p99"] for row in rows) / len(rows))],
    ]
    for label, name in (
        ("FakeTensor, with its constant", "fake_error_less_constant"),
        ("FakeTensor", "fake_error"),
    ):
        lines.append([label, *map(_percent, summary[name]), "", ""])
    return _table(["estimator", "median", "p95", "worst", "above P90", "above P99"], lines)


def _loaders(rows):
    """What the batches of timm's loader do to the errors, by how much of a network convolves."""
    loaded = with_loader(rows)
    add_constants(loaded)
    lines = []
    for label, convolves in (("at most four", False), ("more", True)):
        cells = []
        for of_rows in (rows, loaded):
            chosen = [
                row for row in of_rows if (row["convolutions"] > FEW_CONVOLUTIONS) is convolves
            ]
            if chosen:
                cells += [_percent(statistics.median(abs(row["error"]) for row in chosen))]
                cells += [_mib(growth(chosen))]
        if cells:
            lines.append([label, len({row["model"] for row in chosen}), len(chosen), *cells])
    heads = ["convolutions", "networks", "runs", "median", "growth", "median with it", "growth"]
    return _table(heads, lines)


def read_h200(path=ON_H200):
    """What the allocator held at most, by (network, batch): a dictionary by `benchmark`."""
    found = collections.defaultdict(dict)
    with open(path, encoding="utf-8") as file:
        for row in map(json.loads, file):
            most = max(reserved for _, reserved, _ in row["steps"])
            found[row["name"], row["batch"]][row["benchmark"]] = most
    return found


def _beside_h200(networks, taken):
    """By how much the table's runs exceed the allocator's memory on an H200, the most first.

    taken: as read_h200 returns it
    """
    lines = []
    for (name, batch), mib in taken.items():
        for run in usable_runs(networks.get(name, [])):
            if run["batch"] == batch:
                more = (run["measured_mib"] - mib[False]) / MIB_OF_GIB
                lines.append([name, batch, f"{mib[False]:,}", f"{mib[True]:,}", more])
    lines.sort(key=lambda line: -line[-1])
    heads = ["network", "batch", "H200, MiB", "then with `benchmark`", "A100's device"]
    return _table(heads, [[*line[:-1], f"{line[-1]:+.1f} GiB"] for line in lines])


def text_of(rows, networks):
    """The tables of the page, by the name of their marker."""
    constants = sorted({round(row["constant_mib"]) for row in rows})
    usable = sum(len(usable_runs(runs)) for runs in networks.values())
    counts = (
        f"{len({row['model'] for row in rows})} of {len(networks)} networks, {len(rows)} of "
        f"{usable} runs that ended well. The constant of the device: "
        f"{' and '.join(f'{one:,}' for one in constants)} MiB from the two halves.\n"
    )

    def groups(key, head, least):
        return _table(
            [head, "runs", "median", "p95", "above P99", "mean error"],
            [
                [name, runs, _percent(median), _percent(p95), above, f"{100 * mean:+.1f}%"]
                for name, runs, median, p95, above, mean in group_rows(rows, key, least)
            ],
        )

    jumping, inner, larger = jumps(networks)
    per_batch = collections.Counter(batch for _, batch in jumping)
    irregular = (
        f"Of {inner:,} runs with half and twice their batch in the table, {len(jumping)} "
        f"({_percent(len(jumping) / inner)}) took more than {JUMP:.0%} above the line between "
        f"these two: {', '.join(f'{per_batch[b]} at batch {b}' for b in sorted(per_batch))}, of "
        f"{len({name for name, _ in jumping})} networks. {larger} took more than at twice the "
        "batch.\n"
        if inner
        else "None has neighbours.\n"
    )
    return {
        "counts": counts,
        "errors": _errors(rows),
        "loader": _loaders(rows),
        "jumps": irregular,
        "h200": _beside_h200(networks, read_h200()),
        "halves": _held(rows),
        "sources": groups(lambda row: row["source"], "described by", 1),
        "batches": groups(lambda row: row["batch"], "batch", 1),
        "families": groups(lambda row: family_of(row["model"]), "family", LEAST_RUNS),
    }


def _held(rows):
    """How P90 and P99 held in two halves of the families."""
    lines = []
    for half in (0, 1):
        members = [row for row in rows if rank(family_of(row["model"])) % 2 == half]
        if members:
            lines.append(
                [
                    ("first", "second")[half],
                    len({family_of(row["model"]) for row in members}),
                    len(members),
                    _percent(1 - sum(row["above_p90"] for row in members) / len(members)),
                    _percent(1 - sum(row["above_p99"] for row in members) / len(members)),
                ]
            )
    heads = ["half of the families", "families", "runs", "P90 was enough", "P99 was enough"]
    return _table(heads, lines)


def write_page(path, texts):
    """Replaces what is between `<!-- name -->` and `<!-- end -->`."""
    with open(path, encoding="utf-8") as file:
        page = file.read()
    for name, text in texts.items():
        begin, end = f"<!-- {name} -->", "<!-- end -->"
        pattern = rf"{re.escape(begin)}.*?{re.escape(end)}"
        whole = f"{begin}\n\n{text}\n{end}"
        page, found = re.subn(pattern, lambda _, whole=whole: whole, page, flags=re.DOTALL)
        if not found:
            sys.exit(f"study-timm: {path} has no marker <!-- {name} -->")
    with open(path, "w", encoding="utf-8") as file:
        file.write(page)


def judge(colloc, sheet, exports, folder, page=None):
    networks = read_sheet(sheet)
    with tempfile.TemporaryDirectory() as scratch:
        measured = unpack_exports(MEASURED, networks, scratch)
        described = read_exports(exports, networks, scratch)
        paths, sources = {**measured, **described}, sources_of(networks, measured, described)
        rows = estimate_runs(colloc, networks, paths)
        if not rows:
            sys.exit(f"study-timm: {exports} has no export of a network of {sheet}")
        for row in rows:
            row["source"] = sources[row["model"]]
        add_constants(rows)
        add_tried(colloc, rows, paths)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "runs.csv"), "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    with open(os.path.join(folder, "families.csv"), "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["family", "runs", "median", "p95", "above_p99", "mean_error"])
        writer.writerows(group_rows(rows, lambda row: family_of(row["model"])))
    texts = text_of(rows, networks)
    if page:
        write_page(page, texts)
    print("\n".join(texts.values()))


def main(arguments):
    if arguments[:1] == ["export"] and len(arguments) in (3, 4):
        seconds = float(arguments[3]) if len(arguments) == 4 else float("inf")
        export_all(arguments[1], arguments[2], seconds)
    elif arguments[:1] == ["judge"] and len(arguments) in (5, 6):
        judge(*arguments[1:])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
