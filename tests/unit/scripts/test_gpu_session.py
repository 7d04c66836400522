# SPDX-License-Identifier: Apache-2.0
"""tests/gpu/session: what it plans, that nothing outlives a trial, and its tables. And what some of
its trials compute without a GPU."""
import argparse
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import sys
import tarfile
import tempfile
import unittest
from unittest import mock

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
PROGRAM = os.path.join(TOP, "tests", "gpu", "session")
sys.path.insert(0, os.path.join(TOP, "python"))
loader = importlib.machinery.SourceFileLoader("session", PROGRAM)
session = importlib.util.module_from_spec(importlib.util.spec_from_loader("session", loader))
sys.modules["session"] = session
sys.dont_write_bytecode = True
loader.exec_module(session)
import carrier_kills_trial  # noqa: E402
import carrier_lent_trial  # noqa: E402
import carrier_more_page  # noqa: E402
import carrier_mps_trial  # noqa: E402
import carrier_slots_page  # noqa: E402
import carrier_turns_trial  # noqa: E402
import encoders_trial  # noqa: E402
import left_bytes  # noqa: E402
import start_page  # noqa: E402
import start_trial  # noqa: E402
from colloc_fit.tables import replace_blocks  # noqa: E402
from session_trials import Trial  # noqa: E402


def trial(name, gpus=1, wanted=100, least=50, command="true", **more):
    return Trial(name, "?", gpus, wanted, least, command, command, "none", command, **more)


class Plan(unittest.TestCase):
    def plan(self, trials, seconds, gpus=(0, 1)):
        turns = session.plan(trials, gpus, seconds)
        self.check(turns, seconds)
        return {turn.trial.name: (turn.begin_s, turn.seconds, turn.gpus) for turn in turns}

    def check(self, turns, seconds):
        """No two at the same time on a GPU, none beyond the end, each with what it needs."""
        for turn in turns:
            self.assertLessEqual(turn.begin_s + turn.seconds, seconds)
            self.assertGreaterEqual(turn.seconds, turn.trial.least_s)
            self.assertGreaterEqual(len(turn.gpus), turn.trial.gpus)
            for other in turns:
                apart = turn.begin_s >= other.begin_s + other.seconds
                apart = apart or other.begin_s >= turn.begin_s + turn.seconds
                self.assertTrue(turn is other or apart or not set(turn.gpus) & set(other.gpus))

    def test_the_most_valuable_come_first(self):
        trials = [trial("a", 2), trial("b"), trial("c"), trial("d", 2)]
        self.assertEqual(
            self.plan(trials, 125),
            {"a": (0, 67, (0, 1)), "b": (71, 50, (0,)), "c": (71, 50, (1,))},
        )

    def test_a_lane_for_each_gpu(self):
        planned = self.plan([trial("a"), trial("b"), trial("c")], 160)
        self.assertEqual(planned["a"], (0, 100, (0,)))
        self.assertEqual(planned["b"], (0, 100, (1,)))
        self.assertEqual(planned["c"][0], 104)

    def test_one_that_must_be_alone(self):
        planned = self.plan([trial("a"), trial("alone", may_be_beside=False)], 200)
        self.assertEqual(planned["alone"][2], (0, 1))

    def test_what_needs_more_gpus_or_time_is_left_out(self):
        self.assertEqual(self.plan([trial("a", 2), trial("b", 1, 900, 900)], 500, (0,)), {})

    def test_one_without_a_gpu_runs_beside_all(self):
        planned = self.plan([trial("a", 2), trial("cpu", 0, 900, 50)], 120)
        self.assertEqual(planned, {"a": (0, 100, (0, 1)), "cpu": (0, 116, ())})

    def test_the_open_trials(self):
        for seconds in range(0, 1800, 60):
            for gpus in ((0,), (0, 1), (0, 1, 2, 3)):
                self.check(session.plan(session.TRIALS, gpus, seconds), seconds)
        smokes = [session.smoke_of(t) for t in session.TRIALS]
        self.assertLessEqual(max(t.wanted_s for t in smokes), 40)


# It leaves a process in its own session, with another environment, that hears no SIGTERM.
LEAVES = (
    "env -i setsid bash -c 'trap \"\" TERM; echo $$ >{out}/pid; while :; do sleep 1; done'"
    " 2>{out}/killed &"
    " while [ ! -s {out}/pid ]; do sleep 0.01; done; echo said;"
)


