#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the trainings of data/traces/tasks.txt do on the GPU at hand, each alone with data that is
there: rate, memory, SM activity, occupancy, bandwidth, power.

    tests/gpu/catalogue_trial.py PROGRAMS TASKS OUTPUT [SECONDS [MODEL,...]]
    tests/gpu/catalogue_trial.py --print OUTPUT
    tests/gpu/catalogue_trial.py --tasks OUTPUT TASKS RATIO

PROGRAMS: of scripts/bundle, with workloads/. OUTPUT: a folder for runs.jsonl, a line for each
training, and looks.csv, the GPU's samples; `from` and `to` are its times. SECONDS of each are
measured, 3 by default, after one second of warm-up. Needs an idle GPU, PyTorch, torchvision, timm
and transformers. The second form prints a line for each training as CSV.

The third one prints TASKS with the SM activity that follows for a GPU on which the same work takes
RATIO times as long: SM time for an image as it was measured, times the images a second of TASKS;
at most what was measured, where the training waits for nothing.
Language models, whose samples a second TASKS does not tell, keep what was measured. Occupancy,
bandwidth and power follow from it by the formulae of TASKS.

The parent imports these libraries once and forks for each training: starting Python would take
longer than the training. It must not touch CUDA itself.
"""
import csv
import dataclasses
import gzip
import importlib
import json
import os
import subprocess
import sys
import time

SIDES = {"inception_v3": 299, "xception": 299}  # of ImageNet's images; others take 224
NAMES = {
    "inception_v3": "timm/inception_v3",
    "xception": "timm/legacy_xception",
    "mnist_cnn": "digits",
}
LANGUAGE = ("bert", "gpt2", "xlnet")
WARM_UP_S = 1
LIMIT_S = 60


def read_tasks(path):
    """A dictionary for each line, by the names in the first one."""
    with open(path, encoding="utf-8") as file:
        lines = [line.split() for line in file if line.strip() and not line.startswith("#")]
    return [dict(zip(lines[0], line)) for line in lines[1:]]


def trainings(path):
    """(model, data set, batch) of each line, each once."""
    return list(
        dict.fromkeys(
            (task["model"], task["dataset"], int(task["batch"])) for task in read_tasks(path)
        )
    )


def training_like(model, dataset, batch):
    """What stands for it in workloads/models.py, with the data set's shapes."""
    from models import training_of

    if model.startswith(LANGUAGE):
        training = training_of(model)
        shapes = {}
    elif model == "mnist_cnn":
        training = training_of("digits")
        shapes = {}
    else:
        training = training_of(NAMES.get(model, f"torchvision/{model}"))
        shapes = (
            {"side": 32, "classes": 100}
            if dataset == "cifar100"
            else {"side": SIDES.get(model, 224), "classes": 1000}
        )
    data = dataclasses.replace(training.data, batch=batch, **shapes)
    return dataclasses.replace(training, data=data)


def steps_for(seconds, stepper, batch):
    """How many steps that takes, and how long it really took."""
    import torch

    began, steps = time.monotonic(), 0
    while True:
        for _ in range(5):
            stepper.step(batch)
        torch.cuda.synchronize()
        steps += 5
        took = time.monotonic() - began
        if took >= seconds:
            return steps, took


def measure(model, dataset, batch_size, seconds, began):
    import torch
    from models import Stepper

    training = training_like(model, dataset, batch_size)
    stepper = Stepper(training, "cuda")
    batch = [tensor.to("cuda") for tensor in training.data.synthetic()]
    steps_for(WARM_UP_S, stepper, batch)
    since = time.time()
    steps, took = steps_for(seconds, stepper, batch)
    free, total = torch.cuda.mem_get_info()
    return {
        "model": model,
        "dataset": dataset,
        "batch": batch_size,
        "from": round(since - began, 3),
        "to": round(time.time() - began, 3),
        "samples_per_s": round(steps * batch_size / took, 2),
        "reserved_mib": torch.cuda.max_memory_reserved() / 2**20,
        "gpu_mib": (total - free) / 2**20,
    }


def in_a_child(log, name, seconds, began):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            line = measure(*name, seconds, began)
            log.write(json.dumps(line) + "\n")
            log.flush()
            code = 0
        except Exception as error:  # the next training is to run
            print(f"{'-'.join(map(str, name))}: {type(error).__name__}: {error}", flush=True)
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0


