# SPDX-License-Identifier: Apache-2.0
"""Why the simulator's answers differ from what was measured: to be held against the figures of the page whenever they change."""

WHY = [
    "How much sharing gains hangs on how busy the tasks keep a GPU, and their SM activity is assumed (`data/traces/tasks.txt`): nobody has "
    "published it. With nine tenths or eleven tenths of it, the gain moves by more than what ours and the published differ by: the last two columns of "
    "the first table, on the project's own copy of tasks and traces.",
    "The laws of sharing are fitted to an H200 (`docs/measured/sharing.md`), the dissertation's GPUs are A100s. That a task alone under "
    'MPS waits longer for its launches, which others did not find on an A100, explains little: the column "free launches" is without it.',
    "The dissertation has one run of each setting. Runs of ours that differ only in the seed, which spreads the tasks' times by 2 %, "
    "end further apart than most settings do: one placement that falls otherwise changes all that follow. What the oracles on MPS, "
    "or MAGM and LUG, differ by here is less than that spread.",
    "Crashes without conditions are more than published, because colloc does not stop the queue for a recovery: while a crashed task "
    "waits for GPUs of its own, others are still placed, and crash on the GPUs that are full. A build of colloc whose queue stands still as "
    "long as a task recovers had about half as many.",
    "Crashes with SMACT limited are mostly fewer than published, because a GPU of colloc's takes nobody while its newest task is still "
    "taking its memory (the hold-off), which RAD-RM does not have. The last column of these tables is with a hold-off of one second, until the "
    "next look at the GPUs: on the 60 tasks that is the difference, on the 90 it is not all of it.",
    "With SMACT limited to 80 %, asking for 0, 2 or 5 GB of free memory makes no difference here: a GPU with so little left is over the "
    "limit of SMACT as well.",
    "Energy: the power of the tasks is assumed too. In the simulator tasks that take turns (streams) draw hardly more than one alone; the "
    "dissertation's GPUs drew more than exclusive ones, for longer.",
    "The dissertation's two figures for the energy of MAGM + GPUMemNet disagree: its table 6.6 says 28.50 MJ, which is 14.1 % less than "
    "exclusive; its text says 28.8 MJ and 13.25 %, which is the table's MAGM without estimates.",
]
