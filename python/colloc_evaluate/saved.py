# SPDX-License-Identifier: Apache-2.0
"""Runs in a file, from which the page can be written again without a simulation.

JSON lines, compressed: first what the runs have in common, then a line for each run (what its
setting has other than Setting's defaults, the seed, the result), then the timelines.
"""

import json
import lzma

from colloc_evaluate.runs import Failed, Runs, Setting


def save(runs, path):
    """Writes all runs and timelines that were made. The folder must exist."""
    with lzma.open(path, "wt", encoding="utf-8") as file:
        for record in _records(runs):
            file.write(json.dumps(record, separators=(",", ":")) + "\n")


def _records(runs):
    inputs = runs.inputs
    yield {"seeds": runs.seeds, "estimators": inputs.estimators, "story": inputs.story}
    for (setting, seed), result in runs.results.items():
        yield {"run": _changed(setting), "seed": seed, "result": result}
    for setting, gpus in runs.timelines.items():
        yield {"timeline": _changed(setting), "gpus": gpus}


def _changed(setting):
    """What a setting has other than the defaults."""
    return {
        name: value
        for name, value in setting._asdict().items()
        if value != Setting._field_defaults.get(name)
    }


def _setting(changed):
    return Setting(**{name: tuple(v) if isinstance(v, list) else v for name, v in changed.items()})


class _Inputs:
    def __init__(self, record):
        self.estimators, self.story = tuple(record["estimators"]), record["story"]


class SavedRuns(Runs):
    """What `save` wrote: answers as Runs does, and runs nothing."""

    def __init__(self, path):
        try:
            with lzma.open(path, "rt", encoding="utf-8") as file:
                head, *records = map(json.loads, file)
            super().__init__(None, _Inputs(head), head["seeds"])
            for record in records:
                if "run" in record:
                    self.results[_setting(record["run"]), record["seed"]] = record["result"]
                else:
                    self.timelines[_setting(record["timeline"])] = record["gpus"]
        except (KeyError, TypeError, ValueError, EOFError, lzma.LZMAError) as fault:
            raise Failed(f"{path}: no runs of scripts/evaluate --raw: {fault}") from None

    def knows(self, setting):
        return any((setting, seed) in self.results for seed in self.seeds)

    def _run(self, words):
        raise Failed(f"not among the saved runs: colloc {' '.join(words)}")

    def _words(self, setting, seed):
        return [json.dumps(_changed(setting)), f"seed {seed}"]
