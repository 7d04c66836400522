#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two AutoDetect settings of one node in gres.conf end slurmd where they name the node; without the
# node's name the last one counts.
#
# Version:  Slurm 22.05.8 (Debian 12: slurmd 22.05.8-4+deb12u3). No GPU, daemon or root is needed.
# Expected: the later or the more specific line counts, as for NodeName=DEFAULT in slurm.conf.
# Seen:     AutoDetect=nvml, then AutoDetect=off
#             error: AutoDetect 1 specified more than once, latest value used        (slurmd goes on)
#           NodeName=n1 AutoDetect=nvml, then NodeName=n1 AutoDetect=off Name=gpu File=...
#             fatal: gres.conf: duplicate node-local AutoDetect specification does not match the first
# Meaning:  a tool that appends lines with AutoDetect=off for some nodes stops their slurmd at its
#           next restart. `colloc slurm setup` replaces such lines (src/slurmconf/gres_setup.c).
set -euo pipefail

PATH=$PATH:/usr/sbin:/sbin
version=$(slurmd -V 2>/dev/null) || {
    echo "skipped: needs slurmd: apt install slurmd (Debian 12)"
    exit 77
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for k in 0 1; do
    ln -s /dev/null "$folder/nvidia$k" # slurmd only asks whether the file is there
done

# read_gres LIST: what slurmd reads with this Gres= in slurm.conf, and gres.conf from standard input
read_gres() {
    cat >"$folder/gres.conf"
    cat >"$folder/slurm.conf" <<END
ClusterName=c
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
StateSaveLocation=$folder
SlurmdSpoolDir=$folder
SlurmdPidFile=$folder/pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SlurmdParameters=config_overrides
GresTypes=gpu
NodeName=n1 NodeHostname=localhost NodeAddr=127.0.0.1 CPUs=4 RealMemory=1000 Gres=$1
PartitionName=p Nodes=ALL
END
    timeout 60 slurmd -G -N n1 -f "$folder/slurm.conf" 2>&1
}

gpus="Name=gpu File=$folder/nvidia[0-1]"
all=$(printf 'AutoDetect=nvml\nAutoDetect=off\n%s\n' "$gpus" | read_gres gpu:2)
status=0
one=$(printf 'NodeName=n1 AutoDetect=nvml\nNodeName=n1 AutoDetect=off %s\n' "$gpus" |
    read_gres gpu:2) || status=$?
echo "$version"
echo "for all nodes:    $all"
echo "for the node n1:  $one (exit status $status)"
[[ $all == *'latest value used'* && $all == *File=* && $status == 1 &&
    $one == *'duplicate node-local AutoDetect'* ]] || {
    echo "changed"
    exit 1
}
