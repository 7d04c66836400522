# SPDX-License-Identifier: Apache-2.0
"""The trials that are still open, the most valuable first: the table of `tests/gpu/session`.

A command is for the shell, in the top folder, with these words:

    {programs} {out}       the folder of scripts/bundle, and one for the trial's own results
    {seconds}              that the trial has for itself
    {gpu} {gpus}           the index of its GPU; of all its GPUs, "0,1"

A trial that has been measured leaves the table, with its prediction, for its page of docs/measured.
"""
import dataclasses

GPU = "tests/gpu"


@dataclasses.dataclass(frozen=True)
class Trial:
    name: str
    question: str
    gpus: int  # 0: it needs the processors only, and runs beside all others
    wanted_s: int
    least_s: int
    command: str
    smoke: str
    predicted: str
    emulated: str = ""  # with a build folder in place of the bundle; "": it needs a GPU
    may_be_beside: bool = True  # of one GPU: may others run on the other GPUs meanwhile?


KERNELS = f"env GPU={{gpu}} python3 {GPU}/kernel_trial.py measure {{programs}} {{out}} {{seconds}}"
# Those that deviated most beside others come first, the longest last.
ALONE = (
    "dcgan r3d-18 efficientnet-b0-amp resnet50-amp-last volumes-amp resnext50-amp boxes-amp"
    " resnet18-small convmixer waves alexnet vgg16 regnet resnet50 unet-amp mobilenet-v3 pix2pix"
    " deeplab-resnet50-amp convnext-tiny-amp-last densenet121"
)


def kills(sharing):
    command = (
        f"{GPU}/carrier_kills_trial.py {{programs}} {{out}}/kills.jsonl --sharing={sharing}"
        " --gpu={gpu} --seconds={seconds} --phases=releasing,returning,away,waiting"
    )
    return {
        "gpus": 1,
        "wanted_s": 95,
        "least_s": 60,
        "command": f"{command} --workers=10",
        "smoke": f"{command} --times=4 --workers=4",
        "emulated": f"{command} --times=1 --workers=1 --emulated",
    }


def turns(sharing):
    command = (
        f"{GPU}/carrier_turns_trial.py {{programs}} {{out}}/turns.jsonl --sharing={sharing}"
        " --gpu={gpu} --seconds={seconds}"
    )
    return {
        "gpus": 1,
        "wanted_s": 146,
        "least_s": 110,
        "command": command,
        "smoke": f"{command} --alone=1",
        "emulated": f"{command} --emulated",
    }


def gives_way(parts, gpus, wanted_s, least_s):
    command = f"{GPU}/gives_way_trial.py {{programs}} {{out}}/gives-way.jsonl --seconds={{seconds}}"
    own = f"{command} --gpus={{gpus}}"
    return {
        "gpus": gpus,
        "wanted_s": wanted_s,
        "least_s": least_s,
        "command": f"{own} --parts={parts}",
        "smoke": f"{own} --parts={parts.split(',')[-1]}",
        "emulated": f"{own} --parts={parts} --emulated",
    }


def cost():
    command = f"{GPU}/carrier_cost_trial.py {{programs}} {{out}}/cost.jsonl --gpu={{gpu}}"
    command += " --seconds={seconds}"
    return {
        "gpus": 1,
        "wanted_s": 180,
        "least_s": 120,
        "command": command,
        "smoke": f"{command} --pairs=1",
        "emulated": f"{command} --pairs=4 --at-once=2 --emulated",
        "may_be_beside": False,
    }


def slots():
    """FIFO first and last: what a machine does by itself meanwhile is no cost of turns."""
    command = f"{GPU}/carrier_slots_trial.py {{programs}} {{out}}/slots.jsonl --gpu={{gpu}}"
    command += " --seconds={seconds}"
    return {
        "gpus": 1,
        "wanted_s": 560,
        "least_s": 450,
        "command": f"{command} --ways=fifo,streams,mps,fifo",
        "smoke": f"{command} --ways=streams",
        "emulated": f"{command} --ways=fifo,streams,fifo --emulated",
        "may_be_beside": False,
    }


def array():
    """Runs of a minute differ by 10 % and more on a machine that is shared: in turns, so that each
    run by colloc is a neighbour of one by hand. 14 and 20 at a time were 1.9 and 1.4 of 40."""
    command = f"{GPU}/start_trial.py {{programs}} {{out}}/array.jsonl --gpus={{gpu}}"
    forked = f"env PYTORCH_NVML_BASED_CUDA_CHECK=1 python3 {command} --fork=torch,torch._dynamo"
    forked += " --array-kind=fed --pace-steps=200 --within={seconds}"
    return {
        "gpus": 1,
        "wanted_s": 380,
        "least_s": 90,
        "command": f"{forked} --array=40 --array-steps=560 --array-each=18"
        " --ways=fixed-40,array,array,fixed-40,fixed-40,array,array,fixed-40",
        "smoke": f"{forked} --array=6 --array-each=2 --ways=pace,array,fixed-3",
        "emulated": f"python3 {command} --emulated --array=8 --array-each=5"
        " --ways=fixed-4,array,array,fixed-4 --within={seconds}",
    }


