#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What colloc shows: tables on narrow and wide terminals and in pipes, JSON, colours."""

import json
import time
import unittest

from cli_case import CliCase
from fake_collocd import make_task

WHY = "GPU 2: SMACT 83 % over 80 %; GPU 3: 1.2 GiB short"
LONG = "a-training-with-a-very-long-name-that-no-one-can-read"


class Queue(CliCase):
    def setUp(self):
        super().setUp()
        self.daemon.tasks = [
            make_task(
                11,
                name="resnet50",
                state="RUNNING",
                started_at=1700000100,
                exec_s=3725.2,
                gpus=["0", "2"],
                gpus_requested=2,
                need_mib=12083.2,
            ),
            make_task(
                12, name=LONG, user="ghopper", reason="Resources", reason_text=WHY, need_mib=40000
            ),
            make_task(13, reason="JobHeldUser"),
        ]

    def test_narrow(self):
        lines = self.screen_lines(80, "queue")
        self.assertEqual(
            lines[0].split(),
            ["ID", "NAME", "USER", "STATE", "TIME", "GPUS", "MEMORY", "GPU(REASON)"],
        )
        self.assertEqual(
            lines[1].split(),
            ["11", "resnet50", "ada", "RUNNING", "1:02:05", "2", "11.8", "GiB", "0,2"],
        )
        self.assertEqual(len(lines), 5, "one line a task, and one for a long reason")
        self.assertRegex(lines[2], r"^12 a-training[a-z-]*\.\.\. ghopper .* \(Resources\)$")
        self.assertEqual(lines[3], f"    {WHY}")
        self.assertTrue(lines[-1].endswith(" (JobHeldUser)"))

    def test_the_last_reason_is_below_too(self):
        for columns in (60, 80):
            self.daemon.tasks = [make_task(12, reason="Resources", reason_text=f"{WHY}; {WHY}")]
            lines = self.screen_lines(columns, "queue")
            self.assertTrue(lines[1].rstrip().endswith("(Resources)"), lines[1])
            self.assertEqual(" ".join(line.strip() for line in lines[2:]), f"{WHY}; {WHY}")

    def test_a_word_longer_than_the_terminal_stays(self):
        self.daemon.tasks = [make_task(12, reason="R" * 90, reason_text="x" * 90)]
        self.assertIn("x" * 20, self.screen(60, "queue"))

    def test_chosen_columns(self):
        lines = self.screen_lines(60, "queue", "-o", "id,started,time,sharing,gpu")
        self.assertEqual(lines[0].split(), ["ID", "STARTED", "TIME", "SHARING", "GPU"])
        self.assertEqual(lines[1].split(), ["11", "2023-11-14", "1:02:05", "mps", "0,2"])
        self.assertNotIn("short", self.daemon.requests[-1][1], "sharing is in whole tasks only")
        said = self.complaint("queue", "--output=colour", code=2)
        names = said.split("give some of ")[1].strip().split(", ")
        for command in ("queue", "history"):
            helped = " ".join(self.colloc(command, "--help").split())
            self.assertIn(f"columns to show: {', '.join(names)}", helped)
        for name in names:
            self.assertEqual(len(self.screen_lines(200, "queue", "-o", name)), 4, name)
        self.assertIn("leave out --output", self.complaint("queue", "--json", "-oid", code=2))

    def test_a_suspended_task_says_why(self):
        text = "suspended by its user; `colloc resume 14` lets it go on"
        self.daemon.tasks = [
            make_task(14, state="SUSPENDED", reason="SuspendedByUser", reason_text=text),
            make_task(15, state="PAUSED", reason="SuspendedByUser", reason_text=text, gpus=["1"]),
        ]
        lines = self.screen_lines(140, "queue")
        self.assertTrue(lines[1].endswith(f" (SuspendedByUser) {text}"), lines[1])
        self.assertTrue(lines[2].endswith(" 1"), lines[2])

    def test_reasons_do_not_grow_with_the_gpus(self):
        why = "; ".join(f"GPU {i}: task 328 is still taking its memory" for i in range(64))
        self.daemon.tasks = [
            make_task(11, reason="Resources", reason_text=why, command="python 'a b.py'")
        ]
        lines = self.screen_lines(80, "queue")
        self.assertLessEqual(len(lines), 6)
        self.assertTrue(lines[-1].endswith("..."), lines)
        self.assertIn("GPU 63: task 328", self.colloc("queue"))

    def test_long_has_the_command(self):
        self.daemon.tasks[1][
            "command"
        ] = "python 'a b.py' --epochs 100 --a-long-option=with-a-value-that-is-long"
        lines = self.screen_lines(80, "queue", "-l")
        self.assertEqual(lines[0].split()[-2:], ["GPU(REASON)", "COMMAND"])
        self.assertRegex(lines[2], r" \(Resources\) +python 'a .*\.\.\.$")
        self.assertTrue(lines[1].endswith(" -"))
        self.assertTrue(self.colloc("queue", "--long").splitlines()[2].endswith("-that-is-long"))

    def test_wide(self):
        lines = self.screen_lines(160, "queue")
        self.assertEqual(len(lines), 4)
        self.assertTrue(lines[2].endswith(f"(Resources) {WHY}"), lines[2])

    def test_pipe_has_everything(self):
        lines = self.colloc("queue").splitlines()
        self.assertEqual(len(lines), 4)
        self.assertIn(LONG, lines[2])
        self.assertIn("ghopper", lines[2])
        self.assertTrue(lines[2].rstrip().endswith(f"(Resources) {WHY}"))
        self.assertNotIn("\x1b", "".join(lines))

    def test_json_is_the_reply(self):
        self.assertEqual(json.loads(self.colloc("queue", "--json")), {"tasks": self.daemon.tasks})
        self.assertEqual(json.loads(self.colloc("--json", "queue")), {"tasks": self.daemon.tasks})

    def test_colours(self):
        self.assertIn("\x1b[32mRUNNING", self.screen(80, "queue"))
        self.assertNotIn("\x1b[", self.screen(80, "queue", NO_COLOR="1"))
        self.assertNotIn("\x1b[", self.screen(80, "queue", TERM="dumb"))

    def test_names_cannot_drive_the_terminal(self):
        self.daemon.tasks = [
            make_task(1, name="a\x1b[2Jb\nc\x9b", reason="R\x1b]0;x\x07", reason_text="x\x1b[31my")
        ]
        screen = self.screen(160, "queue", NO_COLOR="1")
        self.assertEqual([c for c in screen if (c < " " and c != "\n") or c == "\x9b"], [])
        self.assertIn("\\x1b[2J", screen)

    def test_empty(self):
        self.daemon.tasks = []
        self.assertEqual(self.colloc("queue"), "No tasks.\n")
        self.assertEqual(json.loads(self.colloc("queue", "--json")), {"tasks": []})

    def test_query(self):
        self.colloc("queue", "--user=a&b c", "--state", "RUNNING", "-n5")
        self.assertEqual(
            self.daemon.requests[-1][1],
            "/v1/tasks?state=RUNNING&user=a%26b%20c&limit=5&fold=1&short=1&page=2000",
        )

    def test_the_limit_is_of_all_tasks(self):
        self.daemon.tasks = [make_task(number) for number in (1, 2, 3)]
        self.assertEqual(len(self.colloc("queue", "-n", "2").splitlines()), 3)
        self.assertEqual(len(json.loads(self.colloc("queue", "-n", "2", "--json"))["tasks"]), 2)

    def test_tasks_that_change_between_two_pages(self):
        running, waiting = {"state": "RUNNING"}, {"state": "PENDING"}
        array = {"array_id": 5, "array_count": 3, **waiting}
        self.daemon.pages = [
            (200, {"tasks": [make_task(1, **running), make_task(2, **waiting)], "next": "2.2.9"}),
            (
                200,
                {
                    "tasks": [make_task(4, **waiting), make_task(1, **waiting)],
                    "next": "2.4.9",
                    "warning": "The event log has lost something",
                },
            ),
            (200, {"tasks": [make_task(2, **array), make_task(9, state="FAILED", ended_at=1)]}),
            (200, {"tasks": [make_task(2, **running), make_task(3, **running), make_task(8)]}),
        ]
        done = self.run_colloc("queue", "--json")
        listed = [(task["id"], task["state"]) for task in json.loads(done.stdout)["tasks"]]
        self.assertEqual(
            listed,
            [
                (3, "RUNNING"),
                (1, "RUNNING"),
                (2, "PENDING"),
                (4, "PENDING"),
                (2, "PENDING"),
                (9, "FAILED"),
            ],
        )
        self.assertEqual(done.stderr, "colloc: The event log has lost something\n")
        self.assertEqual(
            [path.partition("after=")[2] for _, path, _ in self.daemon.requests],
            ["", "2%2E2%2E9", "2%2E4%2E9", ""],
        )

    def test_tasks_of_an_array_come_once_in_several_pages(self):
        def one(task, state="RUNNING"):
            return make_task(task, state=state, array_id=10, array_index=task - 10)

        def entry(first, indices, count):
            members = {"array_indices": indices, "array_count": count, "array_limit": 0}
            return {**one(first, "PENDING"), **members}

        self.daemon.pages = [
            (200, {"tasks": [one(11), one(12), entry(13, "3-5", 3)], "next": "2.15.9"}),
            (200, {"tasks": [entry(12, "2,6-8", 4)], "next": "2.18.9"}),
            (200, {"tasks": [entry(14, "4", 1), make_task(19)]}),
            (200, {"tasks": [one(13), one(14), one(20), make_task(19)]}),
        ]
        listed = json.loads(self.colloc("queue", "--json"))["tasks"]
        self.assertEqual(
            [
                (task.get("array_indices", task["id"]), task.get("array_count", 1))
                for task in listed
            ],
            [(20, 1), (11, 1), (12, 1), ("3-5", 3), ("6-8", 3), (19, 1)],
        )

    def test_ended_tasks_in_pages_are_read_once(self):
        ended = [make_task(task, state="FAILED", ended_at=1) for task in (3, 2, 1)]
        self.daemon.pages = [
            (200, {"tasks": ended[:2], "next": "3.2.9"}),
            (200, {"tasks": ended[2:]}),
        ]
        listed = json.loads(self.colloc("queue", "--json", "--state=all"))["tasks"]
        self.assertEqual(listed, ended)
        self.assertEqual(len(self.daemon.requests), 2)

    def test_a_page_that_is_refused(self):
        refusal = {"error": {"code": "x", "message": "the second page is refused"}}
        for words in (["queue"], ["mig", "plan"], ["report"], ["cancel", "--mine"]):
            self.daemon.pages = [
                (200, {"tasks": [make_task(1)], "next": "2.1.9"}),
                (500, refusal),
            ]
            self.assertEqual(self.complaint(*words, code=1), "the second page is refused")

    def test_a_selection_has_all_pages(self):
        self.daemon.tasks = [make_task(1), make_task(2)]
        self.daemon.pages = [
            (200, {"tasks": self.daemon.tasks[:1], "next": "2.1.9"}),
            (200, {"tasks": self.daemon.tasks[1:]}),
        ]
        self.assertEqual(self.colloc("cancel", "--mine"), "Task 1 CANCELLED\nTask 2 CANCELLED\n")

    def test_an_unknown_user(self):
        self.daemon.tasks = []
        text = "there is no user 'no-such-user' on this machine"
        for words in (("queue", "--user=no-such-user"), ("history", "--user=no-such-user")):
            done = self.run_colloc(*words)
            self.assertEqual(done.returncode, 0)
            self.assertIn(text, done.stderr)
        self.assertIn(text, self.complaint("cancel", "--user=no-such-user", code=1))
        self.assertEqual(self.run_colloc("queue", "--user=0").stderr, "")


