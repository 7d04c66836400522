# SPDX-License-Identifier: Apache-2.0
"""scripts/test: the lines that its summary prints for tests that failed, and which of them are run
once more."""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("test", os.path.join(TOP, "scripts", "test"))
program = importlib.util.module_from_spec(importlib.util.spec_from_loader("test", loader))
loader.exec_module(program)

# It fails in each way that Python's unittest knows, below a function of this file and of a library.
FAILS = """
import subprocess, unittest

class T(unittest.TestCase):
    def wait_for(self, text):
        self.fail(f"no {text}:\\n" + "\\n".join(f"line {i} of a log" for i in range(100)))
    def test_a(self):
        self.wait_for("what does not come")
    def test_b(self):
        pass
    def test_c(self):
        self.fail("another")
class D(unittest.TestCase):
    def test_a(self):
        "What it shows."
        try:
            subprocess.run(["sleep", "9"], timeout=0.01)
        except subprocess.TimeoutExpired as error:
            raise KeyError("late") from error
unittest.main(verbosity=2)
"""
REPORT = """starts
==12==ERROR: AddressSanitizer: heap-use-after-free on address 0x1
READ of size 4 at 0x1 thread T0
    #0 0x1 in queue_take src/core/queue.c:10:5
    #1 0x2 in main src/daemon/main.c:1:1

freed by thread T0 here:
    #0 0x3 in free
SUMMARY: AddressSanitizer: heap-use-after-free
"""


def run_unittest(case):
    done = subprocess.run(
        [sys.executable, "-c", FAILS, case], capture_output=True, text=True, check=False
    )
    return done.stderr


def result_of(name, result="FAIL", returncode=1, stdout=""):
    return {
        "name": name,
        "result": result,
        "returncode": returncode,
        "duration": 2.0,
        "stdout": stdout,
    }


def show(tally):
    """The exit status and the lines of the summary."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        status = tally.show()
    return status, out.getvalue().splitlines()


def run_part(results, alone):
    """Runs a part whose tests have the results, and then, where it is run once more, those that
    `alone` has of a test's name. Returns the exit status, the summary, and what was run alone."""
    repeated = []

    def run(*command, **_env):
        name = command[command.index("--logbase") + 1]
        logged = results
        if name != "testlog":
            repeated.append(command[-1])
            logged = [alone[command[-1]]]
        with open(os.path.join(folder, "meson-logs", name + ".json"), "w") as file:
            file.writelines(json.dumps(result) + "\n" for result in logged)
        return int(any(result["result"] not in ("OK", "SKIP") for result in logged))

    tally = program.Tally()
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(program, "run", run):
        os.mkdir(os.path.join(folder, "meson-logs"))
        with contextlib.redirect_stdout(io.StringIO()):
            program.run_meson_tests(tally, "tests", folder)
            tally.repeat()
    return (*show(tally), repeated)


