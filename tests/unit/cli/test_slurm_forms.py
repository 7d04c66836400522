# SPDX-License-Identifier: Apache-2.0
"""Every form of Slurm's commands that people and programs type is answered, or refused with a
reason. test_slurm_names.py has those of tools, and what exactly is printed.
"""

import shlex
import socket
import unittest

import test_slurm_names
from cli_case import CliCase
from fake_collocd import make_task

HOST = socket.gethostname()
LIST = r"slurm-commands\.md"  # where an option is listed, or is not there
CONTROL = "colloc has show job"

# A command line, HOST for this host; and what is printed. Task 1 waits, task 2 runs.
ANSWERED = r"""
sacct -o JobID,State -j 2                              2 +RUNNING
sacct --format=JobID,State --jobs=1,2 -P               2\|RUNNING
sacct --format JobID%10,State -j 2 -n                  ^ +2 +RUNNING
sacct -N HOST -X                                          RUNNING
sacct --nodelist=HOST --parsable                          ^JobID\|.*\|$
sacct --parsable2 --noheader --allocations             ^2\|run\|
sacct --name run,net -X                                net
sacct -n -X --name=run                                 run
sacct --starttime 2026-11-28T00:00 --endtime now -n    run
sacct -n -S now-1day                                   run
sacct -n -S midnight -E now                            run
sacct --state=RUNNING,CD -X                            run
sacct -s R -X -a                                       run
sacct -n --allusers -u root                            run
sacct -D -j 2 --units=G -M colloc                      run
sacct -e                                               JobIDRaw
sacct -S now-2hours                                    .
sacct --allocations                                    .
sacct --version                                        ^slurm 22\.05
squeue                                                 PENDING
squeue -h                                              ^ +1 +colloc
squeue --noheader --noconvert                          ^ +1 +colloc
squeue -o %i                                           ^2$
squeue --Format=JobID,State                            ^2 +RUNNING
squeue -j 1,2 -M colloc                                ^CLUSTER: colloc
squeue --job 2                                         run
squeue -t all -u root                                  run
squeue -t PD,R --name=run                              run
squeue --states=RUNNING -n run                         run
squeue --me                                            .
squeue -p colloc -a -r -S i                            run
squeue -l                                              run
squeue -V                                              ^slurm 22\.05
scontrol show job 2                                    JobId=2
scontrol show job                                      JobId=2
scontrol show jobs -o                                  ^JobId=2 .*RUNNING
scontrol show jobid=2                                  JobId=2
scontrol -d show job 1,2                               JobId=2
scontrol show config                                   MinJobAge
scontrol show node HOST                                   NodeName=
scontrol show hostnames gpu[1-3]                       ^gpu2$
scontrol show partition colloc                         PartitionName=colloc
scontrol hold 1                                        Task 1
scontrol hold 1,2                                      Task 2
scontrol hold JobId=1                                  Task 1
scontrol release 1 2                                   Task 2
scontrol requeue 2                                     Task 2
scontrol requeue 1,2                                   Task 2
scontrol suspend 2                                     Task 2
scontrol resume 2                                      Task 2
scontrol update JobId=1 TimeLimit=10 JobName=x         time 10:00
scontrol update job=1 StartTime=now+1hour              begin
scontrol --version                                     ^slurm 22\.05
scancel 1                                              Task 1
scancel 1,2                                            Task 2
scancel 1 2 --clusters=all                             Task 2
scancel -s TERM 2                                      Task 2
scancel --signal=KILL 2                                Task 2
scancel -n run                                         Task 2
scancel -u root -t PENDING                             Task 1
scancel --state=RUNNING --name=run                     Task 2
scancel -Q -v -f 2                                     Task 2
scancel -V                                             ^slurm 22\.05
sinfo                                                  GPU
sinfo -h                                               colloc\*
sinfo -p colloc                                        ^colloc\* +up
sinfo -p colloc -h -o %t                               ^mix$
sinfo --partition=colloc -N                            ^HOST +1 +colloc\* mix
sinfo -s                                               1/0/0/1
sinfo -h -t mix,alloc -o %D                            ^1$
sinfo -h -t idle -o %D                                 ^$
sinfo -n HOST -h -o %G                                    ^gpu:2$
sinfo -n other -h -o %G                                ^$
sinfo -e -a -M colloc -S P -O NodeList,Gres            gpu:2
sinfo --version                                        ^slurm 22\.05
sbatch --version                                       ^slurm 22\.05
srun -V                                                ^slurm 22\.05
sbatch --parsable --wrap=true                          ^12$
sbatch --export=A=1 --wrap true                        job 12
sbatch --export=NONE -a 0-3%2 --wrap=true              job 12
sbatch -M colloc -p gpu -A lab -q normal --wrap=true   job 12
sbatch -N1 -n1 -c2 --mem=1G --gres=gpu:1 --wrap=true   job 12
sbatch --signal=B:USR1@60 --get-user-env --wrap=true   job 12
sbatch -H -d afterok:2 -t 1-00:00:00 --wrap=true       job 12
"""

