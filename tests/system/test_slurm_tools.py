# SPDX-License-Identifier: Apache-2.0
"""Programs that talk to Slurm, as they are, with colloc under Slurm's names.

Snakemake and JupyterHub are Debian's packages; submitit, batchspawner and Open OnDemand's ood_core
are not: their tests run where Debian's Python finds the first two (PYTHONPATH may name their
sources), and where COLLOC_OOD_CORE names the third. A missing program is skipped;
tests/unit/cli/test_slurm_names.py has the command lines of all.
"""

import json
import os
import pwd
import shutil
import socket
import subprocess
import unittest
import urllib.error
import urllib.request

from daemon_case import LIMIT_S, DaemonCase, program, until

from colloc_slurm.loopback import free_ports

NAMES = ("sbatch", "squeue", "sacct", "scancel", "scontrol", "sinfo", "srun", "salloc", "sacctmgr")
PYTHON = "/usr/bin/python3"  # which Debian's packages are for


def has_modules(*names):
    """Does Debian's Python import them?"""
    words = [PYTHON, "-c", "".join(f"import {name};" for name in names)]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


class SlurmTools(DaemonCase):
    gpus = "2xA100-40GB"

    def setUp(self):
        super().setUp()
        self.bin = os.path.join(self.folder, "bin")
        os.mkdir(self.bin)
        for name in NAMES:
            os.symlink(program("colloc"), os.path.join(self.bin, name))
        self.tool_env = {
            **self.env,
            "PATH": f"{self.bin}:/usr/bin:/bin:{self.env['PATH']}",
            "COLLOC_SOCKET": self.socket,
            "HOME": self.folder,
            "NODE_PATH": "/usr/share/nodejs:/usr/lib/nodejs",  # for a node that is not Debian's
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            "USER": pwd.getpwuid(os.geteuid()).pw_name,
        }

    def run_tool(self, *words, limit_s=LIMIT_S):
        return subprocess.run(
            words,
            cwd=self.work,
            env=self.tool_env,
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
        )


SNAKEFILE = """
rule all:
    input: expand("model_{seed}.txt", seed=[1, 2]), "never.txt"

rule train:
    output: "model_{seed}.txt"
    threads: 1
    resources: mem_mb=100, runtime=10, slurm_extra="--gres=gpu:1"
    shell: "echo $CUDA_VISIBLE_DEVICES $SLURM_JOB_ID >{output}"

rule fails:
    output: "never.txt"
    resources: mem_mb=100, runtime=10
    shell: "exit 3"
"""


@unittest.skipUnless(os.path.exists("/usr/bin/snakemake"), "needs snakemake")
class Snakemake(SlurmTools):
    def test_its_slurm_executor(self):
        """Debian's 7.21. Of more than one check a second it makes one in 33 s, or in 100."""
        self.write("Snakefile", SNAKEFILE)
        done = self.run_tool(
            *"/usr/bin/snakemake --slurm --jobs 3 --keep-going --latency-wait 60".split(),
            "--max-status-checks-per-second=1",
            *"--default-resources slurm_account=colloc slurm_partition=colloc".split(),
            limit_s=3 * LIMIT_S,
        )
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("2 of 4 steps (50%) done", done.stderr)
        self.assertRegex(done.stderr, "Error in rule fails:(.|\n)*status is: 'FAILED'")
        lines = [self.read(f"model_{seed}.txt").split() for seed in (1, 2)]
        tasks = self.tasks(state="all")
        states = sorted(task["state"] for task in tasks)
        self.assertEqual(states, ["COMPLETED", "COMPLETED", "FAILED"])
        ids = {str(task["id"]) for task in tasks if task["state"] == "COMPLETED"}
        self.assertEqual({line[-1] for line in lines}, ids)

    def test_an_account_that_is_none(self):
        self.write("Snakefile", 'rule a:\n    output: "a"\n    shell: "touch a"\n')
        words = "/usr/bin/snakemake --slurm --jobs 1 --default-resources slurm_account=lab"
        done = self.run_tool(*words.split())
        self.assertIn("Available accounts:\ncolloc", done.stderr)


# A job, an array of three, one that raises and one that is cancelled, as submitit's README does it.
SUBMITIT = """
import json, os, time
import submitit

def train(x):
    if x == 3:
        raise ValueError("x is 3")
    job = submitit.JobEnvironment()
    return x * 10, job.job_id, job.num_tasks, os.environ["CUDA_VISIBLE_DEVICES"]

def wait_state(job, *passed):
    # A result is there before its job has ended.
    state = "UNKNOWN"
    while state in ("UNKNOWN", "PENDING", *passed):
        time.sleep(0.1)
        state = job.get_info(mode="force").get("State", "UNKNOWN")
    return state

def wait_end(job):
    return wait_state(job, "RUNNING", "COMPLETING")

executor = submitit.AutoExecutor(folder="logs")
executor.update_parameters(timeout_min=10, gpus_per_node=1, slurm_array_parallelism=2, name="fit")
one = executor.submit(train, 1)
said = {"cluster": executor.cluster}
jobs = [executor.submit(train, 1), *executor.map_array(train, [1, 2, 4])]
said["jobs"] = [[job.job_id, *job.result(), wait_end(job)] for job in jobs]
bad = executor.submit(train, 3)
said["raised"] = ["ValueError: x is 3" in str(bad.exception()).splitlines(), wait_end(bad)]
long = executor.submit(time.sleep, 1000)
wait_state(long)
long.cancel()
said["cancelled"] = wait_end(long)
print(json.dumps(said))
"""


