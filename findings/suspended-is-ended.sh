#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two tools that wait for jobs of Slurm take a suspended job for an ended one.
#
# Version:  Slurm 22.05.8 (Debian 12, slurm-wlm), submitit 1.5.4, batchspawner 1.3.0 with
#           JupyterHub 3.0 or later, Python 3.11. No GPU; a controller and a node with auth/none
#           run on 127.0.0.1 for a minute. sacct, which would need slurmdbd and a database, is
#           replaced by the answer of squeue in sacct's form.
# Expected: both wait until the job is resumed and has ended: it is in squeue, and its processes
#           live.
# Seen, after `scontrol suspend`:
#           submitit      done() is True; result() raises UncompletedJobError "has not produced any
#                         output (state: SUSPENDED)"; after `scontrol resume` and the job's end the
#                         result is there
#           batchspawner  poll() is 1, which the hub reads as "the server has ended"; the id of the
#                         job is forgotten, and the job goes on, with no one to cancel it
# Meaning:  whoever suspends jobs for a while, so that others get their GPU, breaks sweeps and
#           notebooks, if Slurm says so. A task of colloc that gives way is RUNNING in its squeue
#           and sacct; SUSPENDED is one that a user has suspended (docs/slurm-commands.md). A job
#           of a Slurm cluster that colloc's agent takes off its GPU stays RUNNING for Slurm.
set -euo pipefail

PATH=$PATH:/usr/sbin:/sbin
version=$(command -v slurmd sbatch >/dev/null && slurmctld -V 2>/dev/null) || {
    echo "skipped: needs slurmctld, slurmd and sbatch: apt install slurm-wlm (Debian 12)"
    exit 77
}
[[ $(id -u) == 0 ]] || {
    echo "skipped: run it as root, which starts slurmd"
    exit 77
}
folder=$(mktemp -d)
daemons=()
finish() {
    scancel --me 2>/dev/null || true
    sleep 1 # until the node has ended the jobs
    kill "${daemons[@]}" 2>/dev/null || true
    wait 2>/dev/null || true
    rm -rf "$folder"
}
trap finish EXIT
mkdir "$folder"/{state,spool,bin,jobs}
host=$(hostname -s)
port=$((20000 + RANDOM % 10000))
cat >"$folder/slurm.conf" <<END
ClusterName=finding
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
AuthType=auth/none
CredType=cred/none
MpiDefault=none
SlurmUser=root
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/controller.pid
SlurmdPidFile=$folder/node.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
NodeName=$host NodeAddr=127.0.0.1 CPUs=2 RealMemory=100
PartitionName=p Nodes=ALL Default=YES State=UP
END
export SLURM_CONF=$folder/slurm.conf

cat >"$folder/bin/sacct" <<'END'
#!/bin/sh
echo "JobID|State|NodeList"
squeue -h -t all -o "%i|%T|%N"
END
chmod +x "$folder/bin/sacct"
export PATH=$folder/bin:$PATH

# wait_for COMMAND...: until it succeeds, 60 s at most
wait_for() {
    for _ in {1..300}; do
        ! "$@" >/dev/null 2>&1 || return 0
        sleep 0.2
    done
    cat "$folder"/*.log
    exit 1
}
is_idle() { [[ $(sinfo -h -o %t) == idle ]]; }

{
    python3 -m venv --system-site-packages "$folder/venv" &&
        "$folder/venv/bin/pip" install -q submitit==1.5.4 batchspawner==1.3.0
} || {
    echo "skipped: needs python3-venv, and submitit 1.5.4 and batchspawner 1.3.0 from PyPI"
    exit 77
}
slurmctld -c -D >"$folder/controller.log" 2>&1 &
daemons+=($!)
wait_for sinfo
slurmd -D >"$folder/node.log" 2>&1 &
daemons+=($!)
wait_for is_idle
echo "$version"
cd "$folder/jobs"
"$folder/venv/bin/python" - <<'END'
import asyncio
import os
import subprocess
import time

import batchspawner
import submitit


def slurm(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def state(job):
    return slurm("squeue", "-h", "-t", "all", "-j", job, "-o", "%T")


def wait_until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "waited for 60 s"
        time.sleep(0.2)


def wait_for_file(path):
    while not os.path.exists(path):
        time.sleep(0.1)
    return 42


# the job ends when the file is there
go = os.path.abspath("go")
job = submitit.SlurmExecutor(folder="submitit").submit(wait_for_file, go)
wait_until(lambda: state(job.job_id) == "RUNNING")
before = job.done(force_check=True)
slurm("scontrol", "suspend", job.job_id)
wait_until(lambda: state(job.job_id) == "SUSPENDED")
after = job.done(force_check=True)
try:
    raised = job.result()
except submitit.core.utils.UncompletedJobError as error:
    raised = str(error).split("\n")[1]
slurm("scontrol", "resume", job.job_id)
open(go, "w").close()
wait_until(lambda: state(job.job_id) == "COMPLETED")
result = job.result()
print(f"submitit done: running {before}, suspended {after}; result: {raised!r}, resumed {result}")

notebook = slurm("sbatch", "--parsable", "--wrap", "sleep 300")
spawner = batchspawner.SlurmSpawner(
    exec_prefix="", job_id=notebook, req_homedir="/", req_username="root", req_keepvars=""
)
wait_until(lambda: state(notebook) == "RUNNING")
running = asyncio.run(spawner.poll())
slurm("scontrol", "suspend", notebook)
wait_until(lambda: state(notebook) == "SUSPENDED")
suspended = asyncio.run(spawner.poll())
print(f"batchspawner poll: running {running}, suspended {suspended}, job id {spawner.job_id!r}")
slurm("scontrol", "resume", notebook)
slurm("scancel", notebook)

seen = (before, after, "state: SUSPENDED" in str(raised), result)
if seen != (False, True, True, 42) or (running, suspended, spawner.job_id) != (None, 1, ""):
    raise SystemExit("changed: see above")
END
