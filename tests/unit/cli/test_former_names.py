# SPDX-License-Identifier: Apache-2.0
"""The former name of the policy predictive is accepted wherever users have it."""

import os
import subprocess
import unittest

from cli_case import CliCase

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
TRACE = os.path.join(SOURCE, "data", "traces", "philly-90.txt")
FORMER, NAME = "foresee", "predictive"  # check-words: alias


class FormerNames(CliCase):
    def answer(self, *words, code=0):
        done = self.run_colloc(*words)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout

    def test_simulate(self):
        former, name = (
            self.answer("simulate", f"--trace={TRACE}", "--json", f"--policy={policy}")
            for policy in (FORMER, NAME)
        )
        self.assertEqual(former, name)

    def test_sweep(self):
        former, name = (
            self.answer("sweep", f"--trace={TRACE}", f"--policy={policy}")
            for policy in (FORMER, NAME)
        )
        self.assertEqual(former.replace(f",{FORMER},", f",{NAME},"), name)

    def test_recorded_inputs(self):
        with open(
            os.path.join(SOURCE, "tests", "data", "inputs", "life"), encoding="utf-8"
        ) as file:
            recorded = file.read()
        self.assertIn('"policy":"magm"', recorded)
        answers = {}
        for policy in (FORMER, NAME):
            path = self.write(
                f"inputs-{policy}", recorded.replace('"policy":"magm"', f'"policy":"{policy}"')
            )
            done = self.run_colloc("replay", path)
            self.assertIn(done.returncode, (0, 1), done.stderr)
            answers[policy] = done.stdout
        self.assertEqual(answers[FORMER], answers[NAME])

    def test_task_file_and_command_line(self):
        script = self.write("train.sh", f"#!/bin/bash\n#COLLOC --policy={FORMER}\ntrue\n")
        self.answer("submit", script)
        self.answer("submit", f"--policy={FORMER}", "--", "true")
        self.assertEqual(
            [body["policy"] for method, _, body in self.daemon.requests if method == "POST"],
            [FORMER, FORMER],
        )

    def test_configuration(self):
        for policy, code in ((FORMER, 0), (NAME, 0), ("forsee", 2)):
            path = self.write("collocd.yaml", f"policy: {policy}\n")
            for words in ([f"--policy={policy}"], [f"--config={path}"]):
                done = subprocess.run(
                    [os.environ["COLLOCD"], "--check", *words],
                    capture_output=True,
                    text=True,
                    timeout=60,
                    check=False,
                )
                self.assertEqual(done.returncode != 0, code != 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
