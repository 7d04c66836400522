#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Help, man page and completion come from the tables and work in the tools they are for."""

import os
import re
import shlex
import shutil
import subprocess
import unittest

from cli_case import COLLOC, CliCase
from fake_collocd import make_task

COLLOCD = os.path.join(os.path.dirname(COLLOC), "..", "daemon", "collocd")
COMPLETE = r"""
source "$1"
COMP_WORDS=("${@:2}")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_colloc 2>&1
printf '%s\n' "${COMPREPLY[@]}"
"""


class Help(CliCase):
    def names(self):
        return re.findall(r"^  ([\w-]+)  ", self.colloc("help"), re.M)

    def test_overview(self):
        for name in [
            "submit",
            "queue",
            "show",
            "cancel",
            "hold",
            "release",
            "logs",
            "wait",
            "history",
            "gpus",
            "serve",
        ]:
            self.assertIn(name, self.names())
        self.assertEqual(self.colloc(), self.colloc("--help"))

    def test_the_overview_has_groups(self):
        groups = {}
        for line in self.colloc("help").splitlines()[3:-1]:
            if line.endswith(":"):
                group = groups.setdefault(line[:-1], [])
            elif line:
                group.append(line.split()[0])
        self.assertEqual(groups["Submit tasks"][0], "submit")
        self.assertIn("cancel", groups["Control tasks"])
        names = [name for group in groups.values() for name in group]
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(names, self.names())
        self.assertGreater(len(groups), 4)
        self.assertLess(max(len(group) for group in groups.values()), 10)

    def test_every_command(self):
        for name in self.names():
            self.assertTrue(self.colloc("help", name).startswith(f"usage: colloc {name} "))
            if name not in ("serve", "help"):
                self.assertEqual(self.colloc("help", name), self.colloc(name, "--help"))
        for line in self.colloc("help", "submit").splitlines():
            self.assertLessEqual(len(line), 80)

    def test_interactive_commands_fit_on_a_screen(self):
        for name, own in (("shell", "--keep"), ("run", "--pty"), ("jupyter", "--idle")):
            text = self.colloc("help", name)
            self.assertLess(len(text.splitlines()), 60)
            for option in (own, "--gpus", "--memory", "--time", "colloc help submit"):
                self.assertIn(option, text)
            self.assertNotIn("--micro-batches", text)

    def test_common_options_are_shown_where_they_say_something(self):
        without_socket = {
            "check",
            "doctor",
            "record",
            "memnet",
            "simulate",
            "calibrate",
            "sweep",
            "replay",
            "slurm",
            "help",
            "version",
            "step",
            "serve",
            "container",
            "docker",
            "ssh-serve",
        }
        without_json = {
            "step",
            "calibrate",
            "bench",
            "sweep",
            "top",
            "help",
            "serve",
            "run",
            "shell",
            "attach",
            "jupyter",
            "container",
            "ssh-proxy",
            "ssh-serve",
            "docker",
        }
        page = self.colloc("help", "--completion=fish")
        for name in self.names():
            text = self.colloc("help", name)
            self.assertEqual("--socket=" not in text, name in without_socket, name)
            self.assertEqual("--controller=" not in text, name in without_socket, name)
            self.assertEqual("\n      --json" not in text, name in without_json, name)
            if name != "serve":
                self.assertEqual(
                    f"__fish_seen_subcommand_from {name}' -l json" in page,
                    name not in without_json,
                    name,
                )

    def test_mistakes(self):
        self.assertEqual(
            self.complaint("queu", code=2), "queu: unknown command: did you mean `colloc queue`?"
        )
        self.assertEqual(
            self.complaint("frobnicate", code=2),
            "frobnicate: unknown command: `colloc help` lists all commands",
        )
        for word, command in [
            ("kill", "cancel ID"),
            ("ls", "queue"),
            ("ps", "queue"),
            ("list", "queue"),
            ("status", "queue"),
            ("srun", "run -- COMMAND"),
            ("salloc", "shell"),
            ("stats", "history"),
            ("sbatch", "submit FILE"),
            ("restart", "rerun ID"),
            ("pause", "suspend ID"),
            ("me", "queue --user=NAME"),
            ("usage", "report"),
            ("why", "show ID"),
        ]:
            complaint = self.complaint(word, code=2)
            self.assertTrue(
                complaint.startswith(f"{word}: unknown command: `colloc {command}`"), complaint
            )
        self.assertIn("did you mean show?", self.complaint("help", "shwo", code=2))
        self.assertEqual(
            self.complaint("queue", "--jsno", code=2),
            "--jsno: no such option; did you mean --json?",
        )
        self.assertIn("\\x1b", self.complaint("\x1b[2J", code=2))

    def test_version(self):
        self.assertRegex(self.colloc("version"), r"^colloc \d+\.\d+\.\d+\n$")
        self.assertEqual(self.colloc("version"), self.colloc("--version"))

    def test_man_page_is_clean(self):
        page = self.colloc("help", "--man")
        for word in [
            "SH EXIT STATUS",
            "colloc submit",
            "\\-\\-dry\\-run",
            "\\-\\-gpus",
            "COLLOC_SOCKET",
        ]:
            self.assertIn(word, page)
        if not shutil.which("groff"):
            self.skipTest("no groff here")
        done = subprocess.run(
            ["groff", "-man", "-ww", "-Tutf8", "-z"],
            input=page,
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run(
                [COLLOC, "help"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
            )
        self.assertEqual(
            (done.returncode, done.stderr),
            (1, "colloc: cannot write the output: No space left on device\n"),
        )


class Serve(CliCase):
    def test_runs_collocd_with_the_words(self):
        path = self.write("collocd", '#!/bin/sh\necho "$@"\n')
        os.chmod(path, 0o700)
        program = os.path.join(self.folder, "colloc")
        shutil.copy(COLLOC, program)
        done = subprocess.run(
            [program, "--socket=/s", "serve", "--gpus", "-h", "a b"],
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(done.stdout, "--socket=/s --gpus -h a b\n", done.stderr)


class Bash(CliCase):
    def setUp(self):
        super().setUp()
        self.script = self.write("completion", self.colloc("help", "--completion=bash"))

    def complete(self, *words):
        environment = {
            **self.environment,
            "PATH": os.path.dirname(COLLOC) + ":" + os.environ["PATH"],
        }
        done = subprocess.run(
            ["bash", "-c", COMPLETE, "bash", self.script, "colloc", *words],
            capture_output=True,
            text=True,
            env=environment,
            cwd=self.folder,
            check=False,
        )
        return [line for line in done.stdout.splitlines() if line and "compopt" not in line]

    def test_commands(self):
        self.assertEqual(self.complete("sub"), ["submit"])
        self.assertEqual(self.complete("--json", "q"), ["queue"])
        self.assertEqual(self.complete("help", "hi"), ["history"])

    def test_options(self):
        self.assertEqual(self.complete("submit", "--gpus"), ["--gpus="])
        self.assertEqual(self.complete("logs", "--f"), ["--follow"])
        self.assertIn("--json", self.complete("queue", "-"))

    def test_values(self):
        self.assertEqual(self.complete("submit", "--sharing", "=", "m"), ["mps"])
        self.assertIn("horus", self.complete("submit", "--estimator", "="))
        self.assertEqual(
            self.complete("submit", "--policy", "="),
            ["exclusive", "rr", "magm", "lug", "mug", "first-fit", "best-fit", "predictive", "las"],
        )

    def test_files(self):
        self.write("train.sh", "")
        self.assertEqual(self.complete("submit", "tr"), ["train.sh"])
        self.assertEqual(self.complete("submit", "--summary", "=", "tr"), ["train.sh"])

    def test_task_ids(self):
        self.daemon.tasks = [make_task(12), make_task(13), make_task(20)]
        self.assertEqual(self.complete("cancel", "1"), ["12", "13"])
        self.assertEqual(self.complete("show", ""), ["12", "13", "20"])

    def test_ids_of_arrays_and_of_ended_tasks(self):
        self.daemon.tasks = [
            make_task(12),
            make_task(31, array_id=31, array_index=0),
            make_task(32, array_id=31, array_index=1),
            make_task(9, state="FAILED"),
        ]
        self.assertEqual(self.complete("cancel", "3"), ["31", "31_0", "31_1"])
        self.assertEqual(self.complete("cancel", "9"), [])
        for command in ("show", "logs", "rerun", "wait"):
            self.assertEqual(self.complete(command, "9"), ["9"], command)

    def test_values_are_those_of_the_command(self):
        self.assertEqual(self.complete("history", "--state", "=", "FA"), ["FAILED"])
        self.assertEqual(self.complete("queue", "--state", "=", "FA"), [])
        self.assertEqual(self.complete("queue", "--state", "=", "PE"), ["PENDING"])

    def test_actions(self):
        self.assertEqual(self.complete("mig", ""), ["plan", "apply", "reset"])
        self.assertEqual(self.complete("slurm", "s"), ["setup", "script"])
        self.assertEqual(self.complete("trace", "i"), ["import", "info"])
        self.write("january.txt", "")
        self.assertEqual(self.complete("trace", "import", "jan"), ["january.txt"])

    def test_programs(self):
        self.write("train.py", "")
        for words in (("submit", "--"), ("run",), ("record", "--")):
            self.assertIn("basename", self.complete(*words, "basena"), words)
            self.assertEqual(self.complete(*words, "python3", "tr"), ["train.py"], words)
        self.assertEqual(self.complete("submit", "--", "python3", "--gpu"), [])

    def test_no_daemon_is_silent(self):
        self.environment["COLLOC_SOCKET"] = "/none"
        self.assertEqual(self.complete("cancel", ""), [])


class Fish(CliCase):
    def test_each_line_is_one_command_with_a_description(self):
        """A quote in a help text ends no string: then fish refuses the whole file."""
        lines = self.colloc("help", "--completion=fish").splitlines()[2:]
        self.assertGreater(len(lines), 100)
        for line in lines:
            words = shlex.split(line)
            self.assertEqual(words[:3], ["complete", "-c", "colloc"], line)
            if "-d" in words:
                self.assertEqual(words.index("-d"), len(words) - 2, line)

    def test_fish_takes_it(self):
        if not shutil.which("fish"):
            self.skipTest("no fish here")
        script = self.write("colloc.fish", self.colloc("help", "--completion=fish"))
        done = subprocess.run(
            ["fish", "-c", f"source {script}; complete -C 'colloc mig '"],
            capture_output=True,
            text=True,
            env={**self.environment, "HOME": self.folder},
            timeout=60,
            check=False,
        )
        self.assertEqual(done.stderr, "")
        self.assertEqual(
            {line.split("\t")[0] for line in done.stdout.splitlines()}, {"plan", "apply", "reset"}
        )


class Settings(unittest.TestCase):
    """collocd's settings: a mistake names the setting, the value and what to give instead."""

    def run_collocd(self, *arguments):
        return subprocess.run([COLLOCD, *arguments], capture_output=True, text=True, timeout=60)

    def test_each_refuses_a_wrong_value(self):
        settings = re.findall(r"^  --([\w-]+)=(\S+)$", self.run_collocd("--help").stdout, re.M)
        self.assertGreater(len(settings), 30)
        for name, takes in settings:
            if takes in ("PATH", "FOLDER", "FILE", "LIST", "PROGRAM", "NODE", "TEXT") or name in (
                "estimator",
                "cudnn-user",
            ):  # which the program looks up that becomes it
                continue  # any text that is short enough
            with self.subTest(setting=name):
                done = self.run_collocd("--check", f"--{name}=x")
                self.assertNotEqual(done.returncode, 0)
                self.assertRegex(done.stderr, rf"{name}: invalid value 'x': give .+ \(.+\)")

    def test_other_mistakes(self):
        for argument, message in (
            ("--smact-max", "--smact-max: needs a value"),
            ("--smact-mx=1", "did you mean --smact-max"),
            ("run", "run: unexpected argument"),
        ):
            with self.subTest(argument=argument):
                self.assertRegex(self.run_collocd("--check", argument).stderr, message)

    def test_help_fits_a_terminal(self):
        for line in self.run_collocd("--help").stdout.splitlines():
            self.assertLessEqual(len(line), 88)


if __name__ == "__main__":
    unittest.main()
