# SPDX-License-Identifier: Apache-2.0
"""The settings of the tables and figures of chapter 6, by their names in data/published."""

import csv
import os

from colloc_evaluate.inputs import ROOT
from colloc_evaluate.runs import GPUS, KIND, Setting

NO_LIMIT = {"smact_max": 1, "min_free_gib": 0}
NAMES = {"horus": "Horus", "faketensor": "FakeTensor", "gpumemnet": "GPUMemNet"}
MIG_GPUS = f"2x{KIND},2x{KIND}:3g.20gb+3g.20gb"


def exclusive(trace):
    return Setting(trace, "exclusive")


def recovering(trace, policy, **conditions):
    """RAD-RM's queue stops while a crashed task waits for idle GPUs, with all policies but the
    oracles OFF and OBF (the server of github.com/itu-rad/CARMA)."""
    return Setting(trace, policy, recovery="stop-queue", **conditions)


def estimated(trace, estimator, **conditions):
    """GPU memory of at least the estimate: the dissertation names no margin on top of it."""
    return recovering(trace, "magm", estimator=estimator, margin_gib=0, **conditions)


# Section 6.4.1, figures 6.5 and 6.6. The margin of 2 GB and SMACT of at most 80 %: section 6.3.3.
ORACLES = {"Exclusive": exclusive(90)}
for _policy in ("off", "obf", "owf", "olug"):
    for _sharing, _name in (("streams", "streams"), ("mps", "MPS")):
        ORACLES[f"{_policy.upper()} on {_name}"] = Setting(90, _policy, "declared", _sharing)

# Section 6.4.2, table 6.3, figures 6.7 and 6.8.
RECOVERY = {
    "Exclusive": exclusive(90),
    "RR (no condition)": recovering(90, "rr", **NO_LIMIT),
    "MAGM (no condition)": recovering(90, "magm", **NO_LIMIT),
    "MAGM (SMACT ≤ 80 %)": recovering(90, "magm", min_free_gib=0),
    "MAGM (SMACT ≤ 80 % and GMem ≥ 2 GB)": recovering(90, "magm", min_free_gib=2),
    "MAGM (SMACT ≤ 80 % and GMem ≥ 5 GB)": recovering(90, "magm"),
    "LUG (SMACT ≤ 80 % and GMem ≥ 5 GB)": recovering(90, "lug"),
    "MAGM (SMACT ≤ 75 % and GMem ≥ 5 GB)": recovering(90, "magm", smact_max=0.75),
    "MAGM (SMACT ≤ 85 % and GMem ≥ 5 GB)": recovering(90, "magm", smact_max=0.85),
}

# Section 6.4.3, table 6.4, figures 6.9 and 6.10.
ESTIMATORS = {
    "Exclusive": exclusive(90),
    **{f"MAGM (GMem ≥ {NAMES[name]})": estimated(90, name, smact_max=1) for name in NAMES},
    **{f"MAGM (SMACT ≤ 80 % and GMem ≥ {NAMES[name]})": estimated(90, name) for name in NAMES},
}

# Section 6.4.4, table 6.5, figures 6.11 and 6.12.
HEAVY = {
    "Exclusive": exclusive(60),
    "RR on streams + recovery": recovering(60, "rr", sharing="streams", **NO_LIMIT),
    "RR on MPS + recovery": recovering(60, "rr", **NO_LIMIT),
    "MAGM (2 GB, 80 %) + recovery": recovering(60, "magm", min_free_gib=2),
    "LUG (2 GB, 80 %) + recovery": recovering(60, "lug", min_free_gib=2),
    **{f"MAGM + {NAMES[name]} (80 %)": estimated(60, name) for name in NAMES},
}

# Section 6.4.6, table 6.6.
ENERGY = {
    "Exclusive": HEAVY["Exclusive"],
    "RR on streams": HEAVY["RR on streams + recovery"],
    "RR on MPS": HEAVY["RR on MPS + recovery"],
    "MAGM on MPS": HEAVY["MAGM (2 GB, 80 %) + recovery"],
    **{f"MAGM + {NAMES[name]} on MPS": HEAVY[f"MAGM + {NAMES[name]} (80 %)"] for name in NAMES},
}

# Section 6.4.5, figures 6.13 to 6.15.
OVER_TIME = {"exclusive": HEAVY["Exclusive"], "MAGM + GPUMemNet": HEAVY["MAGM + GPUMemNet (80 %)"]}

POLICIES = ("rr", "magm", "lug", "mug", "first-fit", "best-fit")
SOURCES = {
    "section 6.4.1": ORACLES,
    "section 6.4.2": RECOVERY,
    "section 6.4.3": ESTIMATORS,
    "section 6.4.6": ENERGY,
    "figures 6.13 to 6.15": HEAVY,
    "table 6.3": RECOVERY,
    "table 6.4": ESTIMATORS,
    "table 6.5": HEAVY,
    "table 6.6": ENERGY,
}


