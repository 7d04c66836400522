#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scancel of a job that does not exist says nothing and succeeds.
#
# Version:  Slurm 22.05.8 (Debian 12: slurmctld and slurm-client 22.05.8-4+deb12u3). No GPU and no
#           slurmd; a controller with auth/none listens on 127.0.0.1 for some seconds.
# Expected: an error and a status that is not 0, as of scontrol and squeue.
# Seen:     scancel 99999            no word, exit status 0
#           scontrol hold 99999      "Invalid job id specified", exit status 1
#           squeue -j 99999          "Invalid job id specified", exit status 1
# Meaning:  a tool that cancels by a wrong or mistyped id believes that it did. colloc's scancel names
#           the id and ends with 1 (docs/slurm-commands.md).
set -euo pipefail

PATH=$PATH:/usr/sbin:/sbin
version=$(command -v scancel >/dev/null && slurmctld -V 2>/dev/null) || {
    echo "skipped: needs slurmctld and scancel: apt install slurmctld slurm-client (Debian 12)"
    exit 77
}
[[ $(id -u) == 0 ]] || {
    echo "skipped: run it as root, the user of the controller"
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
MpiDefault=none
SlurmUser=root
StateSaveLocation=$folder/state
SlurmctldPidFile=$folder/pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
NodeName=n1 NodeAddr=127.0.0.1 CPUs=1
PartitionName=p Nodes=ALL Default=YES State=UP
END
export SLURM_CONF=$folder/slurm.conf
slurmctld -c -D >"$folder/log" 2>&1 &
controller=$!
for _ in {1..100}; do
    ! sinfo >/dev/null 2>&1 || break
    sleep 0.2
done

# status_of COMMAND...: its exit status, and what it said
status_of() {
    local status=0
    "$@" >"$folder/said" 2>&1 || status=$?
    echo "$status $(head -n 1 "$folder/said")"
}
echo "$version"
scancel=$(status_of scancel 99999)
hold=$(status_of scontrol hold 99999)
squeue=$(status_of squeue -j 99999)
printf '%s\n' "scancel: $scancel" "scontrol hold: $hold" "squeue: $squeue"
[[ $scancel == "0 " && $hold == "1 "*"Invalid job id"* && $squeue == "1 "*"Invalid job id"* ]] || {
    echo "changed: see above"
    exit 1
}
