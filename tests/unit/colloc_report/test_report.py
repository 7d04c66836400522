# SPDX-License-Identifier: Apache-2.0
"""Figures are the same bytes every time and show what their CSV says; a page parses, and needs
nothing but itself.
"""

import csv
import html.parser
import io
import os
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "python"))
from colloc_report import Page, figure  # noqa: E402

VOID = {"meta", "link", "br", "hr", "img"}


class Reader(html.parser.HTMLParser):
    """What a browser would see: that tags close, ids are there once, and what is loaded from
    elsewhere.
    """

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.outside, self.cells, self.svgs, self.wrong = [], [], [], [], 0, []
        self.feed(text)
        self.close()
        self.wrong += self.open

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        self.svgs += tag == "svg"
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            if name in ("src", "href", "xlink:href", "data", "action") and not value.startswith(
                "#"
            ):
                self.outside.append(value)
        if tag == "td":
            self.cells.append([dict(attrs).get("class"), ""])

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data):
        if self.open and self.open[-1] == "td":
            self.cells[-1][1] += data


def pictures():
    return [
        figure.bars(
            "totals",
            ["exclusive", "magm"],
            {"MPS": [607, 459.25], "streams": [None, 602]},
            "minutes",
            spread={"MPS": [(600, 612), (451, 466)]},
            marks={"MPS": [610, None]},
        ),
        figure.bars("flat", ["a long name", "b"], {"total": [1, 2]}, "minutes", flat=True),
        figure.lines(
            "loss",
            {"a": ([1, 2], [0.5, 0.25]), "b": ([1], [0.75])},
            "epoch",
            "loss",
            points=True,
            log="xy",
        ),
        figure.panels(
            "memory",
            {"GPU 0": {"a": ([0, 5], [1, 2])}, "GPU 1": {"a": ([0], [3])}},
            "s",
            "GiB",
            steps=True,
        ),
        figure.scatter(
            "fit",
            {"a": ([1, 2], [1.1, 1.9])},
            "measured",
            "said",
            names={"a": ["x", "<y>"]},
            diagonal=True,
        ),
    ]


def rows_of(picture):
    return list(csv.reader(io.StringIO(picture.csv())))


class FigureTest(unittest.TestCase):
    def test_bars_csv_holds_values_spread_and_published(self):
        self.assertEqual(
            rows_of(pictures()[0]),
            [
                ["group", "MPS", "MPS: least", "MPS: most", "streams", "MPS: published"],
                ["exclusive", "607", "600", "612", "", "610"],
                ["magm", "459.25", "451", "466", "602", ""],
            ],
        )

    def test_lines_csv_is_a_row_per_point(self):
        self.assertEqual(
            rows_of(pictures()[2]),
            [
                ["series", "epoch", "loss"],
                ["a", "1", "0.5"],
                ["a", "2", "0.25"],
                ["b", "1", "0.75"],
            ],
        )

    def test_panels_csv_names_the_panel(self):
        self.assertEqual(
            rows_of(pictures()[3])[1:],
            [["GPU 0", "a", "0", "1"], ["GPU 0", "a", "5", "2"], ["GPU 1", "a", "0", "3"]],
        )

    def test_scatter_csv_names_the_points(self):
        self.assertEqual(
            rows_of(pictures()[4]),
            [
                ["series", "name", "measured", "said"],
                ["a", "x", "1", "1.1"],
                ["a", "<y>", "2", "1.9"],
            ],
        )

    def test_the_legend_is_within_the_figure(self):
        labels = [
            f"{policy}, {how}" for policy in ("exclusive", "magm") for how in ("mps", "streams")
        ]
        for names in (labels, [label * 3 for label in labels], ["a", "b"]):
            series = {name: ([1, 2], [0, 0]) for name in names}
            svg = figure.scatter("all", series, "x", "crashes").svg
            width = float(re.search(r'viewBox="0 0 ([0-9.]+)', svg).group(1))
            xs = [
                float(x)
                for x, text in re.findall(
                    r'<text [^>]*?(?:translate\(|x=")([-0-9.]+)[^>]*>([^<]*)</text>', svg
                )
                if text in names
            ]
            self.assertEqual(len(xs), len(names))
            self.assertGreater(min(xs), 0)
            self.assertLess(max(xs), width)
            # The axes have the figure's width, and no ticks of hundredths where all are 0.
            edges = [float(x) for x in re.findall(r"M ([0-9.]+) [0-9.]+ \nL [0-9.]+ [0-9.]+", svg)]
            self.assertLess(min(edges), width / 4, names)
            self.assertNotIn("0.02", svg)

    def test_same_data_same_bytes(self):
        for first, second in zip(pictures(), pictures()):
            self.assertEqual(first.svg, second.svg, first.name)

    def test_svg_is_xml_without_a_date_and_says_its_labels(self):
        for picture in pictures():
            ElementTree.fromstring(picture.svg)
            self.assertNotIn("<dc:date>", picture.svg)
        self.assertIn(">exclusive</text>", pictures()[0].svg)
        self.assertIn(">minutes</text>", pictures()[0].svg)

    def test_a_style_of_its_own(self):
        """Whatever else a script sets for its own drawings."""
        import matplotlib

        before = pictures()[0].svg
        with matplotlib.rc_context({"axes.facecolor": "red", "font.size": 30}):
            self.assertEqual(pictures()[0].svg, before)

    def test_without_matplotlib(self):
        """A sentence for the user that wanted a report, no traceback."""
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                "import sys; sys.modules['matplotlib'] = None; import colloc_report.figure",
            ],
            cwd=os.path.join(ROOT, "python"),
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
        self.assertIn("figures need matplotlib", done.stderr)