def short_hold_off(setting):
    """Hold-off until the next sample: the next task may start while the last one's memory grows."""
    return setting._replace(hold_off_s=1)


def with_free_launches(setting):
    """A task alone under MPS is as fast as without, as others found for an A100.

    The interference model has the slowdown that was measured on an H200.
    """
    return setting._replace(machine="free launches")


def without_interference(setting):
    """Tasks under MPS share SM time and nothing else."""
    return setting._replace(machine="no interference")


def with_delayed_decisions(setting):
    """RAD-RM's own rule in place of a hold-off by GPU: no start within 30 s of the last one on idle
    GPUs, within 60 s on others."""
    return setting._replace(machine="decisions delayed", delay_s=30, hold_off_s=1)


def with_memory_of_rerun(setting):
    """The tasks take the memory that the authors' rerun of 2025 saw: mostly less than published."""
    return setting._replace(memory="rerun")


def with_delay_and_rerun(setting):
    return with_memory_of_rerun(with_delayed_decisions(setting))


def with_delay_and_no_interference(setting):
    return with_delayed_decisions(setting)._replace(machine="delayed, no interference")


def with_running_queue(setting):
    """The queue continues on other GPUs during a recovery: colloc's default."""
    return setting._replace(recovery="drain")


def with_times(policy):
    """The name of a policy that also knows the run times of tasks."""
    return f"{policy} (times known)"


def with_suspension(trace):
    """The settings in which running tasks give way, and what they are compared with. The driver
    suspends tasks that are time-sliced; clients of MPS are paused."""
    predictive = Setting(trace, "predictive", "declared", known="all")
    magm = Setting(trace, "magm", "declared", "streams")
    preempt, slots, room = ("--preempt",), ("--slots=10m",), ("--make-room",)
    return {
        "first come, first served": exclusive(trace),
        "predictive, MPS": predictive,
        "predictive, MPS, preemption": predictive._replace(suspension=preempt),
        "predictive, streams": predictive._replace(sharing="streams"),
        "predictive, streams, preemption": predictive._replace(
            sharing="streams", suspension=preempt
        ),
        "least attained service, streams": magm._replace(policy="las", suspension=preempt),
        "MAGM, streams": magm,
        "MAGM, streams, slots of 10 min": magm._replace(suspension=slots),
        "MAGM, streams, making room": magm._replace(suspension=room),
    }


def everything(trace, estimators, own):
    """Settings beyond the chapter: every policy, estimator and way of sharing.

    own: names of policies that the thesis does not have
    """
    settings = {"exclusive": exclusive(trace)}
    for sharing in ("mps", "streams"):
        for policy in (*own, *POLICIES):
            for estimator in ("none", "declared", *estimators):
                settings[f"{policy}, {estimator}, {sharing}"] = Setting(
                    trace, policy, estimator, sharing
                )
        for policy in own:
            settings[f"{with_times(policy)}, declared, {sharing}"] = Setting(
                trace, policy, "declared", sharing, known="all"
            )
    for policy in ("exclusive", "magm"):
        settings[f"{policy}, declared, MIG"] = Setting(trace, policy, "declared", gpus=MIG_GPUS)
    return settings


def resampled(trace, own, seeds):
    """The settings of each policy on other traces like this one."""
    policies = {
        "exclusive": exclusive(trace),
        "MAGM, memory unknown": Setting(trace, "magm"),
        "LUG, memory unknown": Setting(trace, "lug"),
        "OWF": Setting(trace, "owf", "declared"),
        "OWF with backfill": Setting(trace, "owf", "declared", backfill=True),
        **{
            f"{policy}, memory {word}": Setting(trace, policy, estimator_)
            for policy in own
            for word, estimator_ in (("unknown", "none"), ("known", "declared"))
        },
        **{
            f"{policy}, memory and times known": Setting(trace, policy, "declared", known="all")
            for policy in own
        },
    }
    return {
        label: [setting._replace(resample=seed) for seed in seeds]
        for label, setting in policies.items()
    }


def read_published():
    """Published values by (source, row, metric)."""
    with open(
        os.path.join(ROOT, "data", "published", "chapter6.csv"), encoding="utf-8", newline=""
    ) as file:
        lines = [line for line in file if not line.startswith("#")]
    return {
        (row["source"], row["row"], row["metric"]): float(row["value"])
        for row in csv.DictReader(lines)
    }


__all__ = [
    "GPUS",
    "ORACLES",
    "RECOVERY",
    "ESTIMATORS",
    "HEAVY",
    "ENERGY",
    "OVER_TIME",
    "SOURCES",
    "everything",
    "resampled",
    "short_hold_off",
    "with_times",
    "with_delayed_decisions",
    "with_running_queue",
    "with_suspension",
    "with_delay_and_no_interference",
    "with_delay_and_rerun",
    "with_free_launches",
    "with_memory_of_rerun",
    "without_interference",
    "read_published",
]
