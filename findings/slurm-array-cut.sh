#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Slurm cuts the list of an array's tasks in the middle of a number, also in JSON: what is left of the
# last number looks like a task that does not exist.
#
# Version:  Slurm 22.05.8 (Debian 12: slurmctld and slurm-client 22.05.8-4+deb12u3). No GPU and no
#           slurmd; a controller with auth/none listens on 127.0.0.1 for some seconds.
# Expected: a long list is shortened for people's eyes, between two numbers; `squeue --json`, which is
#           for programs, has all of it.
# Seen:     of --array=10,21,30,42,50,63,70,84,90,105,110,126,130,147,150,168,170,189,190,201,210,222,230
#               squeue -o %K              10,21,30,...,150,168,170,1...    (64 characters, "1" of 189)
#               squeue --json             array_task_string: the same
#               squeue -o %i              2_[10,21,30,42,50,63,70,84,90,1  (31 characters, without dots)
#           With SLURM_BITSTR_LEN=0 in the client's environment all three are whole.
# Meaning:  who splits the list at commas runs, waits for, or cancels task 1. colloc asks Slurm with
#           SLURM_BITSTR_LEN=0.
set -euo pipefail

PATH=$PATH:/usr/sbin:/sbin
version=$(command -v squeue >/dev/null && slurmctld -V 2>/dev/null) || {
    echo "skipped: needs slurmctld and squeue: apt install slurmctld slurm-client (Debian 12)"
    exit 77
}
[[ $(id -u) == 0 ]] || {
    echo "skipped: run it as root: a controller with auth/none has no other user's jobs"
    exit 77
}
folder=$(mktemp -d)
controller=
finish() {
    [[ -z $controller ]] || { kill "$controller" && wait "$controller"; } 2>/dev/null || true
    rm -rf "$folder"
}
trap finish EXIT
mkdir "$folder/state"
cat >"$folder/slurm.conf" <<END
ClusterName=finding
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=$((20000 + RANDOM % 10000))
AuthType=auth/none
CredType=cred/none
SlurmUser=root
StateSaveLocation=$folder/state
SlurmctldPidFile=$folder/pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
NodeName=n1 NodeAddr=127.0.0.1 CPUs=4 RealMemory=1000
PartitionName=p Nodes=ALL Default=YES State=UP
END
export SLURM_CONF=$folder/slurm.conf
slurmctld -c -D >"$folder/log" 2>&1 &
controller=$!
list=10,21,30,42,50,63,70,84,90,105,110,126,130,147,150,168,170,189,190,201,210,222,230
for _ in {1..50}; do
    ! sbatch --hold --array=$list --wrap=true >"$folder/submitted" 2>&1 || break
    sleep 0.2
done
grep -q Submitted "$folder/submitted" || {
    cat "$folder/submitted" "$folder/log"
    exit 1
}

echo "$version"
short=$(squeue -h -o %K)
json=$(squeue --json | sed -n 's/.*"array_task_string": "\(.*\)".*/\1/p')
narrow=$(squeue -h -o %i)
whole=$(SLURM_BITSTR_LEN=0 squeue -h -o %K)
printf '%s\n' "$short" "$json" "$narrow" "$whole"
[[ $short == *,170,1... && $json == "$short" && $narrow == *,90,1 &&
    $whole == *,170,189-190,201,210,222,230 ]] || {
    echo "changed: see above"
    exit 1
}
