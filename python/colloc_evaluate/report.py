# SPDX-License-Identifier: Apache-2.0
"""The page: tables and figures of chapter 6 beside the published values, and further settings."""

from colloc_report import Page, figure

from colloc_evaluate import chapter6
from colloc_evaluate.chapter6 import ENERGY, ESTIMATORS, HEAVY, ORACLES, OVER_TIME, RECOVERY

MINUTES = 60
TIMES = (("waiting", "avg_wait_s"), ("execution", "avg_exec_s"), ("completion", "avg_jct_s"))
CLAIMS = [
    ("OWF on MPS, 90 tasks", "section 6.4.1", "OWF on MPS"),
    ("LUG without estimates, 90 tasks", "section 6.4.2", "LUG (SMACT ≤ 80 % and GMem ≥ 5 GB)"),
    ("MAGM + GPUMemNet, 90 tasks", "section 6.4.3", "MAGM (SMACT ≤ 80 % and GMem ≥ GPUMemNet)"),
    ("MAGM + GPUMemNet, 60 tasks", "figures 6.13 to 6.15", "MAGM + GPUMemNet (80 %)"),
]
CLAIM_VARIANTS = {
    "free launches": chapter6.with_free_launches,
    "no interference": chapter6.without_interference,
    "decisions delayed": chapter6.with_delayed_decisions,
    "queue continues": chapter6.with_running_queue,
}
CRASH_VARIANTS = {
    "hold-off 1 s": chapter6.short_hold_off,
    "decisions delayed": chapter6.with_delayed_decisions,
    "memory of the rerun": chapter6.with_memory_of_rerun,
    "both": chapter6.with_delay_and_rerun,
    "queue continues": chapter6.with_running_queue,
}
TIME_VARIANTS = {
    "ours": lambda setting: setting,
    "free launches": chapter6.with_free_launches,
    "no interference": chapter6.without_interference,
    "decisions delayed": chapter6.with_delayed_decisions,
    "delayed, no interference": chapter6.with_delay_and_no_interference,
    "memory of the rerun": chapter6.with_memory_of_rerun,
    "delayed, memory of the rerun": chapter6.with_delay_and_rerun,
}


def settings_of_chapter():
    """All settings of the chapter's tables, with the variants that each of them shows."""
    groups = ORACLES, RECOVERY, ESTIMATORS, HEAVY
    yield from (setting for group in groups for setting in group.values())
    claimed = [chapter6.SOURCES[source][row] for _, source, row in CLAIMS]
    claimed += [ENERGY["MAGM + GPUMemNet on MPS"], HEAVY["Exclusive"], ORACLES["Exclusive"]]
    timed = [HEAVY["Exclusive"], HEAVY["MAGM + GPUMemNet (80 %)"]]
    crashing = [setting for group in groups[1:] for setting in group.values()]
    for variants, settings in (
        (CLAIM_VARIANTS, claimed),
        (CRASH_VARIANTS, crashing),
        (TIME_VARIANTS, timed),
    ):
        yield from (variant(setting) for variant in variants.values() for setting in settings)


def minutes(name):
    return lambda run: run[name] / MINUTES


def over_bound(run):
    return run["total_s"] / run["lower_bound_s"]