class Runs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.out = self.folder.name

    def run_all(self, *trials, gpus=(0, 1), seconds=60):
        options = argparse.Namespace(out=self.out, programs="programs", emulated=True)
        turns = [session.Turn(t, 0, seconds, gpus[: t.gpus]) for t in trials]
        with contextlib.redirect_stdout(io.StringIO()) as said:
            session.Session(options, gpus).run_all(turns)
        with open(f"{self.out}/summary.txt", encoding="utf-8") as file:
            self.assertEqual(file.read(), said.getvalue())
        return said.getvalue()

    def check_nothing_left(self, name):
        with open(f"{self.out}/{name}/pid", encoding="utf-8") as file:
            self.assertFalse(os.path.exists(f"/proc/{file.read().strip()}"))

    def test_nothing_outlives_a_trial_that_ends(self):
        self.assertIn("ends: exit 3 after", self.run_all(trial("ends", command=LEAVES + " exit 3")))
        self.check_nothing_left("ends")

    def test_nothing_outlives_a_trial_beyond_its_time(self):
        said = self.run_all(trial("stays", command=LEAVES + " wait"), seconds=8)
        self.assertRegex(said, r"stays: exit 124 after \d+ of 8 s on GPU 0: said\n")
        self.check_nothing_left("stays")

    def test_a_trial_gets_its_gpus_and_its_time(self):
        words = "echo {programs} {gpu} {gpus} {seconds} [$CUDA_VISIBLE_DEVICES]"
        said = self.run_all(trial("one", command=words), trial("two", 2, command=words))
        programs = os.path.abspath("programs")
        self.assertIn(f"on GPU 0: {programs} 0 0 56 [0]\n", said)
        self.assertIn(f"on GPU 0,1: {programs} 0 0,1 56 [", said)

    def test_turns_of_one_gpu_follow_each_other(self):
        mark = "test ! -e {out}/../held && touch {out}/../held && sleep 0.3 && rm {out}/../held"
        said = self.run_all(trial("a", command=mark), trial("b", 2, command=mark))
        self.assertEqual(said.count("exit 0"), 2)

    def test_results_are_packed(self):
        self.run_all(trial("a", command="head -c 7000000 /dev/zero >{out}/large"))
        with tarfile.open(f"{self.out}/results.tar.xz") as archive:
            self.assertEqual(archive.getmember("a/large").size, session.FILE_MAX)

    def test_a_file_that_goes_meanwhile_is_not_packed(self):
        with mock.patch.object(session.os.path, "isfile", return_value=True):
            self.run_all(trial("a", command="ln -s nowhere {out}/gone; echo >{out}/there"))
        with tarfile.open(f"{self.out}/results.tar.xz") as archive:
            self.assertIn("a/there", archive.getnames())
            self.assertNotIn("a/gone", archive.getnames())


class Encoders(unittest.TestCase):
    def refused(self, *words):
        said = io.StringIO()
        with mock.patch.object(sys, "argv", ["encoders_trial.py", "build", "out", *words]):
            with contextlib.redirect_stderr(said), self.assertRaises(SystemExit):
                encoders_trial.main()
        return said.getvalue()

    def test_wrong_options_are_refused(self):
        self.assertIn("no set none: both crashes-out", self.refused("--sets=both,none"))
        self.assertIn("no folder /nonexistent", self.refused("--checkpoints=/nonexistent"))

    def test_the_last_epoch_of_each_set_is_written(self):
        with tempfile.TemporaryDirectory() as out:
            os.makedirs(f"{out}/weights")
            self.assertEqual(encoders_trial.write_epochs(out), {})
            with open(f"{out}/encoders.jsonl", "w", encoding="ascii") as file:
                for name, epoch, ended in (
                    ("both", 1, False),
                    ("measured", 7, False),
                    ("both", 2, True),
                ):
                    line = {
                        "set": name,
                        "epoch": epoch,
                        "best_epoch": 1,
                        "ended": ended,
                        "took_s": 3,
                    }
                    print(json.dumps(line), file=file)
            found = encoders_trial.write_epochs(out)
            self.assertEqual(found["both"], {"epoch": 2, "best_epoch": 1, "ended": True})
            self.assertEqual(found["measured"]["epoch"], 7)
            with open(f"{out}/weights/epochs.json", encoding="utf-8") as file:
                self.assertEqual(json.load(file), found)


class Tables(unittest.TestCase):
    def test_the_readme_has_them(self):
        """Written by `tests/gpu/session --readme`. Prettier aligns the columns."""
        with open(os.path.join(TOP, "tests", "gpu", "README.md"), encoding="utf-8") as file:
            text = file.read()
        written = replace_blocks(text, session.readme_tables())
        self.assertEqual(plain(text), plain(written))

    def test_each_command_is_one(self):
        for one in session.TRIALS:
            for command in (one.command, one.smoke, one.emulated):
                words = dict(programs="P", out="O", seconds=1, half=1, gpu=0, gpus="0,1")
                files = [w for w in command.format(**words).split() if w.startswith("tests/gpu/")]
                for name in files:
                    self.assertTrue(os.path.exists(os.path.join(TOP, name)), name)


