# SPDX-License-Identifier: Apache-2.0
"""The agent of a Slurm node and the plugin of its job steps, on a loopback cluster with emulated
GPUs."""

import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import unittest

from daemon_case import LIMIT_S, MIB, is_alive, processes_with, program, read, until
from slurm_node_case import LIBRARY, PLUGIN, PROBE, MemoryWaitCase, NodeCase, why_not

from colloc_slurm import loopback

OOM = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"


class SlurmNode(NodeCase):
    def test_gres_conf_that_means_other_gpus(self):
        """A type has the number of its device file; else no job may start on the node."""
        usable = lambda report: not any(gpu.get("trouble") for gpu in report["gpus"])
        report = self.hub.wait_report(lambda report: report["gpus"])
        self.assertEqual([gpu["index"] for gpu in report["gpus"]], [0, 1])
        self.assertTrue(usable(report))
        conf = self.slurm.path("etc/gres.conf")
        before = read(conf)
        with open(conf, "w", encoding="utf-8") as file:
            file.write(before.replace("Type=i0", "Type=i7"))
        self.agent.kill()
        self.agent.wait()
        self.start_agent()
        report = self.hub.wait_report(lambda report: report["gpus"] and not usable(report))
        for gpu in report["gpus"]:
            self.assertRegex(
                gpu["trouble"],
                r"^gres\.conf gives \S+/nvidia0 the type i7, .* `colloc slurm setup`",
            )
        until(lambda: "no job starts on this node: gres.conf" in read(self.agent.log))

    def test_reports(self):
        train = f"exec {program('pretend-train')} --memory-mib=3000 --seconds=1000 --ramp-seconds=0"
        job = int(self.sbatch(train, "--gres=shard:i1:10"))

        def is_read(report):
            """A busy machine has reports without a reading in time."""
            gpus = report["gpus"]
            return len(gpus) == 2 and not any(gpu.get("trouble") for gpu in gpus)

        report = self.hub.wait_report(lambda r: is_read(r) and r["gpus"][1].get("processes"))
        self.assertEqual(report["node"], "n0")
        idle, used = report["gpus"]
        self.assertEqual((idle["index"], used["index"]), (0, 1))
        self.assertEqual(idle["processes"], [])
        self.assertEqual(used["processes"][0]["job"], job)
        report = self.hub.wait_report(
            lambda r: is_read(r) and r["gpus"][1]["processes"][0].get("memory", 0) >= 3000 << 20
        )
        self.assertGreaterEqual(report["gpus"][1]["memory_used"], 3000 << 20)
        self.assertTrue(report["gpus"][0]["uuid"].startswith("GPU-"))
        # A value that the driver does not report is left out.
        self.slurm.run(program("emulator"), "set", "1", "power=off", "memory=off")
        report = self.hub.wait_report(lambda r: is_read(r) and "memory_used" not in r["gpus"][1])
        self.assertIn("memory_used", report["gpus"][0])
        # A driver that does not answer: the GPUs are listed without a reading.
        self.slurm.run(program("emulator"), "set", "0", "hang=on")
        report = self.hub.wait_report(lambda r: r["gpus"][0].get("trouble"))
        self.assertNotIn("memory_used", report["gpus"][0])
        self.assertNotIn("processes", report["gpus"][0])
        self.slurm.run(program("emulator"), "set", "0", "hang=off")
        self.hub.wait_report(lambda r: not r["gpus"][0].get("trouble"))
        # The agent is killed: the controller notices, and a new one goes on; the job never stops.
        self.agent.kill()
        self.hub.wait(lambda value: value == "gone n0")
        self.start_agent()
        report = self.hub.wait_report(lambda r: r["gpus"] and r["gpus"][1].get("processes"))
        self.assertEqual(report["gpus"][1]["processes"][0]["job"], job)

    def test_mps(self):
        tell = "echo pipe=$CUDA_MPS_PIPE_DIRECTORY gpus=$CUDA_VISIBLE_DEVICES"
        wanted = "pipe=" + self.slurm.path("run/state/mps/0/pipe")
        gres = "--gres=shard:i1:10"
        self.assertEqual(self.run_checked(tell, gres), "pipe= gpus=1\n")
        self.assertEqual(self.run_checked(tell, gres, "--colloc-sharing=mps"), f"{wanted} gpus=1\n")
        self.assertEqual(
            self.run_checked(tell, "--colloc-sharing=mps"), "pipe= gpus=\n", "without a GPU"
        )
        # Variables of the environment in which the job is submitted, such as another job's.
        stale = "--export=ALL,SLURM_JOB_GPUS=0,SLURM_STEP_GPUS=0,CUDA_VISIBLE_DEVICES=0"
        both = f"{tell}; srun --colloc-sharing=mps sh -c '{tell}'"
        self.assertEqual(self.run_checked(both, "--colloc-sharing=mps", stale), 2 * "pipe= gpus=\n")
        self.assertEqual(
            self.run_checked(both, gres, "--colloc-sharing=mps", stale), 2 * f"{wanted} gpus=1\n"
        )
        # The control daemon ends when no step uses it.
        until(lambda: "was stopped: no process uses it" in read(self.agent.log), "the end of MPS")
        # The controller has decided it for the job that comes next; the user's word is stronger.
        held = [
            self.sbatch(tell, gres, "--hold"),
            self.sbatch(tell, gres, "--hold", "--colloc-sharing=streams"),
        ]
        # Of an array it names the task, which gets its number when it starts.
        array = self.sbatch(tell, gres, "--hold", "--array=3,4", "--output=%A_%a.out")
        for job in (*held, f"{array}_3"):
            self.hub.say(f"pin n0 {job} mps")
            self.hub.wait(lambda value: value == "pinned 0")
        self.hub.wait_report(lambda r: True)
        self.hub.wait_report(lambda r: True)
        self.slurm.run("scontrol", "release", array)
        for job in held:
            self.slurm.run("scontrol", "release", job)
        for job in (*held, f"{array}_3", f"{array}_4"):
            self.slurm.wait_job(job, "COMPLETED")
        self.assertEqual(self.output(held[0]), f"{wanted} gpus=1\n")
        self.assertEqual(self.output(held[1]), "pipe= gpus=1\n")
        self.assertEqual(self.output(f"{array}_3"), f"{wanted} gpus=1\n")
        self.assertEqual(self.output(f"{array}_4"), "pipe= gpus=1\n")
        # Without an agent the job runs on its GPU.
        self.agent.kill()
        self.assertEqual(self.run_checked(tell, gres, "--colloc-sharing=mps"), "pipe= gpus=1\n")

    def test_gpu_memory_crash(self):
        wait = "[ $SLURM_RESTART_COUNT ] && exit; echo begun; until [ -e go ]; do sleep 0.05; done"
        crash = f"{wait}; echo '{OOM}' >&2; exit 1"
        beside = self.sbatch("echo begun; sleep 1000", "--gres=shard:i0:10")
        crashing = self.sbatch(crash, "--gres=shard:i0:10")
        no_requeue = self.sbatch(crash, "--gres=shard:i0:10", "--no-requeue")
        other = self.sbatch(f"{wait}; echo Traceback >&2; exit 1", "--gres=shard:i0:10")
        alone = self.sbatch(crash, "--gres=shard:i1:10")
        dependent = self.sbatch("true", f"--dependency=afterok:{crashing}")
        for job in (beside, crashing, no_requeue, other, alone):
            self.wait_output(job)
        self.write_work("go")
        self.slurm.wait_job(crashing, "PENDING")
        self.assertEqual(self.slurm.job(crashing)["Restarts"], "1")
        report = self.hub.wait_report(lambda r: r["crashes"])
        self.assertEqual(
            report["crashes"], [{"job": int(crashing), "restarts": 0, "evidence": OOM}]
        )
        for job in (no_requeue, other, alone):
            self.slurm.wait_job(job, "FAILED")
        self.assertEqual(self.slurm.job(dependent)["Reason"], "Dependency")
        # Its second run ends well, and then what depends on it runs.
        self.slurm.run("scontrol", "update", f"jobid={crashing}", "starttime=now+2")
        self.slurm.run("scontrol", "release", crashing)
        self.slurm.wait_job(crashing, "COMPLETED")
        self.slurm.wait_job(dependent, "COMPLETED")

    def test_crash_of_a_task_of_an_array(self):
        """The last task has the number of the whole array: only it is requeued and held."""
        wait = "[ $SLURM_RESTART_COUNT ] && exit; echo begun; until [ -e go ]; do sleep 0.05; done"
        script = (
            f"{wait}; [ $SLURM_ARRAY_TASK_ID = 1 ] && exec sleep 1000; echo '{OOM}' >&2; exit 1"
        )
        array = self.sbatch(script, "--gres=shard:i0:10", "--array=1-2")
        outputs = [self.slurm.path(f"work/{int(array) + i}.out") for i in (0, 1)]
        self.slurm.until(
            lambda: all(os.path.exists(path) and read(path) for path in outputs), "both tasks"
        )
        ids = {}
        for task in (1, 2):
            text = self.slurm.run("scontrol", "--oneliner", "show", "job", f"{array}_{task}").stdout
            ids[task] = int(text.split()[0].split("=")[1])
        self.assertEqual(ids[2], int(array))
        self.write_work("go")
        report = self.hub.wait_report(lambda r: r["crashes"])
        self.assertEqual(report["crashes"], [{"job": ids[2], "restarts": 0, "evidence": OOM}])
        text = self.slurm.run("scontrol", "--oneliner", "show", "job", f"{array}_1").stdout
        self.assertIn("JobState=RUNNING", text)
        self.assertIn("Restarts=0", text)

    def test_crash_while_the_agent_restarts(self):
        wait = "[ $SLURM_RESTART_COUNT ] && exit; echo begun; until [ -e go ]; do sleep 0.05; done"
        job = self.sbatch(f"{wait}; echo '{OOM}' >&2; exit 1", "--gres=shard:i0:10")
        self.wait_output(job)
        self.agent.kill()
        self.write_work("go")
        self.start_agent()
        self.slurm.wait_job(job, "PENDING")
        report = self.hub.wait_report(lambda r: r["crashes"])
        self.assertEqual(report["crashes"][0]["job"], int(job))

    def test_an_agent_of_version_0_2(self):
        """Its answer to the end of a step is an empty packet, which the plugin does not take for an
        agent that was killed: it asks once."""
        self.agent.kill()
        path = self.slurm.path("run/node.sock")
        os.unlink(path)
        requests = []

        def answer():
            while True:
                with server.accept()[0] as connection:
                    request = connection.recv(512).decode()
                    requests.append(request)
                    if request == "stop":
                        return
                    connection.send(b"")

        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
            server.bind(path)
            server.listen()
            thread = threading.Thread(target=answer)
            thread.start()
            try:
                self.slurm.wait_job(self.sbatch("exit 1", "--gres=shard:i0:10"), "FAILED")
            finally:
                with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
                    client.connect(path)
                    client.send(b"stop")
                thread.join()
        self.assertEqual([request.split()[0] for request in requests], ["start", "end", "stop"])

    def slow_scontrol(self):
        """A folder with a scontrol that fails to show a job the first time, as without slurmctld,
        and the second time waits for the file `answer`."""
        folder = self.slurm.path("work/bin")
        os.mkdir(folder)
        path = os.path.join(folder, "scontrol")
        with open(path, "w", encoding="utf-8") as file:
            file.write(
                f"""#!/bin/sh
cd {self.slurm.path("work")}
if [ "$3" = job ]; then
    [ -e failed ] || {{ touch failed; exit 1; }}
    touch asked
    until [ -e answer ]; do sleep 0.05; done
fi
PATH=${{PATH#{folder}:}} exec scontrol "$@"
"""
            )
        os.chmod(path, 0o755)
        return folder

    def test_a_verdict_survives_slurmctld_and_the_agent(self):
        """slurmctld does not answer at first, and the agent is killed while it judges: the job is
        requeued, never FAILED, and what depends on it waits."""
        wait = "[ $SLURM_RESTART_COUNT ] && exit; echo begun; until [ -e go ]; do sleep 0.05; done"
        beside = self.sbatch("echo begun; sleep 1000", "--gres=shard:i0:10")
        job = self.sbatch(f"{wait}; echo '{OOM}' >&2; exit 1", "--gres=shard:i0:10")
        dependent = self.sbatch("true", f"--dependency=afterok:{job}")
        for begun in (beside, job):
            self.wait_output(begun)
        path = f"{self.slow_scontrol()}:{self.slurm.env['PATH']}"
        self.agent.kill()
        self.start_agent(PATH=path)
        self.write_work("go")
        self.slurm.until(lambda: os.path.exists(self.slurm.path("work/asked")), "the verdict")
        self.agent.kill()
        asking = processes_with(f"PATH={path}")
        until(lambda: not any(map(is_alive, asking)), "the end of the agent's helpers")
        self.start_agent()
        self.slurm.wait_job(job, "PENDING")
        self.assertEqual(self.slurm.job(job)["Restarts"], "1")
        self.assertEqual(self.slurm.job(dependent)["Reason"], "Dependency")

    def write_work(self, name):
        with open(self.slurm.path(f"work/{name}"), "w", encoding="utf-8"):
            pass


