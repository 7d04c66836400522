# SPDX-License-Identifier: Apache-2.0
"""The .inc tables that the C code includes, and the tables of a page.

Entries of an .inc table carry the name that the C code has for them, so their order means nothing.
"""
import re

LICENCE = "/* SPDX-License-Identifier: Apache-2.0 */\n"
HEAD = f"{LICENCE}/* Made by scripts/fit-estimators --write from data/memory. */\n"
HEAD_OF_RATES = f"{LICENCE}/* Made by scripts/fit-steps --write from data/steps. */\n"
HEADS = {"graph_weights": HEAD, "calibration": HEAD, "activity_rates": HEAD_OF_RATES}
ROW = re.compile(r"^\[(\w+)\] = \{\n((?:    \[FEATURE_\w+\] = \S+,\n)*)\},\n", re.M)
ENTRY = re.compile(r"^    \[FEATURE_(\w+)\] = (\S+),\n", re.M)


def weight_rows(rows):
    """The text of a table of coefficients.

    rows: C name of the row -> {feature's name: coefficient}; an empty one is no correction.
    """
    text = HEAD
    for row, weights in rows.items():
        if not weights:
            text += f"/* {row}: none; no correction did better on families left out. */\n"
            continue
        cells = "".join(f"    [FEATURE_{name}] = {w:.6g},\n" for name, w in weights.items())
        text += f"[{row}] = {{\n{cells}}},\n"
    return text


def read_weight_rows(text):
    """What weight_rows wrote, without its empty rows."""
    return {
        row: {name: float(w) for name, w in ENTRY.findall(cells)}
        for row, cells in ROW.findall(text)
    }


def calibration_rows(rows):
    """rows: C name of the evidence -> kind of network -> p50, p90, p99, and the number of runs."""
    text = HEAD
    for evidence, kinds in rows.items():
        text += f"[{evidence}] = {{\n"
        for network, (p50, p90, p99, n) in kinds.items():
            text += (
                f"    [NETWORK_{network.upper()}] = {{.p50 = {p50:.4f}, .p90 = {p90:.4f}, "
                f".p99 = {p99:.4f}, .n = {n}}},\n"
            )
        text += "},\n"
    return text


def rates_row(chosen):
    """The constants of the roofline."""
    rates = "".join(f"    .{name} = {value:.4g},\n" for name, value in chosen.items())
    return f"{HEAD_OF_RATES}{{\n{rates}}}\n"


def markdown(head, rows):
    """A table of a page."""
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


def replace_blocks(text, blocks):
    """Replaces what stands between <!-- NAME --> and <!-- end -->. blocks: NAME -> text."""
    for name, block in blocks.items():
        begin = text.index(f"<!-- {name} -->") + len(f"<!-- {name} -->")
        text = text[:begin] + f"\n{block}\n" + text[text.index("<!-- end -->", begin) :]
    return text


def write_blocks(page, blocks):
    """Replaces blocks of a page as replace_blocks does. page: its path."""
    with open(page, encoding="utf-8") as file:
        text = replace_blocks(file.read(), blocks)
    with open(page, "w", encoding="utf-8") as file:
        file.write(text)


def write_block(page, name, block):
    """Replaces one block of a page. page: its path; None: prints the block."""
    if page:
        write_blocks(page, {name: block})
    else:
        print(block)