class Chance(unittest.TestCase):
    """Which failures are run once more, and how they are counted."""

    GOOD = result_of("colloc:unit+core / core-queue", "OK", 0)

    def test_one_that_passes_alone(self):
        name = "colloc:system / system-mps"
        first = result_of(name, stdout=f"{TOP}/a.py: 3 != 2\n")
        alone = {"system-mps": result_of(name, "OK", 0)}
        status, lines, repeated = run_part([self.GOOD, first], alone)
        self.assertEqual((status, repeated), (0, ["system-mps"]))
        self.assertTrue(lines[1].startswith("tests           2 passed    0 failed    1 BY CHANCE"))
        self.assertEqual(lines[2:4], [f"    BY CHANCE {name}", "        a.py: 3 != 2"])
        self.assertEqual(lines[-1], "2 passed, 0 failed")

    def test_one_that_fails_again(self):
        name = "colloc:system / system-mps"
        first = result_of(name, stdout="3 != 2\n")
        for again in (
            result_of(name, stdout="4 != 2\n"),
            result_of(name, "SKIP", 77),
            result_of(name, "TIMEOUT", -15),
        ):
            status, lines, repeated = run_part([self.GOOD, first], {"system-mps": again})
            self.assertEqual((status, repeated), (1, ["system-mps"]))
            self.assertTrue(lines[1].startswith("tests           1 passed    1 failed  ("), lines)
            self.assertEqual(lines[2:4], [f"    FAILED {name}", "        3 != 2"])
            self.assertEqual(lines[-1], "1 passed, 1 failed")

    def test_a_third_is_no_chance(self):
        names = [f"colloc:system / system-{i}" for i in range(3)]
        alone = {f"system-{i}": result_of(names[i], "OK", 0) for i in range(3)}
        status, lines, repeated = run_part([self.GOOD, *map(result_of, names)], alone)
        self.assertEqual((status, repeated), (1, ["system-0", "system-1"]))
        self.assertTrue(lines[1].startswith("tests           3 passed    1 failed    2 BY CHANCE"))
        self.assertEqual(
            [line for line in lines if line.startswith("    ") and line[4] != " "],
            [f"    FAILED {names[2]}", f"    BY CHANCE {names[0]}", f"    BY CHANCE {names[1]}"],
        )
        self.assertEqual(lines[-1], "3 passed, 1 failed")

    def test_what_no_load_explains(self):
        system = "colloc:system / system-a"
        overflow = "a.c:7:3: runtime error: signed integer overflow"
        for bad in (
            result_of("colloc:unit+scripts / scripts-test"),
            result_of("colloc:scenario / scenario-order"),
            result_of("colloc:unit+policy / policy-magm"),
            result_of("colloc:faults+system / faults-campaign"),
            result_of(system, "TIMEOUT", -15),
            result_of(system, returncode=-11),
            result_of(system, "ERROR", 99),
            result_of(system, stdout=REPORT),
            result_of(system, stdout=f"no answer, but the log has: '{overflow}'"),
            {**result_of(system), "stderr": "==3==ERROR: LeakSanitizer: detected memory leaks\n"},
            result_of(system, stdout="collocd: a.c:1: f: Assertion `x > 0' failed.\n"),
        ):
            status, lines, repeated = run_part([self.GOOD, bad], {})
            self.assertEqual((status, repeated), (1, []), bad)
            self.assertEqual(lines[-1], "1 passed, 1 failed")


class Lines(unittest.TestCase):
    def test_a_failed_assertion(self):
        lines = program.choose_lines(run_unittest("T"), 8)
        self.assertEqual(len(lines), 8)
        self.assertTrue(lines[0].startswith("FAIL: test_a "), lines)
        self.assertIn("line 8, in test_a", lines[1])
        self.assertIn("line 6, in wait_for", lines[2])
        self.assertEqual(
            lines[3:],
            [
                "AssertionError: no what does not come:",
                "line 0 of a log",
                "line 1 of a log",
                "line 98 of a log",
                "line 99 of a log",
            ],
        )

    def test_in_two_lines(self):
        lines = program.choose_lines(run_unittest("T"), 2)
        self.assertTrue(lines[0].startswith("FAIL: test_a "), lines)
        self.assertEqual(lines[1], "AssertionError: no what does not come:")

    def test_the_last_of_chained_exceptions(self):
        lines = program.choose_lines(run_unittest("D"), 12)
        self.assertEqual(len(lines), 3, lines)
        self.assertTrue(lines[0].startswith("ERROR: test_a "), lines)
        self.assertIn("line 19, in test_a", lines[1])
        self.assertEqual(lines[2], "KeyError: 'late'")

    def test_a_sanitizer_report_comes_before_all(self):
        lines = program.choose_lines(REPORT + run_unittest("T"), 4)
        self.assertEqual(lines, REPORT.splitlines()[1:5])
        text = (
            "ok\nsrc/base/a.c:7:3: runtime error: signed integer overflow\n    #0 0x1 in f\nafter\n"
        )
        self.assertEqual(program.choose_lines(text, 2), text.splitlines()[1:3])
        text = "collocd: src/a.c:1: f: Assertion `x > 0' failed.\nAborted\n"
        self.assertEqual(program.choose_lines("before\n" + text, 5), text.splitlines())

    def test_a_compilers_error(self):
        said = [
            "FAILED: src/a.o",
            "cc -c src/a.c" + " -Wall" * 100,
            "src/a.c:1:1: error: no prototype for f [-Werror=missing-prototypes]",
            "    1 | int f(void)",
            "      |     ^",
        ]
        text = "\n".join(["[1/2] Compiling b", *said, "ninja: build stopped: subcommand failed."])
        lines = program.choose_lines(text, 12)
        self.assertEqual(lines, [line[:200] for line in said])

    def test_cmocka(self):
        text = (
            "[==========] Running 2 test(s).\n[ RUN      ] good\n[       OK ] good\n"
            "[ RUN      ] bad\n[  ERROR   ] --- 1 != 2\n[   LINE   ] --- t.c:5: error: Failure!\n"
            "[  FAILED  ] bad\n[==========] 2 test(s) run.\n[  PASSED  ] 1 test(s).\n"
        )
        self.assertEqual(
            program.choose_lines(text, 3),
            [
                "[  ERROR   ] --- 1 != 2",
                "[   LINE   ] --- t.c:5: error: Failure!",
                "[  FAILED  ] bad",
            ],
        )

    def test_another_programs_last_lines(self):
        text = "\n".join(f"step {i}\n" for i in range(30)) + "\n\n"
        self.assertEqual(program.choose_lines(text, 2), ["step 28", "step 29"])
        self.assertEqual(program.choose_lines("", 5), [])


