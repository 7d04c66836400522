#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A job that Slurm calls SUSPENDED may compute, and one that it calls RUNNING may be stopped: the state
# is what slurmctld has decided, not what a node has done.
#
# Version:  Slurm 22.05.8 (Debian 12: slurmctld and slurmd 22.05.8-4+deb12u3). No GPU: a controller and a
#           node with auth/none run for half a minute. The node's slurmd is stopped by SIGSTOP for some
#           seconds, as a node that is busy or not reached.
# Expected: `scontrol suspend` waits for the node, or fails where it does not answer; until then the job
#           is RUNNING.
# Seen:     it ends at once with 0, and squeue says SUSPENDED. The job counts on, ten times a second,
#           until its node answers again; its RunTime stands still meanwhile. After `scontrol resume`
#           it is RUNNING in the same way, and does not count until the node answers.
# Meaning:  Slurm's word does not say whether a suspended job still uses its GPU. colloc's agent on a
#           node looks at the processes (src/daemon/node/away_jobs.c). A test that took Slurm's word
#           failed on a busy machine, where slurmd stopped them a moment later.
set -euo pipefail

PATH=$PATH:/usr/sbin:/sbin
version=$(command -v squeue slurmd >/dev/null && slurmctld -V 2>/dev/null) || {
    echo "skipped: needs slurmctld, slurmd and squeue: apt install slurm-wlm (Debian 12)"
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
mkdir "$folder"/{state,spool}
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

# wait_for COMMAND...: until it succeeds, 20 s at most
wait_for() {
    for _ in {1..100}; do
        ! "$@" >/dev/null 2>&1 || return 0
        sleep 0.2
    done
    cat "$folder"/*.log
    exit 1
}
is_idle() { [[ $(sinfo -h -o %t) == idle ]]; }

slurmctld -c -D >"$folder/controller.log" 2>&1 &
daemons+=($!)
wait_for sinfo
slurmd -D >"$folder/node.log" 2>&1 &
node=$!
daemons+=("$node")
wait_for is_idle
count=$folder/count
job=$(sbatch --parsable -o /dev/null --wrap="n=0; while :; do n=\$((n + 1)); echo \$n >$count; sleep 0.1; done")
wait_for test -s "$count"
state() { squeue -h -j "$job" -o %T; }

# counted SECONDS: how far the job counts in that time
counted() {
    local before
    before=$(<"$count")
    sleep "$1"
    echo $(($(<"$count") - before))
}

kill -STOP "$node"
scontrol suspend "$job"
suspended="$(state) $(($(counted 3) > 5))"
kill -CONT "$node"
sleep 2
then="$(state) $(($(counted 2) > 0))"
kill -STOP "$node"
scontrol resume "$job"
resumed="$(state) $(($(counted 3) > 0))"
kill -CONT "$node"
echo "$version"
echo "suspended, the node does not answer; 1: it counts:  $suspended"
echo "then the node answers:                              $then"
echo "resumed, the node does not answer:                  $resumed"
[[ $suspended == "SUSPENDED 1" && $then == "SUSPENDED 0" && $resumed == "RUNNING 0" ]] || {
    echo "changed: see above"
    exit 1
}
