# SPDX-License-Identifier: Apache-2.0
"""The defaults of collocd's settings: shown as they are, and accepted as they are shown."""

import os
import re
import subprocess
import tempfile
import unittest

COLLOCD = os.environ["COLLOCD"]
PLACES = (
    "socket",
    "state-dir",
    "gpus",
    "record-inputs",
    "nvml-library",
    "dcgmi",
    "shim",
)  # described, not given


def collocd(*words):
    return subprocess.run(
        [COLLOCD, *words], capture_output=True, text=True, timeout=60, check=False
    )


class Settings(unittest.TestCase):
    def defaults(self):
        return dict(
            re.findall(r"^#([a-z-]+): (.*)$", collocd("--print-settings=yaml").stdout, re.MULTILINE)
        )

    def test_defaults_are_shown_as_they_are(self):
        shown = self.defaults()
        self.assertGreater(len(shown), 35)
        for name, value in (
            ("policy", "magm"),
            ("reserve-quantile", "0.9"),
            ("smact-max", "0.8"),
            ("min-free", "5GiB"),
            ("recovery-step", "0"),
            ("unused-after", "10m"),
            ("history", "90d"),
            ("settle-max", "60s"),
            ("request-memory", "1GiB"),
            ("samples", "1s:1h,10s:1d,5m:30d"),
            ("log-level", "info"),
        ):
            self.assertEqual(shown[name], value, name)

    def test_defaults_are_accepted(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.writelines(
                f"{name}: {value}\n"
                for name, value in self.defaults().items()
                if name not in PLACES
            )
            file.flush()
            done = collocd("--check", f"--config={file.name}")
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
