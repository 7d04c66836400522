#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Slurm tells a job its GPUs by their place among the node's GPUs in gres.conf, not by the number of
# their device file; without device constraints CUDA takes another GPU.
#
# Version:  Slurm 22.05.8 (Debian 12: slurmctld and slurmd 22.05.8-4+deb12u3). No GPU: the device files
#           are links to /dev/null. A controller and a node with auth/none run for some seconds.
# Expected: on a node that gives Slurm two of its four GPUs (File=/dev/nvidia[2-3]) a job on the first
#           of them has SLURM_JOB_GPUS=2 and CUDA_VISIBLE_DEVICES=2.
# Seen:     --gres=gpu:1     SLURM_JOB_GPUS=0 CUDA_VISIBLE_DEVICES=0
#           --gres=shard:7   SLURM_JOB_GPUS=1 CUDA_VISIBLE_DEVICES=1
#           CUDA counts all GPUs that the process can open, so without ConstrainDevices in cgroup.conf
#           the jobs compute on /dev/nvidia0 and 1, which are other people's.
# Meaning:  `colloc slurm setup` says that such a node needs ConstrainDevices, and the node's agent
#           maps places to device files (src/daemon/node/node_gres.c).
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
for k in 2 3; do
    ln -s /dev/null "$folder/nvidia$k"
done
host=$(hostname -s)
port=$((20000 + RANDOM % 10000))
printf 'Name=gpu File=%s\nName=shard Count=40\n' "$folder/nvidia[2-3]" >"$folder/gres.conf"
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
GresTypes=gpu,shard
NodeName=$host NodeAddr=127.0.0.1 CPUs=2 RealMemory=100 Gres=gpu:2,shard:40
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
daemons+=($!)
wait_for is_idle
words='echo "$SLURM_JOB_GPUS $CUDA_VISIBLE_DEVICES"; sleep 20'
sbatch --gres=gpu:1 -o "$folder/gpu" --wrap="$words" >/dev/null
wait_for test -s "$folder/gpu"
sbatch --gres=shard:7 -o "$folder/shard" --wrap="$words" >/dev/null
wait_for test -s "$folder/shard"
echo "$version"
echo "gpu:1    $(<"$folder/gpu")"
echo "shard:7  $(<"$folder/shard")"
[[ $(<"$folder/gpu") == "0 0" && $(<"$folder/shard") == "1 1" ]] || {
    echo "changed: see above"
    exit 1
}
