"""Many clients at once."""

import subprocess
import unittest

from house import BUILD, House, until


class Load(House):
    gpus = "A100-40GB"

    def test_a_flood_of_submits_stops_no_samples(self):
        """The GPU is looked at while 48 clients submit without a pause."""
        self.emulator("set", "0", "foreign-mib=39000")
        self.wait_gpu(lambda gpu: gpu["mem_free_mib"] < 5120)
        with subprocess.Popen([f"{BUILD}/tests/bench/load", "submit", self.socket, "48", "20000"],
                              env=self.env, stdout=subprocess.DEVNULL) as flood:
            until(lambda: len(self.tasks()) > 1000, "1000 tasks in the queue")
            begin = self.get("/v1/gpus")["sampled_at"]
            until(lambda: self.get("/v1/gpus")["sampled_at"] > begin + 0.5, "half a second of samples")
            self.assertIsNone(flood.poll(), "the samples came only after the flood")
            flood.kill()
        self.restart()
        self.assertGreater(len(self.tasks()), 1000)
        self.stop()


if __name__ == "__main__":
    unittest.main()
