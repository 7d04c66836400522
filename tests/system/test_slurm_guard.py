# SPDX-License-Identifier: Apache-2.0
"""The Lua guard inside a real slurmctld: what ordinary users can and cannot do to their jobs."""

import os
import subprocess
import tempfile
import unittest

from daemon_case import LIMIT_S, program

from colloc_slurm import loopback

ADA = "games"  # an account that every Debian has, with no rights
SITE = """
function slurm_job_submit(job, partitions, user_id)
    if job.name == "forbidden" then
        slurm.log_user("the site refuses")
        return slurm.ERROR
    end
    if job.name == "broken" then
        error("100% broken")
    end
    return slurm.SUCCESS
end
function slurm_job_modify(job, record, partitions, user_id)
    return slurm.SUCCESS
end
"""


def script_text(name, *options):
    """What `colloc slurm script` prints, for a folder that has a slurm.conf."""
    with tempfile.TemporaryDirectory(prefix="colloc-test-") as folder:
        with open(os.path.join(folder, "slurm.conf"), "w", encoding="utf-8") as file:
            file.write("ClusterName=x\n")
        return subprocess.run(
            [program("colloc"), "slurm", "script", name, f"--folder={folder}", *options],
            capture_output=True,
            text=True,
            check=True,
            timeout=LIMIT_S,
        ).stdout


