# SPDX-License-Identifier: Apache-2.0
"""Estimates of timm's networks against a public table of runs on an A100 of 40 GB.

    scripts/study-timm export SHEET EXPORTS [SECONDS]
    scripts/study-timm judge COLLOC SHEET EXPORTS FOLDER [PAGE]

EXPORTS of `judge`: files with an export a line, packed by xz, with commas between; the networks of
the first were in view when the rules of this study were made, those of the others were not. Sums of
gradients are joined in them (joined_sums.py), and rms_norm is CUDA's kernel (fused_norms.py). Or
the folder of `export`.

SHEET is GPUMemNet's table as CSV: timm_model,batch,measured_mib,faketensor_mib; `measured_mib` is
of the whole device. `export` needs PyTorch and timm. It describes the networks in an order that
does not depend on their names' meaning, so that those done after SECONDS are a random part of the
table, and goes on where it stopped. Two at once share the work. `judge` estimates each run from the
export of its network. FOLDER gets a row for each run (runs.csv) and for each family (families.csv);
both stay outside of the project, since the table has no licence. PAGE gets the tables between its
markers.

The sheet does not say how the trainings ran. They are taken for those of timm's train.py
(timm_training.py), and a table has what each of its ways does to the errors. The constant of the
device is the median of measured less estimated memory over the networks whose hash is even; errors
are those of the others, and the other way round. Another table has what trainings took on an H200
that tried kernels and that tried none (docs/measured/timm/tries.jsonl: the most that NVML said).

A run at the device's limit, one that took less than the tensors that FakeTensor finds alive at its
peak, or exactly as much as one with another batch, did not train: it is left out.
"""
import collections
import concurrent.futures
import contextlib
import csv
import hashlib
import json
import lzma
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from colloc_fit.fused_norms import with_fused_norms
from colloc_fit.joined_sums import with_joined_sums
from colloc_fit.study_baselines import TOP, percentile
from colloc_fit.timm_training import DECAY, LOADER, TRIES, as_timm_trains, loader_mib

OPTIMIZER = "momentum"
ALL_WAYS = (TRIES, DECAY, LOADER)
STEPS = (
    ("plain momentum", ()),
    ("and cuDNN tries kernels", (TRIES,)),
    ("and weights decay", (TRIES, DECAY)),
    ("and the loader's batches", ALL_WAYS),
)
ASKED_AT_ONCE = 3  # chosen
ASKED = ("mib", "p90_mib", "p99_mib", "floor_mib")
BATCH = 32  # at which networks are exported; an export of these is valid for every batch
GPU = "A100-40GB"
FULL_MIB = 38500  # of 40,960; chosen: the allocator retries from about there
LEAST_RUNS = 40  # of a family in the page's table; chosen: eight networks or more
JUMP = 0.1  # above the line between its neighbours; chosen
OFF = 0.12  # of the measured memory: runs that are too high by more are listed; the goal's p95
CLASSES = 1000  # of ImageNet, which the table's networks are of
SPAN = 16  # between the batches of a network whose growth counts: 8 and 128 in the table
LIMIT_S = 400  # for the export of one network; chosen
IN_VIEW, NOT_IN_VIEW = "this study, in view", "this study, not in view"
MEASURED = os.path.join(TOP, "data", "memory", "exports.jsonl.xz")
ON_H200 = os.path.join(TOP, "docs", "measured", "timm", "tries.jsonl")
MIB_OF_GIB = 1024
KNOWN_FIELDS = ["timm_model", "batch", "measured_mib", "faketensor_mib"]


def rank(name):
    """The place of a network in the order of the study."""
    return int(hashlib.sha256(name.encode()).hexdigest()[:8], 16)


def family_of(name):
    """The letters with which the name of a network begins: resnet of resnet50d."""
    return re.match(r"(legacy_|tf_)?[a-z]*", name).group(0)


def usable_runs(rows):
    """Those of a network that ended well: less than FakeTensor's live tensors cannot have been
    enough, and a training takes more with a larger batch."""
    times = collections.Counter(row["measured_mib"] for row in rows)
    return [
        row
        for row in rows
        if row["faketensor_mib"] <= row["measured_mib"] < FULL_MIB
        and times[row["measured_mib"]] == 1
    ]


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


