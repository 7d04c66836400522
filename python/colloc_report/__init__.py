# SPDX-License-Identifier: Apache-2.0
"""Reports: figures in one style (figure.py) and pages without outside references (page.py).

    from colloc_report import Page, figure

    page = Page("What sharing costs")
    page.heading("Seven small models")
    page.text("Each ran alone, then beside `n` others.")
    page.table(["model", ("slowdown", 2)], [["small", 2.314], ["large", None]])
    lines = {"streams": ([1, 2, 4], [1, 2.1, 4.3])}
    page.figure(figure.lines("slowdown", lines, x="tasks", y="slowdown"))
    page.write("report")          # report/index.html, report/slowdown.svg, report/slowdown.csv

A script finds the package beside itself: `sys.path.insert(0, os.path.join(ROOT, "python"))`.
"""

from colloc_report.page import Page

__all__ = ["Page"]
