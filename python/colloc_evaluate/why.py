"""Why the simulator's answers differ from what was measured: to be held against the figures of the page whenever they change."""

WHY = [
    "The dissertation has one run of each setting. Runs of ours that differ only in the seed, which spreads the tasks' times by 2 %, "
    "end further apart than most settings do: one placement that falls otherwise changes all that follow. What the oracles on MPS, "
    "or MAGM and LUG, differ by here is less than that spread.",
    "Crashes without conditions are more than published, because colloc does not stop the queue for a recovery: while a crashed task "
    "waits for GPUs of its own, others are still placed, and crash on the GPUs that are full. A build of colloc whose queue stands still as "
    "long as a task recovers had about half as many.",
    "Crashes with SMACT limited are fewer than published, because a GPU of colloc's takes nobody while its newest task is still taking its "
    "memory (the hold-off), which RAD-RM does not have. The last column is the same with a hold-off of one second, until the next look.",
    "With SMACT limited, asking for 0, 2 or 5 GB of free memory makes no difference here: a GPU with so little left is over the "
    "limit of SMACT as well.",
    "Energy: the power of the tasks is assumed (`data/traces/tasks.txt`), not measured, and the shares of idle and awake GPUs are those of "
    "`data/gpu-kinds.txt`. In the simulator a task draws power in step with its speed, so that tasks which slow each other in turns (streams) "
    "draw no more than one alone; the dissertation's GPUs did.",
    "The dissertation's two figures for the energy of MAGM + GPUMemNet disagree: its table 6.6 says 28.50 MJ, which is 14.1 % less than "
    "exclusive; its text says 28.8 MJ and 13.25 %, which is the table's MAGM without estimates.",
]