def ask(colloc, export, batch, gpu=GPU):
    """The answer for one run, as `colloc estimate --json` has it."""
    done = subprocess.run(
        [colloc, "estimate", f"--export={export}", f"--batch={batch}", f"--gpu={gpu}", "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"study-timm: {export}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def unpack_exports(path, networks, folder, change=None):
    """The exports of a file that are of these networks, in fp32 and with OPTIMIZER, by name.

    path:   a line of JSON each, packed by xz
    change: a function of an export; None: they stay as they are
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
                    out.write(json.dumps(change(description)) if change else line)
    return found


def as_exported_now(export):
    """An export of this study as today's exporter writes it."""
    return with_fused_norms(with_joined_sums(export))


def read_exports(exports, networks, scratch):
    """Paths of the exports of this study and their sources, by network: of a folder, or of files
    with commas between."""
    paths, sources = {}, {}
    if os.path.isdir(exports):
        paths = {name: os.path.join(exports, f"{name}.json") for name in networks}
        paths = {name: one for name, one in paths.items() if os.path.exists(one)}
        return paths, dict.fromkeys(paths, IN_VIEW)
    for i, path in enumerate(exports.split(",")):
        found = unpack_exports(path, networks, scratch, as_exported_now)
        paths.update(found)
        sources.update(dict.fromkeys(found, NOT_IN_VIEW if i else IN_VIEW))
    return paths, sources


def _estimate_network(colloc, runs, path, ways, gpu=GPU):
    """A row for each run of a network that is trained in these ways."""
    with open(path, encoding="utf-8") as file:
        description = as_timm_trains(json.load(file), ways)
    convolutions = sum(conv["phase"] == "forward" for conv in description["convs"])
    rows = []
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(description, file)
        file.flush()
        for run in runs:
            answer = ask(colloc, file.name, run["batch"], gpu)["estimates"][0]
            more = loader_mib(description, run["batch"]) if LOADER in ways else 0
            known = {key: answer[key] + more for key in ASKED}
            rows.append({**run, **known, "convolutions": convolutions})
    return rows


def estimate_runs(colloc, networks, exports, ways=ALL_WAYS):
    """A row for each usable run of the networks that have an export.

    exports: paths by network
    """
    with concurrent.futures.ThreadPoolExecutor(ASKED_AT_ONCE) as pool:
        jobs = [
            pool.submit(_estimate_network, colloc, usable_runs(networks[name]), path, ways)
            for name, path in sorted(exports.items())
        ]
        return [row for job in jobs for row in job.result()]


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


def growth_beside_fake(rows):
    """How many times as fast as FakeTensor's figure the estimate grows with the batch, by network
    with two batches or more. Where both describe the same network, the figures are near each other;
    where its images were of another size in the table, they are not."""
    networks = collections.defaultdict(dict)
    for row in rows:
        networks[row["model"]][row["batch"]] = row
    found = {}
    for name, runs in networks.items():
        first, last = runs[min(runs)], runs[max(runs)]
        if last["faketensor_mib"] > first["faketensor_mib"]:
            fake = last["faketensor_mib"] - first["faketensor_mib"]
            found[name] = (last["mib"] - first["mib"]) / fake
    return found


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
    ]
    for label, name in (
        ("FakeTensor, with its constant", "fake_error_less_constant"),
        ("FakeTensor", "fake_error"),
    ):
        lines.append([label, *map(_percent, summary[name]), "", ""])
    return _table(["estimator", "median", "p95", "worst", "above P90", "above P99"], lines)


def _steps(rows_of_steps):
    """What each of the ways of timm's train.py does to the errors.

    rows_of_steps: for each of STEPS
    """
    lines = []
    for (label, _), rows in zip(STEPS, rows_of_steps):
        add_constants(rows)
        constants = sorted({round(row["constant_mib"]) for row in rows})
        cells = [_percent(part) for part in summarize(rows)["error"][:2]]
        lines.append([label, *cells, _mib(growth(rows)), " and ".join(map(str, constants))])
    heads = ["estimated for", "median", "p95", "growth", "constant, MiB"]
    return _table(heads, lines)


def read_h200(path=ON_H200):
    """What a process took at most, by (network, batch): a dictionary by `benchmark`."""
    found = collections.defaultdict(dict)
    with open(path, encoding="utf-8") as file:
        for row in map(json.loads, file):
            found[row["name"], row["batch"]][row["benchmark"]] = row["mib"]
    return found


def estimate_h200(colloc, exports, taken):
    """A row for each run on the H200 whose network has an export; taken: as of read_h200."""
    rows = []
    for (name, batch), mib in sorted(taken.items()):
        if name in exports:
            run = {"model": name, "batch": batch, "off": mib[False], "on": mib[True]}
            rows += _estimate_network(colloc, [run], exports[name], (TRIES,), "H200")
    return rows


def _beside_h200(networks, rows):
    """Runs on an H200 with their estimates, and by how much the table's exceed those that tried no
    kernels; rows: as of estimate_h200."""
    lines = []
    for row in rows:
        a100 = [
            f"{(run['measured_mib'] - row['off']) / MIB_OF_GIB:+.1f} GiB"
            for run in usable_runs(networks.get(row["model"], []))
            if run["batch"] == row["batch"]
        ]
        figures = (row["off"], row["mib"], row["on"], row["p99_mib"])
        lines.append([row["model"], row["batch"], *(f"{one:,.0f}" for one in figures), *a100[:1]])
    heads = [
        "network",
        "batch",
        "H200, MiB",
        "estimate",
        "with `benchmark`",
        "P99",
        "A100's device",
    ]
    return _table(heads, [line + [""] * (len(heads) - len(line)) for line in lines])


def text_of(rows, networks, rows_of_steps, on_h200, outputs):
    """The tables of the page, by the name of their marker. rows_of_steps: as of _steps; on_h200: as
    of estimate_h200; outputs: by network."""
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
        "steps": _steps(rows_of_steps),
        "jumps": irregular,
        "h200": _beside_h200(networks, on_h200),
        "too high": _too_high(rows, networks),
        "below": _below_tensors(rows),
        "outputs": _by_outputs(rows, networks, outputs),
        "widths": _widths(rows),
        "halves": _held(rows),
        "sources": groups(lambda row: row["source"], "described by", 1),
        "batches": groups(lambda row: row["batch"], "batch", 1),
        "families": groups(lambda row: family_of(row["model"]), "family", LEAST_RUNS),
    }


