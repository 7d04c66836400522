# SPDX-License-Identifier: Apache-2.0
"""The runs of data/memory that ended well, and texts that describe their networks."""
import collections
import csv
import json
import lzma
import tempfile

GPU = "NVIDIA H200"  # the runs of data/memory are of this one kind


def read_lines(path):
    """The JSON objects of a file, one to a line, compressed or not."""
    opened = lzma.open(path, "rt") if path.endswith(".xz") else open(path, encoding="utf-8")
    with opened as file:
        for line in file:
            if line.strip():
                yield json.loads(line)


def torchinfo_text(layers, parameters):
    """Layers of an export as torchinfo prints them for a batch of one sample, which is what
    `python3 -m colloc_export --text` does."""
    index = collections.Counter()
    rows = []
    for row in layers:
        index[row["depth"]] += 1
        tree = "│    " * (row["depth"] - 1) + "├─" if row["depth"] else ""
        name = row["name"].rpartition(".")[2]
        known = f"{row['parameters']:,}" if row["parameters"] else "--"
        count = "(recursive)" if row["shared"] else known
        is_shown = row["shape"] is not None and row.get("calls", 1)
        shape = str([-1, *row["shape"]]) if is_shown else "--"
        label = f"{row['type']}{f' ({name})' if name else ''}: {row['depth']}-{index[row['depth']]}"
        rows.append(f"{tree}{label}  {shape}  {count}")
    rule = "=" * 40
    head = "Layer (type:depth-idx)  Output Shape  Param #"
    return "\n".join([rule, head, rule, *rows, rule, f"Total params: {parameters:,}", rule]) + "\n"


def torchsummary_text(layers):
    """The leaves alone, as torchsummary lists them."""
    lines = []
    for i, (kind, _, parameters, _, shape, _, reused) in enumerate(layers["rows"], 1):
        if shape is not None:
            lines.append(f"{kind}-{i}  {[-1, *shape]}  {0 if reused else parameters}")
    return "\n".join(lines) + "\n"


def number(text):
    """A cell of the table: a number where it is one, None where it is empty."""
    try:
        return float(text)
    except ValueError:
        return text or None


class MemoryRuns:
    """Runs that ended well, and the files in the folder `scratch` that describe their networks.

    kernels, reserved_again: id of a run -> what its convolutions took for scratch, and what the
    allocator held, when the training ran a second time.
    """

    def __init__(self, folder, scratch):
        self.scratch, self.summaries, self.exports = scratch, {}, {}
        again = list(read_lines(f"{folder}/kernels.jsonl.xz"))
        self.kernels = {line["id"]: line["scratch"] for line in again}
        self.reserved_again = {line["id"]: line["reserved"] for line in again}
        for layers in read_lines(f"{folder}/layers.jsonl.xz"):
            self.summaries[layers["model"]] = self._write(torchsummary_text(layers))
        for export in read_lines(f"{folder}/exports.jsonl.xz"):
            key = export["model_key"]
            self.exports[key, export["optimizer"]["name"], export["precision"]] = self._write(
                json.dumps(export)
            )
            text = torchinfo_text(export["layers"], export["parameters"])
            self.summaries[key] = self._write(text)
        self.runs = [
            row
            for row in self._rows(f"{folder}/runs.csv.xz")
            if row["status"] == "ok" and row["driver_mib"] and row["model"] in self.summaries
        ]
        for row in self.runs:
            row["batch"], row["sequence"] = int(row["batch"]), int(row["sequence"] or 0)

    @staticmethod
    def _rows(path):
        with lzma.open(path, "rt") as file:
            for row in csv.DictReader(file):
                yield {
                    name: cell if name in ("id", "model") else number(cell)
                    for name, cell in row.items()
                }

    def export_of(self, row):
        """The file with the export of a run; None where there is none."""
        return self.exports.get((row["model"], row["optimizer"], row["precision"]))

    def export_with_kernels_of(self, row):
        """The same with the workspaces that the run's convolutions took, in the form of an export
        with measured kernels; None where they are not known."""
        path, kernels = self.export_of(row), self.kernels.get(row["id"])
        if not path or not kernels:
            return None
        with open(path, encoding="utf-8") as file:
            export = json.load(file)
        if len(export["convs"]) != len(kernels):
            return None
        asked = {"batch": row["batch"], "gpu": GPU, "scratch": kernels}
        return self._write(json.dumps({**export, "kernels": asked}))

    def _write(self, text):
        file = tempfile.NamedTemporaryFile("w", dir=self.scratch, delete=False, encoding="utf-8")
        with file:
            file.write(text)
        return file.name
