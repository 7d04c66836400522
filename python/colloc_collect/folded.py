# SPDX-License-Identifier: Apache-2.0
"""Lists of layers with repeated blocks written once.

A Transformer of 39 equal layers has 353 rows, of which nine follow each other 39 times:
[[1, [embedding]], [39, [nine rows]], [1, [classifier]]].
"""

PERIOD_MAX = 24  # chosen: rows of a repeated block; a Transformer's layer has nine


def fold(rows):
    """Rows as [[times, block], ...]: a block of equal successive runs of rows is written once."""
    folded, at = [], 0
    while at < len(rows):
        period, times = _repetition(rows, at)
        folded.append([times, rows[at : at + period]])
        at += period * times
    return folded


def _repetition(rows, at):
    """(rows of the block, how often it follows itself) of the longest repetition from `at` on."""
    best = (1, 1)
    for period in range(1, min(PERIOD_MAX, (len(rows) - at) // 2) + 1):
        block, times = rows[at : at + period], 1
        while rows[at + times * period : at + (times + 1) * period] == block:
            times += 1
        if times > 1 and times * period > best[0] * best[1]:
            best = (period, times)
    return best


def unfold(folded):
    return [row for times, block in folded for _ in range(times) for row in block]
