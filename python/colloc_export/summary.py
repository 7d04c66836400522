# SPDX-License-Identifier: Apache-2.0
"""The layers as a table like torchinfo's, which `colloc estimate --summary` reads."""

HEADER = ("Layer (type:depth-idx)", "Output Shape", "Param #")


def _count(row):
    if row["shared"]:
        return "(recursive)"
    if row["parameters"] == 0:
        return "--"
    return f"{row['parameters']:,}" if row["trainable"] else f"({row['parameters']:,})"


def _label(row, index):
    tree = "│    " * (row["depth"] - 1) + "├─" if row["depth"] else ""
    name = row["name"].rpartition(".")[2]
    return f"{tree}{row['type']}{f' ({name})' if name else ''}: {row['depth']}-{index}"


def _shape(row, batch):
    return "--" if row["shape"] is None else str([batch, *row["shape"]])


def text_of(description):
    """Rows in the order of execution, shapes at the batch size that was asked for, totals below."""
    batch, rows, index = description["batch"], [], {}
    for row in description["layers"]:
        index[row["depth"]] = index.get(row["depth"], 0) + 1
        rows.append((_label(row, index[row["depth"]]), _shape(row, batch), _count(row)))
    widths = [max(len(cells[i]) for cells in [HEADER, *rows]) for i in range(3)]
    rule = "=" * (sum(widths) + 4)
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip()
        for cells in [HEADER, *rows]
    ]
    frozen = description["parameters"] - description["trainable"]
    totals = [
        f"Total params: {description['parameters']:,}",
        f"Trainable params: {description['trainable']:,}",
        f"Non-trainable params: {frozen:,}",
    ]
    return "\n".join([rule, lines[0], rule, *lines[1:], rule, *totals, rule]) + "\n"
