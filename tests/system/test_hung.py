"""A file system that stops to answer, and a name service that does, cost their user a file or a name, and the service nothing."""

import os
import time
import unittest

from house import House
from hung_mount import HungMount

PROMPT_S = 0.05


@unittest.skipIf(os.geteuid() != 0, "mounting needs root")
class FileSystem(House):
    def setUp(self):
        super().setUp()
        try:
            self.mount = HungMount(os.path.join(self.folder, "mount"))
        except OSError as error:
            self.skipTest(f"no FUSE here: {error}")
        self.addCleanup(self.mount.close)

    def wait_hung(self):
        self.assertTrue(self.mount.hung.acquire(timeout=30), "nothing came to the mount")

    def assert_prompt(self):
        """The best of a few: the machine may be busy with other things."""
        def seconds():
            begin = time.monotonic()
            self.get("/v1/info")
            return time.monotonic() - begin
        self.assertLess(min(seconds() for _ in range(5)), PROMPT_S)

    def test_a_task_whose_output_hangs_can_be_cancelled(self):
        for members in ({"output": f"{self.mount.folder}/out"}, {"cwd": f"{self.mount.folder}/work"}):
            task = self.submit("true", gpus=4, grace_s=600, **members)
            self.wait_hung()
            self.assert_prompt()
            self.assertEqual(self.act("cancel", task).status, 200)
            self.assertEqual(self.wait(task, "CANCELLED", limit_s=10)["reason"], "Cancelled")
            self.wait(self.submit("true", gpus=4), "COMPLETED")

    def test_a_time_limit_ends_a_task_whose_output_hangs(self):
        task = self.submit("true", output=f"{self.mount.folder}/out", time_limit_s=0.5, grace_s=600)
        self.wait(task, "TIMEOUT", limit_s=20)

    def test_an_end_is_known_though_the_output_hangs_by_then(self):
        """The name of the output leads to the mount when the task has ended."""
        program = f"import os; os.symlink('{self.mount.folder}/out', 'next'); os.rename('next', 'out'); os._exit(3)"
        task = self.submit(f'exec python3 -c "{program}"', output="out")
        self.assertEqual(self.wait(task, "FAILED", limit_s=30)["exit_code"], 3)
        self.assertIn("did not answer", self.task(task)["evidence"])


if __name__ == "__main__":
    unittest.main()