@unittest.skipIf(loopback.why_not(), loopback.why_not())
@unittest.skipIf(os.geteuid() != 0, "jobs of several users need root")
class Guard(unittest.TestCase):
    """One cluster for all tests: each submits its jobs."""

    @classmethod
    def setUpClass(cls):
        wake = "--wake-file={folder}/run/wake"
        files = {
            "job_submit.lua": SITE + script_text("job_submit.lua", wake),
            "jobcomp.lua": script_text("jobcomp.lua", wake),
        }
        lines = [loopback.INTAKE, loopback.RUN, "PartitionName=plain Nodes=ALL State=UP"]
        cls.slurm = cls.enterClassContext(loopback.Loopback(nodes=1, lines=lines, files=files))

    def submit(self, *options, script="true", user=ADA):
        return self.slurm.sbatch(script, "--output=/dev/null", *options, user=user)

    def refused(self, *options, script="true", says):
        done = self.slurm.run(
            "sbatch", *options, user=ADA, check=False, text=f"#!/bin/bash\n{script}\n"
        )
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn(says, done.stderr)

    def update(self, job, *changes, user=ADA):
        """What scontrol says; slurmctld 24.11 sometimes asks to try again."""
        words = ["scontrol", "update", f"jobid={job}", *changes]

        def change():
            done = self.slurm.run(*words, user=user, check=False)
            return None if "temporarily unavailable" in done.stderr else done

        return self.slurm.until(change, "an answer of slurmctld")

    def test_jobs_wait_in_the_intake(self):
        job = self.submit("--gres=gpu:2")
        found = self.slurm.wait_job(job, "PENDING")
        self.assertEqual(found["Partition"], "gpu")
        self.assertNotIn("TresPerNode", found)  # the request became a note
        self.assertEqual(found["AdminComment"].strip(), "colloc want=2")
        for option, note in (("--gpus=3", "total=3"), ("--gpus-per-node=3", "want=3")):
            found = self.slurm.job(self.submit(option))
            self.assertEqual(found["AdminComment"].strip(), f"colloc {note}")
        found = self.slurm.job(self.submit("--gres=none", "--cpus-per-task=2"))
        self.assertEqual(found["CPUs/Task"], "2")
        self.assertNotIn("want", found.get("AdminComment", ""))
        plain = self.slurm.job(self.submit("--partition=plain", "--gres=gpu:1"))
        self.assertTrue(plain["TresPerNode"].endswith("gpu:1"))
        self.assertNotIn("AdminComment", plain)

    def test_partitions(self):
        self.refused("--partition=gpu-run", says="for jobs that colloc has placed: submit to gpu")
        for names in ("gpu,plain", "plain,gpu", "gpu-run,plain"):
            self.refused(f"--partition={names}", says="colloc: partition gpu")
        self.slurm.wait_job(self.submit("--partition=plain"), "COMPLETED")

    def test_gpus_that_users_choose(self):
        for gres in ("shard:i2:20", "shard:5", "gpu:i2:1", "gpu:a100:1"):
            self.refused(f"--gres={gres}", says="colloc")
        self.refused("--gpus=1", "--cpus-per-gpu=2", says="--cpus-per-task")
        self.refused("--ntasks=2", "--gpus-per-task=1", says="--gres=gpu:N")

    def test_changes_of_placement(self):
        job, other = self.submit(), self.submit("--partition=plain", "--begin=now+1hour")
        for change in (
            "partition=gpu-run",
            "partition=plain",
            "partition=plain,gpu",
            "priority=100000",
            "ReqNodeList=n0",
            "Gres=shard:i0:20",
            "TresPerNode=gres:gpu:i1:1",
            "TresPerJob=gres:gpu:1",
            "Features=x",
        ):
            self.assertNotEqual(self.update(job, change).returncode, 0, change)
        for change in ("partition=gpu", "partition=gpu-run"):
            self.assertNotEqual(self.update(other, change).returncode, 0, change)
        found = self.slurm.job(job)
        self.assertEqual((found["Partition"], found["ReqNodeList"]), ("gpu", "(null)"))
        self.assertNotIn("TresPerNode", found)
        for change in ("JobName=renamed", "TimeLimit=5", "Nice=3", "Comment=mine"):
            done = self.update(job, change)
            self.assertEqual(done.returncode, 0, f"{change}: {done.stderr}")

    def test_hold_and_release_start_nothing(self):
        job = self.submit()
        for verb, priority in (("hold", 0), ("release", 1)):
            self.slurm.run("scontrol", verb, job, user=ADA)
            self.assertEqual(min(int(self.slurm.job(job)["Priority"]), 1), priority)
        self.assertEqual(self.slurm.job(job)["JobState"], "PENDING")

    def test_an_empty_gres_does_not_crash_slurmctld(self):
        """With the release after it, it ends slurmctld 22.05 when the job has asked for shards."""
        for options in (["--partition=gpu"], ["--partition=plain", "--gres=shard:i0:5"]):
            job = self.submit("--hold", *options)
            for field in ("TresPerNode=", "Gres=", "TresPerJob=", "TresPerTask="):
                self.update(job, field)
            self.slurm.run("scontrol", "release", job, user=ADA)
        self.assertTrue(self.slurm.slurmctld.is_alive())
        self.slurm.wait_job(self.submit("--partition=plain"), "COMPLETED")

    def test_the_controller_pins(self):
        """What colloc-slurm does, here by scontrol as root; the wake file has its lines."""
        job = self.submit("--gres=gpu:1", script="echo $CUDA_VISIBLE_DEVICES >&2")
        done = self.update(
            job, "ReqNodeList=n0", "Gres=shard:i2:12", "partition=gpu-run", user=None
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotEqual(self.update(job, "priority=1").returncode, 0)
        self.slurm.wait_job(job, "COMPLETED")
        self.slurm.until(
            lambda: f"end {job}\n" in self.wake_lines(), "the end of the job in the wake file"
        )
        self.assertRegex(self.wake_lines(), r"(?m)^submit 0$")

    def wake_lines(self):
        with open(self.slurm.wake_file, encoding="utf-8") as file:
            return file.read()

    def test_requeue(self):
        self.assertEqual(self.slurm.job(self.submit())["Requeue"], "1")
        self.assertEqual(self.slurm.job(self.submit("--no-requeue"))["Requeue"], "0")

    def test_directives(self):
        for line, says in (
            ("--summry=a.txt", "line 2: unknown option --summry"),
            ("--batch=many", "--batch=many: not a whole number"),
            ("--batch=0", "--batch=0: not a whole number from 1"),
            ("--memory=12", "--memory=12: without a unit"),
            ("--memory=lots", "--memory=lots: not a size"),
            ("--memory=80%", "--memory=80%: not a size"),
            ("--memory=%d%s", "--memory=%d%s: not a size"),
            ("--smact=1.5", "--smact=1.5: not a number from 0 to 1"),
            ("--sharing=mpss", "--sharing=mpss: not one of"),
            ("--expect=soon", "--expect=soon: not a time"),
            ("--exclusive=maybe", "--exclusive=maybe: not yes or no"),
            ("--summary='a.txt", "an unclosed quote"),
            ("--batch", "--batch needs a value"),
            ("train.py", "unknown option train.py"),
        ):
            where = "" if says.startswith("line") else "line 2: "
            with self.subTest(line=line):
                self.refused(script=f"#COLLOC {line}\ntrue", says=f"colloc: {where}{says}")
        # slurmctld waits meanwhile: nothing here may take long, whatever a user writes.
        digits = "9" * 12000
        for line in (f"--memory={digits}!", f"--time={digits}", f"--batch={digits}"):
            option = line.partition("=")[0]
            says = f"line 2: {option}={digits[:20]}...: longer than 64 bytes"
            self.refused(script=f"#COLLOC {line}\ntrue", says=says)
        many = "#COLLOC --batch=1\n" * 1000
        self.refused(script=many, says="line 965: more than 16384 bytes of #COLLOC lines")
        late = "line 3: #COLLOC lines must stand before"
        self.refused(script="true\n#COLLOC --batch=2", says=late)
        good = (
            "#COLLOC --summary='my net.txt' --batch 128 --memory=1.5GiB # a note\n"
            "#COLLOCATION is no such line\n#COLLOC --exclusive -J name --time=1-12:00:00\n"
            "#COLLOC --model=x --precision=bf16 --smact=0.5 --policy=magm\necho '#COLLOC --bad'"
        )
        self.assertEqual(self.slurm.job(self.submit(script=good))["Partition"], "gpu")
        # Elsewhere the lines are not colloc's business.
        self.submit("--partition=plain", script="#COLLOC --bad\ntrue")

    def test_an_error_refuses(self):
        """As the script of a site may end: no request passes unseen by the guard."""
        says = "colloc: job_submit.lua has met an error"
        self.refused("--job-name=broken", says=says)
        self.refused("--job-name=broken", "--partition=plain", says=says)

    def test_the_sites_script_goes_on(self):
        for partition in ("gpu", "plain"):
            self.refused(
                "--job-name=forbidden", f"--partition={partition}", says="the site refuses"
            )


if __name__ == "__main__":
    unittest.main(verbosity=2)