class Show(CliCase):
    def setUp(self):
        super().setUp()
        self.task = make_task(
            7,
            name="bert\x1b[1m\x9b",
            state="FAILED",
            reason="NonZeroExitCode",
            exit_code=3,
            need_mib=2048,
            started_at=1700000060,
            script="#!/bin/sh\nexit 3\n",
            arguments=["a  b\x07"],
            attempt_count=1,
            events=[{"at": 1700000000, "event": "SUBMIT", "text": "by ada"}],
        )
        self.daemon.tasks = [self.task]

    def test_story(self):
        lines = self.colloc("show", "7").splitlines()
        self.assertIn("Name         bert\\x1b[1m\\x9b", lines)
        self.assertIn("Memory req.  2.0 GiB", lines)
        self.assertIn("Started      2023-11-14 22:14:20", lines)
        self.assertIn("2023-11-14 22:13:20  SUBMIT     by ada", lines)
        self.assertIn("    exit 3", lines)
        self.assertEqual(lines[-2:], ["Arguments:", "    a  b\\x07"])
        self.assertNotIn("Signal", "".join(lines))

    def test_long_text_on_a_terminal(self):
        self.task["reason_text"] = WHY + "; " + WHY
        lines = self.screen_lines(80, "show", "7")
        first = next(i for i, line in enumerate(lines) if "GPU 2" in line)
        self.assertEqual(
            " ".join(line.strip() for line in lines[first : first + 2]), self.task["reason_text"]
        )
        self.assertTrue(lines[first + 1].startswith(" " * 13 + "% over 80 %"), lines[first + 1])

    def test_json_is_the_task(self):
        self.assertEqual(json.loads(self.colloc("show", "7", "--json")), self.task)

    def test_no_such_task(self):
        self.assertEqual(self.complaint("show", "8", code=1), "task 8: no such task")
        self.assertEqual(
            self.complaint("show", "x7", code=2),
            "x7: not a task id such as 12, 12_7 or 12_[3-9]: `colloc queue` lists the ids",
        )
        self.assertIn("missing argument", self.complaint("show", code=2))
        self.assertIn("unexpected argument '8'", self.complaint("show", "7", "8", code=2))


