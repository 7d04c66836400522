#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A type of GPUs that is only counted in gres.conf is valid alone, and ends slurmd beside a type with
# device files.
#
# Version:  Slurm 22.05.8 (Debian 12: slurmd 22.05.8-4+deb12u3). No GPU, daemon or root is needed.
# Expected: each line stands for itself: File= is optional, and sites count parts of a GPU as a type
#           of their own beside the whole ones (gpu:l40s:2,gpu:half:4).
# Seen:     Name=gpu Type=half Count=4                                            exit status 0
#           with  Name=gpu Type=l40s File=/dev/nvidia[0-1]  before it
#             fatal: gres.conf for gpu, some records have "File" specification while others do not
# Meaning:  a count in slurm.conf or gres.conf is no device. `colloc slurm setup` refuses a type with
#           a count and no file instead of naming devices for it (src/slurmconf/gres_setup.c).
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

half="Name=gpu Type=half Count=4"
alone=$(read_gres gpu:half:4 <<<"$half")
status=0
beside=$(printf 'Name=gpu Type=l40s File=%s/nvidia[0-1]\n%s\n' "$folder" "$half" |
    read_gres gpu:l40s:2,gpu:half:4) || status=$?
echo "$version"
echo "alone:            ${alone:-no message}"
echo "beside files:     $beside (exit status $status)"
[[ $alone != *fatal* && $status == 1 && $beside == *'some records have "File" specification'* ]] || {
    echo "changed"
    exit 1
}
