# SPDX-License-Identifier: Apache-2.0
"""The report of `colloc bench` says what its folder says."""

import csv
import os
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "python"))
from colloc_report import bench  # noqa: E402

GROUPS = (
    "group,number,repeat,mix,sharing,gpu,gpu_name,way,tasks,failed,began_unix_s,total_s,energy_j\n"
)
TASKS = (
    "group,repeat,task,name,threads,exit_code,failure,started_unix_s,ended_unix_s,ready_unix_s,"
    "reserved_mib,epoch,epoch_s,"
    "epoch_from_unix_s,epoch_to_unix_s,samples\n"
)
ACTIVITY = (
    "smact",
    "smocc",
    "dram_active",
    "gract",
    "power_w",
    "mem_used_mib",
    "pcie_rx_mib_per_s",
    "pcie_tx_mib_per_s",
)
SUMMARY = (
    "group,repeat,mix,sharing,tasks,failed,total_s,epoch_s,samples_per_s,"
    + ",".join(ACTIVITY)
    + ",energy_j,joule_per_sample\n"
)
LOOKS = (
    "time_s,smact,smocc,dram_active,gract,power_w,mem_used_mib,pcie_rx_mib_per_s,"
    "pcie_tx_mib_per_s\n"
)


class Folder:
    def __init__(self, path):
        self.path, self.groups, self.tasks, self.summary = path, GROUPS, TASKS, SUMMARY
        os.mkdir(os.path.join(path, "looks"))

    def add(self, number, mix, sharing, names, epoch_s, total_s, failed=0):
        group = f"{mix} {sharing}"
        self.groups += (
            f"{group},{number},1,{mix},{sharing},0,NVIDIA H200,processes,"
            f"{len(names)},{failed},1000,{total_s},500\n"
        )
        rate = "" if failed or sharing == "serial" else len(names) * 100 / epoch_s
        self.summary += (
            f"{group},1,{mix},{sharing},{len(names)},{failed},{total_s},{epoch_s},"
            f"{rate},0.7,0.4,0.3,1,400,2024,9,3,500,"
        )
        self.summary += f"{400 / rate if rate else ''}\n"
        for i, name in enumerate(names):
            for epoch in (1, 2):
                seconds = 99 if epoch == 1 else epoch_s
                since = 1000 + (epoch - 1) * 10
                self.tasks += (
                    f"{group},1,{i},{name},100,0,,1000,1100,1001,900,{epoch},"
                    f"{seconds},{since},{since + seconds},100\n"
                )
        with open(
            os.path.join(self.path, "looks", f"{number}-1.csv"), "w", encoding="utf-8"
        ) as file:
            file.write(
                LOOKS
                + (
                    "1,0.1,0.1,0.1,0.1,100,1000,1,1\n11,0.8,0.4,0.3,1,400,2000,9,3\n12,0.6,0.4,0.3,"
                    "1,400,2048,,3\n500,0,0,0,0,70,0,0,0\n"
                )
            )

    def write(self):
        for name, text in (
            ("groups.csv", self.groups),
            ("tasks.csv", self.tasks),
            ("summary.csv", self.summary),
        ):
            with open(os.path.join(self.path, name), "w", encoding="utf-8") as file:
                file.write(text)


class Bench(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path, self.folder = folder.name, Folder(folder.name)

    def report(self):
        self.folder.write()
        with open(
            bench.draw(self.path, os.path.join(self.path, "report")), encoding="utf-8"
        ) as file:
            return file.read()

    def table(self, name):
        with open(os.path.join(self.path, name), encoding="utf-8") as file:
            return list(csv.reader(file))

    def test_the_second_epoch_is_what_counts(self):
        self.folder.add(1, "small", "streams", ["small"], 10, 20)
        self.folder.add(2, "small*2", "streams", ["small"] * 2, 16, 30)
        self.folder.add(3, "small*2", "mps", ["small"] * 2, 12.5, 28)
        self.report()
        epochs = self.table("report/epoch-small.csv")
        self.assertEqual(
            [row[:1] + row[1::3] for row in epochs],
            [["at once", "streams", "mps"], ["1", "10", ""], ["2", "16", "12.5"]],
        )
        self.assertEqual(
            [row[4] for row in self.table("report/throughput-small.csv")], ["mps", "", "1.6"]
        )
        self.assertEqual(
            [row[4] for row in self.table("report/energy-small.csv")], ["mps", "", "25"]
        )

    def test_mixes_against_one_after_the_other(self):
        self.folder.add(1, "small", "streams", ["small"], 10, 20)
        self.folder.add(2, "small+large", "serial", ["small", "large"], 10, 400)
        self.folder.add(3, "small+large", "mps", ["small", "large"], 20, 300)
        page = self.report()
        self.assertEqual(
            self.table("report/mixed.csv")[1][:2], ["small+large", "198"]
        )  # ready at 1001, ended at 1100
        self.assertIn(">-50.0<", page)
        self.assertIn(">2.00<", page)

    def test_without_a_ready_line_the_whole_time_counts(self):
        self.folder.add(1, "small+large", "serial", ["small", "large"], 10, 400)
        self.folder.add(2, "small+large", "mps", ["small", "large"], 20, 300)
        self.folder.tasks = self.folder.tasks.replace(",1000,1100,1001,", ",1000,1100,,")
        self.assertIn(">-25.0<", self.report())
        self.assertEqual(self.table("report/mixed.csv")[1][:2], ["small+large", "400"])

    def test_what_failed_is_said_and_epochs_that_are_missing_are_not_zero(self):
        self.folder.add(1, "small*2", "streams", ["small"] * 2, 10, 20, failed=1)
        self.folder.tasks = "\n".join(
            line for line in self.folder.tasks.split("\n") if ",1,1,small" not in line
        )
        self.folder.tasks += "small*2 streams,1,1,small,100,1,out of memory,1000,1100,,,,,,,\n"
        page = self.report()
        self.assertIn("small*2 streams (1 of 2)", page)


if __name__ == "__main__":
    unittest.main(verbosity=2)
