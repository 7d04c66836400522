# SPDX-License-Identifier: Apache-2.0
"""Runs of MLflow for the trainings of `colloc bench --mlflow`. Started by colloc, not by users:

    python3 -m colloc.tracking.bench_runs check           is there a server that answers?
    python3 -m colloc.tracking.bench_runs create FILE     prints the id of each new run
    python3 -m colloc.tracking.bench_runs end FILE        sends metrics, and ends the runs

FILE is what python/colloc_bench/mlflow.py writes. As with radT, the first training of a group is
the parent of the others. Exits with 1 and a line on standard error if a request fails.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
import urllib.parse
from typing import Any, Dict, List, Mapping

from colloc.tracking.__main__ import period_s
from colloc.tracking.bridge import Point, Refused, shown_address
from colloc.tracking.mlflow_run import RestRun, RestServer
from colloc.tracking.record_lines import read_points

PARAM_MAX = 6000  # characters of a value, as MLflow documents
PARAMS_MAX = 100  # of a request, likewise


def open_server(environment: Mapping[str, str]) -> RestServer:
    """The server that the environment names. Raises ValueError if it names none."""
    uri = environment.get("MLFLOW_TRACKING_URI", "")
    if not uri:
        raise ValueError("the environment names no server: set MLFLOW_TRACKING_URI")
    if not uri.lower().startswith(("http://", "https://")):
        raise ValueError(
            f"MLFLOW_TRACKING_URI={shown_address(uri)}: colloc bench sends to http:// and "
            "https:// only"
        )
    return RestServer(uri, environment)


def experiment_id(
    server: RestServer, described: Mapping[str, Any], environment: Mapping[str, str]
) -> str:
    """That of the table, or of MLflow's variables; "0" is MLflow's default experiment."""
    named = environment.get("MLFLOW_EXPERIMENT_NAME")
    if described.get("experiment"):
        return str(described["experiment"])
    if environment.get("MLFLOW_EXPERIMENT_ID") or not named:
        return environment.get("MLFLOW_EXPERIMENT_ID") or "0"
    query = urllib.parse.urlencode({"experiment_name": named})
    found = server.request(f"experiments/get-by-name?{query}")
    return str(found["experiment"]["experiment_id"])


def milliseconds(seconds: float) -> int:
    """MLflow's unit of time."""
    return int(seconds * 1000)


def create_runs(
    server: RestServer, described: Mapping[str, Any], environment: Mapping[str, str]
) -> List[str]:
    """The ids of new runs, in the order of the description. If one cannot be made, those before it
    are ended."""
    ids: List[str] = []
    try:
        add_runs(server, described, environment, ids)
    except (OSError, Refused, ValueError, LookupError, TypeError):
        with contextlib.suppress(OSError, Refused):
            for run_id in ids:
                end = {"status": "KILLED", "end_time": milliseconds(time.time())}
                server.request("runs/update", {"run_id": run_id, **end})
        raise
    return ids


def add_runs(
    server: RestServer,
    described: Mapping[str, Any],
    environment: Mapping[str, str],
    ids: List[str],
) -> None:
    """Creates the runs, and appends their ids."""
    experiment = experiment_id(server, described, environment)
    for run in described["runs"]:
        tags = {"mlflow.runName": run["name"], "mlflow.source.name": "colloc bench"}
        if ids:
            tags["mlflow.parentRunId"] = ids[0]
        made = server.request(
            "runs/create",
            {
                "experiment_id": experiment,
                "run_name": run["name"],
                "start_time": milliseconds(time.time()),
                "tags": [{"key": key, "value": value} for key, value in tags.items()],
            },
        )
        ids.append(str(made["run"]["info"]["run_id"]))
        params = [{"key": k, "value": v[:PARAM_MAX]} for k, v in run["params"].items()]
        for first in range(0, len(params), PARAMS_MAX):
            part = params[first : first + PARAMS_MAX]
            server.request("runs/log-batch", {"run_id": ids[-1], "params": part})


def read_samples(described: Mapping[str, Any]) -> List[Point]:
    """The samples of the GPUs and of the trainings together, as means of the usual period."""
    if not described.get("looks"):
        return []
    with open(described["looks"], encoding="utf-8", errors="replace") as file:
        return [
            point
            for points in read_points(file, period_s(), described["began_unix_s"])
            for point in points
        ]


def end_runs(server: RestServer, described: Mapping[str, Any], environment: Mapping[str, str]):
    """Sends each run's metrics, and ends it."""
    samples = read_samples(described)
    for run in described["runs"]:
        own = [Point(name, value, at, step) for name, value, at, step in run.get("metrics", [])]
        RestRun(server.uri, run["id"], environment).send(own + samples)
        if run.get("failure"):
            tag = {"run_id": run["id"], "key": "colloc.failure", "value": run["failure"]}
            server.request("runs/set-tag", tag)
        end: Dict[str, Any] = {"run_id": run["id"], "status": run["status"]}
        server.request("runs/update", {**end, "end_time": milliseconds(run["ended_unix_s"])})


def act(words: List[str], environment: Mapping[str, str]) -> None:
    """Raises OSError, Refused, or ValueError and the like for an answer that is none."""
    server = open_server(environment)
    if words == ["check"]:
        experiment = experiment_id(server, {}, environment)
        server.request(f"experiments/get?{urllib.parse.urlencode({'experiment_id': experiment})}")
        return
    action, path = words
    with open(path, encoding="utf-8") as file:
        described = json.load(file)
    if action == "create":
        print("\n".join(create_runs(server, described, environment)))
    else:
        end_runs(server, described, environment)


def main(words: List[str]) -> int:
    if words != ["check"] and (len(words) != 2 or words[0] not in ("create", "end")):
        sys.stderr.write("colloc.tracking.bench_runs: started by `colloc bench --mlflow`\n")
        return 2
    try:
        act(words, os.environ)
    except (OSError, Refused, ValueError, LookupError, TypeError) as error:
        sys.stderr.write(f"{error or type(error).__name__}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
