# SPDX-License-Identifier: Apache-2.0
"""One page of headings, text, tables and figures.

As HTML without outside references, and as Markdown for the repository.
"""

import html
import os
import re

CSS = """
:root { color-scheme: light dark; --ink: #24292f; --paper: #ffffff; --faint: #d0d7de; --shade: \
#f6f8fa; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117; --faint: #30363d; \
--shade: #161b22; } }
body { margin: 0 auto; padding: 1rem; max-width: 56rem; color: var(--ink); background: \
var(--paper);
  font: 16px/1.5 system-ui, sans-serif; }
h1, h2, h3 { line-height: 1.25; }
h2 { margin-top: 2.2rem; border-bottom: 1px solid var(--faint); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: 0.5rem 0; font-size: 0.9rem; }
caption, figcaption { text-align: left; font-size: 0.9rem; padding: 0.3rem 0; opacity: 0.85; }
th, td { padding: 0.2rem 0.7rem; border-bottom: 1px solid var(--faint); text-align: left; \
vertical-align: top; }
th { background: var(--shade); }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
th.number { white-space: normal; }
td:first-child:not(.number) { min-width: 14rem; }
code { background: var(--shade); padding: 0 0.2em; font-size: 0.9em; overflow-wrap: anywhere; }
figure { margin: 1.2rem 0; }
figure svg { display: block; width: 100%; min-width: 30rem; height: auto; }
@media print { body { max-width: none; font-size: 11px; } figure, table { break-inside: avoid; } \
figure svg { min-width: 0; }
  :root { --ink: #000; --paper: #fff; --faint: #ccc; --shade: #f4f4f4; } .wide { overflow: \
visible; } }
"""


def _cell(value, digits):
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.{digits}f}"
    return str(value)


class _Table:
    def __init__(self, columns, rows, caption):
        columns = [column if isinstance(column, tuple) else (column, 1) for column in columns]
        self.caption, self.names = caption, [name for name, _ in columns]
        self.cells = [
            [_cell(value, digits) for value, (_, digits) in zip(row, columns, strict=True)]
            for row in rows
        ]
        self.numeric = [self._is_numeric([row[i] for row in rows]) for i in range(len(columns))]

    @staticmethod
    def _is_numeric(values):
        values = [value for value in values if value is not None]
        return bool(values) and all(isinstance(value, (int, float)) for value in values)


class Page:
    """Blocks in the order in which they were added. Text is plain; `code` is in backquotes."""

    def __init__(self, title):
        self.title, self.blocks = title, []

    def heading(self, text, level=2):
        self.blocks.append(("heading", text, level))

    def text(self, text):
        self.blocks.append(("text", text))

    def list(self, items):
        self.blocks.append(("list", list(items)))

    def table(self, columns, rows, caption=""):
        """`columns`: names, or (name, decimals). Numbers are aligned right; None is a dash."""
        self.blocks.append(("table", _Table(columns, rows, caption)))

    def figure(self, picture, caption=""):
        """`picture`: made by figure.py."""
        self.blocks.append(("figure", picture, caption or picture.title))

    def pictures(self):
        return [block[1] for block in self.blocks if block[0] == "figure"]

    def html(self):
        body = "\n".join(getattr(self, f"_html_{kind}")(*rest) for kind, *rest in self.blocks)
        title = html.escape(self.title)
        return (
            f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{title}</title>\n"
            f"<style>{CSS}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{body}\n</body>\n</html>\n"
        )

    def markdown(self, pictures="."):
        """`pictures`: the folder of the pictures, relative to the Markdown file."""
        parts = [f"# {self.title}"]
        parts += [
            self._markdown_figure(*rest, pictures)
            if kind == "figure"
            else getattr(self, f"_markdown_{kind}")(*rest)
            for kind, *rest in self.blocks
        ]
        return "\n\n".join(parts) + "\n"

    def write(self, folder, name="index.html"):
        """Writes the page, and each figure as SVG and CSV beside it. Returns the page's path."""
        os.makedirs(folder, exist_ok=True)
        for picture in self.pictures():
            picture.save(folder)
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html())
        return path

    @staticmethod
    def _words(text):
        return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))

    def _html_heading(self, text, level):
        return f"<h{level}>{self._words(text)}</h{level}>"

    def _html_text(self, text):
        return f"<p>{self._words(text)}</p>"

    def _html_list(self, items):
        return "<ul>\n" + "\n".join(f"<li>{self._words(item)}</li>" for item in items) + "\n</ul>"

    def _html_table(self, table):
        classes = [' class="number"' if number else "" for number in table.numeric]

        def line(tag, cells):
            marked = (
                f"<{tag}{kind}>{self._words(cell)}</{tag}>" for cell, kind in zip(cells, classes)
            )
            return f"<tr>{''.join(marked)}</tr>"

        caption = f"<caption>{self._words(table.caption)}</caption>\n" if table.caption else ""
        rows = "\n".join(line("td", cells) for cells in table.cells)
        head = line("th", table.names)
        return (
            f'<div class="wide"><table>\n{caption}<thead>{head}</thead>\n'
            f"<tbody>\n{rows}\n</tbody>\n"
            "</table></div>"
        )

    def _html_figure(self, picture, caption):
        caption = f"<figcaption>{self._words(caption)}</figcaption>\n" if caption else ""
        return f'<figure>\n{caption}<div class="wide">{picture.inline()}</div>\n</figure>'

    @staticmethod
    def _markdown_heading(text, level):
        return f"{'#' * level} {text}"

    @staticmethod
    def _markdown_text(text):
        return text

    @staticmethod
    def _markdown_list(items):
        return "\n".join(f"- {item}" for item in items)

    @staticmethod
    def _markdown_table(table):
        def line(cells):
            return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

        rule = "|" + "|".join("---:" if number else "---" for number in table.numeric) + "|"
        lines = [line(table.names), rule, *map(line, table.cells)]
        return (f"{table.caption}\n\n" if table.caption else "") + "\n".join(lines)

    @staticmethod
    def _markdown_figure(picture, caption, pictures):
        return f"{caption}\n\n![{caption}]({pictures}/{picture.name}.svg)"
