#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A killed worker of PyTorch's DataLoader often leaves no word of it: the training ends with exit
# status 1, not 137, and the last line of its log is the end of a pipe.
#
# Version:  PyTorch 1.13 (Debian 12: python3-torch 1.13.1+dfsg-4, which names itself 1.13.0a0), Python
#           3.11.2. No GPU is needed.
# Expected: "DataLoader worker (pid N) is killed by signal: Killed", as torch/csrc/DataLoader.cpp has
#           it, or exit status 137 as below a shell.
# Seen:     whichever of two threads of the parent is first decides. In half of the runs it is the one that
#           fetches the batch's file descriptor from the worker:
#               ConnectionResetError: [Errno 104] Connection reset by peer        (or: EOFError)
#           else the handler of SIGCHLD, with the sentence above. Exit status 1 always.
# Meaning:  a log alone does not show that the kernel's OOM killer ended a worker. colloc takes such
#           an end for lack of host memory where the cgroup's memory.events counts an oom_kill of the
#           task (src/exec/failure_classify.c).
set -euo pipefail

python=${PYTHON:-/usr/bin/python3}
version=$("$python" -c 'import torch; print(torch.__version__)' 2>/dev/null) || {
    echo "skipped: needs PyTorch: apt install python3-torch (Debian 12), or PYTHON=..."
    exit 77
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/train.py" <<'END'
import os, signal, torch


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        if i == 5:
            os.kill(os.getpid(), signal.SIGKILL)  # as the kernel does where memory is out
        return torch.zeros(4)


if __name__ == "__main__":
    for batch in torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=1):
        pass
END
silent=0 named=0
for ((run = 1; run <= 40 && (run <= 8 || silent == 0); run++)); do
    status=0
    timeout 60 "$python" "$folder/train.py" >"$folder/log" 2>&1 || status=$?
    if [[ $status != 1 ]]; then
        echo "changed: exit status $status in run $run (PyTorch $version)"
        exit 1
    fi
    if grep -q 'is killed by signal: Killed' "$folder/log"; then
        named=$((named + 1))
    else
        silent=$((silent + 1))
        last=$(grep -oE '(EOFError|ConnectionResetError[^|]*)$' "$folder/log" | tail -1)
    fi
done
echo "PyTorch $version: $named runs name the signal, $silent do not (\"${last-}\"); exit status 1 in all"
((silent > 0)) || {
    echo "changed: each run names the signal"
    exit 1
}
