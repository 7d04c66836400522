#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Handing in tasks, changing them, waiting for them, reading their logs: requests, words and exit
codes.
"""

import getpass
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
import unittest

from cli_case import COLLOC, CliCase
from fake_collocd import make_task

ENDINGS = [
    ({"state": "COMPLETED", "exit_code": 0}, 0),
    ({"state": "FAILED", "exit_code": 3, "reason": "NonZeroExitCode"}, 3),
    ({"state": "FAILED", "signal": 9, "reason": "RaisedSignal"}, 137),
    ({"state": "FAILED", "reason": "Launch"}, 1),
    ({"state": "OUT_OF_MEMORY", "exit_code": 1}, 75),
    ({"state": "TIMEOUT", "signal": 15}, 124),
    ({"state": "CANCELLED", "signal": 15}, 130),
]


class Submit(CliCase):
    def submitted(self):
        posts = [
            body
            for method, path, body in self.daemon.requests
            if (method, path) == ("POST", "/v1/tasks")
        ]
        self.assertEqual(len(posts), 1)
        return posts[0]

    def test_script(self):
        self.write("net.txt", "Linear(in_features=1, out_features=1)\n")
        script = (
            "#!/bin/bash\n#COLLOC --gpus=2 --summary=net.txt --batch=64 --memory=6G "
            '--mem=32000 -t 90s\npython train.py "$@"\n'
        )
        self.write("train.sh", script)
        self.assertEqual(
            self.colloc("submit", "--batch=32", "train.sh", "--lr", "0.1", FLAVOUR="é"),
            "Submitted task 12\n",
        )
        body = self.submitted()
        self.assertEqual(body.pop("environment"), {**self.environment, "FLAVOUR": "é"})
        self.assertEqual(body.pop("umask"), body_umask())
        self.assertEqual(
            body,
            {
                "script": script,
                "arguments": ["--lr", "0.1"],
                "cwd": self.folder,
                "name": "train.sh",
                "gpus": 2,
                "summary": {"name": "net.txt", "text": "Linear(in_features=1, out_features=1)\n"},
                "batch": 32,
                "memory_mib": 6144,
                "host_memory_mib": 32000,
                "time_limit_s": 90,
                "command": "train.sh --lr 0.1",
            },
        )

    def test_command(self):
        self.colloc("submit", "--name=x", "--hold", "--", "echo", "a  b", "$HOME", "--gpus=9")
        body = self.submitted()
        self.assertEqual(body["script"], '#!/bin/sh\nexec "$@"\n')
        self.assertEqual(body["arguments"], ["echo", "a  b", "$HOME", "--gpus=9"])
        self.assertEqual((body["name"], body["hold"]), ("x", True))
        self.assertEqual(body["command"], "echo 'a  b' '$HOME' --gpus=9")
        self.assertNotIn("gpus", body)

    def test_a_command_is_named_by_what_it_runs(self):
        for command, name in [
            ("timeout 2h sh train.sh", "train.sh"),
            ("env A=b python3 -m pkg.mod", "pkg.mod"),
            ("/bin/true", "true"),
        ]:
            self.assertEqual(
                json.loads(self.colloc("submit", "--dry-run", "--", *command.split()))["name"], name
            )

    def test_standard_input(self):
        done = self.run_colloc("submit", "-", "a", stdin="#COLLOC --exclusive\ntrue\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(
            (self.submitted()["exclusive"], self.submitted()["arguments"]), (True, ["a"])
        )

    def test_json_and_warnings(self):
        self.daemon.submit_reply = (201, {"id": 5, "warnings": ["nothing is known of its memory"]})
        done = self.run_colloc("submit", "--json", "--", "true")
        self.assertEqual(json.loads(done.stdout), self.daemon.submit_reply[1])
        self.assertEqual(done.stderr, "colloc: warning: nothing is known of its memory\n")

    def test_lines_of_other_queues_are_pointed_out(self):
        for script, said in [
            ("#SBATCH -p gpu\ntrue\n", "line 1: #SBATCH --partition is ignored"),
            ("true\n#PBS -l x\n", "line 2: colloc does not read lines of #PBS"),
            ("#colloc --gpus=2\ntrue\n", "line 1 is ignored"),
            ("  #COLLOC --gpus=2\ntrue\n", "line 1 is ignored"),
        ]:
            self.write("job.sh", script)
            done = self.run_colloc("submit", "--dry-run", "job.sh")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(done.stderr.startswith("colloc: warning: " + said), done.stderr)
        self.write("job.sh", "#COLLOC --gpus=2\n# colloc is what runs this\ntrue\n")
        self.assertEqual(self.run_colloc("submit", "--dry-run", "job.sh").stderr, "")

    def warnings(self, *words):
        """Of a submission that is made all the same."""
        done = self.run_colloc("submit", "--dry-run", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [line.removeprefix("colloc: warning: ") for line in done.stderr.splitlines()]

    def test_options_behind_the_file_go_to_the_script(self):
        self.write("train.sh", "true\n")
        self.assertEqual(
            self.warnings("train.sh", "--gpus=2", "--lr", "--hold", "--", "--gpus=3"),
            [
                "--gpus=2 is passed to train.sh: give options of submit before FILE",
                "--hold is passed to train.sh: give options of submit before FILE",
            ],
        )
        self.assertEqual(self.warnings("--gpus=2", "train.sh", "--learning-rate=2"), [])

    def large_program(self):
        path = self.write("large", "")
        os.truncate(path, 64 << 20)
        os.chmod(path, 0o755)
        return path

    def test_what_was_meant_is_said(self):
        for words, text in [
            (
                ["python3", "x.py"],
                "python3: no such script in the current folder: did you mean `colloc submit -- "
                "python3 x.py`?",
            ),
            (
                ["--", "python3 x.py --lr 0.1"],
                "'python3 x.py --lr 0.1': no program has this name: did you mean "
                "`colloc submit -- python3 x.py --lr 0.1`?",
            ),
            (
                [self.large_program(), "x.py"],
                f"{self.large_program()}: is a program, not a script; run it with: colloc submit "
                f"-- {self.large_program()} x.py",
            ),
            (["--", "pyhton3", "x.py"], "pyhton3: no such program on PATH"),
            (["--output=.", "--", "true"], "--output=.: is a folder: give a file in it"),
        ]:
            self.assertEqual(self.complaint("submit", *words, code=2), text)
        self.write("y.py", "#!/usr/bin/env python3\n")
        self.assertEqual(self.warnings("y.py", "a"), [])

    def test_a_python_file_is_run_by_python(self):
        self.write("x.py", "#COLLOC --gpus=2\nprint()\n")
        done = self.run_colloc("submit", "x.py", "--lr", "0.1")
        self.assertEqual(
            done.stderr,
            "colloc: python3 runs x.py when the task starts: later edits of the file count\n",
        )
        body = self.submitted()
        self.assertEqual(body["arguments"], ["python3", "x.py", "--lr", "0.1"])
        self.assertEqual(body["script"], '#!/bin/sh\nexec "$@"\n')
        self.assertEqual((body["gpus"], body["name"]), (2, "x.py"))
        self.assertEqual(body["command"], "python3 x.py --lr 0.1")
        os.mkdir(os.path.join(self.folder, "empty"))
        self.assertIn("no python3 on PATH", self.complaint("submit", "x.py", code=2, PATH="empty"))

    def test_a_quoted_line_is_refused(self):
        shell = "source venv/bin/activate && python train.py"
        for words in (["--", shell], [shell]):
            self.assertEqual(
                self.complaint("submit", *words, code=2),
                f"'{shell}': no program has this name: a shell runs such a line: colloc submit -- "
                f"bash -c '{shell}'",
            )
        self.assertIn(
            "did you mean `colloc submit -- ./train.py --lr 0.1`?",
            self.complaint("submit", "--", "./train.py --lr 0.1", code=2),
        )
        self.write("a b.sh", "#!/bin/sh\n")
        os.chmod(os.path.join(self.folder, "a b.sh"), 0o755)
        self.assertEqual(self.warnings("--", "./a b.sh"), [])
        self.assertEqual(self.warnings("a b.sh"), [])

    def test_docker_is_not_the_tasks(self):
        self.write("d.sh", "#!/bin/sh\necho x\n  sudo docker run --gpus all img\n")
        self.write("e.sh", "#!/bin/sh\nexec docker exec img train\n")
        self.write("p.sh", "#!/bin/sh\n# docker run\npodman run img\ndocker images\n")
        self.write("r.sh", "#!/bin/sh\nexec docker run img\ndocker-compose up\n")
        self.write("c.sh", "#!/bin/sh\n/usr/local/bin/docker-compose up\n")
        self.write("docker", "#!/bin/sh\n")
        os.chmod(os.path.join(self.folder, "docker"), 0o755)
        for words, count in (
            (["d.sh"], 1),
            (["e.sh"], 1),
            (["p.sh"], 0),
            (["r.sh"], 0),
            (["c.sh"], 1),
            (["--", "./docker", "run", "--gpus", "all", "img"], 1),
            (["--", "./docker", "images"], 0),
        ):
            warnings = self.warnings(*words)
            self.assertEqual(len(warnings), count, words)
            self.assertTrue(all("outside the task" in line for line in warnings))

    def test_a_begin_that_has_passed(self):
        self.assertIn("has passed", self.warnings("--begin=2020-01-01", "--", "true")[0])
        self.assertEqual(self.warnings("--begin=now+1h", "--", "true"), [])
        self.assertIn(
            "not a moment to come",
            self.complaint("submit", "--begin=yesterday", "--", "true", code=2),
        )

    def test_lines_that_look_like_ours(self):
        for line, count in (
            ("# COLLOC --gpus=2", 1),
            ("#colloc --gpus=2", 1),
            ("## COLLOC -J x", 1),
            ("# colloc is a queue", 0),
            ("# collocation --x", 0),
            ("#COLLOC --gpus=2", 0),
        ):
            self.write("t.sh", f"#!/bin/sh\n{line}\ntrue\n")
            self.assertEqual(len(self.warnings("t.sh")), count, line)

    def test_options_of_other_tools(self):
        for words, text in (
            ("submit --vram=1", "--vram: no such option: --memory=12GiB is"),
            ("submit --gpu=0", "--gpu: no such option: --gpus=1 is the number of GPUs; --gpu-ids"),
            ("submit --image=ubuntu", "--image: no such option: --container=IMAGE runs"),
            ("submit --gpus=0.5 -- true", "not a whole number; tasks share GPUs without it"),
            ("submit --gpus=half -- true", "--gpus=half: not a whole number"),
            ("queue --me", "--me: no such option: --user=$USER selects your own tasks"),
            ("drain 3", "`drain: 3` in collocd.yaml"),
            ("submit --ram=1", "--host-memory=32GiB"),
            ("submit --env=A", "write A=1 before colloc"),
            ("submit --timeout=1", "--time=2h"),
            ("queue --watch", "`colloc top`"),
            ("logs --tail=3", "--lines=N"),
            ("reserve --to=1", "--for=8h"),
            ("reserve --start=1", "--from=20"),
        ):
            complaint = self.complaint(*words.split(), "--", "true", code=2)
            self.assertIn(text, complaint)
            self.assertNotIn("did you mean", complaint)
        for option in ("--decive=1", "--nodal=2", "--xyz"):
            self.assertTrue(
                self.complaint("submit", option, "--", "true", code=2).endswith("no such option")
            )

    def test_what_is_not_there_yet_is_a_warning(self):
        missing = "No such file or directory"
        self.write("plain", "")
        self.write("x.py", "")
        self.assertEqual(self.warnings("--", "./nowhere", "x"), [f"./nowhere: {missing}"])
        self.assertEqual(self.warnings("--", "./plain"), ["./plain: is not executable (chmod +x)"])
        self.assertEqual(
            self.warnings("--", "python3", "-u", "nosuch.py", "later.py"), [f"nosuch.py: {missing}"]
        )
        self.assertEqual(self.warnings("--", "python3", "x.py", "later.py"), [])
        self.assertEqual(
            self.warnings("--error=there/%j.log", "--", "true"),
            [f"--error=there/%j.log: cannot use its folder: {missing}"],
        )
        self.assertEqual(self.warnings("--output=%j/x.log", "--error=x.log", "--", "true"), [])

    def read(self, name):
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            return file.read()

    def run_as(self, name, *words, **environment):
        link = os.path.join(self.folder, name)
        if not os.path.lexists(link):
            os.symlink(os.path.abspath(COLLOC), link)
        self.daemon.requests.clear()
        return subprocess.run(
            [link, *words],
            capture_output=True,
            text=True,
            cwd=self.folder,
            env={**self.environment, **environment},
            timeout=60,
            check=False,
        )

    def test_a_step_of_a_script_for_slurm(self):
        words = (
            "-n",
            "1",
            "--nodes=1",
            "-c",
            "4",
            "sh",
            "-c",
            "printf '%s %s\\n' $0 $1; exit 7",
            "-n",
            "1",
        )
        done = self.run_as("srun", *words, COLLOC_TASK_ID="12")
        self.assertEqual((done.returncode, done.stdout), (7, "-n 1\n"), done.stderr)
        begun = ("POST", "/v1/tasks/12/steps", {"name": "sh", "processes": 1})
        self.assertEqual(self.daemon.requests, [begun], "a daemon without steps: it runs anyway")
        done = self.run_as("srun", "-N", "2", "true", COLLOC_TASK_ID="12")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("on one server", done.stderr)
        done = self.run_as("srun", "no-such-program", COLLOC_TASK_ID="12")
        self.assertEqual(done.returncode, 127)
        self.assertIn("cannot execute no-such-program", done.stderr)
        self.assertIn("no task of colloc", self.complaint("run", "--step", "true", code=2))
        self.run_as("srun", "-n1", "sh", "-c", "true")
        self.assertEqual(self.submitted()["arguments"], ["sh", "-c", "true"])

    def test_a_step_of_several_processes(self):
        show = "echo $SLURM_PROCID of $SLURM_NTASKS on $CUDA_VISIBLE_DEVICES"
        task = {"COLLOC_TASK_ID": "12", "CUDA_VISIBLE_DEVICES": "4,5,6,7"}
        done = self.run_as("srun", "-n3", "-ul", "sh", "-c", show, **task)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(
            sorted(done.stdout.splitlines()), [f"{i}: {i} of 3 on 4,5,6,7" for i in range(3)]
        )
        words = ("srun", "--gpus-per-task=2", "-o", "out_%j_%2t", "sh", "-c", show)
        done = self.run_as(*words, SLURM_NTASKS="2", **task)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertEqual(self.read("out_12_00"), "0 of 2 on 4,5\n")
        self.assertEqual(self.read("out_12_01"), "1 of 2 on 6,7\n")
        done = self.run_as("srun", "-n", "3", "sh", "-c", "exit $SLURM_PROCID", **task)
        self.assertEqual(done.returncode, 2)
        wait = 'test "$SLURM_PROCID" = 1 && exit 9; exec sleep 300'
        done = self.run_as("srun", "-n2", "-K", "sh", "-c", wait, **task)
        self.assertEqual(done.returncode, 128 + 15)
        done = self.run_as("srun", "-n2", "sh", "-c", "exec cat", **task)
        self.assertEqual(done.returncode, 0)

    def test_options_of_srun_in_a_task(self):
        for options in (
            "-w node1",
            "-u -l",
            "-K",
            "-K1",
            "--kill-on-bad-exit=1",
            "--export=ALL",
            "--export=ALL,A=1",
            "--ntasks-per-node=1",
            "--gres=gpu:1",
            "--wait=60",
            "-W 60",
            "--label",
            "--mpi=pmi2",
            "--jobid=12",
            "--cpu-bind=none",
            "--exclusive -n1 -c1 --mem=1G",
            "-p gpu -A lab -J x -t 10 --overlap --exact",
            "--pty",
            "-D . -i /dev/null",
        ):
            words = (*options.split(), "sh", "-c", "echo ran $A")
            done = self.run_as("srun", *words, COLLOC_TASK_ID="12")
            self.assertEqual((done.returncode, done.stderr), (0, ""), options)
            self.assertIn("ran", done.stdout)
        for options in ("--jobid=13", "--multi-prog", "--made-up"):
            done = self.run_as("srun", options, "true", COLLOC_TASK_ID="12")
            self.assertEqual((done.returncode, done.stdout), (2, ""), options)
            self.assertIn(options.partition("=")[0], done.stderr)

    def test_options_of_slurm_on_a_command_line(self):
        """What submitit, Snakemake, JupyterHub and people send."""
        self.write("t.sh", "#!/bin/sh\n#SBATCH --mail-type=BEGIN -J a\ntrue\n")
        for words, expected in (
            ("--gres=gpu:2 -p gpu", {"gpus": 2}),
            ("-pgpu --gpus-per-node=3", {"gpus": 3}),
            ("--gpus=a100:2", {"gpus": 2, "gpu_kinds": "a100"}),
            ("-G 2 -C h100", {"gpus": 2, "gpu_kinds": "h100"}),
            ("-D / --nice", {"cwd": "/", "priority": "low"}),
            ("--chdir=/ --account=x --qos=y --comment z", {"cwd": "/"}),
            ("--mem=32GB -n 1 --ntasks=1 -N1", {"host_memory_mib": 32768.0}),
            ("--mem-per-cpu=1G -c 4", {"host_memory_mib": 4096.0, "cpus": 4}),
            ("--mail-type=END --mail-user=ada", {"notify": "start,end", "notify_to": "ada"}),
            ("--depend=afterok:1 --job=b", {"after": "afterok:1", "name": "b"}),
            ("--export=ALL --time=UNLIMITED --wait-all-nodes=1", {}),
            ("--memory=5GiB --estimator=declared", {"memory_mib": 5120.0}),
            ("--gres=gpu:0", {"gpus": 0}),
        ):
            for program in (["sbatch"], ["submit"]):
                run = self.run_as if program == ["sbatch"] else self.run_colloc
                self.daemon.requests.clear()
                done = run(*program, *words.split(), "t.sh", "arg")
                self.assertEqual(done.returncode, 0, (program, words, done.stderr))
                body = self.submitted()
                self.assertEqual({key: body[key] for key in expected}, expected)
                self.assertEqual(body["arguments"], ["arg"])
        for words, text in (
            ("--nodes=2", "--nodes=2: colloc runs a task on one server"),
            ("-L matlab", "--licenses=matlab: colloc counts no licences"),
            ("--gres=gpu:a100:0", "a task without a GPU has no kind"),
            ("--gpu=1", "--gpus=1 is the number of GPUs"),
        ):
            self.assertIn(text, self.complaint("submit", *words.split(), "t.sh", code=2))
        done = self.run_as("sbatch", "--gp=1", "t.sh")
        self.assertIn("write the whole name; so begin --gpus, --gpus-per-node", done.stderr)

    def test_an_environment_for_slurm(self):
        self.write("t.sh", "#!/bin/sh\n")
        self.run_as("sbatch", "-n", "4", "-p", "gpu", "t.sh", B="2", COLLOC_SLURM_SCRIPT="old")
        environment = self.submitted()["environment"]
        expected = {
            "SLURM_PROCID": "0",
            "SLURM_LOCALID": "0",
            "SLURM_NODEID": "0",
            "SLURM_NTASKS": "4",
            "SLURM_NPROCS": "4",
            "SLURM_JOB_PARTITION": "gpu",
            "COLLOC_SLURM_SCRIPT": "1",
            "B": "2",
        }
        self.assertEqual({key: environment[key] for key in expected}, expected)
        self.run_as("sbatch", "--export=NONE", "t.sh", B="2", HOME="/h")
        environment = self.submitted()["environment"]
        self.assertNotIn("B", environment)
        self.assertEqual(environment["HOME"], "/h")
        self.assertEqual(environment["PATH"], "/usr/local/bin:/usr/bin:/bin")
        self.run_as("sbatch", "--export=A=1,B", "t.sh", B="2", C="3")
        environment = self.submitted()["environment"]
        self.assertEqual((environment["A"], environment["B"]), ("1", "2"))
        self.assertNotIn("C", environment)
        outer = {"SLURM_PROCID": "3", "COLLOC_ARRAY_INDEX": "1", "COLLOC_TASK_ID": "7"}
        self.daemon.requests.clear()
        self.colloc("submit", "--mem=1G", "--", "true", **outer, COLLOC_SLURM_SCRIPT="1")
        environment = self.submitted()["environment"]
        for name in ("SLURM_PROCID", "COLLOC_ARRAY_INDEX", "COLLOC_SLURM_SCRIPT"):
            self.assertNotIn(name, environment)

    def test_patterns_of_file_names(self):
        host = socket.gethostname().partition(".")[0]
        self.colloc("submit", "--output=%N_%u_%t%3n_%s_%J_%4j_%%_%a.log", "--", "true")
        self.assertEqual(
            self.submitted()["output"],
            f"{host}_{getpass.getuser()}_0000_batch_%j_%4j_%%_%a.log",
        )

    def test_names_of_slurm_that_submit(self):
        self.write("t.sh", "#!/bin/sh\ntrue\n")
        link = os.path.join(self.folder, "sbatch")
        self.run_as("sbatch", "t.sh")
        self.daemon.requests.clear()
        done = subprocess.run(
            [link, "--parsable", "-J", "from-stdin"],
            input="#!/bin/sh\n#SBATCH --gres=gpu:2\ntrue\n",
            capture_output=True,
            text=True,
            env=self.environment,
            timeout=60,
            check=False,
        )
        self.assertRegex(done.stdout, r"^\d+\n$", done.stderr)
        body = self.submitted()
        self.assertEqual((body["name"], body["gpus"]), ("from-stdin", 2))
        self.daemon.requests.clear()
        done = self.run_as("sbatch", "--test-only", "t.sh")
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertIn("nothing was submitted", done.stderr)
        self.assertEqual(self.daemon.requests, [])
        self.run_as("salloc", "-G", "1", "sh", "-c", "true")
        self.assertEqual(self.submitted()["arguments"], ["sh", "-c", "true"])
        self.assertIn("no terminal", self.run_as("salloc", "--gres=gpu:1").stderr)
        done = self.run_as("srun", "-n", "2", "--gres=gpu:2", "sh", "-c", "true")
        arguments = self.submitted()["arguments"]
        self.assertEqual(arguments[1:], ["run", "--step", "-n", "2", "--", "sh", "-c", "true"])
        self.assertTrue(os.access(arguments[0], os.X_OK))

    def test_where_to_move(self):
        self.daemon.tasks = [make_task(3)]
        for words in (["3", "0,2"], ["--gpu=0,2", "3"], ["3", "--gpu", "0,2"]):
            self.daemon.requests.clear()
            self.run_colloc("move", *words)
            self.assertEqual(
                self.daemon.requests[-1][1:], ("/v1/tasks/3/move", {"gpus": ["0", "2"]})
            )
        self.daemon.requests.clear()
        for words, says in ((["3"], "move to: colloc move 3 3"), (["3", "1", "--gpu=1"], "once")):
            done = self.run_colloc("move", *words)
            self.assertEqual(done.returncode, 2)
            self.assertIn(says, done.stderr)
        self.assertEqual(self.daemon.requests, [])

    def test_scontrol(self):
        done = self.run_as("scontrol", "show", "hostnames", "n[08-10,3],m,k[1-2]x")
        self.assertEqual(done.stdout.split(), "n08 n09 n10 n3 m k1x k2x".split())
        done = self.run_as("scontrol", "show", "hostnames", SLURM_JOB_NODELIST="here")
        self.assertEqual(done.stdout, "here\n")
        for bad in ("n[1-", "n[x]", "n[3-1]", "n[1-99999999]", f"n[{2**63}]"):
            self.assertEqual(self.run_as("scontrol", "show", "hostname", bad).returncode, 2)
        done = self.run_as("scontrol", "reconfigure")
        self.assertEqual(done.returncode, 2)
        self.assertIn("requeue", done.stderr)
        self.daemon.tasks = [make_task(3)]
        self.run_as("scontrol", "hold", "3")
        self.assertEqual(self.daemon.requests[0][1], "/v1/tasks/3/hold")

    def test_names_of_slurm(self):
        self.write("job.sh", "#!/bin/sh\n#SBATCH -J net\npython train.py\n")
        done = self.run_as("sbatch", "--array=0-3", "job.sh", "--parsable")
        self.assertRegex(done.stdout, r"^Submitted batch job \d+\n$", done.stderr)
        self.assertEqual(self.submitted()["arguments"], ["--parsable"])
        done = self.run_as("sbatch", "--parsable", "-J", "other", "job.sh")
        self.assertRegex(done.stdout, r"^\d+\n$", done.stderr)
        self.assertEqual(self.submitted()["name"], "other")
        done = self.run_as("sbatch", "-c", "4", "--wrap=echo 'a  b'")
        self.assertRegex(done.stdout, r"^Submitted batch job \d+\n$", done.stderr)
        self.assertEqual(self.submitted()["arguments"], ["/bin/sh", "-c", "echo 'a  b'"])
        self.assertIn("nodelist", self.run_as("sbatch", "--nodelist=x", "job.sh").stderr)
        self.daemon.tasks = [make_task(3)]
        self.assertEqual(self.run_as("scancel", "3").returncode, 0)
        self.assertEqual(self.daemon.requests[0][1], "/v1/tasks/3/cancel")
        self.run_as("squeue", "--me")
        self.assertIn("user=", self.daemon.requests[0][1])
        self.run_as("sacct", "-X", "--starttime=2026-01-01", "-E", "2026-02-01")
        self.assertIn("since=", self.daemon.requests[0][1])
        self.assertIn("until=", self.daemon.requests[0][1])
        self.assertEqual(self.run_as("sinfo").stdout, self.colloc("gpus"))

    def test_a_script_for_slurm(self):
        os.mkdir(os.path.join(self.folder, "runs"))
        self.write(
            "job.sh",
            "#!/bin/sh\n#SBATCH -J net --gres=gpu:2 --chdir=runs --export=ALL,LR=0.1 -c 4\n"
            "#SBATCH --array=1-4 -t 90\npython train.py\n",
        )
        done = self.run_colloc("submit", "job.sh")
        self.assertEqual(done.stderr, "")
        body = self.submitted()
        self.assertEqual(
            [body[key] for key in ("name", "gpus", "array", "time_limit_s", "cpus")],
            ["net", 2, "1-4", 5400, 4],
        )
        self.assertEqual(body["cwd"], os.path.realpath(os.path.join(self.folder, "runs")))
        environment = body["environment"]
        self.assertEqual(
            [environment[name] for name in ("LR", "SLURM_JOB_NAME", "SLURM_CPUS_PER_TASK")],
            ["0.1", "net", "4"],
        )
        self.assertEqual(environment["SLURM_SUBMIT_DIR"], os.path.realpath(self.folder))

    def test_what_a_script_for_slurm_cannot_have(self):
        for line, text in [
            ("--gres=gpu:a100:2,gpu:v100:1", "give a number of GPUs, or a kind"),
            ("-N 2", "colloc runs a task on one server"),
            ("--constraint=a100*2", "give kinds of GPUs"),
            ("--gres=gpu:1,vmem:3g", "--gres=gpu:1,vmem:3g: colloc has no generic resource"),
            ("--chdir", "needs a value"),
        ]:
            self.write("job.sh", f"#!/bin/sh\n#SBATCH {line}\ntrue\n")
            complaint = self.complaint("submit", "job.sh", code=2)
            self.assertTrue(complaint.startswith("job.sh:2: #SBATCH "), complaint)
            self.assertIn(text, complaint)

    def test_dependencies_are_checked(self):
        self.colloc("submit", "--after=ok:12,any:13", "--", "true")
        self.assertEqual(self.submitted()["after"], "ok:12,any:13")
        complaint = self.complaint("submit", "--dependency=after:12", "--", "true", code=2)
        self.assertIn("only afterok, afterany", complaint)
        for text in ("12", "ok:12,", "ok:0"):
            self.assertIn(
                "must be ok:ID, any:ID or notok:ID",
                self.complaint("submit", f"--dependency={text}", "--", "true", code=2),
            )

    def test_arrays(self):
        self.daemon.submit_reply = (201, {"id": 5, "tasks": 4, "warnings": []})
        self.assertEqual(
            self.colloc("submit", "--array=1-4%2", "--", "true"), "Submitted array 5 (4 tasks)\n"
        )
        self.assertEqual(self.submitted()["array"], "1-4%2")
        self.assertIn(
            "array=0-999999999: an array has at most 10000 tasks",
            self.complaint("submit", "--array=0-999999999", "--", "true", code=2),
        )

    def test_when_a_task_begins(self):
        self.colloc("submit", "--begin=@1800000000", "--priority=low", "--requeue=no", "--", "true")
        body = self.submitted()
        self.assertEqual(
            (body["begin"], body["priority"], body["requeue"]), (1800000000, "low", False)
        )

    def test_a_task_begins_some_time_from_now(self):
        before = time.time()
        self.colloc("submit", "--begin=now+2h", "--", "true")
        self.assertGreaterEqual(self.submitted()["begin"], int(before) + 7200)

    def test_an_interrupted_wait_says_that_the_task_goes_on(self):
        self.daemon.tasks = [make_task(12, state="RUNNING")]
        process = self.start_colloc("wait", "12")
        limit = time.monotonic() + 60
        while len(self.daemon.requests) < 2:  # the second is one that waits
            self.assertLess(time.monotonic(), limit)
            os.sched_yield()
        process.send_signal(signal.SIGINT)
        err = process.communicate(timeout=60)[1]
        self.assertEqual(
            (process.returncode, err),
            (130, "\ncolloc: task 12 continues; `colloc cancel 12` ends it\n"),
        )

    def test_dry_run(self):
        self.assertEqual(
            json.loads(self.colloc("submit", "--dry-run", "--gpus=3", "--", "true"))["gpus"], 3
        )
        self.assertEqual(self.daemon.requests, [])

    def test_refusal(self):
        self.daemon.submit_reply = (
            400,
            {"error": {"code": "bad-request", "message": "--gpus=65: this server has 4 GPUs"}},
        )
        self.assertEqual(
            self.complaint("submit", "--gpus=65", "--", "true", code=1),
            "--gpus=65: this server has 4 GPUs",
        )

    def test_mistakes_reach_no_daemon(self):
        self.write("bad.sh", "#!/bin/sh\n#COLLOC --batch=0\ntrue\n")
        self.write("lost.rad", "true\nmodel: nowhere.txt\n")
        self.write(
            "lost.sh",
            "#!/bin/sh\n#COLLOC --summary=x.txt\n#COLLOC --batch=8\n"
            "#COLLOC --summary=nowhere.txt\n#COLLOC --time=1h\ntrue\n",
        )
        self.write("lines.rad", "\n\ntrue\nnowhere.txt\nimagenet\n8\nexclusive\n1\n")
        for words, text in [
            (["nowhere.sh"], "nowhere.sh: No such file or directory"),
            (["bad.sh"], "bad.sh:2: --batch=0: must be from 1 to 1000000000"),
            (["lost.rad"], "lost.rad:2: model summary: nowhere.txt: No such file or directory"),
            (["lost.sh"], "lost.sh:4: model summary: nowhere.txt: No such file or directory"),
            (["lines.rad"], "lines.rad:4: model summary: nowhere.txt: No such file or directory"),
            (
                ["--summary=no.txt", "lost.sh"],
                "model summary: no.txt: No such file or directory",
            ),
            (["--gpus=65536", "bad.sh"], "--gpus=65536: must be from 0 to 1024"),
            (["--gpsu=1", "bad.sh"], "--gpsu: no such option; did you mean --gpus?"),
            (
                ["--memory=12", "bad.sh"],
                "--memory=12: has no unit; write --memory=12GiB, or 12MiB if you mean that",
            ),
            (["--", "echo", "\udcff"], "argument 2 of the task is not UTF-8 text"),
        ]:
            self.assertEqual(self.complaint("submit", *words, code=2), text)
        self.assertEqual(self.daemon.requests, [])

    def test_options_of_a_network_need_one(self):
        self.write("net.txt", "a summary\n")
        done = self.run_colloc("submit", "--batch=8", "--seq=128", "--", "true")
        self.assertEqual(done.returncode, 0)
        for name in ("batch", "seq"):
            self.assertIn(f"--{name} has no effect without a model summary", done.stderr)
        done = self.run_colloc("submit", "--batch=8", "--summary=net.txt", "--", "true")
        self.assertEqual(done.stderr, "")

    def test_sharing_of_an_exclusive_task(self):
        done = self.run_colloc("submit", "--exclusive", "--sharing=mps", "--", "true")
        self.assertEqual(done.returncode, 0)
        self.assertIn("--sharing=mps is for the task's own processes only", done.stderr)
        for words in (("--exclusive",), ("--sharing=mps",), ("--exclusive", "--sharing=streams")):
            self.assertEqual(self.run_colloc("submit", *words, "--", "true").stderr, "")

    def test_environment_that_is_no_text(self):
        done = self.run_colloc("submit", "--", "true", ODD="\udcff")
        self.assertEqual(done.returncode, 0)
        self.assertIn(
            "environment variable ODD is not UTF-8 text: the task does not get it", done.stderr
        )
        self.assertNotIn("ODD", self.submitted()["environment"])

    def test_wait(self):
        for ending, code in ENDINGS:
            self.daemon.tasks = [make_task(12, **ending)]
            self.colloc("submit", "--wait", "--", "true", code=code)


def body_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


class Attempts(CliCase):
    def test_how_each_ended(self):
        one = {"gpus": ["0"], "started_at": 1700000000, "ended_at": 1700000060, "reason": "None"}
        crash = {**one, "reason": "OutOfMemory"}
        now = {**one, "ended_at": None, "reason": None}
        self.daemon.tasks = [make_task(1, attempts=[crash, one, now])]
        lines = re.findall(r"(?m)^Attempt (\d) +GPU 0, \S+ \S+ to (.*)$", self.colloc("show", "1"))
        self.assertEqual([number for number, _ in lines], ["1", "2", "3"])
        self.assertRegex(lines[0][1], r"^\S+ \S+: OutOfMemory$")
        self.assertRegex(lines[1][1], r"^[\d-]+ [\d:]+$")
        self.assertEqual(lines[2][1], "now")


class Wait(CliCase):
    def test_exit_codes(self):
        for ending, code in ENDINGS:
            self.daemon.tasks = [make_task(1, **ending)]
            self.assertTrue(
                self.colloc("wait", "1", code=code).startswith(
                    f"Task 1 {ending['state']} (waited 1:15, ran 0:00)"
                )
            )

    def test_several(self):
        self.daemon.tasks = [
            make_task(1, state="COMPLETED"),
            make_task(2, state="TIMEOUT"),
            make_task(3, state="FAILED", exit_code=3),
        ]
        self.assertEqual(len(self.colloc("wait", "1", "2", "3", code=124).splitlines()), 3)
        self.assertEqual(
            json.loads(self.colloc("wait", "--json", "3", "1", code=3))["tasks"],
            self.daemon.tasks[2::-2],
        )
        self.assertEqual(self.complaint("wait", "4", code=1), "task 4: no such task")

    def test_asks_again_until_the_end(self):
        asked = []

        def on_wait(task):
            asked.append(task)
            if len(asked) == 3:
                task["state"] = "COMPLETED"

        self.daemon.tasks = [make_task(1, state="RUNNING")]
        self.daemon.on_wait = on_wait
        self.colloc("wait", "1")
        self.assertEqual(len(asked), 3)

    def test_a_suspended_or_paused_task_has_not_ended(self):
        states = iter(["SUSPENDED", "PAUSED", "RUNNING", "COMPLETED"])
        self.daemon.tasks = [make_task(1, state="SUSPENDED")]
        self.daemon.on_wait = lambda task: task.update(state=next(states))
        self.colloc("wait", "1")
        self.assertEqual(list(states), [])

    def stop_daemon(self, task):
        self.daemon.on_wait = lambda task: None
        self.daemon.stop()
        raise ConnectionAbortedError

    def test_daemon_is_restarted(self):
        def on_wait(task):
            self.daemon.on_wait = self.stop_daemon

        self.daemon.tasks = [make_task(1, state="RUNNING")]
        self.daemon.on_wait = on_wait
        with self.start_colloc("wait", "1") as process:
            self.assertEqual(
                process.stderr.readline(),
                "colloc: collocd does not answer: waiting up to 60 s for its restart\n",
            )
            self.daemon.tasks[0]["state"] = "COMPLETED"
            self.daemon.start()
            self.assertEqual(process.communicate(timeout=60)[1], "")
        self.assertEqual(process.returncode, 0)

    def test_daemon_that_was_never_there(self):
        self.daemon.on_wait = self.stop_daemon
        self.daemon.tasks = [make_task(1, state="RUNNING")]
        self.assertIn("the connection to collocd", self.complaint("wait", "1", code=3))

    def test_timeout(self):
        self.daemon.tasks = [make_task(1, state="RUNNING")]
        self.assertEqual(
            self.complaint("wait", "--timeout=0", "1", code=124), "task 1 has not ended yet"
        )


class Change(CliCase):
    def test_goes_on_after_a_refusal(self):
        self.daemon.tasks = [make_task(1, state="COMPLETED"), make_task(2)]
        done = self.run_colloc("cancel", "1", "2")
        self.assertEqual((done.returncode, done.stdout), (1, "Task 2 CANCELLED\n"))
        self.assertEqual(done.stderr, "colloc: task 1 has ended: COMPLETED\n")

    def test_what_a_state_does_not_show(self):
        self.daemon.tasks = [
            make_task(1, state="SUSPENDED", reason="Resources"),
            make_task(2, state="SUSPENDED"),
        ]
        self.assertEqual(
            self.colloc("resume", "1"), "Task 1 SUSPENDED (it goes on when a GPU has room for it)\n"
        )
        self.assertEqual(
            self.colloc("requeue", "2"), "Task 2 SUSPENDED (it is being ended, and waits again)\n"
        )

    def changed(self, verb):
        """The ids that were changed: each by its own request, or many by one."""
        ids = []
        for _, path, body in self.daemon.requests:
            if path == f"/v1/tasks/{verb}":
                ids += body["tasks"]
            elif path.endswith(f"/{verb}"):
                ids.append(int(path.split("/")[3]))
        return ids

    def posts(self):
        """The paths of the requests that change, and the ids of a list."""
        return [
            (path[len("/v1/tasks/") :], *body["tasks"]) if body else path[len("/v1/tasks/") :]
            for method, path, body in self.daemon.requests
            if method == "POST"
        ]

    def test_tasks_are_selected(self):
        self.daemon.tasks = [
            make_task(3, name="a", state="RUNNING"),
            make_task(4, name="b"),
            make_task(12, name="a"),
            make_task(40, name="b"),
        ]
        for words, ids in [
            (("--name=a",), [12]),
            (("--state=running", "--name=a"), []),
            (("--state=pending",), [4, 12, 40]),
            (("--name=b", "--state=PENDING"), [4, 40]),
            (("4-12",), [4, 12]),
            (("40", "1-4"), [40, 4]),
            (("3", "12-13"), [3, 12]),  # an id is not a selection: the daemon says what is wrong
            (("--mine",), [4, 12, 40]),
        ]:
            with self.subTest(words=words):
                self.daemon.requests.clear()
                self.run_colloc("hold", *words)
                self.assertEqual(self.changed("hold"), ids)
        self.daemon.requests.clear()
        self.run_colloc("cancel", "--user=ada")
        self.assertEqual(self.daemon.requests[0][1], "/v1/tasks?user=ada")
        self.assertEqual(self.changed("cancel"), [3, 4, 12, 40])

    def test_held_tasks_are_released_and_not_held_again(self):
        self.daemon.tasks = [
            make_task(3, state="RUNNING"),
            make_task(4, reason="JobHeldUser"),
            make_task(5),
        ]
        self.run_colloc("release", "--mine")
        self.assertEqual(self.changed("release"), [4])
        self.run_colloc("hold", "1-9")
        self.assertEqual(self.changed("hold"), [5])

    def test_a_selection_of_nothing(self):
        self.daemon.tasks = [make_task(3)]
        self.assertIn("no task", self.complaint("cancel", "--name=x", code=1))
        self.assertIn("no task", self.complaint("cancel", "7-9", code=1))
        self.assertIn("no held task", self.complaint("release", "--mine", code=1))
        self.assertIn("missing argument", self.complaint("release", code=2))
        self.assertIn("either ids or", self.complaint("hold", "--mine", "3", code=2))
        for word in ("9-7", "7-", "-7x", "0-3", "3-x"):
            self.assertEqual(self.run_colloc("cancel", "--", word).returncode, 2, word)
        self.assertEqual(self.changed("cancel"), [])

    def test_one_connection_for_all(self):
        self.daemon.tasks = [make_task(i) for i in range(1, 5)]
        self.colloc("suspend", "1", "2", "3", "4")
        self.assertEqual(self.posts(), [f"{i}/suspend" for i in range(1, 5)])
        self.assertEqual(self.daemon.connections, 1)

    def test_several_ids_are_one_request(self):
        for verb in ("hold", "release", "cancel"):
            self.daemon.requests.clear()
            self.daemon.tasks = [make_task(i) for i in range(13, 17)]
            self.daemon.elements = {"12_3": 13, "12_4": 14, "12_5": 15}
            shown = self.colloc(verb, "12_3", "12_[4-5]", "16")
            self.assertEqual(self.posts(), [(verb, "12_3", "12_4", "12_5", 16)])
            self.assertEqual(
                [int(line.split()[1]) for line in shown.splitlines()], [13, 14, 15, 16]
            )
        self.daemon.requests.clear()
        self.run_colloc("cancel", "16")
        self.assertEqual(self.posts(), ["16/cancel"])

    def test_a_whole_array_has_a_request_of_its_own(self):
        self.daemon.tasks = [make_task(1), make_task(2)]
        self.daemon.arrays = {"12"}
        done = self.run_colloc("hold", "1", "12", "2", "9")
        self.assertEqual(self.posts(), [("hold", 1, 12, 2, 9), "12/hold", "9/hold"])
        self.assertEqual(
            done.stdout, "Task 1 PENDING\nArray 12: 2 of 3 tasks held\nTask 2 PENDING\n"
        )
        self.assertEqual((done.returncode, done.stderr), (1, "colloc: task 9: no such task\n"))

    def test_an_older_daemon_gets_one_request_for_each(self):
        for status in (404, 405):
            self.daemon.requests.clear()
            self.daemon.tasks = [make_task(1, state="COMPLETED"), make_task(2), make_task(3)]
            self.daemon.many_refusal = (status, "no such path")
            done = self.run_colloc("cancel", "1", "2", "3")
            self.assertEqual(
                self.posts(), [("cancel", 1, 2, 3), "1/cancel", "2/cancel", "3/cancel"]
            )
            self.assertEqual(
                (done.returncode, done.stdout), (1, "Task 2 CANCELLED\nTask 3 CANCELLED\n")
            )
            self.assertEqual(done.stderr, "colloc: task 1 has ended: COMPLETED\n")

    def test_a_refused_list_is_not_repeated(self):
        self.daemon.many_refusal = (409, "use scancel")
        self.assertEqual(self.complaint("cancel", "1", "2", code=1), "use scancel")
        self.assertEqual(self.posts(), [("cancel", 1, 2)])

    def test_many_are_changed_by_few_requests(self):
        ids = list(range(1, 2501))
        for verb, firsts in (("hold", [2001, 1001, 1]), ("cancel", [2001, 1001, 1])):
            self.daemon.tasks = [make_task(i) for i in ids]
            self.daemon.requests.clear()
            shown = self.colloc(verb, "--mine")
            self.assertEqual(
                [body["tasks"][0] for method, _, body in self.daemon.requests if method == "POST"],
                firsts,
            )
            self.assertEqual([int(line.split()[1]) for line in shown.splitlines()], ids)
        self.daemon.requests.clear()
        self.run_colloc("cancel", *(str(i) for i in ids))
        self.assertEqual([post[:2] for post in self.posts()], [("cancel", i) for i in firsts])
        self.daemon.tasks = [make_task(i, reason="JobHeldUser") for i in ids]
        self.daemon.requests.clear()
        self.colloc("release", "--mine")
        self.assertEqual(self.changed("release"), ids)

    def test_goes_on_after_a_refusal_among_many(self):
        self.daemon.tasks = [make_task(i) for i in (1, 2, 3)]
        listed = [make_task(i) for i in (1, 2, 3)]
        self.daemon.tasks[1]["state"] = "COMPLETED"  # since it was listed
        self.daemon.pages = [(200, {"tasks": listed})]
        done = self.run_colloc("cancel", "--mine")
        self.assertEqual(
            (done.returncode, done.stdout), (1, "Task 1 CANCELLED\nTask 3 CANCELLED\n")
        )
        self.assertEqual(done.stderr, "colloc: task 2 has ended: COMPLETED\n")

    def test_json(self):
        self.daemon.tasks = [make_task(1)]
        self.assertEqual(
            json.loads(self.colloc("release", "1", "--json"))["tasks"], self.daemon.tasks
        )

    def test_ids_are_checked_first(self):
        self.daemon.tasks = [make_task(1)]
        self.complaint("cancel", "1", "all", code=2)
        self.complaint("cancel", "0", code=2)
        self.complaint("cancel", "99999999999999999999", code=2)
        self.assertEqual(self.daemon.requests, [])


class Logs(CliCase):
    def test_streams_and_attempts(self):
        self.daemon.tasks = [make_task(1, state="RUNNING")]
        self.daemon.logs = {
            (1, "stdout"): [b"first attempt\n", b"second attempt\n"],
            (1, "stderr"): [b"", b"oh\n"],
        }
        self.assertEqual(self.colloc("logs", "1"), "second attempt\n\n==> stderr <==\noh\n")
        self.assertEqual(self.colloc("logs", "1", "--stdout"), "second attempt\n")
        self.assertEqual(self.colloc("logs", "--attempt=1", "1"), "first attempt\n")
        self.assertEqual(self.colloc("logs", "1", "--stderr"), "oh\n")
        self.daemon.logs[1, "stdout"][1] = b""
        self.assertEqual(self.colloc("logs", "1"), "oh\n")
        self.daemon.logs[1, "stdout"][1] = b"no end"
        self.assertEqual(self.colloc("logs", "1"), "no end\n\n==> stderr <==\noh\n")

    def test_streams_in_one_file_are_printed_once(self):
        self.daemon.tasks = [make_task(1, state="COMPLETED")]
        self.daemon.logs = {(1, "stdout"): [b"out\nerr\n"], (1, "stderr"): [b"out\nerr\n"]}
        self.daemon.merged = [1]
        for words in ([], ["-f"], ["--stdout", "--stderr"]):
            self.assertEqual(self.colloc("logs", "1", *words), "out\nerr\n")

    def test_several_tasks_have_titles(self):
        self.daemon.tasks = [
            make_task(1, state="COMPLETED"),
            make_task(2, state="COMPLETED"),
            make_task(3, state="COMPLETED"),
        ]
        self.daemon.logs = {
            (1, "stdout"): [b"one\n"],
            (2, "stdout"): [b"two"],
            (2, "stderr"): [b"oh\n"],
            (3, "stdout"): [b""],
        }
        self.assertEqual(
            self.colloc("logs", "1", "2", "3"),
            "==> task 1 <==\none\n\n==> task 2 <==\ntwo\n\n==> task 2: stderr <==\noh\n",
        )
        followed = self.colloc("logs", "-f", "1", "2", "3")
        self.assertTrue(followed.startswith("==> task 1 <==\none\n\n==> task 2 <==\ntwo"), followed)
        self.assertTrue(followed.endswith("oh\n"), followed)
        done = self.run_colloc("logs", "1", "9", "2")
        self.assertEqual((done.returncode, done.stderr), (1, "colloc: task 9: no such task\n"))
        self.assertTrue(done.stdout.endswith("oh\n"), done.stdout)

    def test_last_lines(self):
        self.daemon.tasks = [make_task(1, state="COMPLETED")]
        self.daemon.piece = 256 << 10
        whole = b"".join(b"line %d\n" % i for i in range(100))
        for text, lines, shown in [
            (b"a\nb\nc\n", 2, "b\nc\n"),
            (b"a\nb\nc", 2, "b\nc"),
            (b"a\nb\nc\n", 5, "a\nb\nc\n"),
            (b"a\nb\nc\n", 3, "a\nb\nc\n"),
            (b"a\n", 0, ""),
            (b"b\na", 0, ""),
            (b"a", 1, "a"),
            (b"", 3, ""),
            (b"\n\n\n", 2, "\n\n"),
            (whole, 1, "line 99\n"),
        ]:
            self.daemon.logs = {(1, "stdout"): [text]}
            self.assertEqual(self.colloc("logs", "1", f"-n{lines}"), shown, (text, lines))
        big = b"".join(b"%09d\n" % i for i in range(60000))  # more than two pieces of 256 KiB
        self.daemon.logs = {(1, "stdout"): [big]}
        self.assertEqual(self.colloc("logs", "1", "-n", "55000"), big[50000:].decode())
        self.assertEqual(self.colloc("logs", "1", "-n", "60001"), big.decode())

    def test_why_it_failed_comes_last(self):
        line = "ValueError: bad label"
        self.daemon.tasks = [
            make_task(1, state="FAILED", reason="NonZeroExitCode", reason_text=line),
            make_task(2, state="COMPLETED"),
            make_task(3, state="RUNNING"),
            make_task(4, state="CANCELLED", reason="Cancelled"),
        ]
        self.daemon.logs = {(1, "stdout"): [b"epoch 1\n"]}
        for words, said in [
            (["1"], f"colloc: task 1 FAILED (NonZeroExitCode): {line}\n"),
            (["2"], ""),
            (["3"], ""),
            (["1", "-f"], f"colloc: task 1 FAILED (NonZeroExitCode): {line}\n"),
            (["4"], "colloc: task 4 CANCELLED (Cancelled)\n"),
            (["1", "--attempt=1"], ""),
        ]:
            done = self.run_colloc("logs", *words)
            self.assertEqual((done.returncode, done.stderr), (0, said), words)

    def test_follow_over_a_new_attempt(self):
        """Grows while it is read, is started again, ends."""
        steps = iter(["grow", "again", "end"])

        def on_log(task):
            step = next(steps, None)
            if step == "grow":
                self.daemon.logs[1, "stdout"][0] += b"two\n"
            elif step == "again":
                self.daemon.logs[1, "stdout"][0] += b"last words\n"
                self.daemon.logs[1, "stdout"].append(b"from the start\n")
            elif step == "end":
                task["state"] = "COMPLETED"

        self.daemon.tasks = [make_task(1, state="RUNNING")]
        self.daemon.logs = {(1, "stdout"): [b"one\n"]}
        self.daemon.on_log = on_log
        done = self.run_colloc("logs", "-f", "1")
        self.assertEqual(
            (done.returncode, done.stdout), (0, "one\ntwo\nlast words\nfrom the start\n")
        )
        self.assertEqual(done.stderr, "colloc: task 1 was restarted: attempt 2\n")

    def test_follow_over_a_restart_of_the_daemon(self):
        def on_log(task):
            self.daemon.on_log = lambda task: None
            self.daemon.stop()
            raise ConnectionAbortedError

        self.daemon.tasks = [make_task(1, state="RUNNING")]
        self.daemon.logs = {(1, "stdout"): [b"before and after\n"]}
        self.daemon.on_log = on_log
        with self.start_colloc("logs", "-f", "1") as process:
            self.assertEqual(
                process.stderr.readline(),
                "colloc: collocd does not answer: waiting up to 60 s for its restart\n",
            )
            self.daemon.tasks[0]["state"] = "COMPLETED"
            self.daemon.start()
            self.assertEqual(process.communicate(timeout=60), ("before and after\n", ""))
        self.assertEqual(process.returncode, 0)

    def test_no_such_task(self):
        self.assertEqual(self.complaint("logs", "-f", "9", code=1), "task 9: no such task")


def is_answered_here():
    """A collocd or a controller of this machine may answer at the usual places."""
    usual = ("/run/colloc/collocd.sock", "/run/colloc-slurm/colloc-slurm.sock")
    return any(os.path.exists(path) for path in usual)


class Unreachable(CliCase):
    def test_usual_places(self):
        os.mkdir(os.path.join(self.folder, "colloc"))
        os.rename(self.daemon.socket_path, os.path.join(self.folder, "colloc", "collocd.sock"))
        places = {"COLLOC_SOCKET": "", "XDG_RUNTIME_DIR": self.folder}
        self.colloc("queue", **places)
        if os.geteuid() == 0 and not is_answered_here():
            os.chown(os.path.join(self.folder, "colloc", "collocd.sock"), 65534, 65534)
            self.assertIn(
                "cannot reach collocd at /run/colloc", self.complaint("queue", code=3, **places)
            )

    def test_no_daemon(self):
        path = os.path.join(self.folder, "none.sock")
        self.assertEqual(
            self.complaint("queue", "--socket", path, code=3),
            f"cannot reach collocd at {path}: is it running? start it with `colloc serve`",
        )
        if not is_answered_here():
            self.assertIn(
                "cannot reach collocd at /run/",
                self.complaint("queue", code=3, COLLOC_SOCKET="", XDG_RUNTIME_DIR="/x"),
            )
        self.assertIn(
            "too long for a socket", self.complaint("queue", code=3, COLLOC_SOCKET="/" + "x" * 200)
        )

    def test_another_server_there(self):
        path = os.path.join(self.folder, "other.sock")
        for answer, text in [
            (b"", "the connection to collocd"),
            (b"SSH-2.0-x\r\n", "the connection to collocd"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n<a/>", "the answer is not collocd"),
        ]:
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(path)
                listener.listen()
                thread = threading.Thread(target=answer_once, args=(listener, answer))
                thread.start()
                self.assertIn(text, self.complaint("queue", "--socket", path, code=3))
                thread.join()
            os.unlink(path)


def answer_once(listener, answer):
    connection, _ = listener.accept()
    with connection:
        connection.recv(65536)
        connection.sendall(answer)


if __name__ == "__main__":
    unittest.main()
