#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GPUMemNet's encoders of labelled Transformers, trained on until their loss no longer falls
(docs/measured/memnet.md).

    tests/gpu/encoders_trial.py PROGRAMS OUT --seconds=S [--sets=both,crashes-in]
                                [--checkpoints=FOLDER] [--device=cuda]

All sets of scripts/study-transformers train at the same time, a process each, as clients of MPS:
their kernels are small, so that one of them leaves the GPU idle. The sums are those of
python/colloc_memnet/training.py. Only the batches differ: of sequences that are sorted by length,
as many are padded together as AREA allows.

OUT gets, as they come: encoders.jsonl, a line for each epoch; SET.pt, from which a later call with
the same OUT, or with --checkpoints, goes on; weights/SET, and in weights/epochs.json how many
epochs each has and whether it has ended. PROGRAMS needs `colloc`, the python3 PyTorch. To judge
them:

    scripts/study-transformers --judge COLLOC STUDY docs/measured/memnet/drawn.jsonl.xz
"""
import argparse
import json
import os
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(TOP, "python")]
LABELS = os.path.join(TOP, "docs", "measured", "memnet", "drawn.jsonl.xz")
NETWORK = "transformer-transformer"
SETS = "both crashes-out crashes-in measured both-0 both-1 both-2 measured-0 measured-1 measured-2"
AREA = {"cuda": 1 << 24, "cpu": 1 << 20}  # elements of a group's attention; chosen: 64 and 4 MiB
SAVE_S = 10
ENDING_S = 12  # kept for the last epoch, and to write the weights


# ---- one training: this program in place of `python3 -m colloc_memnet` ----


def trainer(device, state, ends):
    """The function in place of training.fit. state: the path of its files, without ".pt"."""
    import numpy
    import torch
    from torch import nn
    from colloc_memnet import network as networks
    from colloc_memnet import training

    waves = {}

    def positions(length, width):
        if (length, width) not in waves:
            waves[length, width] = networks.positions(length, width).to(device)
        return waves[length, width]

    class Rows:
        """Examples on the device, their tokens behind each other."""

        def __init__(self, rows):
            self.values = torch.stack([torch.from_numpy(row.values) for row in rows]).to(device)
            self.labels = torch.tensor([row.label for row in rows]).to(device)
            self.tokens = torch.cat([torch.from_numpy(row.tokens) for row in rows]).to(device)
            self.lengths = numpy.array([len(row.tokens) for row in rows])
            self.begins = numpy.cumsum(self.lengths) - self.lengths

        def groups(self, lengths):
            """(sequences, length, tokens, their places) of sequences that are padded together."""
            first = 0
            while first < len(lengths):
                last = first + 1
                while (
                    last < len(lengths) and (last + 1 - first) * lengths[last] ** 2 <= AREA[device]
                ):
                    last += 1
                width, part = int(lengths[last - 1]), lengths[first:last]
                places = [numpy.arange(n) + i * width for i, n in enumerate(part)]
                places = torch.from_numpy(numpy.concatenate(places)).to(device)
                yield last - first, width, len(places), places
                first = last

        def loss(self, network, chosen):
            chosen = numpy.array(chosen)
            chosen = chosen[numpy.argsort(self.lengths[chosen], kind="stable")]
            lengths = self.lengths[chosen]
            spans = zip(self.begins[chosen], lengths)
            index = numpy.concatenate([numpy.arange(begin, begin + n) for begin, n in spans])
            tokens, groups = self.tokens[torch.from_numpy(index).to(device)], [
                *self.groups(lengths)
            ]
            rows = torch.from_numpy(chosen).to(device)
            sums = [encode(encoder, tokens, groups) for encoder in network.encoders]
            inputs = torch.cat([*sums, self.values[rows]], 1)
            logits = torch.stack([member(inputs) for member in network.members]).mean(0)
            return nn.functional.cross_entropy(logits, self.labels[rows])

    def encode(encoder, tokens, groups):
        parts = encoder.embedding(tokens).split([count for _, _, count, _ in groups])
        sums = []
        for part, (sequences, length, _, places) in zip(parts, groups):
            x = part.new_zeros(sequences * length, encoder.width).index_copy(0, places, part)
            padding = torch.ones(sequences * length, dtype=torch.bool, device=device)
            padding = padding.index_fill_(0, places, False).view(sequences, length)
            x = x.view(sequences, length, -1) + positions(length, encoder.width)
            for layer in encoder.layers:
                x = layer(x, padding)
            sums.append(x.masked_fill(padding[:, :, None], 0).sum(1))
        return torch.cat(sums)

    def train_epoch(network, optimizer, rows, generator):
        network.train()
        total, seen, count = torch.zeros((), device=device), 0, len(rows.lengths)
        while seen < training.EPOCH_ROWS:
            order = torch.randperm(count, generator=generator).tolist()
            for start in range(0, count - 1, training.BATCH):
                chosen = order[start : start + training.BATCH]
                loss = rows.loss(network, chosen)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.detach() * len(chosen)
                seen += len(chosen)
        return total.item() / seen

    def validate(network, rows):
        network.eval()
        total, count = torch.zeros((), device=device), len(rows.lengths)
        with torch.no_grad():
            for first in range(0, count, training.BATCH):
                part = list(range(first, min(count, first + training.BATCH)))
                total += rows.loss(network, part) * len(part)
        return total.item() / count

    def fit(network, parts, generator, epochs_max, on_epoch, progress):
        def note(epoch_s):
            line = {"set": os.path.basename(state), **vars(progress), "epoch_s": round(epoch_s, 3)}
            line["ended"] = not progress.may_continue(epochs_max)
            with open(os.path.join(os.path.dirname(state), "encoders.jsonl"), "a") as file:
                file.write(json.dumps(line) + "\n")

        network.to(device)
        rows, validation = (Rows(part) for part in parts)
        optimizer = torch.optim.Adam(network.parameters(), training.LEARNING_RATE)
        best, last_s = None, 0.0  # last_s: of an epoch
        if os.path.exists(f"{state}.pt"):
            is_old = torch.__version__.startswith("1.")
            read = {} if is_old else {"weights_only": False}  # our own file
            was = torch.load(f"{state}.pt", map_location="cpu", **read)
            network.load_state_dict(was["network"])
            optimizer.load_state_dict(was["optimizer"])
            generator.set_state(was["generator"])
            vars(progress).update(was["progress"])
            best = was["best"]
            last_s = progress.took_s / progress.epoch
            note(last_s)

        def save():
            what = {"network": network.state_dict(), "optimizer": optimizer.state_dict()}
            what.update(generator=generator.get_state(), progress=vars(progress), best=best)
            torch.save(what, f"{state}.pt.new")
            os.replace(f"{state}.pt.new", f"{state}.pt")

        before, began, saved = progress.took_s, time.monotonic(), time.monotonic()
        while best is None or progress.may_continue(epochs_max) and time.time() + last_s < ends:
            epoch_began = time.monotonic()
            training_loss = train_epoch(network, optimizer, rows, generator)
            validation_loss = validate(network, validation)
            best = progress.end_epoch(training_loss, validation_loss, network, best)
            last_s = time.monotonic() - epoch_began
            progress.took_s = before + time.monotonic() - began
            note(last_s)
            if time.monotonic() - saved > SAVE_S:
                saved = time.monotonic()
                save()
        save()
        network.load_state_dict(best)
        network.to("cpu")

    return fit


def train(words):
    """words: those of `python3 -m colloc_memnet`."""
    import torch
    from colloc_memnet import training

    torch.set_num_threads(1)
    training.fit = trainer(os.environ["DEVICE"], os.environ["STATE"], float(os.environ["ENDS"]))
    sys.argv = ["colloc_memnet", *words]
    runpy.run_module("colloc_memnet", run_name="__main__")


# ---- all of them ----


class Mps:
    """An MPS server in a folder, while trainings run on a GPU."""

    def __init__(self, folder, is_needed):
        self.env = {}
        if is_needed:
            names = ("CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY")
            self.env = {name: folder for name in names}
            subprocess.run(
                ["nvidia-cuda-mps-control", "-d"], env={**os.environ, **self.env}, check=True
            )

    def close(self):
        if self.env:
            subprocess.run(["nvidia-cuda-mps-control"], input="quit\n", text=True, check=False,
                           env={**os.environ, **self.env})  # fmt: skip


def write_epochs(out):
    """weights/epochs.json of encoders.jsonl: the last line of each set."""
    last = {}
    if os.path.exists(f"{out}/encoders.jsonl"):
        with open(f"{out}/encoders.jsonl", encoding="utf-8") as file:
            for line in map(json.loads, file):
                last[line["set"]] = {key: line[key] for key in ("epoch", "best_epoch", "ended")}
    with open(f"{out}/weights/epochs.json", "w", encoding="utf-8") as file:
        json.dump(last, file, indent=1)
    return last


def start(name, options, folder, ends, env):
    """Makes the data of a set and begins to train it."""
    out, data = os.path.abspath(options.out), f"{folder}/{name}"
    study = os.path.join(TOP, "scripts", "study-transformers")
    made = [sys.executable, study, "--make", name, data, *options.labels.split(",")]
    subprocess.run(made, check=True, stdout=subprocess.DEVNULL)
    given = options.checkpoints and f"{options.checkpoints}/{name}-{NETWORK}-8gib.pt"
    if given and os.path.exists(given) and not os.path.exists(f"{out}/{name}.pt"):
        shutil.copy(given, f"{out}/{name}.pt")
    command = [os.path.abspath(f"{options.programs}/colloc"), "memnet", "train",
               f"--only={NETWORK}", "--jobs=1", f"--python={folder}/python",
               "-o", f"{out}/weights/{name}", data]  # fmt: skip
    more = {"STATE": f"{out}/{name}", "DEVICE": options.device, "ENDS": str(ends)}
    with open(f"{out}/{name}.txt", "ab") as log:
        return subprocess.Popen(command, env={**os.environ, **env, **more}, stdout=log, stderr=log)


def write_python(folder):
    """What `colloc memnet train` starts in place of python3: this program."""
    with open(f"{folder}/python", "w", encoding="utf-8") as file:
        file.write(
            f'#!/bin/sh\nshift 2\nexec {sys.executable} {os.path.abspath(__file__)} -- "$@"\n'
        )
    os.chmod(f"{folder}/python", 0o755)


def main():
    if sys.argv[1:2] == ["--"]:
        train(sys.argv[2:])
        return 0
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("programs", metavar="PROGRAMS")
    parser.add_argument("out", metavar="OUT")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--sets", default=SETS.replace(" ", ","))
    parser.add_argument("--labels", default=LABELS, metavar="FILE,FILE")
    parser.add_argument("--checkpoints", metavar="FOLDER", help="SET-%s-8gib.pt each" % NETWORK)
    parser.add_argument("--device", default="cuda", choices=sorted(AREA))
    options = parser.parse_args()
    unknown = set(options.sets.split(",")) - set(SETS.split())
    if unknown:
        parser.error(f"no set {', '.join(sorted(unknown))}: {SETS}")
    if options.checkpoints and not os.path.isdir(options.checkpoints):
        parser.error(f"no folder {options.checkpoints}")
    ends = time.time() + options.seconds - ENDING_S
    os.makedirs(f"{options.out}/weights", exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended before its time"))
    with tempfile.TemporaryDirectory(prefix="colloc-encoders-") as folder:
        write_python(folder)
        mps, running = Mps(folder, options.device == "cuda"), []
        try:
            for name in options.sets.split(","):
                running.append(start(name, options, folder, ends, mps.env))
            codes = [process.wait() for process in running]
        finally:
            for process in running:
                process.terminate()
            mps.close()
            last = write_epochs(options.out)
    print(json.dumps(last))
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
