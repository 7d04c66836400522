# SPDX-License-Identifier: Apache-2.0
"""What the daemon's scheduler was fed, fed again: the same decisions, bit for bit."""

import json
import os
import re
import signal
import unittest

from daemon_case import DaemonCase, read, until


class Replay(DaemonCase):
    gpus = "2xA100-40GB"

    @property
    def settings(self):
        return {
            "record-inputs": os.path.join(self.folder, "inputs"),
            "sharing": "streams",
            "policy": "magm",
        }

    def replay(self, path=None, code=0):
        return self.colloc("replay", path or self.settings["record-inputs"], code=code)

    def result(self):
        return json.loads(self.colloc("replay", "--json", self.settings["record-inputs"]).stdout)

    def live_a_little(self):
        """Co-residents, a recovery, a cancelled task, one with a time limit, a restart."""
        large = [self.train_until_ended(36000, memory_mib=2000) for _ in range(2)]
        self.wait(self.train(3000, 100, policy="first-fit"), "COMPLETED")
        crashes = [self.train(24000, 200, memory_mib=2000) for _ in range(4)]
        until(lambda: any(self.task(task)["oom_count"] for task in crashes), "a crash")
        for _, end in large:
            end()
        self.wait(crashes[0])
        limited = self.train(2000, 1e6, time_limit_s=1)
        cancelled = self.submit("exec sleep 1000")
        self.restart(signal.SIGKILL)
        self.emulator("set", "1", "gpm=off")
        self.act("cancel", cancelled)
        self.wait(limited, "TIMEOUT")
        for task in crashes:
            self.wait(task)
        self.restart()
        self.wait(self.submit(gpus=2), "COMPLETED")

    def test_a_recorded_life_gives_the_same_decisions(self):
        self.live_a_little()
        self.stop()
        result = self.result()
        self.assertTrue(result["identical"], result)
        self.assertEqual(result["starts"], 3)
        self.assertGreater(result["samples"], 20)
        lines = read(self.settings["record-inputs"]).splitlines()
        self.assertEqual(
            result["decisions"], sum(line.startswith('{"decision":') for line in lines)
        )
        self.assertTrue(any('"RECOVER"' in line for line in lines))
        self.assertRegex(
            self.replay().stdout,
            r"^\d+ inputs \(\d+ samples\) of 3 starts of the daemon, \d+ decisions, identical",
        )
        self.tampered_is_caught(lines)

    def tampered_is_caught(self, lines):
        place = next(i for i, line in enumerate(lines) if '"decision":"PLACE"' in line)
        sample = next(
            i
            for i, line in enumerate(lines)
            if line.startswith('{"input":"SAMPLE","time') and i < place
        )
        exited = next(i for i, line in enumerate(lines) if '"EXITED"' in line and '"none"' in line)
        changed = {
            "another GPU": lines[:place]
            + [re.sub(r'"gpus":\[\d\]', '"gpus":[7]', lines[place])]
            + lines[place + 1 :],
            "no decision": lines[:place] + lines[place + 1 :],
            "one more": lines[:place] + [lines[place]] + lines[place:],
            "no samples before": lines[:sample]
            + [
                line
                for i, line in enumerate(lines[sample:], sample)
                if i > place or '"SAMPLE"' not in line
            ],
            "another ending": lines[:exited]
            + [lines[exited].replace('"none"', '"program"')]
            + lines[exited + 1 :],
        }
        for what, text in changed.items():
            path = self.write("changed", "\n".join(text) + "\n")
            self.assertIn("then a different decision", self.replay(path, code=1).stdout, what)
        for text, words in (
            ("garbage\n", "line 1: no line of recorded inputs"),
            ("", "nothing is recorded"),
            (
                re.sub(r'"statistic":\d+', '"statistic":1000', lines[0]),
                "setting statistic: out of range",
            ),
            (f"{lines[0]}\nT 0 9223372036854775807\n", "line 2: time:"),
            (
                lines[0] + '\n{"input":"TICK","time_us":9223372036854775807,"event":{}}\n',
                "line 2: time_us:",
            ),
            (f"{lines[0]}\nS 0 1 0 0 nan - - -\n", "line 2: 'nan' is no reading"),
            (lines[0].replace('"colloc_inputs":2', '"colloc_inputs":3'), "by a newer colloc"),
            (
                "\n".join([lines[0], "garbage", *lines[1:]]) + "\n",
                "line 2: no line of recorded inputs",
            ),
            ("\n".join(lines[:9]) + "\nD 1\n", "line 10"),
        ):
            self.assertIn(words, self.replay(self.write("changed", text), code=2).stderr)
        self.assertIn("No such file", self.replay("/nowhere/x", code=2).stderr)

    def test_a_line_that_was_cut_by_the_daemons_end(self):
        self.wait(self.submit(), "COMPLETED")
        self.stop(signal.SIGKILL)
        with open(self.settings["record-inputs"], "a", encoding="utf-8") as file:
            file.write('{"input":"SAMP')
        self.assertIn("it is ignored", self.replay().stdout)
        self.start()
        self.wait(self.submit(), "COMPLETED")
        self.stop()
        result = self.result()
        self.assertTrue(result["identical"] and result["cut"] and result["starts"] == 2, result)

    def test_a_recording_has_an_end(self):
        limit = 16384  # more than the settings of two starts
        self.restart(record_inputs_max="16KiB")
        until(lambda: os.path.getsize(self.settings["record-inputs"]) > limit)
        self.wait_log("recorded no further: the file has the size of record-inputs-max")
        self.wait(self.submit(), "COMPLETED")
        self.assertLess(os.path.getsize(self.settings["record-inputs"]), limit + 5000)
        self.assertTrue(self.result()["identical"])

    def test_a_file_that_cannot_be_written(self):
        self.stop()
        status, words = self.run_daemon(record_inputs="/nowhere/inputs")
        self.assertEqual(status, 1)
        self.assertIn("/nowhere/inputs: No such file", words)


if __name__ == "__main__":
    unittest.main()