class Report:
    def __init__(self, runs, own, why):
        self.runs, self.own, self.why, self.published = runs, own, why, chapter6.read_published()
        self.page = Page("Chapter 6 of the dissertation, simulated")

    def numbers(self, setting, name):
        """Median, least and most; three Nones when it could not be run."""
        return self.runs.of(setting, name) or (None, None, None)

    def median(self, setting, name):
        spread = self.runs.of(setting, name)
        return spread and spread.median

    # ---- pieces ----

    def claims(self):
        rows = []
        for what, source, row in CLAIMS:
            settings = chapter6.SOURCES[source]
            rows.append(
                self._claim(
                    f"{what}: total time, % less than exclusive",
                    settings[row],
                    settings["Exclusive"],
                    "total_s",
                    self.published[source, row, "shorter_percent"],
                )
            )
        rows.append(
            self._claim(
                "MAGM + GPUMemNet on MPS, 60 tasks: energy, % less than exclusive",
                ENERGY["MAGM + GPUMemNet on MPS"],
                ENERGY["Exclusive"],
                "energy_mj",
                self.published["section 6.4.6", "MAGM + GPUMemNet on MPS", "saved_percent"],
            )
        )
        self.page.table(
            [
                "",
                ("published", 2),
                "ours",
                "least",
                "most",
                "deviation",
                *CLAIM_VARIANTS,
            ],
            rows,
        )

    def where_time_goes(self):
        """The total is SM time by mean activity: which of the two differs from the published?"""
        source, label = "figures 6.13 to 6.15", "MAGM + GPUMemNet (80 %)"
        base, setting = HEAVY["Exclusive"], HEAVY[label]
        before, after = (
            [self.published[source, row, name] for name in ("total_min", "smact")]
            for row in ("Exclusive", label)
        )
        rows = [["published", *before, *after, *self._of_exclusive(before, after)]]
        for name, variant in TIME_VARIANTS.items():
            if not self.runs.can(setting):
                continue
            before, after = (
                [self.median(variant(each), what) for what in (minutes("total_s"), "mean_smact")]
                for each in (base, setting)
            )
            rows.append([name, *before, *after, *self._of_exclusive(before, after)])
        self.page.table(
            [
                "",
                ("exclusive, min", 0),
                ("its SMACT", 3),
                ("MAGM + GPUMemNet, min", 0),
                ("its SMACT", 3),
                "total, % less",
                "SM time, % more",
            ],
            rows,
            "Total time and mean activity, 60 tasks: SM time is their product",
        )

    @staticmethod
    def _of_exclusive(before, after):
        """Total time, % less; SM time, % more."""
        return (
            100 * (1 - after[0] / before[0]),
            100 * (after[0] * after[1] / (before[0] * before[1]) - 1),
        )

    def _claim(self, what, setting, base, name, published):
        ours = self.runs.less_percent([setting], [base], name) or (None, None, None)
        less = [
            self.runs.less_percent([variant(setting)], [variant(base)], name)
            for variant in CLAIM_VARIANTS.values()
        ]
        return [
            what,
            published,
            *ours,
            self._less(ours[0], published),
            *(spread and spread.median for spread in less),
        ]

    def crashes(self, source, title):
        rows = []
        for row, setting, published in self._published(source, "oom"):
            ours = self.numbers(setting, "oom")
            rows.append(
                [
                    row,
                    int(published),
                    *ours,
                    self._less(ours[0], published),
                    *(self.median(change(setting), "oom") for change in CRASH_VARIANTS.values()),
                ]
            )
        self.page.table(
            ["", "published", "ours", "least", "most", "deviation", *CRASH_VARIANTS], rows, title
        )

    def energy(self, source, title):
        rows = []
        for row, setting, published in self._published(source, "energy_mj"):
            ours = self.numbers(setting, "energy_mj")
            deviation = self._less(ours[0], published)
            rows.append(
                [row, published, *ours, deviation, deviation and 100 * deviation / published]
            )
        self.page.table(
            ["", ("published", 2), ("ours", 2), ("least", 2), ("most", 2), ("deviation", 2), "%"],
            rows,
            title,
        )

    def _published(self, source, name):
        for row, setting in chapter6.SOURCES[source].items():
            if (source, row, name) in self.published:
                yield row, setting, self.published[source, row, name]

    @staticmethod
    def _less(ours, published):
        return None if ours is None else float(ours - published)

    def totals(self, settings, picture, title):
        rows = []
        for row, setting in settings.items():
            total = self.numbers(setting, minutes("total_s"))
            less = self.runs.less_percent([setting], [settings["Exclusive"]], "total_s")
            rows.append([row, *total, less and less.median, self.median(setting, over_bound)])
        self.page.table(
            [
                "",
                "total, min",
                "least",
                "most",
                "% less than exclusive",
                ("times the lower bound", 2),
            ],
            rows,
        )
        spreads = [self.runs.of(setting, minutes("total_s")) for setting in settings.values()]
        self.page.figure(
            figure.bars(
                picture,
                list(settings),
                {"total": [spread and spread.median for spread in spreads]},
                "minutes",
                x="setting",
                spread={"total": [spread and spread.ends() for spread in spreads]},
                title=title,
                flat=True,
            )
        )

    def times(self, settings, picture, title):
        series = {
            label: [self.median(setting, minutes(name)) for setting in settings.values()]
            for label, name in TIMES
        }
        spread = {
            label: [
                ends and ends.ends()
                for ends in (self.runs.of(setting, minutes(name)) for setting in settings.values())
            ]
            for label, name in TIMES
        }
        self.page.figure(
            figure.bars(
                picture,
                list(settings),
                series,
                "minutes",
                x="setting",
                spread=spread,
                title=title,
                flat=True,
            )
        )

    def over_time(self, picture, column, y, title, scale=1):
        panels = {}
        for label, setting in OVER_TIME.items():
            if not self.runs.can(setting):
                continue
            for gpu, (xs, ys) in self.runs.timeline(setting, column).items():
                panels.setdefault(f"GPU {gpu}", {})[label] = [x / MINUTES for x in xs], [
                    value / scale for value in ys
                ]
        self.page.figure(figure.panels(picture, panels, "minutes", y, title=title, steps=True))

    # ---- the page ----

    def write_chapter(self):
        page = self.page
        page.text(
            "After this page you know how far colloc's simulated results are from chapter 6 of the "
            "dissertation, which settings that depends on, and how all policies compare."
        )
        page.heading("Claims in the text of the chapter")
        self.claims()
        page.text(
            "Our values are medians over the seeds, with the least and the most of them. "
            + self.runs.inputs.story
        )
        page.heading("Why our results differ")
        page.list(self.why)
        page.heading("Oracles: memory exactly known, 90 tasks")
        self.totals(ORACLES, "figure-6-5", "Figure 6.5: total time, 90 tasks, memory known")
        self.times(
            ORACLES,
            "figure-6-6",
            "Figure 6.6: waiting, execution and completion, 90 tasks, memory known",
        )
        page.heading("Recovery only: memory unknown, 90 tasks")
        self.crashes("table 6.3", "Table 6.3: out-of-memory crashes, 90 tasks")
        self.totals(RECOVERY, "figure-6-7", "Figure 6.7: total time, 90 tasks, memory unknown")
        self.times(
            RECOVERY,
            "figure-6-8",
            "Figure 6.8: waiting, execution and completion, 90 tasks, memory unknown",
        )
        page.heading("Estimators of memory, 90 tasks")
        self.crashes("table 6.4", "Table 6.4: out-of-memory crashes, 90 tasks, with estimators")
        self.totals(ESTIMATORS, "figure-6-9", "Figure 6.9: total time, 90 tasks, with estimators")
        self.times(
            ESTIMATORS,
            "figure-6-10",
            "Figure 6.10: waiting, execution and completion, 90 tasks, with estimators",
        )
        page.heading("The heavier trace, 60 tasks")
        self.crashes("table 6.5", "Table 6.5: out-of-memory crashes, 60 tasks")
        self.totals(HEAVY, "figure-6-11", "Figure 6.11: total time, 60 tasks")
        self.times(HEAVY, "figure-6-12", "Figure 6.12: waiting, execution and completion, 60 tasks")
        self.where_time_goes()
        page.heading("GPUs over time, 60 tasks")
        page.text(f"One run of each, seed {self.runs.seeds[0]}.")
        self.over_time(
            "figure-6-13", "mem_used_mib", "GiB", "Figure 6.13: memory of every GPU", 1024
        )
        self.over_time("figure-6-14", "smact", "SMACT", "Figure 6.14: SM activity of every GPU")
        self.over_time("figure-6-15", "power_w", "W", "Figure 6.15: power of every GPU")
        page.heading("Energy, 60 tasks")
        self.energy("table 6.6", "Table 6.6: energy of all GPUs in MJ")

    def write_beyond(self, trace, settings):
        """`settings` as chapter6.everything makes them."""
        page = self.page
        page.heading(f"Beyond the chapter: every policy, {trace} tasks")
        rows = [
            [
                *(f"{label}, , ".split(", ")[:3]),
                self.median(setting, minutes("total_s")),
                self.median(setting, over_bound),
                self.median(setting, minutes("avg_jct_s")),
                self.median(setting, "energy_mj"),
                self.median(setting, "oom"),
                self.median(setting, "completed"),
            ]
            for label, setting in settings.items()
            if setting.estimator in ("none", "declared") and setting.sharing == "mps"
        ]
        page.table(
            [
                "policy",
                "estimator",
                "sharing",
                "total, min",
                ("times the lower bound", 2),
                "completion, min",
                ("MJ", 2),
                "OOM",
                ("completed", 0),
            ],
            rows,
            "Medians; no policy can be below the lower bound (docs/simulate.md)",
        )
        for sharing in ("mps", "streams"):
            self._over_bound(trace, sharing, settings)

    def write_suspending(self, trace, settings):
        """`settings` as chapter6.with_suspension makes them, as far as the program has them."""
        fifo, predictive = settings["first come, first served"], settings.get("predictive, MPS")
        rows = []
        for label, setting in settings.items():
            gain = predictive and self.runs.less_percent([setting], [predictive], "avg_jct_s")
            counts = ("suspensions", "moves", "max_stretch") if setting.suspension else ()
            rows.append(
                [
                    label,
                    self.median(setting, over_bound),
                    self.median(setting, minutes("avg_jct_s")),
                    gain and gain.median,
                    self.runs.less_percent([setting], [fifo], "avg_jct_s").median,
                    *(self.median(setting, name) for name in counts),
                    *[None] * (3 - len(counts)),
                    self.median(setting, "oom"),
                ]
            )
        self.page.heading(f"Suspending and moving tasks: {trace} tasks", 3)
        self.page.text(
            "Goals for preemption: a completion time at least 15 % shorter than that of predictive "
            "without it, a total of at most 1.08 of the lower bound, which holds with preemption "
            "too, and no completion longer than 1.5 times that of first come, first served."
        )
        self.page.table(
            [
                "policy, sharing",
                ("total, times the lower bound", 3),
                "completion, min",
                "% less than predictive",
                "% less than first come, first served",
                ("suspensions", 0),
                ("moves", 0),
                ("longest, times that of FIFO", 2),
                "OOM",
            ],
            rows,
            f"{trace} tasks: running tasks give way, at measured costs (docs/suspend.md)",
        )

    def _over_bound(self, trace, sharing, settings):
        policies = [*self.own, *map(chapter6.with_times, self.own), *chapter6.POLICIES]
        estimators = ["none", "declared", *self.runs.inputs.estimators]
        found = {
            estimator: [settings.get(f"{policy}, {estimator}, {sharing}") for policy in policies]
            for estimator in estimators
        }
        series = {
            estimator: [setting and self.median(setting, over_bound) for setting in of_policies]
            for estimator, of_policies in found.items()
        }
        self.page.figure(
            figure.bars(
                f"bound-{trace}-{sharing}",
                policies,
                series,
                "times the lower bound",
                x="policy",
                title=f"Every policy relative to the lower bound: {trace} tasks, {sharing}",
                flat=True,
            )
        )

    def write_resampled(self, trace, settings):
        """`settings` as chapter6.resampled makes them."""
        rows = []
        for label, mine in settings.items():
            if mine == settings["exclusive"]:
                continue
            less = [
                self.runs.less_percent(mine, settings["exclusive"], name)
                for name in ("total_s", "avg_jct_s", "energy_mj")
            ]
            rows.append(
                [
                    label,
                    less[0].median,
                    *less[0].ends(),
                    less[1].median,
                    less[2].median,
                    sum(self.runs.of(setting, "oom").median for setting in mine),
                ]
            )
        self.page.heading(f"Other traces, resampled from the one of {trace} tasks")
        self.page.text(
            f"{len(settings['exclusive'])} traces of the same number of tasks. The tasks and the "
            "gaps between them are resampled from this trace. Per cent less than exclusive on the "
            "same trace, and the sum of crashes over all traces:"
        )
        self.page.table(
            ["policy", "total time", "least", "most", "completion", "energy", "OOM"], rows
        )