class Trials(unittest.TestCase):
    def test_workers_begin_with_other_kinds_of_kills(self):
        phases = list(carrier_kills_trial.LATER)
        orders = [carrier_kills_trial.kinds_of(worker, phases) for worker in range(15)]
        self.assertEqual(len({order[0] for order in orders}), 3 * len(phases))
        for order in orders:
            self.assertEqual(sorted(order), sorted(orders[0]))

    def test_trainings_that_take_turns_have_the_steps_that_fit(self):
        real = mock.Mock(is_emulated=False)
        few, many = (carrier_turns_trial.steps_for(real, s, 2) for s in (110, 146))
        self.assertLess(20, few)
        self.assertLess(few, many)
        lasts = (2 + 4 * carrier_turns_trial.SLOWER) * many / carrier_turns_trial.STEPS_PER_S
        self.assertLess(lasts + 6 * carrier_turns_trial.START_S, 146)

    def test_a_reading_of_the_second_gpu_is_waited_for(self):
        readings = [None, None, 12.5]
        own = carrier_lent_trial.Trial.__new__(carrier_lent_trial.Trial)
        own.second, own.daemon = "1", mock.Mock()
        own.daemon.gpus = lambda: [{"index": 1, "mem_used_mib": readings.pop(0)}]
        self.assertEqual(own.second_mib(), 12.5)

    def test_nothing_in_use_is_a_reading(self):
        own = carrier_lent_trial.Trial.__new__(carrier_lent_trial.Trial)
        own.second, own.daemon = "1", mock.Mock()
        own.daemon.gpus = lambda: [{"index": 1, "mem_used_mib": 0.0}]
        self.assertEqual(own.second_mib(), 0.0)

    def test_memory_is_read_at_equal_distances(self):
        self.assertEqual(left_bytes.spaced(list(range(10)), 4), [0, 3, 6, 9])
        self.assertEqual(left_bytes.spaced(list(range(3)), 4), [0, 1, 2])
        self.assertEqual(left_bytes.spaced([], 4), [])