class Submitit(SlurmTools):
    def test_its_executor(self):
        if not has_modules("submitit"):
            self.skipTest("needs submitit for " + PYTHON)
        done = self.run_tool(PYTHON, self.write("sweep.py", SUBMITIT))
        self.assertEqual(done.returncode, 0, done.stderr)
        said = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual(said["cluster"], "slurm")
        for x, (job, result, inside, n_tasks, gpu, state) in zip((1, 1, 2, 4), said["jobs"]):
            self.assertEqual((result, inside, n_tasks, state), (x * 10, job, 1, "COMPLETED"))
            self.assertIn(gpu, ("0", "1"))
        array = said["jobs"][1][0].split("_")[0]
        self.assertEqual([job[0] for job in said["jobs"][1:]], [f"{array}_{i}" for i in range(3)])
        self.assertEqual(said["raised"], [True, "FAILED"])
        self.assertRegex(said["cancelled"], "^CANCELLED")
        self.assertEqual({task["name"] for task in self.tasks(state="all")}, {"fit"})


OOD_CORE = os.environ.get("COLLOC_OOD_CORE")  # the folder `lib` of OSC/ood_core, such as v0.31.1

# The adapter as the dashboard calls it. Two libraries that it loads for other schedulers are empty.
ON_DEMAND = """
require "json"
require "open3" # one of the libraries left out loads it
require "ood_core"
require "ood_core/job/adapters/slurm"
adapter = OodCore::Job::Factory.build(adapter: "slurm", cluster: "colloc", bin: ARGV[0])
make = ->(text, more = {}) { OodCore::Job::Script.new(content: text, **more) }
waits = "#!/bin/bash\\n#SBATCH --gres=gpu:1\\nwhile [ ! -e end ]; do sleep 0.1; done"
id = adapter.submit(make.(waits, job_name: "desktop", wall_time: 3600, workdir: Dir.pwd,
    output_path: Dir.pwd + "/desktop.out"))
held = adapter.submit(make.("#!/bin/bash\\ntrue", submit_as_hold: true, workdir: Dir.pwd))
after = adapter.submit(make.("#!/bin/bash\\ntrue", workdir: Dir.pwd), afterok: id)
sleep 0.1 until adapter.status(id).running?
info = adapter.info(id)
said = {
  running: [info.job_name, info.status.to_s, info.wallclock_limit, info.queue_name, info.gpus],
  hosts: info.allocated_nodes.map(&:name),
  held: [adapter.status(held).to_s, adapter.status(after).to_s],
  all: adapter.info_all.map(&:id).sort,
  mine: adapter.info_where_owner(Etc.getlogin || Etc.getpwuid.name).size,
  accounts: adapter.accounts.map(&:name), queues: adapter.queues.map(&:name),
  nodes: adapter.nodes.map(&:name), gpus: adapter.cluster_info.total_gpus,
}
adapter.hold(after)
adapter.release(held)
adapter.release(after)
File.write("end", "")
[id, held, after].each { |job| sleep 0.1 until adapter.status(job).completed? }
last = adapter.submit(make.("#!/bin/bash\\nsleep 1000", workdir: Dir.pwd))
adapter.delete(last)
sleep 0.1 until adapter.status(last).completed?
said[:history] = adapter.info_historic.map { |job| [job.id, job.status.to_s] }.to_h
puts JSON.generate(said)
"""


@unittest.skipUnless(OOD_CORE and shutil.which("ruby"), "needs COLLOC_OOD_CORE and ruby")
class OpenOnDemand(SlurmTools):
    def test_its_adapter(self):
        empty = os.path.join(self.folder, "empty")
        for name in ("fog/openstack.rb", "ood_support.rb"):
            os.makedirs(os.path.dirname(os.path.join(empty, name)), exist_ok=True)
            with open(os.path.join(empty, name), "wb"):
                pass
        script = self.write("dashboard.rb", ON_DEMAND)
        done = self.run_tool("ruby", f"-I{empty}", f"-I{OOD_CORE}", script, self.bin)
        self.assertEqual(done.returncode, 0, done.stderr)
        said, host = json.loads(done.stdout), socket.gethostname()
        self.assertEqual(said["running"], ["desktop", "running", 3600, "colloc", 1])
        self.assertEqual((said["hosts"], said["nodes"]), ([host], [host]))
        self.assertEqual(said["held"], ["queued", "queued"])
        self.assertEqual((said["all"], said["mine"]), (["1", "2", "3"], 3))
        self.assertEqual((said["accounts"], said["queues"]), (["colloc"], ["colloc"]))
        self.assertEqual(said["gpus"], 2)
        self.assertEqual(said["history"], {str(n): "completed" for n in range(1, 5)})