class Fence(NodeCase):
    slurm_settings = {"SlurmdTimeout": 12}

    def pretend_slurmd(self, *options, path="work/slurmd", mode=0o755, user=0):
        """A process of that name: its id, and a function that ends it."""
        path = self.slurm.path(path)
        if not os.path.exists(path):
            shutil.copy("/bin/bash", path)
            os.chmod(path, mode)
        words = [path, "-p", "-c", "read x; true", *options]
        process = subprocess.Popen(words, env=self.slurm.env, stdin=subprocess.PIPE, user=user)

        def end():
            process.stdin.close()
            process.wait(LIMIT_S)

        self.addCleanup(end)
        return process.pid, end

    def test_jobs_end_without_slurmd(self):
        """Once no slurmd of this node has run for two thirds of SlurmdTimeout, whether or not the
        PID file names it."""
        self.pretend_slurmd("-DN", "n9")
        other, link = self.slurm.path("etc/other.conf"), self.slurm.path("etc/link.conf")
        self.slurm.write("etc/other.conf", "ClusterName=other\n")
        os.symlink(self.slurm.conf, link)
        self.pretend_slurmd("-f", other)
        os.mkdir(self.slurm.path("work/setuid"))
        self.pretend_slurmd("-N", "n0", path="work/setuid/slurmd", mode=0o4755, user=12345)
        script = "echo $$; trap '' TERM; setsid sleep 1000 & echo $!; sleep 1000"
        job = self.sbatch(script, "--gres=shard:i0:10")
        self.wait_output(job, lines=2)
        until(lambda: "SlurmdTimeout is 12 s" in read(self.agent.log), "Slurm's settings")
        pids = [int(pid) for pid in self.output(job).split()]
        self.slurm.slurmd["n0"].kill(signal.SIGKILL)
        until(lambda: "no slurmd of this node runs" in read(self.agent.log), "the loss of slurmd")
        second, end_second = self.pretend_slurmd("-N", "n0", "-f", link)
        until(lambda: f"slurmd is process {second}" in read(self.agent.log), "the second slurmd")
        time.sleep(9)  # more than two thirds of SlurmdTimeout
        ended = time.monotonic()
        end_second()
        until(lambda: not any(map(is_alive, pids)), "the end of the job's processes")
        self.assertGreater(time.monotonic() - ended, 7.9)
        until(lambda: "slurmd is lost" in read(self.agent.log), "the agent's message")
        until(lambda: not self.processes_of(job), "the end of the job's other processes")

    def processes_of(self, job):
        """Jobs of other clusters on this machine may have the same number."""
        return set(processes_with(f"SLURM_JOB_ID={job}")) & set(processes_with(self.slurm.conf))