class History(CliCase):
    def test_ended_tasks(self):
        self.daemon.tasks = [
            make_task(1),
            make_task(
                2,
                state="COMPLETED",
                reason="None",
                exit_code=0,
                mem_peak_mib=900,
                smact_mean=0.614,
                energy_j=1234567,
                oom_count=1,
                attempt_count=2,
                started_at=1700000100,
                ended_at=1700003600.5,
                attempts=[{"gpus": ["0"]}, {"gpus": ["1", "2"]}],
            ),
            make_task(
                3,
                name=LONG,
                state="OUT_OF_MEMORY",
                reason="OutOfMemory",
                exit_code=1,
                exec_s=61,
                reason_text="alone on GPU 1 and still out of memory",
                oom_count=2,
            ),
        ]
        narrow = self.screen_lines(80, "history")
        self.assertEqual(len(narrow), 3)
        self.assertEqual(
            narrow[0].split(), ["ID", "NAME", "USER", "STATE", "ENDED", "RUN", "GPU", "REASON"]
        )
        self.assertEqual(
            narrow[1].split(),
            ["2", "task", "ada", "COMPLETED", "2023-11-14", "0:00", "1,2", "1xOOM"],
        )
        self.assertIn(f" {LONG[:5]}", narrow[2])
        self.assertRegex(narrow[2], r" 2xOOM: alone on .*\.\.\.$")
        lines = self.screen_lines(160, "history", "-n3")
        self.assertEqual(len(lines), 3)
        self.assertEqual(
            lines[1].split(),
            [
                "2",
                "task",
                "ada",
                "COMPLETED",
                "2023-11-14",
                "2023-11-14",
                "1:15",
                "0:00",
                "1,2",
                "900.0",
                "MiB",
                "61",
                "%",
                "342.9",
                "Wh",
                "0:0",
                "1xOOM",
            ],
        )
        self.assertTrue(
            lines[2].endswith("1:0  2xOOM: alone on GPU 1 and still out of memory"), lines[2]
        )
        self.assertEqual(self.daemon.requests[-1][1], "/v1/tasks?state=ended&limit=3")
        self.assertEqual(
            [task["id"] for task in json.loads(self.colloc("history", "--json"))["tasks"]], [2, 3]
        )
        self.assertEqual(
            self.colloc("history", "-o", "reason,name,energy").splitlines()[1].split(),
            ["1xOOM", "task", "342.9", "Wh"],
        )
        self.assertEqual(
            self.colloc("history", "--csv", "-o", "id,ended,gpu,reason,energy"),
            'id,ended_at,gpu,reason,energy_j\n2,1700003600.5,"1,2",1xOOM,1234567\n'
            "3,,,2xOOM: alone on GPU 1 and still out of memory,\n",
        )
        self.assertEqual(len(self.colloc("history", "--csv").splitlines()[0].split(",")), 23)

    def test_no_cell_is_a_formula(self):
        names = {
            "=1+1": "'=1+1",
            "+cmd|x": '"\'+cmd|x"',
            "-x,y": '"\'-x,y"',
            "@sum": "'@sum",
            "\tx": "'\tx",
            "-1.5e3": "-1.5e3",
            "+7": "+7",
            "a=1": "a=1",
            "-": "'-",
        }
        self.daemon.tasks = [make_task(2, state="FAILED", name=name, oom_count=0) for name in names]
        lines = self.colloc("history", "--csv", "-o", "name").split("\n")
        self.assertEqual(lines[1:-1], list(names.values()))

    def test_energy_is_what_people_pay_for(self):
        for joules, shown in [
            (50, "0.01 Wh"),
            (68700, "19.1 Wh"),
            (3599999, "1000.0 Wh"),
            (4500000, "1.25 kWh"),
        ]:
            self.daemon.tasks = [make_task(2, state="COMPLETED", energy_j=joules)]
            self.assertEqual(self.colloc("history", "-o", "energy").splitlines()[1].strip(), shown)

    def test_query(self):
        def asked(*words):
            self.colloc("history", *words)
            return self.daemon.requests[-1][1].removeprefix("/v1/tasks?")

        self.assertEqual(asked("-s", "failed", "-u", "ada"), "state=failed&limit=20&user=ada")
        self.assertEqual(
            asked("--since=1970-01-02 01:00", "--until", "@90001"),
            "state=ended&limit=10000&since=90000&until=90001",
        )
        before = time.time()
        since = int(asked("--since=2h", "-n5").removeprefix("state=ended&limit=5&since="))
        self.assertTrue(int(before) - 7200 <= since <= time.time() - 7200)

    def test_mistakes_reach_no_daemon(self):
        for words, text in [
            (["--since=soon"], "--since=soon: invalid time: give 2026-11-20"),
            (
                ["--state=running"],
                "--state=running: not a final state: give one of COMPLETED, FAILED",
            ),
            (["-o", "id,colour"], "--output: 'colour': no such field: give some of id, name"),
            (["-o", "id,"], "--output: '': no such field"),
            (["--json", "--csv"], "--json prints all fields"),
        ]:
            self.assertIn(text, self.complaint("history", *words, code=2))
        self.assertEqual(self.daemon.requests, [])