def windows(ways, seconds):
    command = f"{GPU}/window_trial.py {{programs}} {{out}}/windows.jsonl --gpus={{gpu}}"
    return {
        "gpus": 1,
        "wanted_s": seconds,
        "least_s": seconds,
        "command": f"{command} --ways={ways}",
        "smoke": f"{command} --ways={ways.split(',')[0]} --seconds=20 --alone=3",
        "emulated": f"{command} --ways={ways.split(',')[0]} --seconds=10 --alone=2 --emulated",
        "predicted": "the aim: progress and energy within 3 % of those composed from its mixes",
    }


TRIALS = (
    Trial(
        "turns",
        "Four time-sliced trainings of 1.5 times the memory in turns, against one after the other",
        predicted="0.90 to 1.05 of the throughput of one after the other; each suspended once or"
        " twice, in one attempt; 4 of 4 losses equal",
        may_be_beside=False,
        **turns("streams"),
    ),
    Trial(
        "losses",
        "Losses after 50 times out and in, time-sliced and under MPS: `torch.compile`, CuPy, JAX",
        1,
        190,
        150,
        f"python3 {GPU}/carrier_mps_trial.py {{programs}} {{out}}/losses.jsonl {{seconds}} losses",
        f"python3 {GPU}/carrier_mps_trial.py {{programs}} {{out}}/losses.jsonl {{seconds}} --small"
        " losses",
        "50 of 50 and equal for the first three, both ways, to a step after the last return; JAX is"
        " refused, `other-memory`, both ways, and its losses are equal",
    ),
    Trial(
        "cost",
        "A step without suspension, with the carrier and without colloc: 20 pairs of new processes",
        predicted="the median of with / without 0.99 to 1.01, its interval wider than 0.5 %",
        **cost(),
    ),
    Trial(
        "kills",
        "Losses after kills while memory is waited for, released, away or returning",
        predicted="all twelve kinds ten times, each seen in its phase but for half of the waiting"
        " and some of the releasing ones; all losses equal those of a training that nothing"
        " stopped",
        **kills("streams"),
    ),
    Trial(
        "kills-mps",
        "The same as clients of MPS",
        predicted="the same",
        **kills("mps"),
    ),
    Trial(
        "gives-way",
        "How soon 43 GiB that are unused, and 21 GiB of a lower priority, give way and return",
        predicted="43 GiB are off after 4 to 7 s, the other computes 8 to 12 s later; 21 GiB after"
        " 1.5 to 3 s, the other 4 to 6 s later; back in 2 s and 1 s; losses equal",
        **gives_way("unused,preempt", 1, 90, 70),
    ),
    Trial(
        "torch-mps",
        "torch.multiprocessing between clients of MPS: plain, with the library, with the carrier",
        1,
        70,
        50,
        f"python3 {GPU}/ipc_trial.py {{programs}} {{out}}/ipc.jsonl {{seconds}} torch-mps",
        f"python3 {GPU}/ipc_trial.py {{programs}} {{out}}/ipc.jsonl {{seconds}} --small torch-mps",
        "spawn and forkserver 18 of 18, 9 of 9, 200 of 200 in all three; fork fails to send in all"
        " three, as time-sliced",
    ),
    Trial(
        "slots",
        "Eight trainings in slots of 5 s, time-sliced and under MPS, between two runs of FIFO",
        predicted="both totals 0.99 to 1.02 of the mean of the two FIFOs, which differ by 1 to 6 %;"
        " the shorter half 0.48 to 0.58; losses equal",
        **slots(),
    ),
    Trial(
        "lent",
        "A copy on a neighbour GPU whose memory is wanted, and a kill while it lies there",
        2,
        60,
        45,
        f"{GPU}/carrier_lent_trial.py {{programs}} {{out}}/lent.jsonl --parts=wanted,killed"
        " --gpus={gpus} --seconds={seconds}",
        f"{GPU}/carrier_lent_trial.py {{programs}} {{out}}/lent.jsonl --parts=wanted --batch=32"
        " --gpus={gpus} --seconds={seconds}",
        "20 GiB are at the host after 1.3 s, back in 1 s with equal losses; after the kill a new"
        " process finds zeros only",
        f"{GPU}/carrier_lent_trial.py {{programs}} {{out}}/lent.jsonl --parts=killed --emulated"
        " --gpus={gpus} --seconds={seconds}",
    ),
    Trial(
        "make-room",
        "A training is moved beside another one, for one that needs most of a GPU",
        predicted="21 GiB are moved once that has waited for twice as long as a move takes, within"
        " 100 s; losses equal",
        **gives_way("make-room", 2, 160, 120),
    ),
    Trial(
        "steps",
        "Steps a second as the library counts them: JAX, evaluations, a GAN, GPT-2",
        1,
        100,
        80,
        f"python3 {GPU}/step_rate_trial.py {{programs}}/libcolloc-preload.so {{out}}/steps.jsonl"
        " {seconds} cuda jax,evaluation,gan,gpt2",
        f"python3 {GPU}/step_rate_trial.py {{programs}}/libcolloc-preload.so {{out}}/steps.jsonl"
        " {seconds} cuda jax,gan",
        "JAX is known within 20 s of training, and then within 2 %; evaluations up to 5 % off",
        may_be_beside=False,
    ),
    Trial(
        "learning",
        "What measured speeds of some mixes say about others",
        1,
        220,
        120,
        f"python3 {GPU}/learning_trial.py {{programs}} {{out}}/learning.jsonl {{seconds}}",
        f"python3 {GPU}/learning_trial.py {{programs}} {{out}}/learning.jsonl {{seconds}} --small",
        "median error of pairs 10 to 14 % without learning, 8 to 12 % with it",
    ),
    Trial(
        "array",
        "40 equal trainings of 20 s on one GPU, whose waits for data differ, in turns with by hand;"
        " where the time goes",
        predicted="by hand 34 to 36 s; colloc 0.96 to 1.02 of its neighbour in each of four pairs"
        " (0.97 in one); below 0.1 in step; no failure",
        may_be_beside=False,
        **array(),
    ),
    Trial(
        "newcomer",
        "21 trainings of seven kinds at once, nothing declared or set, in turns with by hand and"
        " with one by one",
        1,
        530,
        190,
        f"python3 {GPU}/start_trial.py {{programs}} {{out}}/start.jsonl --gpus={{gpu}}"
        " --within={seconds}"
        " --ways=warm,by-hand,unset,unset,by-hand,by-hand,unset,unset,by-hand,unset,one-by-one",
        f"python3 {GPU}/start_trial.py {{programs}} {{out}}/start.jsonl --gpus={{gpu}} --kinds=1"
        " --each=0.5 --within={seconds} --ways=by-hand,unset",
        "by hand 30 to 33 s, colloc 0.97 to 1.06 of it in each of five runs; one after the other"
        " 190 to 230 s; nothing fails",
        may_be_beside=False,
    ),
    Trial(
        "kernels",
        "Kernels asked from cuDNN with one training at a time, with `benchmark` on",
        1,
        120,
        60,
        f"{KERNELS} --alone {ALONE}",
        f"{KERNELS} --alone alexnet resnet50-amp-last",
        "of those that deviated r3d-18 and dcgan within 2 %, efficientnet-b0-amp -8 %; the others "
        "within 2 %",
        may_be_beside=False,
    ),
    Trial(
        "tries",
        "Networks of the timm table whose runs jump, with `benchmark` and without, a process each",
        1,
        75,
        40,
        f"{KERNELS} --tries",
        f"{KERNELS} --tries convmixer_768_32@8",
        "with it convmixer at 16 +4.7 GiB, as before; legacy_xception, hgnetv2_b5, regnety_160 and "
        "lambda_resnet26t +2 to +12 GiB, resnet50_clip_gap +1.7 at 16 alone",
    ),
    Trial(
        "asking",
        "What asking cuDNN costs a training beside it, where nothing else runs",
        1,
        80,
        60,
        f"env GPU={{gpu}} python3 {GPU}/asking_trial.py {{programs}} {{out}}/rows.jsonl"
        " {seconds}",
        f"env GPU={{gpu}} python3 {GPU}/asking_trial.py {{programs}} {{out}}/rows.jsonl"
        " {seconds} 2",
        "the mean step in the 2 s of asking +0.3 to +1.5 %",
        may_be_beside=False,
    ),
    Trial(
        "windows-alone",
        "A window of the 60-task trace at true speed: each training alone, and exclusive",
        **windows("alone,exclusive", 720),
    ),
    Trial(
        "windows-magm",
        "The same window under MAGM with estimates",
        **windows("magm", 600),
    ),
    Trial(
        "windows-default",
        "The same window as installed",
        **windows("default", 600),
    ),
    Trial(
        "mixes",
        "The mixes that the 60-task trace visits under MAGM, the longest first",
        1,
        600,
        200,
        f"python3 {GPU}/mixes_trial.py {{programs}} {{out}} --fork --gpus={{gpu}}"
        " --seconds={seconds}",
        f"python3 {GPU}/mixes_trial.py {{programs}} {{out}} --fork --gpus={{gpu}} --window=2"
        " --seconds={seconds}",
        "9 s for each; pairs of convolutional trainings at 0.55 to 0.75 each; mean error of the"
        " modelled speeds below 0.10",
        f"python3 {GPU}/mixes_trial.py {{programs}} {{out}} --emulated --gpus={{gpu}} --window=2"
        " --seconds={seconds}",
    ),
)
