# SPDX-License-Identifier: Apache-2.0
"""Figures in colloc's style: bars, lines (also as staircases), points.

Each is a picture and the table of its data.


Every function takes the figure's name first, which is also the name of its files, and returns a
Picture. The same data give the same bytes. Needs Debian's python3-matplotlib (3.6) or newer.
"""

import csv
import io
import os
import re

try:
    import matplotlib
    from matplotlib import style, ticker
    from matplotlib.figure import Figure
except ImportError as missing:
    raise SystemExit(
        f"colloc_report: figures need matplotlib (Debian's python3-matplotlib): {missing}"
    ) from None

INK = "#24292f"
PAPER = "#fefefe"
MUTED = "#8c959f"
# Okabe and Ito's colours, which colour-blind readers can distinguish, on white and on black.
COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#a68a00", "#8c5fbf"]
WIDTH = 7.2  # inches
LEGEND_WIDTH = 80  # characters of its 9 points on 6 inches, the axes of a figure; by trial
LEGEND_HANDLE = 6  # characters: the mark of an entry and the gap to the next
MARKERS = "os^Dv<>P"  # by their form readers distinguish points that lie on each other

STYLE = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "sans-serif"],
    "font.size": 10,
    "svg.fonttype": "none",
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.prop_cycle": matplotlib.cycler(color=COLOURS),
    "grid.color": MUTED,
    "grid.alpha": 0.3,
    "grid.linewidth": 0.6,
    "xtick.color": INK,
    "ytick.color": INK,
    "lines.linewidth": 1.4,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "figure.facecolor": PAPER,
    "axes.facecolor": "none",
    "savefig.facecolor": PAPER,
}


class Picture:
    """`svg` is a complete file; `columns` and `rows` are the data that it shows."""

    def __init__(self, name, title, svg, columns, rows):
        self.name, self.title, self.svg, self.columns, self.rows = name, title, svg, columns, rows

    def inline(self):
        """The SVG for an HTML page: as wide as the page, with the page's ink and paper."""
        svg = self.svg[self.svg.index("<svg") :].replace(INK, "currentColor").replace(PAPER, "none")
        svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
        head, rest = svg.split(">", 1)
        head = re.sub(r' (xmlns(:\w+)?|width|height|version)="[^"]*"', "", head)
        rest = re.sub(r"\s*<!--.*?-->", "", rest, flags=re.S)
        return f'{head} role="img">{rest}'.rstrip()

    def csv(self):
        text = io.StringIO()
        table = csv.writer(text, lineterminator="\n")
        table.writerow(self.columns)
        table.writerows(
            [
                "" if cell is None else f"{cell:.6g}" if isinstance(cell, float) else cell
                for cell in row
            ]
            for row in self.rows
        )
        return text.getvalue()

    def save(self, folder):
        """Writes NAME.svg and NAME.csv."""
        for ending, text in (("svg", self.svg), ("csv", self.csv())):
            with open(
                os.path.join(folder, f"{self.name}.{ending}"), "w", encoding="utf-8", newline=""
            ) as file:
                file.write(text)


def draw(name, paint, columns, rows, title="", size=(WIDTH, 3.4), grid=(1, 1)):
    """Draws any figure.

    paint: called with the axes; with a list of them when the grid (rows, columns) has more than one
    """
    with style.context(["default", {**STYLE, "svg.hashsalt": name}]):
        canvas = Figure(figsize=size, layout="constrained")
        axes = canvas.subplots(*grid, squeeze=False, sharex=True, sharey=True).ravel().tolist()
        paint(axes[0] if len(axes) == 1 else axes)
        text = io.StringIO()
        canvas.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return Picture(name, title, _without_loose_ids(text.getvalue()), columns, rows)


def _without_loose_ids(svg):
    """Keeps only the ids that are referred to.

    They have the figure's name hashed in, so that figures can share a page.
    """
    used = set(re.findall(r'(?:url\(|href=")#([^")]+)', svg))
    return re.sub(
        r' id="([^"]*)"', lambda found: found.group(0) if found.group(1) in used else "", svg
    )


def _label(axes, x, y):
    axes.set_xlabel(x)
    axes.set_ylabel(y)


