"""MIG by hand, on pretend GPUs: what is legal, what is refused, and what collocd makes of it."""
import os
import unittest

from house import House, until

ROOT = os.geteuid() == 0


class Mig(House):
    gpus = "1xA100-40GB:3g.20gb+2g.10gb+1g.5gb,1xA100-40GB"

    def mig(self, *words, code=0):
        done = self.colloc("mig", *words, code=code)
        return done.stdout if code == 0 else done.stderr

    def instances(self):
        return sorted(gpu["mig_profile"] for gpu in self.get("/v1/gpus")["gpus"] if gpu["mig_profile"] and gpu["health"] == "ok")

    def wait_instances(self, *profiles):
        until(lambda: self.instances() == list(profiles), f"instances {profiles}")

    def rows(self, text, head):
        """Profiles and starts of the table below a head line."""
        lines = text.split(head + "\n", 1)[1].splitlines()
        rows = [line.split() for line in lines[1:]]
        return [(row[0], int(row[-1])) for row in rows[: next((i for i, row in enumerate(rows) if len(row) < 4 or not row[-1].isdigit()), None)]]

    def test_a_plan_changes_nothing_and_says_where_what_goes(self):
        text = self.mig("plan", "0", "1g.5gb", "3g", "2")
        self.assertEqual(self.rows(text, "GPU 0 has now:"), [("3g.20gb", 0), ("2g.10gb", 4), ("1g.5gb", 6)])
        self.assertEqual(self.rows(text, "It would have:"), [("3g.20gb", 0), ("2g.10gb", 4), ("1g.5gb", 6)])
        profiles = [line.split() for line in self.mig("plan", "0").split("Profiles that this GPU has:\n", 1)[1].splitlines()[1:]]
        self.assertEqual([(row[0], row[-1]) for row in profiles],
                         [("1g.5gb", "0,1,2,3,4,5,6"), ("1g.10gb", "0,2,4,6"), ("2g.10gb", "0,2,4"), ("3g.20gb", "0,4"),
                          ("4g.20gb", "0"), ("7g.40gb", "0")])
        seven = self.rows(self.mig("plan", "0", *["1"] * 7), "It would have:")
        self.assertEqual(seven, [("1g.5gb", start) for start in range(7)])
        self.assertEqual(self.rows(self.mig("plan", "0", "3g", "4g"), "It would have:"), [("4g.20gb", 0), ("3g.20gb", 4)])

    def test_what_cannot_be_is_said(self):
        for words, said in ((("plan", "0", "4g", "4g"), "do not fit"), (("plan", "0", "5g.20gb"), "it has 1g.5gb, 1g.10gb"),
                            (("plan", "1"), "MIG is off on GPU 1"), (("plan", "7"), "there is no GPU 7"),
                            (("plan", "0", *["1"] * 8), "do not fit")):
            self.assertIn(said, self.mig(*words, code=1))
        for words, said in ((("apply", "0"), "wants profiles"), (("reset", "0", "1g"), "takes no profiles"), (("make", "0"), "there are plan, apply and reset"),
                            (("plan",), "wants a GPU")):
            self.assertIn(said, self.mig(*words, code=2))

    def test_without_yes_nothing_happens(self):
        self.assertIn("Nothing was changed", self.mig("apply", "0", "7g"))
        self.assertIn("Nothing was changed", self.mig("reset", "0"))
        self.restart()
        self.wait_instances("1g.5gb", "2g.10gb", "3g.20gb")

    @unittest.skipIf(ROOT, "root may")
    def test_only_root_changes_anything(self):
        self.assertIn("root's to change", self.mig("apply", "0", "7g", "--yes", code=1))

    @unittest.skipUnless(ROOT, "root only")
    def test_apply_and_reset(self):
        self.assertIn("Done.", self.mig("apply", "0", "4g", "2g", "1g", "--yes"))
        self.restart()
        self.wait_instances("1g.5gb", "2g.10gb", "4g.20gb")
        task = self.submit("echo $CUDA_VISIBLE_DEVICES; exec colloc-pretend-train --memory-mib=1000 --seconds=5", memory_mib=3000)
        self.wait(task, "COMPLETED")
        self.mig("reset", "0", "--yes")
        self.restart()
        self.wait_instances()
        self.assertIn("No instances.", self.mig("plan", "0"))

    @unittest.skipUnless(ROOT, "root only")
    def test_nothing_is_changed_below_a_task_or_a_process(self):
        tasks = [self.submit("exec sleep 1000", exclusive=True) for _ in range(4)]
        for task in tasks:
            self.wait_state(task, "RUNNING")
        self.assertRegex(self.mig("reset", "0", "--yes", code=1), r"task \d is on GPU 0:\d")
        for task in tasks:
            self.act("cancel", task)
            self.wait(task, "CANCELLED")
        busy = self.submit("exec colloc-pretend-train --memory-mib=2000 --seconds=1e6", environment={"PATH": self.env["PATH"]}, gpus=1, hold=True)
        self.restart(gpus="0:0,0:1,0:2")
        self.act("release", busy)
        until(lambda: "Using MIG" in self.output(busy))
        self.stop()
        self.assertIn("is on GPU 0:", self.mig("reset", "0", "--yes", code=1))
        self.start()
        self.act("cancel", busy)
        self.wait(busy, "CANCELLED")

    @unittest.skipUnless(ROOT, "root only")
    def test_an_instance_that_disappears(self):
        self.mig("reset", "0", "--yes")
        self.wait_instances()
        tasks = [self.train(2000, 20, exclusive=True) for _ in range(3)]
        for task in tasks:
            self.wait(task, "COMPLETED")
            self.assertIn("Using GPU-", self.output(task))


if __name__ == "__main__":
    unittest.main()