class PageTest(unittest.TestCase):
    def setUp(self):
        self.page = Page("Sharing <a GPU> & more")
        self.page.heading("First & foremost")
        self.page.text("Less < more, `--x=<y>`.")
        self.page.list(["one", "two & three"])
        self.page.table(
            ["policy", ("total", 2), "tasks"], [["<magm>", 459.251, 60], ["a|b", None, 7]], "Totals"
        )
        for picture in pictures():
            self.page.figure(picture, f"Figure {picture.name}")

    def test_html_is_whole_and_needs_nothing(self):
        text = self.page.html()
        seen = Reader(text)
        self.assertEqual(seen.wrong, [])
        self.assertEqual(seen.outside, [])
        self.assertEqual(len(seen.ids), len(set(seen.ids)))
        self.assertEqual(seen.svgs, 5)
        for outside in ("http:", "https:", "@import", "<script"):
            self.assertNotIn(outside, text)

    def test_table_cells(self):
        self.assertEqual(
            Reader(self.page.html()).cells,
            [
                [None, "<magm>"],
                ["number", "459.25"],
                ["number", "60"],
                [None, "a|b"],
                ["number", "–"],
                ["number", "7"],
            ],
        )

    def test_a_row_too_short_is_a_mistake(self):
        with self.assertRaises(ValueError):
            self.page.table(["a", "b"], [["only one"]])

    def test_text_is_escaped(self):
        text = self.page.html()
        self.assertIn("<p>Less &lt; more, <code>--x=&lt;y&gt;</code>.</p>", text)
        self.assertIn("<h1>Sharing &lt;a GPU&gt; &amp; more</h1>", text)

    def test_markdown(self):
        text = self.page.markdown("pictures")
        self.assertIn(
            "| policy | total | tasks |\n|---|---:|---:|\n| <magm> | 459.25 | 60 |\n| a\\|b | – | "
            "7 |",
            text,
        )
        self.assertIn("![Figure totals](pictures/totals.svg)", text)

    def test_written_files(self):
        with tempfile.TemporaryDirectory() as folder:
            self.page.write(folder)
            names = [
                f"{picture.name}.{ending}" for picture in pictures() for ending in ("csv", "svg")
            ]
            self.assertEqual(sorted(os.listdir(folder)), sorted(["index.html", *names]))


if __name__ == "__main__":
    unittest.main()