HUB = """
import batchspawner
c.JupyterHub.bind_url = "http://127.0.0.1:{port}"
c.JupyterHub.hub_port = {hub_port}
c.JupyterHub.hub_connect_ip = "127.0.0.1"
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{proxy_port}"
c.JupyterHub.spawner_class = "batchspawner.SlurmSpawner"
c.JupyterHub.authenticator_class = "dummy"
c.JupyterHub.services = [{{"name": "test", "api_token": "secret-of-the-test"}}]
c.JupyterHub.load_roles = [{{"name": "test", "services": ["test"], "scopes":
    ["admin:users", "admin:servers", "access:servers"]}}]
c.SlurmSpawner.exec_prefix = ""
c.SlurmSpawner.batch_script = batchspawner.SlurmSpawner.batch_script.default_value.replace(
    "{{{{homedir}}}}", "{home}")
c.SlurmSpawner.req_gres = "gpu:1"
c.SlurmSpawner.req_runtime = "1:00:00"
c.SlurmSpawner.batchspawner_singleuser_cmd = "{single}"
c.Spawner.cmd = ["{notebook}"]
c.Spawner.args = ["--allow-root"]
c.Spawner.env_keep = ["PATH", "PYTHONPATH", "COLLOC_SOCKET"]
c.Spawner.start_timeout = {limit}
c.Spawner.http_timeout = {limit}
c.BatchSpawnerBase.startup_poll_interval = 0.2
"""


class JupyterHub(SlurmTools):
    def setUp(self):
        if not (shutil.which("jupyterhub", path="/usr/bin") and has_modules("batchspawner")):
            self.skipTest("needs jupyterhub and batchspawner for " + PYTHON)
        super().setUp()
        self.user = self.tool_env["USER"]
        single = self.write("single", f'#!/bin/sh\nexec {PYTHON} -m batchspawner.singleuser "$@"\n')
        os.chmod(single, 0o755)
        self.port, hub_port, proxy_port = free_ports(3)
        config = self.write(
            "hub.py",
            HUB.format(
                port=self.port,
                hub_port=hub_port,
                proxy_port=proxy_port,
                home=self.folder,
                single=single,
                notebook="/usr/bin/jupyterhub-singleuser",
                limit=LIMIT_S,
            ),
        )
        words = ["/usr/bin/jupyterhub", "--no-ssl", f"--config={config}"]
        self.hub_log = open(os.path.join(self.folder, "hub.log"), "wb")
        self.addCleanup(self.hub_log.close)
        self.hub = subprocess.Popen(
            words, cwd=self.folder, env=self.tool_env, stdout=self.hub_log, stderr=self.hub_log
        )
        self.addCleanup(self.hub.wait)
        self.addCleanup(self.hub.terminate)

    def call(self, method, path):
        """The status and the body of a request to the hub; 0: it does not answer."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            method=method,
            headers={"Authorization": "token secret-of-the-test"},
            data=b"{}" if method == "POST" else None,
        )
        try:
            with urllib.request.urlopen(request, timeout=LIMIT_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def explain(self):
        with open(self.hub_log.name, encoding="utf-8", errors="replace") as log:
            return log.read()[-6000:]

    def until(self, condition, what):
        try:
            until(condition, what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.explain()}") from None

    def test_a_users_server_is_a_task(self):
        self.until(
            lambda: self.hub.poll() is not None or self.call("GET", "/hub/api/")[0] == 200,
            "the hub's start",
        )
        self.call("POST", f"/hub/api/users/{self.user}")
        status, text = self.call("POST", f"/hub/api/users/{self.user}/server")
        self.assertIn(status, (201, 202), text + self.explain())
        self.until(
            lambda: json.loads(self.call("GET", f"/hub/api/users/{self.user}")[1])["server"],
            "the user's server",
        )
        status, text = self.call("GET", f"/user/{self.user}/api/status")
        self.assertEqual(status, 200, text)
        task = self.tasks()[0]
        self.assertEqual((task["state"], task["name"]), ("RUNNING", "spawner-jupyterhub"))
        self.assertEqual((len(task["gpus"]), task["time_limit_s"]), (1, 3600))
        status, text = self.call("DELETE", f"/hub/api/users/{self.user}/server")
        self.assertIn(status, (202, 204), text)
        self.wait(task["id"], "CANCELLED")


if __name__ == "__main__":
    unittest.main()
