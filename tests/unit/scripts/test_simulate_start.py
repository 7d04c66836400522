# SPDX-License-Identifier: Apache-2.0
"""Tasks of which nothing is known, simulated as scripts/simulate-start does: an array of short
trainings against the best fixed number side by side, and memory that does not fit. And what the
pages say of it."""

import contextlib
import importlib.machinery
import importlib.util
import io
import os
import re
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")


def load_script(name):
    loader = importlib.machinery.SourceFileLoader(
        name.replace("-", "_"), os.path.join(ROOT, "scripts", name)
    )
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


script = load_script("simulate-start")


class Unknown(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.simulator = script.Simulator(os.environ["COLLOC_BUILD"], folder.name)

    def array_of(self, memory_mib, smact, *way):
        """Its total time, relative to the best fixed number side by side."""
        task = (f"short-{memory_mib}-{smact}", 60, memory_mib, smact)
        given = script.short_tasks(self.simulator, task, script.ARRAY)
        _, best_s = script.best_fixed(self.simulator, given)
        learning = (*script.NOTHING_KNOWN, "--learn", *script.AT_ONCE)
        return self.simulator.run(*given, *learning, *way)["total_s"] / best_s

    def test_an_array_ends_as_soon_as_with_the_best_number(self):
        """Under magm smact-max stops the last ones: docs/measured/start-simulated.md."""
        for memory_mib, smact in ((2000, 0.15), (4000, 0.35), (4000, 0.6), (9000, 0.25)):
            with self.subTest(memory_mib=memory_mib, smact=smact):
                way = ("--policy=predictive", script.BUSIER)
                self.assertLess(self.array_of(memory_mib, smact, *way), 1.05)
                self.assertLess(self.array_of(memory_mib, smact), 1.36)
                self.assertLess(self.array_of(memory_mib, smact, script.TOGETHER), 1.2)

    def test_memory_that_does_not_fit(self):
        task = ("big", 600, int(0.4 * script.GPU_MIB), 0.3)
        given = script.short_tasks(self.simulator, task, script.BIG)
        exact = self.simulator.run(
            *given, "--estimator=declared", "--known=none", "--preload", *script.AT_ONCE
        )
        run = self.simulator.run(*given, *script.NOTHING_KNOWN, *script.AT_ONCE)
        self.assertEqual(run["oom"], 0)
        self.assertLess(run["total_s"], 1.1 * exact["total_s"])

    def total_s(self, trace, *way):
        given = (f"--trace={ROOT}/data/traces/{trace}.txt", *script.NOTHING_KNOWN, *way)
        runs = self.simulator.run_all((*given, f"--resample={seed}") for seed in range(1, 17))
        return sum(run["total_s"] for run in runs)

    def test_long_trainings_lose_nothing(self):
        """Where several began on an idle GPU at once they took 1.2 and 2.0 % longer."""
        for trace in script.TRACES:
            with self.subTest(trace=trace):
                held_off_s = self.total_s(trace, *script.HELD_OFF)
                self.assertLess(self.total_s(trace, *script.AT_ONCE) / held_off_s, 1.005)

    def test_clients_that_the_carrier_could_suspend_run_again(self):
        """Suspended, they came back only to their GPU: one of these traces took 17 % longer."""
        plain_s, carried_s = (
            self.total_s("philly-60", "--starting-max=32", *way) for way in ((), ("--carrier",))
        )
        self.assertLess(carried_s / plain_s, 1.02)


def read(*names):
    with open(os.path.join(ROOT, "docs", *names), encoding="utf-8") as file:
        return file.read()


def rows_of(text):
    """The rows of tables, without the lines of dashes and the spaces that Prettier adds."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    return [row for row in rows if not set("".join(row)) <= set("-: ")]


NEARLY = 0.02  # of a total: two versions of the core that differ less need no new page


def is_nearly(row, other):
    """The same words, and numbers that are nearly the same."""
    return len(row) == len(other) and all(
        one == two
        or ("." in one and "." in two and " " not in one and abs(float(one) - float(two)) <= NEARLY)
        for one, two in zip(row, other)
    )


def change_of(cell):
    """-0.5 of "-0.5 ± 0.9 %"."""
    return float(cell.split()[0])


class Pages(unittest.TestCase):
    """If one fails, the core decides otherwise than when the pages were made: then make the first
    anew by scripts/simulate-start, and let the others say what stands in it."""

    def setUp(self):
        self.rows = rows_of(read("measured", "start-simulated.md"))

    def row(self, name, n_cells):
        return next(row[1:] for row in self.rows if row[0] == name and len(row) == n_cells)

    def test_the_arrays_are_those_of_the_page(self):
        made = io.StringIO()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(made):
            simulator = script.Simulator(os.environ["COLLOC_BUILD"], folder)
            script.arrays(simulator)
            script.memory_that_does_not_fit(simulator)
        rows = rows_of(made.getvalue())
        self.assertEqual(len(rows), 1 + len(script.SHORT) + 3)
        for row in rows:
            self.assertTrue(any(is_nearly(row, written) for written in self.rows), row)

    def test_the_day_on_the_page_of_the_demo(self):
        names = ("at once", "held off, memory estimated exactly", "at once, runs are learned from")
        at_once, exact, learned = (
            [-change_of(cell) for cell in self.row(name, 5)[:3]] for name in names
        )
        text = " ".join(read("demo.md").split()).partition("Simulated, the day then takes")[2]
        said = re.findall(r"([0-9]+(?:\.[0-9]+)?)(?= %| and [0-9])", text.partition("([meas")[0])
        rounded = [round(learned[2]), round(at_once[2])]
        expected = [at_once[0], exact[0], at_once[1], exact[1], learned[1], *rounded]
        self.assertEqual([float(number) for number in said], expected)

    def test_what_starting_at_once_gains_on_the_page_of_placement(self):
        text = " ".join(read("placement.md").split())
        traces = [
            f"{trace}{kind}, {policy}"
            for trace in script.TRACES
            for kind in ("", " with data loading")
            for policy in script.POLICIES
        ]
        changes = [change_of(self.row(name, 5)[0]) for name in traces]
        said = re.search(r"long trainings are done .*? \(([-+0-9.]+) to ([-+0-9.]+) %,", text)
        self.assertEqual([float(number) for number in said.groups()], [max(changes), min(changes)])
        loading = [
            change_of(self.row(f"{trace} with data loading, magm", 5)[1]) for trace in script.TRACES
        ]
        said = re.search(r"Now they complete ([0-9]) to ([0-9]) % sooner", text)
        self.assertEqual(
            [-int(number) for number in said.groups()], sorted(map(round, loading))[::-1]
        )
        arrays = [row for row in self.rows if " MiB, SM activity " in row[0]]
        longest = max(float(row[5]) for row in arrays)
        said = re.search(r"200 trainings of a minute take at most ([0-9]+) % longer", text)
        self.assertEqual(float(said[1]), round(100 * (longest - 1)))
        times = max(float(held_off) / float(default) for _, _, held_off, _, _, default, _ in arrays)
        said = re.search(r"An array of short trainings is up to (\w+) times sooner done", text)
        self.assertEqual("one two three four five six seven".split()[int(times) - 1], said[1])


if __name__ == "__main__":
    unittest.main()
