#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`colloc calibrate` on a real GPU: twice, with different trainings, side by side.

    tests/gpu/calibrate_trial.py FOLDER OUTPUT

FOLDER: of the programs (scripts/bundle). OUTPUT gets host.txt and host.csv (the default
trainings), other.txt and other.csv (others). Needs an idle GPU, python3 with PyTorch, torchvision,
timm and transformers, and MPS; at most four minutes. How well the constants of the first predict
the mixes of the second:

    scripts/fit-sharing --quick --constants=OUTPUT/host.txt OUTPUT/other.csv
"""
import os
import re
import subprocess
import sys
import time

LIMIT_S = 115  # of each of the two
RUNS = {"host": [], "other": ["--trainings=small,encoder,decoder"]}


def constants(path):
    with open(path, encoding="utf-8") as file:
        return dict(re.findall(r"(?m)^constant (\w+) +(\S+)$", file.read()))


def calibrate(programs, output, name, options):
    began = time.monotonic()
    command = [os.path.join(programs, "colloc"), "calibrate", "--interval=2s", *options]
    files = [f"--measurements={output}/{name}.csv", f"{output}/{name}.txt"]
    try:
        code = subprocess.run(command + files, timeout=LIMIT_S, check=False).returncode
    except subprocess.TimeoutExpired:
        code = f"none within {LIMIT_S} s"
    print(f"{name}: exit status {code}, {time.monotonic() - began:.0f} s", flush=True)
    return code == 0


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    os.makedirs(sys.argv[2], exist_ok=True)
    done = [name for name in RUNS if calibrate(*sys.argv[1:], name, RUNS[name])]
    found = {name: constants(f"{sys.argv[2]}/{name}.txt") for name in done}
    for constant in sorted({constant for values in found.values() for constant in values}):
        print(f"{constant:14}", *(found[name].get(constant, "-") for name in done))
    return 0 if len(done) == len(RUNS) else 1


if __name__ == "__main__":
    sys.exit(main())
