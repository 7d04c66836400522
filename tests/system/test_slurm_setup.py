# SPDX-License-Identifier: Apache-2.0
"""`colloc slurm setup`, `check` and `remove` on a real cluster; the first tier."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from daemon_case import BUILD, program

from colloc_slurm import loopback

PLAIN = "PartitionName=batch Nodes=ALL Default=YES State=UP MaxTime=INFINITE"

CONTROLLER = os.path.join(BUILD, "src", "slurm", "colloc-slurm")


def find_settings(printed):
    """The lines for slurm.yaml in what setup prints."""
    return printed.partition("slurm.yaml:\n")[2].partition("\n\n")[0] + "\n"


def files_of(folder):
    found = {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as file:
            found[name] = file.read()
    return found


@unittest.skipIf(loopback.why_not(), loopback.why_not())
class Setup(unittest.TestCase):
    def setUp(self):
        self.slurm = self.enterContext(loopback.Loopback(nodes=2, shards=0, lines=[PLAIN]))
        self.before = files_of(self.slurm.path("etc"))
        # Setup asks whether the controller is installed beside it.
        self.program = shutil.copy(program("colloc"), self.slurm.path("work/colloc"))
        self.slurm.write("work/colloc-slurm", "")

    def colloc(self, *words, code=0):
        done = self.run_colloc(*words)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def run_colloc(self, *words):
        settings = f"--settings={self.slurm.path('work/settings')}"
        return self.slurm.run(self.program, *words, settings, check=False)

    def check(self, code):
        """{name of the check: (passed, its text)}"""
        done = self.run_colloc("slurm", "check", "--json")
        if code is not None:
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return {
            c["name"]: (c["ok"], f"{c['detail']} {c['advice']}".strip())
            for c in json.loads(done.stdout)["checks"]
        }

    def restart(self):
        self.slurm.slurmctld.kill()
        for name in self.slurm.nodes:
            self.slurm.slurmd[name].kill()
        self.slurm.start_slurmctld()
        for name in self.slurm.nodes:
            self.slurm.start_slurmd(name)
        self.slurm.wait_up()

    def test_there_and_back(self):
        found = self.check(code=1)
        for name in ("slurmctld", "munge", "version", "responding", "clocks"):
            self.assertTrue(found[name][0], found[name])
        self.assertIn("GresTypes has no shard", found["select"][1])
        self.assertIn("2 of 2 nodes with GPUs lack shards by index: n0, ...", found["nodes"][1])
        self.assertIn("there is no partition gpu", found["partitions"][1])
        self.assertIn("JobSubmitPlugins has no lua", found["guard"][1])

        printed = self.colloc("slurm", "setup")
        self.assertIn("+PartitionName=gpu Nodes=n0,n1 State=DOWN", printed)
        self.assertIn("Nothing was written", printed)
        self.assertEqual(files_of(self.slurm.path("etc")), self.before)

        self.colloc("slurm", "setup", "--write")
        after = files_of(self.slurm.path("etc"))
        self.assertIn("Nothing was to be changed", self.colloc("slurm", "setup", "--write"))
        self.assertEqual(files_of(self.slurm.path("etc")), after)
        self.restart()
        found = self.check(code=1)
        self.assertEqual([name for name in found if not found[name][0]], ["controller"])
        self.assertIn("no job of gpu starts", found["controller"][1])
        self.assertEqual(found["nodes"], (True, "2 with GPUs, all have shards by index"))
        self.assertEqual(found["job-ends"][1], "reported at once by jobcomp.lua")

        waits = self.slurm.sbatch("true", "--partition=gpu")
        self.slurm.wait_job(waits, "PENDING")
        asked = ["--partition=gpu-run", "--gres=shard:i1:20", "--nodelist=n1", "--output=%j.out"]
        job = self.slurm.sbatch("echo $CUDA_VISIBLE_DEVICES", *asked)
        self.slurm.wait_job(job, "COMPLETED")
        with open(self.slurm.path(f"work/{job}.out"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "1\n")

        self.alter_what_check_sees()
        self.slurm.run("scancel", waits)
        self.assertIn("Nothing was written", self.colloc("slurm", "remove"))
        self.colloc("slurm", "remove", "--write")
        self.assertEqual(files_of(self.slurm.path("etc")), self.before)
        self.restart()
        self.slurm.wait_job(self.slurm.sbatch("true", "--gres=gpu:1"), "COMPLETED")

    @unittest.skipUnless(os.path.exists(CONTROLLER), "colloc-slurm is not built")
    def test_with_the_controller(self):
        """From plain GPUs to jobs of a user on parts of them, by what setup writes and prints."""
        printed = self.colloc("slurm", "setup", "--write")
        self.slurm.write("etc/slurm.yaml", re.sub("(?m)^    ", "", find_settings(printed)))
        self.restart()
        self.slurm.spawn(
            CONTROLLER,
            f"--config={self.slurm.path('etc/slurm.yaml')}",
            f"--state-dir={self.slurm.path('run/colloc')}",
            "--settle=1ms",
            "--settle-max=1ms",
            "--policy=first-fit",
            log="controller",
        )
        script = "#!/bin/bash\n#COLLOC --memory=20GiB --smact=0.2\nsleep 1000\n"
        user = "games" if os.geteuid() == 0 else None
        options = ["--partition=gpu", "--output=/dev/null"]
        jobs = [self.slurm.sbatch(script, *options, user=user) for _ in range(2)]
        pins = [self.slurm.wait_job(job, "RUNNING") for job in jobs]
        self.assertEqual({pin["NodeList"] for pin in pins}, {"n0"})
        for pin in pins:
            self.assertRegex(pin["TresPerNode"], "^gres[:/]shard:i[0-3]:2[0-9]$")
        wide = self.slurm.sbatch(script, "--gres=gpu:2", *options, user=user)
        pin = self.slurm.wait_job(wide, "RUNNING")
        self.assertRegex(pin["TresPerNode"], "^gres[:/]shard:i[0-3]:[0-9]+,gres[:/]shard:i[0-3]:")

    @unittest.skipUnless(os.path.exists(CONTROLLER), "colloc-slurm is not built")
    @unittest.skipUnless(os.geteuid() == 0, "the agent needs root")
    def test_agents_by_tls(self):
        """What setup writes for both sides lets an agent report; check says what keeps it away."""
        slurm, port = self.slurm, loopback.free_ports(1)[0]
        gpus = slurm.path("work/gpus")
        slurm.run(program("emulator"), "create", "--gpus", "4xA100-40GB", gpus)
        os.mkdir(slurm.path("work/settings"))
        controller = {
            "listen": f"127.0.0.1:{port}",
            "socket": slurm.path("run/controller.sock"),
            "state-dir": slurm.path("run/colloc"),
        }
        agent = {
            "controller": f"127.0.0.1:{port}",
            "node-name": "n0",
            "munge-socket": slurm.path("munge/none"),
            "node-socket": slurm.path("run/node.sock"),
            "state-dir": slurm.path("run/agent"),
            "nvml-library": os.path.join(BUILD, "emulator", "libnvidia-ml.so.1"),
        }
        for name, lines in (("slurm.yaml", controller), ("collocd.yaml", agent)):
            text = "".join(f"{key}: {value}\n" for key, value in lines.items())
            slurm.write(f"work/settings/{name}", text)
        printed = self.colloc("slurm", "setup", "--write", "--node-auth=tls")
        with open(slurm.path("work/settings/slurm.yaml"), "a", encoding="utf-8") as file:
            file.write(re.sub("(?m)^    ", "", find_settings(printed)))
        self.restart()
        files = {
            name: slurm.path(f"work/settings/{name}") for name in ("slurm.yaml", "collocd.yaml")
        }
        slurm.spawn(CONTROLLER, f"--config={files['slurm.yaml']}", log="controller")
        slurm.until(lambda: "does not answer" not in self.agents(), "the controller's answer")
        self.assertIn("2 of 2 nodes do not report: n0, ...", self.agents())
        spawned = slurm.spawn(
            program("collocd"),
            "--node",
            f"--config={files['collocd.yaml']}",
            log="agent",
            COLLOC_EMULATOR=gpus,
        )
        slurm.until(lambda: "1 of 2 nodes do not report: n1 " in self.agents(), "n0's report")
        found = self.check(code=1)
        self.assertEqual(found["controller"], (True, "colloc-slurm answers"))
        self.assertRegex(found["node-auth"][1], "^tls, by key [0-9a-f]{8}: ")
        self.assertRegex(found["wake-file"][1], "seen at once, by /.*/colloc-wake$")
        wake_file = found["wake-file"][1].split()[-1]
        job = self.slurm.sbatch("true", "--partition=gpu")
        self.slurm.until(lambda: os.path.exists(wake_file), f"a line for job {job}")
        # The agent gets another key: what check says here is what it says on the node.
        spawned.kill()
        other = slurm.path("work/other.key")
        slurm.write("work/other.key", "another key of at least 32 characters\n")
        os.chmod(other, 0o400)
        with open(files["collocd.yaml"], "a", encoding="utf-8") as file:
            file.write(f"node-key-file: {other}\n")
        self.assertIn("differ", self.check(code=1)["node-auth"][1])
        os.unlink(other)
        self.assertIn("other.key", self.check(code=1)["node-auth"][1])

    def agents(self):
        return self.check(code=None)["agents"][1]

    def alter_what_check_sees(self):
        guard = self.slurm.path("etc/job_submit.lua")
        with open(guard, "r+", encoding="utf-8") as file:
            text = file.read()
            file.seek(0)
            file.write(text.replace("local REFUSED", "local refused"))
        self.assertIn("it was altered", self.check(code=1)["guard"][1])
        os.rename(guard, guard + ".old")
        self.assertIn("missing", self.check(code=1)["guard"][1])
        os.rename(guard + ".old", guard)
        for partition, state, says in (
            ("gpu", "UP", "the name clashes"),
            ("gpu-run", "DOWN", "is not UP"),
        ):
            self.slurm.run("scontrol", "update", f"PartitionName={partition}", f"State={state}")
            self.assertIn(says, self.check(code=1)["partitions"][1])
            back = "DOWN" if state == "UP" else "UP"
            self.slurm.run("scontrol", "update", f"PartitionName={partition}", f"State={back}")

    def test_no_slurmctld(self):
        self.slurm.slurmctld.kill()
        with open(self.slurm.conf, "a", encoding="utf-8") as file:
            file.write("SlurmctldTimeout=1\nMessageTimeout=1\n")
        found = self.check(code=1)
        self.assertEqual(list(found), ["slurmctld", "munge"])
        self.assertIn("does not answer", found["slurmctld"][1])


@unittest.skipIf(loopback.why_not(), loopback.why_not())
class FirstTier(unittest.TestCase):
    def test_sbatch_asks_for_shards(self):
        """By the estimate of the memory that a script declares; Slurm places."""
        options = ["--estimates-only", "--gpu-memory=40GiB"]
        with tempfile.TemporaryDirectory(prefix="colloc-test-") as folder:
            with open(os.path.join(folder, "slurm.conf"), "w", encoding="utf-8") as file:
                file.write("ClusterName=x\n")
            command = ["slurm", "script", "cli_filter.lua", f"--folder={folder}", *options]
            text = subprocess.run(
                [program("colloc"), *command], stdout=subprocess.PIPE, text=True, check=True
            ).stdout
        with loopback.Loopback(nodes=1, files={"cli_filter.lua": text}) as slurm:
            self.slurm = slurm
            self.assertEqual(self.gres("#COLLOC --memory=10GiB"), "shard:20")
            self.assertEqual(self.gres("#COLLOC --memory=10GiB", "--gres=gpu:1"), "shard:20")
            self.assertEqual(self.gres("#COLLOC --memory=10GiB", "--gres=gpu:2"), "gpu:2")
            self.assertEqual(self.gres("#COLLOC --exclusive"), None)
            self.assertEqual(self.gres("# no line for colloc", "--gres=gpu:1"), "gpu:1")
            done = self.submit("#COLLOC --memory=10GiB", "--partition=gpu-run", "--output=%j.out")
            job = done.stdout.strip()
            slurm.wait_job(job, "COMPLETED")
            with open(slurm.path(f"work/{job}.out"), encoding="utf-8") as file:
                self.assertEqual(file.read(), "0\n")
            self.assertIn("a GPU has 40960 MiB", self.submit("#COLLOC --memory=41GiB").stderr)
            self.assertIn("--memory=10", self.submit("#COLLOC --memory=10").stderr)

    def submit(self, line, *options):
        path = self.slurm.path("work/it's a job.sh")
        with open(path, "w", encoding="utf-8") as file:
            file.write(
                f"#!/bin/bash\n#SBATCH --constraint=x|y\n{line}\necho $CUDA_VISIBLE_DEVICES\n"
            )
        return self.slurm.run(
            "sbatch", "--parsable", "--constraint=", "--partition=gpu", *options, path, check=False
        )

    def gres(self, line, *options):
        done = self.submit(line, *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = self.slurm.job(done.stdout.strip()).get("TresPerNode")
        return found and found.strip().replace("gres:", "").replace("gres/", "")


if __name__ == "__main__":
    unittest.main(verbosity=2)
