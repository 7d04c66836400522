# SPDX-License-Identifier: Apache-2.0
"""`colloc bench TABLE`: groups of trainings that share a GPU, run and measured one after the other.

    experiment, radt, sweep    the table: what to run
    machine, checks            what the machine has for it
    bench                      the run of all groups; trainers and tasks run the trainings of one
    journal, summary           what was measured

`colloc` starts it by `python3 -m colloc_bench` (src/cli/cmd_bench.c), with its options checked and
what NVML says of the machine. Texts of tables may hold any bytes: they are decoded and encoded with
"surrogateescape".
"""
