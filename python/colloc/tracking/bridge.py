# SPDX-License-Identifier: Apache-2.0
"""What a bridge is, and how `mlflow`, `wandb` and `tensorboard:FOLDER` become bridges."""

from __future__ import annotations

import urllib.parse
from typing import List, Mapping, NamedTuple, Sequence

TENSORBOARD = "tensorboard:"
KINDS = "mlflow, wandb or tensorboard:FOLDER"


class Point(NamedTuple):
    """A value of a metric: `at_s` in seconds since 1970, `step` in seconds since the start."""

    name: str
    value: float
    at_s: float
    step: int


class Refused(Exception):
    """The points will never be taken: sending them again is of no use."""


class Bridge:
    """One place that points are sent to."""

    name = ""

    def send(self, points: Sequence[Point]) -> None:
        """Sends points, in order. Raises Refused, or OSError: then it is to be tried again."""
        raise NotImplementedError

    def close(self) -> None:
        """Completes the run."""


def open_bridge(place: str, environment: Mapping[str, str]) -> Bridge:
    """One of KINDS. Raises ValueError, and nothing else, with what is missing or wrong."""
    try:
        return open_kind(place, environment)
    except ValueError:
        raise
    except Exception as error:  # of a package, or a file that the environment names
        raise ValueError(f"{type(error).__name__}: {error}") from None


def open_kind(place: str, environment: Mapping[str, str]) -> Bridge:
    """As open_bridge, but other errors pass."""
    if place == "mlflow":
        from colloc.tracking.mlflow_run import open_mlflow

        return open_mlflow(environment)
    if place == "wandb":
        from colloc.tracking.wandb_run import WandbRun

        return WandbRun(environment)
    if place.startswith(TENSORBOARD) and place != TENSORBOARD:
        from colloc.tracking.event_file import EventFile

        return EventFile(place[len(TENSORBOARD) :])
    raise ValueError(f"{place!r}: must be {KINDS}")


def open_bridges(places: str, environment: Mapping[str, str]) -> List[Bridge]:
    """Bridges to a comma-separated list of places. Raises ValueError for the first that fails."""
    return [open_bridge(place, environment) for place in places.split(",")]


def shown_address(uri: str) -> str:
    """The address without a password that it may have."""
    parts = urllib.parse.urlsplit(uri)
    return urllib.parse.urlunsplit((parts.scheme, parts.hostname or "", parts.path, "", ""))