def _columns_of_legend(labels):
    """As many as fit above the axes: an entry is as wide as the longest, and its handle."""
    widest = max(map(len, labels)) + LEGEND_HANDLE
    return max(1, min(len(labels), 5, LEGEND_WIDTH // widest))


def _legend(axes):
    """Puts the legend above the axes, every label once."""
    handles, labels = axes.get_legend_handles_labels()
    by_label = dict(zip(reversed(labels), reversed(handles)))
    if len(by_label) > 1:
        labels = list(dict.fromkeys(labels))
        axes.legend(
            [by_label[label] for label in labels],
            labels,
            loc="lower right",
            bbox_to_anchor=(1, 1),
            ncols=_columns_of_legend(labels),
            borderaxespad=0,
        )


def bars(name, groups, series, y, x="", title="", spread=None, marks=None, flat=False):
    """Groups of bars.

    series: label -> a value (or None) per group
    spread: label -> (least, most) per group, drawn as whiskers
    marks: label -> value (or None) per group, drawn as diamonds: published values
    flat: the bars are horizontal, for long names
    """
    spread, marks, n = spread or {}, marks or {}, len(series)
    thick = 0.8 / max(n, 1)
    middle = [-0.4 + thick * (i + 0.5) for i in range(n)]

    def paint(axes):
        for i, (label, values) in enumerate(series.items()):
            where = [g + middle[i] for g in range(len(groups))]
            shown = [0 if value is None else value for value in values]
            (axes.barh if flat else axes.bar)(
                where, shown, thick * 0.92, label=label, color=COLOURS[i % len(COLOURS)]
            )
            for at, value, ends in zip(where, values, spread.get(label, [])):
                if value is not None and ends is not None:
                    axes.plot(
                        *((ends, (at, at)) if flat else ((at, at), ends)), color=INK, linewidth=1
                    )
        for label, values in marks.items():
            i = list(series).index(label) if label in series else (n - 1) / 2
            offset = middle[i] if isinstance(i, int) else 0
            seen = [(g + offset, value) for g, value in enumerate(values) if value is not None]
            across, along = [at for at, _ in seen], [value for _, value in seen]
            axes.plot(
                *((along, across) if flat else (across, along)),
                "D",
                markersize=5,
                markerfacecolor="none",
                color=INK,
                label="published" if label in series else label,
            )
        if flat:
            axes.set_yticks(range(len(groups)), groups)
            axes.invert_yaxis()
            axes.grid(False, axis="y")
            _label(axes, y, "")
        else:
            axes.set_xticks(range(len(groups)), groups)
            axes.grid(False, axis="x")
            _label(axes, x, y)
        _legend(axes)

    columns, rows = [x or "group"], [[group] for group in groups]
    for label, values in series.items():
        columns.append(label)
        _extend(rows, values)
        if label in spread:
            columns += [f"{label}: least", f"{label}: most"]
            _extend(rows, [ends and ends[0] for ends in spread[label]])
            _extend(rows, [ends and ends[1] for ends in spread[label]])
    for label, values in marks.items():
        columns.append(f"{label}: published" if label in series else label)
        _extend(rows, values)
    height = 0.9 + len(groups) * max(0.3, 0.16 * n) if flat else 3.4
    return draw(name, paint, columns, rows, title, (WIDTH, height))


def _extend(rows, values):
    for row, value in zip(rows, values):
        row.append(value)


def lines(name, series, x, y, title="", steps=False, points=False, log=""):
    """Lines.

    series: label -> (xs, ys)
    steps: a staircase; every value holds until the next
    log: logarithmic axes: "x", "y" or "xy"
    """
    return panels(name, {"": series}, x, y, title, steps, points, log)


def panels(name, panels_, x, y, title="", steps=False, points=False, log=""):
    """Small `lines` below one another, on the same scales. `panels_`: heading -> series."""
    labels = list(dict.fromkeys(label for series in panels_.values() for label in series))

    def paint(axes):
        axes = axes if isinstance(axes, list) else [axes]
        for one, (heading, series) in zip(axes, panels_.items()):
            for label, (xs, ys) in series.items():
                one.plot(
                    xs,
                    ys,
                    drawstyle="steps-post" if steps else "default",
                    marker="o" if points else "",
                    markersize=4,
                    label=label,
                    color=COLOURS[labels.index(label) % len(COLOURS)],
                )
            one.set_title(heading, loc="left")
            _scale(one, log)
            _label(one, x if one is axes[-1] else "", y)
        _legend(axes[0])

    many = len(panels_) > 1
    rows = [
        [*([heading] if many else []), label, at, value]
        for heading, series in panels_.items()
        for label, (xs, ys) in series.items()
        for at, value in zip(xs, ys)
    ]
    columns = [*(["panel"] if many else []), "series", x, y]
    height = 3.4 if not many else 0.9 + 1.35 * len(panels_)
    return draw(name, paint, columns, rows, title, (WIDTH, height), (len(panels_), 1))


def scatter(name, series, x, y, title="", names=None, diagonal=False, log="", spread=None):
    """Points.

    series: label -> (xs, ys)
    names: label -> a name per point, written beside it
    spread: label -> (least, most) of y per point, drawn as a vertical line
    diagonal: draw the line where both are the same
    """
    names = names or {}

    def paint(axes):
        for i, (label, (xs, ys)) in enumerate(series.items()):
            axes.scatter(
                xs,
                ys,
                s=22,
                label=label,
                color=COLOURS[i % len(COLOURS)],
                marker=MARKERS[i % len(MARKERS)] if len(series) > 1 else "o",
                alpha=0.7,
                linewidths=0,
            )
            for at, low, high in zip(xs, *(spread or {}).get(label, ((), ()))):
                axes.vlines(at, low, high, color=COLOURS[i % len(COLOURS)], alpha=0.4, linewidth=1)
            for at, value, text in zip(xs, ys, names.get(label, [])):
                axes.annotate(
                    text,
                    (at, value),
                    xytext=(4, 3),
                    textcoords="offset points",
                    fontsize=8,
                    color=INK,
                )
        if diagonal:
            axes.axline((1, 1), slope=1, color=MUTED, linewidth=1)
        _scale(axes, log)
        if not any(value for _, ys in series.values() for value in ys):
            axes.set_ylim(-0.05, 1)  # all are 0: ticks of hundredths would say nothing
        _label(axes, x, y)
        _legend(axes)

    rows = [
        [label, *([names[label][i]] if label in names else [""] if names else []), xs[i], ys[i]]
        for label, (xs, ys) in series.items()
        for i in range(len(xs))
    ]
    return draw(
        name, paint, ["series", *(["name"] if names else []), x, y], rows, title, (WIDTH, 4.4)
    )


def _scale(axes, log):
    for letter, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        if letter in log:
            getattr(axes, f"set_{letter}scale")("log")
            axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
            axis.set_minor_formatter(ticker.NullFormatter())