class MorePage(unittest.TestCase):
    """tests/gpu/carrier_more_page.py."""

    def cost(self, *ratios):
        row = {"result": "pair", "batch": 64, "without_s": 1.0, "first": 0, "carried": True}
        return carrier_more_page.cost([{**row, "with_s": ratio} for ratio in ratios])

    def test_the_interval_of_a_median(self):
        least, most, coverage = carrier_more_page.median_interval(list(range(1, 21)))
        self.assertEqual((least, most), (6, 15))
        self.assertAlmostEqual(coverage, 0.9586, 4)
        self.assertIsNone(carrier_more_page.median_interval([1, 2, 3, 4, 5]))
        self.assertEqual(carrier_more_page.median_interval(list(range(6)))[:2], (0, 5))
        self.assertIsNone(carrier_more_page.median_interval([]))

    def test_a_goal_that_the_pairs_do_not_decide_is_open(self):
        self.assertIn("is met", self.cost(*[1.001] * 20).replace("\n", " "))
        self.assertIn("is not met", self.cost(*[1.02] * 20).replace("\n", " "))
        self.assertIn("is open", self.cost(*([0.99] * 10 + [1.03] * 10)).replace("\n", " "))
        self.assertIn("too few", self.cost(1.0, 1.0))

    def test_times_that_are_printed_coarsely_are_named(self):
        pairs = [{"without_s": 0.0355, "with_s": 0.03585}, {"without_s": 0.0355, "with_s": 0.0355}]
        self.assertIn("tenths of a millisecond, 0.3 % of", carrier_more_page.printed_in(pairs))
        pairs[1]["with_s"] = 0.035512
        self.assertEqual(carrier_more_page.printed_in(pairs), "")

    def test_what_was_not_measured_is_named(self):
        text = carrier_more_page.page([{"result": "error of pairs", "error": "Timeout"}])
        self.assertEqual(text.count("Not measured."), 4)
        self.assertIn("An error of pairs: Timeout.", text)

    def test_losses_that_end_before_the_last_return_are_named(self):
        row = {"equal": True, "steps": [80, 100], "out_and_in": 50, "refused": []}
        line = carrier_more_page.losses_line("cupy, MPS", {**row, "steps_then": 90})
        self.assertEqual(line[3:5], ["equal, not to its last return", 80])
        line = carrier_more_page.losses_line("cupy", {**row, "steps_then": 70})
        self.assertEqual(line[:4], ["cupy", "time-sliced", 50, "equal"])
        line = carrier_more_page.losses_line("cupy", {**row, "steps_then": 80, "rc": 0})
        self.assertEqual(line[3], "equal, to its end")

    def losses_of(self, **row):
        row = {"result": "losses jax", "steps": [80, 80], "refused": ["other-memory"], **row}
        return carrier_more_page.losses([row]).replace("\n", " ")

    def test_losses_that_differ_though_nothing_left(self):
        self.assertIn("not to be expected", self.losses_of(equal=False, out_and_in=0))
        text = self.losses_of(equal=True, out_and_in=0)
        self.assertIn("The memory of JAX has not left", text)
        self.assertNotIn("not to be expected", text)
        self.assertNotIn("has not left", self.losses_of(equal=False, out_and_in=50))
        self.assertEqual(carrier_mps_trial.first_difference("abcd", "abxy"), 2)
        self.assertIsNone(carrier_mps_trial.first_difference("abcd", "ab"))

    def test_few_turns_say_little(self):
        story = [[0.1, "RUNNING", "RUNNING"], [22.5, "SUSPENDED", "RUNNING"]]
        text = carrier_more_page.stops_sentence({"suspensions": [1, 0], "story": story})
        self.assertIn("1 of 2, 1 in all", text)
        self.assertIn("ran for 22 to 22 s", text.replace("\n", " "))
        self.assertIn("about 22 s: most ended by themselves", text.replace("\n", " "))
        text = carrier_more_page.stops_sentence({"suspensions": [2, 1], "story": story})
        self.assertIn("2 of 2, 3 in all", text)
        self.assertNotIn("little", text)

    def test_what_made_an_unused_task_give_way(self):
        row = {"result": "unused", "equal": True, "compared": 9, "steps_then": 5, "events": []}
        row.update(other_state="COMPLETED", settings={"unused_after": "5s"})
        self.assertIn("was not given, as by default", carrier_more_page.unused_sentence(row))
        row["settings"]["suspend_unused_after"] = "5s"
        self.assertEqual(carrier_more_page.unused_sentence(row), "")
        self.assertEqual(carrier_more_page.unused_sentence(None), "")

    def test_turns_that_were_cut_off_have_no_throughput(self):
        together = {"states": ["COMPLETED", "SUSPENDED"], "total_s": 20.0, "attempts": [1, 1]}
        together.update(suspensions=[0, 1], suspended_s=[0, 9.0], equal=[True, True])
        together["throughput_of_one_after_the_other"] = None
        text = carrier_more_page.turns_table({"each_s": 5.0}, together)
        self.assertIn("not known", text)
        self.assertNotIn("met", text)


class SlotsPage(unittest.TestCase):
    """tests/gpu/carrier_slots_page.py, where FIFO is first and last."""

    def test_ratios_are_to_the_mean_of_both(self):
        times = ((100.0, 80.0), (99.0, 40.0), (102.0, 84.0))
        rows = [
            {"result": "eight trainings", "way": way, "total_s": t, "shorter_half_mean_s": half}
            for way, (t, half) in zip(("fifo", "mps", "fifo"), times)
        ]
        ways = carrier_slots_page.named(rows)
        self.assertEqual(list(ways), ["fifo", "mps", "fifo, again"])
        mean = carrier_slots_page.mean_of_fifo(ways)
        self.assertEqual(mean, {"total_s": 101.0, "shorter_half_mean_s": 82.0})
        self.assertAlmostEqual(carrier_slots_page.ratios(ways["mps"], mean)[0], 99 / 101)
        rows[2]["total_s"] = None
        self.assertIsNone(carrier_slots_page.mean_of_fifo(ways)["total_s"])