def record_all(tasks, output, seconds, models, began):
    """Runs under `colloc record`."""
    for library in ("torch", "torchvision", "timm", "transformers.models.xlnet"):
        importlib.import_module(library)

    wanted = [name for name in trainings(tasks) if not models or name[0] in models]
    with open(os.path.join(output, "runs.jsonl"), "a", encoding="utf-8") as log:
        done = [in_a_child(log, name, seconds, began) for name in wanted]
    print(f"{sum(done)} of {len(done)} trainings measured", flush=True)
    return all(done)


COLUMNS = {
    "smact": "smact",
    "smocc": "smocc",
    "gract": "gract",
    "dram": "dram_active",
    "power_w": "power_w",
}
EDGE_S = 0.15  # left out at each end: a sample is of the tenth of a second before it


def read_looks(folder):
    path = os.path.join(folder, "looks.csv")
    with open(path, newline="") if os.path.exists(path) else gzip.open(f"{path}.gz", "rt") as file:
        return list(csv.DictReader(file))


def print_means(folder):
    looks = read_looks(folder)
    shown = csv.writer(sys.stdout, lineterminator="\n")
    shown.writerow(["model", "dataset", "batch", "samples_per_s", "gpu_mib", *COLUMNS])
    with open(os.path.join(folder, "runs.jsonl"), encoding="utf-8") as file:
        runs = [json.loads(line) for line in file]
    for run in runs:
        since, until = run["from"] + EDGE_S, run["to"] - EDGE_S
        within = [look for look in looks if since < float(look["time_s"]) < until]
        means = [
            sum(float(look[name]) for look in within) / len(within) for name in COLUMNS.values()
        ]
        shown.writerow(
            [run[key] for key in ("model", "dataset", "batch", "samples_per_s")]
            + [round(run["gpu_mib"]), *(f"{mean:.3f}" for mean in means[:-1]), round(means[-1])]
        )
    return 0


IMAGES = {"imagenet": 1281167, "cifar100": 50000, "mnist": 60000}  # of an epoch


def print_tasks(folder, tasks, ratio):
    with open(os.path.join(folder, "means.csv"), newline="", encoding="utf-8") as file:
        means = {(r["model"], r["dataset"], r["batch"]): r for r in csv.DictReader(file)}
    lines = read_tasks(tasks)
    print(*lines[0])
    for task in lines:
        mean = means[task["model"], task["dataset"], task["batch"]]
        smact = float(mean["smact"])
        if task["dataset"] in IMAGES:
            rate = IMAGES[task["dataset"]] * int(task["epochs"]) / float(task["solo_s"])
            smact *= ratio * rate / float(mean["samples_per_s"])
        smact = min(float(mean["smact"]), smact)  # more it has not when it waits for nothing
        power = 85 + 190 * (min(1, 0.2 + 0.9 * smact) / 4 + smact * 3 / 4)
        task.update(smact=f"{smact:.2f}", smocc=f"{0.45 * smact:.2f}")
        task.update(dram=f"{0.5 * smact:.2f}", power_w=f"{power:.0f}")
        print(*task.values())
    return 0


def main():
    if os.environ.get("CATALOGUE_TRIAL"):
        sys.path.insert(0, os.path.join(sys.argv[1], "workloads"))
        return 0 if record_all(**json.loads(os.environ["CATALOGUE_TRIAL"])) else 1
    if len(sys.argv) == 3 and sys.argv[1] == "--print":
        return print_means(sys.argv[2])
    if len(sys.argv) == 5 and sys.argv[1] == "--tasks":
        return print_tasks(sys.argv[2], sys.argv[3], float(sys.argv[4]))
    if len(sys.argv) not in (4, 5, 6):
        sys.exit(__doc__)
    programs, tasks, output = sys.argv[1:4]
    seconds = float(sys.argv[4]) if len(sys.argv) > 4 else 3
    models = sys.argv[5].split(",") if len(sys.argv) > 5 else []
    os.makedirs(output, exist_ok=True)
    looks = os.path.join(output, "looks.csv")
    command = [os.path.join(programs, "colloc"), "record", "--interval=100ms", "-o", looks]
    command += ["-s", os.path.join(output, "summary.txt"), "--", sys.executable, __file__, programs]
    trial = {"tasks": tasks, "output": output, "seconds": seconds, "models": models}
    trial["began"] = time.time()  # the recording's zero, but for a few milliseconds
    environment = os.environ | {"CATALOGUE_TRIAL": json.dumps(trial)}
    return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