REFUSED = rf"""
sacct --json                                           colloc history --json
squeue --json=v0.0.39                                  colloc queue --json
sinfo --yaml                                           colloc gpus --json
sacct -l                                               {LIST}
sacct -X -A lab                                        {LIST}
sacct -n -S soon                                       Invalid time
sacct -s odd                                           Invalid
squeue -w HOST                                            {LIST}
squeue -h -t odd                                       Invalid job state
squeue -j 77 -h                                        Invalid job id
scontrol show step 2                                   {CONTROL}
scontrol write batch_script 2                          {CONTROL}
scontrol reconfigure                                   {CONTROL}
scontrol                                               {CONTROL}
scontrol update JobId=1 Priority=5                     TimeLimit, JobName and StartTime
scontrol update NodeName=HOST State=drain                 TimeLimit, JobName and StartTime
scontrol show job 77                                   Invalid job id
scancel --signal USR1 2                                SIGTERM and SIGKILL only
scancel -t odd -u root                                 PENDING, RUNNING or SUSPENDED
scancel 2.0                                            not a task id
scancel -w HOST -u root                                   {LIST}
scancel                                                missing argument
sinfo -R                                               {LIST}
sinfo -o %i                                            Invalid node format
sbatch -N 2 --wrap=true                                one server
sbatch --dependency=singleton --wrap=true              array
sbatch --export-file=x --wrap=true                     --export
sbatch --reservation=x --wrap=true                     colloc reserve
sbatch -L x --wrap=true                                licences
sbatch --uid=root --wrap=true                          as the user
sbatch --het-group=0 --wrap=true                       {LIST}
sbatch --bogus --wrap=true                             {LIST}
sbatch nofile.sh                                       No such file
"""


class SlurmForms(CliCase):
    run_as = test_slurm_names.SlurmNames.run_as

    def rows(self, table):
        for line in table.strip().splitlines():
            form, _, expected = line.partition("  ")
            yield shlex.split(form.replace("HOST", HOST)), expected.strip().replace("HOST", HOST)

    def give_tasks(self):
        common = {"user": "root", "uid": 0, "submitted_at": 1796000000}
        waiting = {"state": "PENDING", "reason": "Resources", "exec_s": 0}
        running = {"state": "RUNNING", "reason": "None", "exec_s": 95, "gpus": ["0"]}
        self.daemon.tasks = [
            make_task(1, name="net", **common, **waiting),
            make_task(2, name="run", **common, **running, started_at=1796000007),
        ]
        self.daemon.gpus = [{"index": "0", "tasks": [{"id": 2}]}, {"index": "1", "tasks": []}]

    def test_what_is_answered(self):
        for words, expected in self.rows(ANSWERED):
            with self.subTest(words=words):
                self.give_tasks()
                self.assertRegex(self.run_as(*words), "(?m)" + expected)

    def test_what_is_refused_has_a_reason(self):
        for words, expected in self.rows(REFUSED):
            with self.subTest(words=words):
                self.give_tasks()
                code = 1 if "Invalid" in expected else 2
                self.assertRegex(self.run_as(*words, code=code), expected)
                self.assertNotIn("POST", [method for method, _, _ in self.daemon.requests])


if __name__ == "__main__":
    unittest.main()