class Summary(unittest.TestCase):
    def show(self, tally):
        status, lines = show(tally)
        self.assertEqual(status, 1)
        return lines

    def test_it_fits_into_the_end_of_a_log(self):
        text = run_unittest("T")
        for failures in range(1, 8):
            tally = program.Tally()
            tally.add("tests", 700, [(f"t{i}", text) for i in range(failures)], 3)
            for part in ("sanitizers", "fuzzing", "lint"):
                tally.add(part, 5, [])
            lines = self.show(tally)
            # make says a line after it.
            self.assertLessEqual(len(lines), 29)
            self.assertEqual(lines[-1], f"715 passed, {failures} failed")
            at = [i for i, line in enumerate(lines) if line.startswith("    FAILED t")]
            self.assertEqual(len(at), failures)
            for i in at:
                self.assertTrue(lines[i + 1].startswith("        FAIL: test_a "), lines)

    def test_those_by_chance_fit_in_too(self):
        text = run_unittest("T")
        tally = program.Tally()
        for part in ("tests", "sanitizers"):
            names = [f"t{i}" for i in range(3)]
            repeats = {name: lambda: True for name in names[:2]}
            tally.add(part, 700, [(name, text) for name in names], 3, repeats)
        for part in ("fuzzing", "lint"):
            tally.add(part, 5, [])
        with contextlib.redirect_stdout(io.StringIO()):
            tally.repeat()
        lines = self.show(tally)
        self.assertLessEqual(len(lines), 29)
        self.assertEqual(lines[-1], "1414 passed, 2 failed")

    def test_what_mesons_log_says(self):
        results = [
            {"name": "good", "result": "OK", "returncode": 0, "duration": 1.0, "stdout": "fine"},
            {"name": "slow", "result": "TIMEOUT", "returncode": -9, "duration": 300.2},
            {"name": "left", "result": "SKIP", "returncode": 77, "duration": 0.1},
            {
                "name": "bad",
                "result": "FAIL",
                "returncode": 1,
                "duration": 2.0,
                "stdout": f"{TOP}/src/a.c is wrong\n",
                "stderr": "and more\n",
            },
        ]
        lines = run_part(results, {})[1]
        self.assertTrue(lines[1].startswith("tests           1 passed    2 failed    1 skipped"))
        self.assertEqual(
            lines[2:-2],
            [
                "    FAILED slow",
                "        TIMEOUT (exit status -9, 300 s)",
                "    FAILED bad",
                "        src/a.c is wrong",
                "        and more",
            ],
        )

    def test_the_lines_of_a_check_stand_before_its_name(self):
        script = "echo ok one; echo a.c: wrong >&2; echo FAILED two; echo ok three; exit 1"
        tally = program.Tally()
        with contextlib.redirect_stdout(io.StringIO()):
            program.count_script(tally, "lint", *program.start("sh", "-c", script))
        lines = self.show(tally)
        self.assertEqual(lines[2:-2], ["    FAILED two", "        a.c: wrong"])

    def test_a_script_that_ends_early(self):
        tally = program.Tally()
        with contextlib.redirect_stdout(io.StringIO()):
            program.count_script(tally, "lint", *program.start("sh", "-c", "echo no tool; exit 2"))
        lines = self.show(tally)
        self.assertIn("exit status 2, 0 checks", lines[2])
        self.assertEqual(lines[3], "        no tool")


if __name__ == "__main__":
    unittest.main()