class ArraysOfTrainings(unittest.TestCase):
    """tests/gpu/start_trial.py and its page, where an array and trainings by hand alternate."""

    BEST = "fixed-40"

    def pairs(self, *runs):
        results = [{"way": way, "total_s": total, "cut_off": 0} for way, total in runs]
        return start_page.neighbours(results, self.BEST)

    def said(self, began, ended, steps):
        """What a training prints that computes steps evenly from `began` to `ended`."""
        seconds = range(began, ended + 1)
        marks = [[second, steps * (second - began) // (ended - began)] for second in seconds]
        spent = {"batches_s": 2.0, "gpu_s": 1.0, "processor_s": 0.5, "switched_out": 7}
        progress = {"began": began, "computes": began, "ended": ended, "steps": marks, **spent}
        return f"fed {steps} steps\n{json.dumps(progress)}\n"

    def test_each_run_is_compared_with_its_neighbour(self):
        by_hand, colloc = (self.BEST, 40.0), ("array", 42.0)
        self.assertEqual(self.pairs(by_hand, colloc, colloc, by_hand), [1.05, 1.05])
        self.assertEqual(self.pairs(colloc, ("fixed-20", 50.0), by_hand), [1.05])
        self.assertEqual(self.pairs(colloc, colloc, by_hand), [1.05])
        self.assertEqual(self.pairs(by_hand, by_hand), [])

    def test_a_run_that_was_cut_off_is_no_neighbour(self):
        cut_off = {"way": "array", "total_s": 10.0, "cut_off": 3}
        by_hand = {"way": self.BEST, "total_s": 40.0, "cut_off": 0}
        self.assertEqual(start_page.neighbours([cut_off, by_hand], self.BEST), [])

    def test_the_interval_is_that_of_few_values(self):
        self.assertAlmostEqual(start_page.interval([1.0, 1.1]), 0.6355)
        results = [{"way": way, "total_s": 1.0, "cut_off": 0} for way in ("array", self.BEST)]
        self.assertEqual(start_page.pairs_table(results, self.BEST), [], "one pair has none")

    def test_steps_of_all_trainings_at_each_second(self):
        texts = [self.said(100, 104, 40), self.said(102, 104, 10), "died early\n"]
        found = start_trial.together(texts, 98)
        self.assertEqual(found["steps_at"], [0, 0, 0, 10, 20, 35, 50, 50])
        self.assertEqual([one["steps"] for one in found["trainings"]], [40, 10])
        self.assertEqual(found["trainings"][1]["computes"], 4)
        self.assertEqual(start_trial.together(["nothing of ours\n"], 98), {})

    def run_of(self, **more):
        texts = [self.said(100, 110, 100), self.said(102, 110, 100)]
        rows = [[second, "900", str(10 * second), "500", "1900"] for second in range(12)]
        host = [[second, 0.25, 0.0, 0.5] for second in range(12)]
        together = start_trial.together(texts, 100)
        return {"way": "array", "total_s": 10, "gpu": rows, "host": host, **together, **more}

    def test_where_the_time_went(self):
        row = start_page.spent_row(1, self.run_of())
        self.assertEqual(
            row,
            "| 1 array | 2.0 s | 10.0 s | 10.0 s | 22 steps/s | 20.0 ms | 10.0 ms | 60.0 ms"
            " | 5.0 ms | 60 % | 500 W | 1900 MHz | 25% | 0.50 ms | - |",
        )
        self.assertEqual(row.count("|"), len(start_page.SPENT_COLUMNS) + 1)

    def ends_of(self, shifts):
        """40 trainings of steps of 60 ms, of which two seconds are noted."""
        ends = [[5 + shift + 0.06 * k for k in range(15)] for shift in shifts]
        more = [[t + 8 for t in one] for one in ends]
        return {"trainings": [{"ends": a + b} for a, b in zip(ends, more)]}

    def test_trainings_that_are_in_step(self):
        together = self.ends_of([0.001 * (k % 5) for k in range(40)])
        self.assertGreater(start_page.in_step(together, 0, 20), 0.95)
        spread = self.ends_of([0.06 * k / 40 for k in range(40)])
        self.assertLess(start_page.in_step(spread, 0, 20), 0.1)
        self.assertIsNone(start_page.in_step(spread, 6, 12), "no whole second is between")
        self.assertIsNone(start_page.in_step({"trainings": [{}]}, 0, 20))

    def test_what_is_unknown_is_no_number(self):
        host = [[second, None, None, 0.5] for second in range(12)]
        row = start_page.spent_row(1, self.run_of(gpu=[[1, ""]], host=host))
        self.assertTrue(row.endswith("| 5.0 ms | - | - | - | - | 0.50 ms | - |"), row)

    def test_processors_that_tell_zeros_only_are_unknown(self):
        with mock.patch.object(start_trial.Processors, "read", return_value=[0] * 8):
            self.assertEqual(start_trial.Processors().since()[:2], [None, None])
        reads = [[0] * 8, [10, 0, 10, 60, 0, 0, 0, 20]]
        with mock.patch.object(start_trial.Processors, "read", side_effect=reads):
            self.assertEqual(start_trial.Processors().since()[:2], [0.4, 0.2])


def plain(text):
    """Without what prettier adds: spaces, lines of dashes, broken lines."""
    return "".join(character for character in text if character not in " \n-")


if __name__ == "__main__":
    unittest.main()