class Gpus(CliCase):
    def setUp(self):
        super().setUp()
        known = {
            "index": "0",
            "uuid": "GPU-0",
            "name": "NVIDIA A100-SXM4-40GB",
            "health": "ok",
            "health_text": "",
            "mem_total_mib": 40960,
            "mem_used_mib": 512.5,
            "smact": 0.5,
            "smact_window": 0.826,
            "power_w": 251.4,
            "temperature_c": 61,
            "tasks": [{"id": 4}, {"id": 9}],
            "foreign_processes": [
                {
                    "pid": 4194304,
                    "mem_used_mib": 33000,
                    "uid": 4242424,
                    "name": "python3",
                    "started_at": int(time.time()) - 3725,
                },
                {
                    "pid": 4194305,
                    "mem_used_mib": None,
                    "uid": None,
                    "name": None,
                    "started_at": None,
                },
            ],
            "hold_off": "task 9 is still taking its memory",
        }
        lost = {
            **dict.fromkeys(known),
            "index": "1",
            "health": "lost",
            "health_text": "fell off the bus",
            "tasks": [],
        }
        self.daemon.gpus = [known, lost]

    def test_unknown_is_no_zero(self):
        lines = self.screen_lines(160, "gpus")
        self.assertIn("83 %", lines[1])
        self.assertIn(" 4,9 ", lines[1])
        self.assertIn(
            "task 9 is still taking its memory; external 4242424: python3 (pid 4194304) 32.2 GiB, "
            "1:02:0",
            self.colloc("gpus").splitlines()[1],
        )
        self.assertTrue(
            self.colloc("gpus").splitlines()[1].endswith(" old; external pid 4194305 (ended)")
        )
        self.assertEqual(
            lines[-1].split(),
            ["1", "-", "lost", "-", "-", "-", "-", "-", "fell", "off", "the", "bus"],
        )

    def test_narrow(self):
        self.assertIn("0.5/40.0 GiB", self.screen_lines(80, "gpus")[1])

    def test_json(self):
        for process in self.daemon.gpus[0]["foreign_processes"]:
            process["user"], process["command"] = (
                None if process["uid"] is None else "4242424",
                None,
            )
            process["container"] = None
        self.assertEqual(json.loads(self.colloc("gpus", "--json"))["gpus"], self.daemon.gpus)


class Info(CliCase):
    def test_info(self):
        shown = self.colloc("info")
        self.assertIn("version              0.1.0\n", shown)
        self.assertIn("kinds not known      none\n", shown)
        self.assertIn("given kinds          none\n", shown)
        self.assertIn("log loss             none\n", shown)
        self.assertIn("  window             90 s\n", shown)
        self.assertIn("  margin             512.0 MiB\n", shown)
        self.assertIn("  memory available   23.5 GiB\n", shown)
        found = json.loads(self.colloc("info", "--json"))
        self.assertEqual((found["api"], found["log_loss"]), (1, None))
        self.assertEqual(found["host"]["memory_available_mib"], 24105.12891)


if __name__ == "__main__":
    unittest.main()