def is_below_tensors(row):
    """Tests whether a run took less than the tensors that a step of the network, as its export has
    it, holds at once, with the contexts and the device's constant: no allocator could train it so.
    """
    return row["measured_mib"] < row["floor_mib"] + row["constant_mib"]


def _below_tensors(rows):
    """How many of the runs that are off by more than OFF took less than a step's tensors."""
    high = [row for row in rows if row["error"] > OFF]
    others = [row for row in rows if row["error"] <= OFF]
    return (
        f"{sum(map(is_below_tensors, high))} of {len(high)} runs that are more than {OFF:.0%} too "
        f"high took less than that, and {sum(map(is_below_tensors, others))} of the other "
        f"{len(others):,}.\n"
    )


def outputs_of(path):
    """How many numbers the network of an export gives for a sample; 0: not known."""
    with open(path, encoding="utf-8") as file:
        layers = json.load(file)["layers"]
    return (layers[0]["shape"] or [0])[-1] if layers else 0


def _by_outputs(rows, networks, outputs):
    """How many runs trained of networks with fewer outputs than CLASSES, and of the others.

    outputs: by network
    """
    lines = []
    for head, wanted in ((f"fewer than {CLASSES:,}", True), (f"{CLASSES:,} or more", False)):
        names = {name for name, number in outputs.items() if (number < CLASSES) is wanted}
        runs = sum(len(networks[name]) for name in names)
        usable = [row for row in rows if row["model"] in names]
        below, left_out = sum(map(is_below_tensors, usable)), runs - len(usable)
        share = _percent((left_out + below) / runs) if runs else ""
        lines.append([head, len(names), runs, left_out, below, share])
    heads = ["outputs", "networks", "runs", "left out", "below the tensors", "both"]
    return _table(heads, lines)


def _too_high(rows, networks):
    """Networks of which a run is OFF too high: how many of these runs took less than the tensors of
    a step, how many of the table's runs did not end well, and how fast the estimate grows."""
    grown = growth_beside_fake(rows)
    worst = collections.defaultdict(list)
    for row in rows:
        if row["error"] > OFF:
            worst[row["model"]].append(row)
    lines = (
        [["median of all", "", "", "", "", f"{statistics.median(grown.values()):.2f}"]]
        if grown
        else []
    )
    for name, runs in sorted(worst.items(), key=lambda one: -max(row["error"] for row in one[1])):
        most, below = max(row["error"] for row in runs), sum(map(is_below_tensors, runs))
        left_out = len(networks[name]) - len(usable_runs(networks[name]))
        times = f"{grown[name]:.2f}" if name in grown else ""
        lines.append([name, len(runs), f"{100 * most:+.1f}%", below, left_out, times])
    heads = [
        "network",
        "runs",
        "worst",
        "below the tensors",
        "runs left out",
        "growth over FakeTensor's",
    ]
    return _table(heads, lines)


def _widths(rows):
    """How many times the estimate P90 and P99 are."""
    lines = []
    for source in (IN_VIEW, NOT_IN_VIEW):
        members = [row for row in rows if row["source"] == source]
        if members:
            cells = []
            for key in ("p90_mib", "p99_mib"):
                ratios = [row[key] / row["mib"] for row in members]
                cells += [statistics.median(ratios), statistics.mean(ratios)]
            lines.append([source, len(members), *(f"{ratio:.2f}" for ratio in cells)])
    heads = ["described by", "runs", "P90, median", "mean", "P99, median", "mean"]
    return _table(heads, lines)


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
    with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryDirectory() as own:
        paths = unpack_exports(MEASURED, networks, scratch)
        sources = dict.fromkeys(paths, "data/memory")
        described, told = read_exports(exports, networks, own)
        paths.update(described)
        sources.update(told)
        rows = estimate_runs(colloc, networks, paths)
        if not rows:
            sys.exit(f"study-timm: {exports} has no export of a network of {sheet}")
        in_view = {name: path for name, path in paths.items() if sources[name] != NOT_IN_VIEW}
        steps = [estimate_runs(colloc, networks, in_view, ways) for _, ways in STEPS]
        on_h200 = estimate_h200(colloc, paths, read_h200())
        outputs = {name: outputs_of(path) for name, path in paths.items()}
    for row in rows:
        row["source"] = sources[row["model"]]
    add_constants(rows)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "runs.csv"), "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    with open(os.path.join(folder, "families.csv"), "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["family", "runs", "median", "p95", "above_p99", "mean_error"])
        writer.writerows(group_rows(rows, lambda row: family_of(row["model"])))
    texts = text_of(rows, networks, steps, on_h200, outputs)
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
