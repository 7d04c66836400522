#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Slurm takes a line of gres.conf without Type= for no GPU of a type: the GPUs then have no device,
# and slurmd only warns. The other way round the same warning is printed, and the devices are used.
#
# Version:  Slurm 22.05.8 (Debian 12: slurmd 22.05.8-4+deb12u3). No GPU, daemon or root is needed.
# Expected: Type= may be left out where slurm.conf names the only type: gres.conf(5) calls it "an
#           optional arbitrary string".
# Seen:     Gres=gpu:h200:2 with  Name=gpu File=/dev/nvidia[0-1]
#             WARNING: A line in gres.conf for GRES gpu has 2 more configured than expected in
#             slurm.conf. Ignoring extra GRES.             (no GPU has a device; exit status 0)
#           Gres=gpu:2      with  Name=gpu Type=h200 File=/dev/nvidia[0-1]
#             the same warning for gpu:h200                (both GPUs have their device)
# Meaning:  jobs on such a node get GPUs, and no CUDA_VISIBLE_DEVICES. `colloc slurm setup` takes the
#           files of lines without a type, and writes both files with the same types (docs/slurm.md).
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

typed=$(read_gres gpu:h200:2 <<<"Name=gpu File=$folder/nvidia[0-1]")
untyped=$(read_gres gpu:2 <<<"Name=gpu Type=h200 File=$folder/nvidia[0-1]")
warning='2 more configured than expected in slurm.conf. Ignoring extra GRES'
echo "$version"
echo "types only in slurm.conf: $typed"
echo "types only in gres.conf:  $untyped"
[[ $typed == *"$warning"* && $typed != *File=* && $untyped == *"$warning"* && $untyped == *File=* ]] || {
    echo "changed"
    exit 1
}