class MemoryWaits(MemoryWaitCase):
    def test_it_goes_on_when_the_memory_is_free(self):
        self.fill(30000)
        job = self.start_job(self.allocating(15000))
        self.wait_waiting(job)
        self.assertEqual(self.slurm.job(job)["JobState"], "RUNNING")
        self.fill(0)
        self.check_end(job)
        self.wait_line(f"job {job}: process ")

    def test_what_it_can_never_have_fails_at_once(self):
        job = self.start_job(self.allocating(50000))
        self.check_end(job, "2")
        self.wait_line("the GPU has less memory in all")

    def test_alone_it_gets_the_true_error(self):
        """Another program that NVML does not show has the memory."""
        self.fill(30000)
        self.slurm.run(program("emulator"), "set", "1", "foreign-mib=0")
        job = self.start_job(self.allocating(15000))
        self.check_end(job, "2")

    def test_an_agent_that_is_killed_and_started_again(self):
        self.fill(30000)
        job = self.start_job(self.allocating(15000))
        self.wait_waiting(job)
        self.agent.kill()
        self.agent.wait()
        self.start_agent()
        self.wait_waiting(job)
        self.fill(0)
        self.check_end(job)

    def test_without_an_agent_it_goes_on_by_itself(self):
        self.fill(30000)
        job = self.start_job(self.allocating(15000))
        self.wait_waiting(job)
        self.agent.kill()
        self.fill(0)
        self.check_end(job)

    def check_own_library(self, own, both):
        job = self.start_job(self.allocating(100), f"--export=ALL,LD_PRELOAD={own}")
        self.check_end(job, library=both)

    def test_its_own_preloaded_library_stays(self):
        own = os.path.join(os.path.dirname(PROBE), "libinterposer.so")
        self.check_own_library(own, f"{LIBRARY}:{own}")
        self.check_own_library(f"{own}:{LIBRARY}", f"{own}:{LIBRARY}")  # inherited
        # A name with ours in it is another one.
        other = self.slurm.path("work") + LIBRARY
        os.makedirs(os.path.dirname(other))
        shutil.copy(own, other)
        self.check_own_library(other, f"{LIBRARY}:{other}")
        # What the plugin cannot hold is left as it is.
        long = ":".join([own] * (4096 // len(own) + 1))
        self.check_own_library(long, long)

    def test_without_an_environment(self):
        self.fill(30000)
        job = self.start_job(self.allocating(15000), "--export=NONE")
        self.wait_waiting(job)
        self.fill(0)
        self.check_end(job)

    def test_a_step_within_the_job(self):
        """It inherits the variables of the batch script, and gets the same once."""
        self.fill(30000)
        script = self.allocating(15000).replace(PROBE, f"srun {PROBE}")
        job = self.start_job(script + "; srun sh -c 'echo $LD_PRELOAD'")
        self.wait_waiting(job)
        self.fill(0)
        self.slurm.wait_job(job, "COMPLETED")
        self.assertEqual(self.output(job).split(), [f"LD_PRELOAD={LIBRARY}", "0", LIBRARY])

    def in_container(self, container, *options):
        """A step whose other file system appears with its task, as pyxis does it."""
        probe = f"{PROBE} dlsym alloc 15000"
        script = self.allocating(15000).replace(
            probe,
            f"export PRETEND_CONTAINER={container}\n"
            f"""srun sh -c 'echo LD_PRELOAD=$LD_PRELOAD; {probe}'""",
        )
        return self.start_job(script, *options)

    def check_container(self, job, before, within, answer="0"):
        self.slurm.wait_job(job, "COMPLETED", "FAILED")
        lines = [f"LD_PRELOAD={before}", f"LD_PRELOAD={within}", answer]
        self.assertEqual(self.output(job).split(), lines, self.output(job, "err"))
        self.assertNotIn("ld.so", self.output(job, "err"))

    def test_a_container_with_the_library(self):
        self.fill(30000)
        job = self.in_container("yes")
        self.wait_waiting(job)
        self.fill(0)
        self.check_container(job, LIBRARY, LIBRARY)

    def test_a_container_without_the_library(self):
        """It works as before, and no process prints an error of the dynamic linker."""
        self.fill(30000)
        job = self.in_container(os.path.dirname(LIBRARY))
        self.check_container(job, LIBRARY, "", answer="2")
        own = os.path.join(os.path.dirname(PROBE), "libinterposer.so")
        job = self.in_container(os.path.dirname(LIBRARY), f"--export=ALL,LD_PRELOAD={own}")
        self.check_container(job, f"{LIBRARY}:{own}", own, answer="2")

    def test_who_does_not_get_it(self):
        job = self.start_job(self.allocating(100), is_pinned=False)
        self.check_end(job, library="")
        job = self.start_job(self.allocating(100), "--colloc-preload=no")
        self.check_end(job, library="")
        self.agent.kill()
        self.hub.wait(lambda value: value == "gone n0")
        self.start_agent("--preload=no")
        self.hub.wait_report(lambda r: True)
        job = self.start_job(self.allocating(100))
        self.check_end(job, library="")

    def test_another_users_job_is_not_spoken_for(self):
        """A process that names a job of another user is not let in, nor are its waits."""
        job = self.start_job("echo begun; exec sleep 1000")
        self.wait_output(job)
        magic, wait, needs_memory = 0x50434C43, 2, 1  # src/preload/protocol.h
        packet = struct.pack(
            "=I4BQIIQQQ16s", magic, 1, wait, needs_memory, 0, int(job), 1, 0, MIB, 0, 0, bytes(16)
        )
        path = self.slurm.path("run/node.sock.preload")
        code = (
            "import socket, sys; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); "
            f"s.connect({path!r}); s.send({packet!r}); s.settimeout(60); "
            "print(len(s.recv(64)))"
        )
        python = shutil.which("python3", path="/usr/bin:/bin")
        found = self.slurm.run(python, "-c", code, user="daemon", check=False)
        self.assertIn(found.stdout.strip(), ("0", ""), found)
        found = self.slurm.run(python, "-c", code)
        self.assertEqual(found.stdout.strip(), "64")


@unittest.skipIf(why_not(), why_not())
class PluginOptions(unittest.TestCase):
    """The options that the plugin gives sbatch, without an agent."""

    def setUp(self):
        guard = subprocess.run(
            [program("colloc"), "slurm", "script", "job_submit.lua", f"--folder={self.conf()}"],
            capture_output=True,
            text=True,
            check=True,
            timeout=LIMIT_S,
        ).stdout
        files = {"plugstack.conf": f"optional {PLUGIN}\n", "job_submit.lua": guard}
        self.slurm = loopback.Loopback(nodes=1, gpus=1, files=files)
        self.slurm.__enter__()
        self.addCleanup(self.slurm.__exit__)

    def conf(self):
        folder = tempfile.mkdtemp(prefix="colloc-test-")
        self.addCleanup(shutil.rmtree, folder)
        with open(os.path.join(folder, "slurm.conf"), "w", encoding="utf-8") as file:
            file.write("ClusterName=x\n")
        return folder

    def test_mistakes_are_refused(self):
        for option, message in (
            ("--colloc-memory=much", "give a size such as 12GiB"),
            ("--colloc-memory=0", "give a size such as 12GiB"),
            ("--colloc-sharing=twice", "give auto, streams or mps"),
            ("--colloc-summary=", "give the file of a model's summary"),
            ('--colloc-summary=a"b', "quotes and backslashes are refused"),
        ):
            done = self.slurm.run("sbatch", option, text="#!/bin/bash\ntrue\n", check=False)
            self.assertNotEqual(done.returncode, 0, option)
            self.assertIn(message, done.stderr)

    def script_of(self, script, *options):
        job = self.slurm.sbatch(script, *options)
        return self.slurm.run("scontrol", "write", "batch_script", job, "-").stdout.strip()

    def test_they_become_a_line_of_the_script(self):
        script = "#!/bin/bash\n#COLLOC --memory=1GiB\n\ntrue"
        options = ["--colloc-memory=12GiB", "--colloc-sharing=mps", "--colloc-summary=a b.txt"]
        self.assertEqual(
            self.script_of(script, *options),
            "#!/bin/bash\n#COLLOC --memory=1GiB\n\n"
            '#COLLOC --memory="12GiB" --summary="a b.txt" --sharing="mps"\ntrue',
        )
        self.assertEqual(self.script_of(script), script)
        self.assertEqual(
            self.script_of("#!/bin/bash", "--colloc-memory=2GiB"),
            '#!/bin/bash\n#COLLOC --memory="2GiB"',
        )
        # Without an agent and outside of colloc's partitions a job runs all the same.
        job = self.slurm.sbatch("true", "--partition=gpu-run", "--gres=shard:i0:1", *options)
        self.slurm.wait_job(job, "COMPLETED")


if __name__ == "__main__":
    unittest.main(verbosity=2)
