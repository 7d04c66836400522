# SPDX-License-Identifier: Apache-2.0
"""colloc doctor over the emulator, with its troubles, and on a machine without a driver."""
import json
import os
import re
import shutil
import subprocess
import unittest

from daemon_case import LIMIT_S, program
from emulator_case import EmulatorCase

CHECKS = (
    "nvml driver gpus persistence gpm dcgm mps mig left-memory cgroup limits gpu-filter outside "
    "host-memory carrier-pool suspend move preload"
).split()


class Doctor(EmulatorCase):
    def run_doctor(self, *words):
        return subprocess.run(
            [program("colloc"), "doctor", *words],
            env=self.env,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )

    def checks(self):
        done = self.run_doctor("--json")
        self.assertEqual(done.stderr, "")
        checks = json.loads(done.stdout)["checks"]
        self.assertEqual([check["name"] for check in checks], CHECKS)
        for check in checks:
            self.assertEqual(set(check), {"name", "ok", "detail", "advice"})
            self.assertTrue(check["detail"], check)
            self.assertEqual(bool(check["advice"]), not check["ok"], check)
        self.assertEqual(done.returncode, 0 if all(check["ok"] for check in checks) else 1)
        return {check["name"]: check for check in checks}

    def failed(self):
        """Those that fail, but for what the machine under the emulator has or lacks."""
        return {name for name, check in self.checks().items() if not check["ok"]} - {
            "cgroup",
            "limits",
            "gpu-filter",
            "outside",
            "host-memory",
            "carrier-pool",
            "preload",
        }

    def assert_fails(self, name, *words):
        check = self.checks()[name]
        self.assertFalse(check["ok"], check)
        for word in words:
            self.assertIn(word, check["detail"] + check["advice"])


class OnGpus(Doctor):
    def test_all_is_well(self):
        self.assertEqual(self.failed(), set())
        checks = self.checks()
        self.assertIn("580", checks["driver"]["detail"])
        self.assertIn("suspended and resumed", checks["suspend"]["detail"])
        self.assertIn("moved to another GPU", checks["move"]["detail"])

    def test_an_old_driver_suspends_nothing(self):
        self.emulator("set", "machine", "cuda=12040")
        self.assertEqual(self.failed(), {"suspend", "move"})
        self.assert_fails("suspend", "570")
        self.emulator("set", "machine", "cuda=12080")
        self.assertEqual(self.failed(), set())  # the emulator's 12.8 has the same restore

    def test_a_full_gpu(self):
        self.emulator("set", "1", "foreign-mib=143000")
        self.assertEqual(self.failed(), {"move"})
        self.assert_fails("move", "reserve", "OUT_OF_MEMORY")

    def test_without_gpm_dcgm_is_there(self):
        self.emulator("set", "0", "gpm=off")
        self.assertEqual(self.failed(), {"gpm"})
        self.assertRegex(self.run_doctor().stdout, r"dcgm +ok +libdcgm\.so\.4 with ")

    def test_dcgmi_where_the_library_fails(self):
        self.env["COLLOC_EMULATOR_DCGM"] = "dcgmInit:refuse"
        self.assertRegex(
            self.run_doctor().stdout, r"dcgm +ok +/.*/dcgmi \(libdcgm\.so\.4: dcgmInit"
        )

    def test_no_mps(self):
        self.env["PATH"] = os.environ["PATH"]
        if shutil.which("nvidia-cuda-mps-control", path=self.env["PATH"]):
            self.skipTest("this machine has MPS")
        self.assertEqual(self.failed(), {"mps"})

    def test_a_table(self):
        done = self.run_doctor()
        self.assertRegex(done.stdout, r"CHECK +RESULT +DETAIL")
        self.assertRegex(done.stdout, r"suspend +ok ")


class OneGpu(Doctor):
    gpus = "1xA100-40GB"

    def test_nothing_to_move_to(self):
        self.assertEqual(self.failed(), set())
        self.assertIn("one GPU", self.checks()["move"]["detail"])


class WithoutDriver(Doctor):
    def test_no_library(self):
        self.env.pop("LD_LIBRARY_PATH")
        if not self.checks()["nvml"]["ok"]:
            self.assertLessEqual({"nvml", "driver", "gpus", "suspend", "move"}, self.failed())
            self.assert_fails("nvml", "install the NVIDIA driver")
            table = self.run_doctor().stdout
            self.assertEqual(len(re.findall(r"install the NVIDIA\s+driver", table)), 1, table)
            self.assertRegex(table, r"suspend +failed .*Advice: as for nvml")
            self.assert_fails("suspend", "no GPU")

    def test_a_library_without_a_driver(self):
        self.env.pop("COLLOC_EMULATOR")
        self.assertLessEqual({"driver", "gpus", "suspend", "move"}, self.failed())
        self.assertTrue(self.checks()["nvml"]["ok"])


if __name__ == "__main__":
    unittest.main()
