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


def turns():
    command = (
        f"{GPU}/carrier_turns_trial.py {{programs}} {{out}}/turns.jsonl --sharing=streams"
        " --gpu={gpu} --seconds={seconds}"
    )
    return {
        "gpus": 1,
        "wanted_s": 260,
        "least_s": 220,
        "command": command,
        "smoke": f"{command} --alone=1",
        "emulated": f"{command} --emulated",
    }


def make_room():
    command = f"{GPU}/gives_way_trial.py {{programs}} {{out}}/gives-way.jsonl --seconds={{seconds}}"
    own = f"{command} --gpus={{gpus}} --parts=make-room"
    return {
        "gpus": 2,
        "wanted_s": 160,
        "least_s": 120,
        "command": own,
        "smoke": own,
        "emulated": f"{own} --emulated",
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


# Of all trials of windows, in the session's own folder: each way adds to it.
WINDOWS = "{out}/../windows.jsonl"
WINDOW_S = 525  # so that three calls and a start are below 1,800 s
ALONE_S = 275  # of five trainings: a start, up to 20 s until steps are known, and 20 s of them


def window(way):
    command = f"{GPU}/window_trial.py {{programs}} {WINDOWS} --gpus={{gpu}} --ways={way}"
    return {
        "gpus": 1,
        "wanted_s": WINDOW_S + 45,
        "least_s": WINDOW_S + 45,
        "command": f"{command} --seconds={WINDOW_S}",
        "smoke": f"{command} --seconds=15",
        "emulated": f"{command} --seconds=30 --emulated",
        "predicted": "the aim: progress and energy within 3 % of those composed from its mixes",
    }


def encoders():
    """The checkpoints of the last session are looked for beside the session's folder."""
    command = f"{GPU}/encoders_trial.py {{programs}} {{out}} --seconds={{seconds}}"
    found = "$(test -d {out}/../../checkpoints && echo --checkpoints={out}/../../checkpoints)"
    return {
        "gpus": 1,
        "wanted_s": 300,
        "least_s": 120,
        "command": f"{command} {found}",
        "smoke": f"{command} {found} --sets=measured,both",
    }


def alone_and_mixes():
    """Each training of the window alone; then, in what is left, the mixes that the windows of the
    same folder visited."""

    def chain(alone_s, windows, mixes):
        compare = f"{GPU}/window_trial.py --compare {WINDOWS}"
        return (
            f"{GPU}/window_trial.py {{programs}} {WINDOWS} --gpus={{gpu}} --ways=alone"
            f" --seconds={alone_s} {windows} && {compare} --missing={{out}}/missing.csv &&"
            f" {{{{ python3 {GPU}/mixes_trial.py {{programs}} {{out}}/../mixes --gpus={{gpu}}"
            f" --missing={{out}}/missing.csv {mixes}; {compare}"
            " --mixes={out}/../mixes/mixes.csv; }}"
        )

    rest = f"$(({{seconds}} - {ALONE_S + 35}))"
    return {
        "gpus": 1,
        "wanted_s": WINDOW_S + 45,
        "least_s": ALONE_S + 120,
        "command": chain(ALONE_S, "", f"--loaders=4 --fork --window=0 --seconds={rest}"),
        "smoke": f"{GPU}/window_trial.py {{programs}} {WINDOWS} --gpus={{gpu}} --ways=alone"
        " --seconds=25",
        "emulated": chain(50, "--emulated", "--emulated --window=2 --seconds={seconds}"),
    }


TRIALS = (
    Trial(
        "turns",
        "Four time-sliced trainings of 1.5 times the memory in turns, longer than a slot each",
        predicted="0.90 to 1.05 of the throughput of one after the other; each suspended once or"
        " twice, in one attempt; 4 of 4 losses equal",
        may_be_beside=False,
        **turns(),
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
        **make_room(),
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
        "asking",
        "What asking cuDNN costs a training beside it whose steps are CUDA graphs",
        1,
        80,
        60,
        f"env GPU={{gpu}} python3 {GPU}/asking_trial.py {{programs}} {{out}}/rows.jsonl"
        " {seconds}",
        f"env GPU={{gpu}} python3 {GPU}/asking_trial.py {{programs}} {{out}}/rows.jsonl"
        " {seconds} 2",
        "the mean step in the 2 s of asking 0 to +0.8 %; a quiet second differs from the one before"
        " by less than 0.5 %",
        may_be_beside=False,
    ),
    Trial(
        "windows-magm",
        "A window of the 60-task trace at true speed under MAGM with estimates",
        **window("magm"),
    ),
    Trial(
        "windows-default",
        "The same window as installed",
        **window("default"),
    ),
    Trial(
        "windows-alone",
        "Each training of the window alone (which gives exclusive), and the mixes of the windows",
        predicted="exclusive makes 0.99 of progress a second; 9 to 30 s for each mix; two trainings"
        " that load images 0.75 to 0.95 each, three 0.55 to 0.85",
        **alone_and_mixes(),
    ),
    Trial(
        "windows-predictive",
        "The same window under predictive with estimates",
        **window("predictive"),
    ),
    Trial(
        "encoders",
        "GPUMemNet's encoders with labels, ten sets at once, until the loss no longer falls",
        predicted="0.4 to 1.5 s for an epoch alone, 1 to 5 with ten under MPS; the sets without"
        " measured runs end after 90 to 250 epochs, at 88 to 93 and 86 to 92 %",
        **encoders(),
    ),
    Trial(
        "mixes",
        "The mixes that the rows of tables 6.5 and 6.6 visit, one row after the other",
        1,
        600,
        200,
        f"python3 {GPU}/mixes_trial.py {{programs}} {{out}} --fork --loaders=4 --gpus={{gpu}}"
        " --seconds={seconds}",
        f"python3 {GPU}/mixes_trial.py {{programs}} {{out}} --fork --loaders=4 --gpus={{gpu}}"
        " --window=2 --seconds={seconds}",
        "15 s for each; two trainings that load images at 0.75 to 1.05 each, three at 0.5 to 1;"
        " rows of MAGM within 5 points of the modelled ones",
        f"python3 {GPU}/mixes_trial.py {{programs}} {{out}} --emulated --gpus={{gpu}} --window=2"
        " --seconds={seconds}",
    ),
)
