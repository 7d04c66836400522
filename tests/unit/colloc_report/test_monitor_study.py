# SPDX-License-Identifier: Apache-2.0
"""The page of the monitoring study says what the raw measurements say."""

import csv
import json
import os
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "python"))
from colloc_report import monitor_study  # noqa: E402


def epoch(seconds):
    return {
        "epoch_s": seconds,
        "processor_s": seconds / 2,
        "resident_mib": 900,
        "reserved_mib": 100,
    }


def turn(monitor, seconds, **cost):
    return {"monitor": monitor, "epochs": [epoch(seconds)] * 3, **cost}


RAW = {
    "gpu": "NVIDIA H200, 580.1",
    "square": [
        {
            "blocks": 1,
            "threads": 32,
            "utilisation": 0.98,
            "gract": 0.91,
            "smact": 0.004,
            "smocc": None,
        }
    ],
    "sms": [
        {"sms": 66, "smact": 0.51, "utilisation": 1},
        {"sms": 132, "smact": 0.99, "utilisation": 1},
    ],
    "memory": [
        {
            "model": "small",
            "reserved_mib": 1000,
            "context_mib": 500,
            "truth_mib": 1500,
            "colloc_mib": 1530,
            "error": 0.02,
        }
    ],
    "light": {
        "model": "digits",
        "steps": 10,
        "turns": [
            turn("none", 2.0),
            turn("colloc, 1 s", 2.02, cores=0.001, resident_mib=9, bytes_per_s=1024),
            turn("none", 4.0),
            turn("colloc, 1 s", 4.0, cores=0.003, resident_mib=9, bytes_per_s=1024),
        ],
    },
    "light-profilers": {
        "model": "digits",
        "steps": 10,
        "turns": [
            turn("none", 2.0),
            {
                "monitor": "colloc profile, recording",
                "epochs": [epoch(2.0), epoch(2.0), epoch(2.6)],
                "until_trace_s": 7,
            },
        ],
    },
    "heavy-counters": {
        "turns": [
            {
                "monitor": tool,
                "counters": {"smact": smact, "smocc": 0.5, "dram_active": None, "power_w": 600},
            }
            for tool, smact in (("none", 0.91), ("nsys", 0.9))
        ]
    },
    "heavy": {"error": "no such model"},
}


class MonitorStudy(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        raw = os.path.join(self.folder, "raw.json")
        with open(raw, "w", encoding="utf-8") as file:
            json.dump(RAW, file)
        monitor_study.draw(raw, self.folder)

    def table(self, name):
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            return list(csv.reader(file))

    def test_what_is_not_known_is_not_zero(self):
        self.assertEqual(self.table("square.csv")[1], ["1x32", "98", "91", "0.4", ""])

    def test_slower_is_against_the_same_round(self):
        self.assertEqual(
            self.table("light-time.csv")[1:],
            [["none", "0", "0", "0"], ["colloc, 1 s", "0.5", "0", "1"]],
        )

    def test_a_recording_counts_though_most_epochs_are_outside_of_it(self):
        self.assertEqual(
            self.table("light-profilers-time.csv")[2],
            ["colloc profile, recording", "10", "10", "10"],
        )

    def test_counters_beside_each_tool(self):
        self.assertEqual(
            self.table("heavy-counters.csv")[1:],
            [["none", "91", "50", ""], ["nsys", "90", "50", ""]],
        )

    def test_the_page_tells_errors_and_costs(self):
        with open(os.path.join(self.folder, "index.html"), encoding="utf-8") as file:
            page = file.read()
        self.assertIn("-1.00 to +1.00 points", page)
        self.assertIn(">3600<", page.replace('class="number"', ""))
        self.assertNotIn("What monitors cost: the heavy training", page)


if __name__ == "__main__":
    unittest.main(verbosity=2)
