# SPDX-License-Identifier: Apache-2.0
"""A run of Weights & Biases, by its package: the service has no documented interface besides it.

The run is joined as a further writer (`mode="shared"`, wandb 0.19.9 and later), so that the
training, which is another process, goes on writing to it.
"""

from __future__ import annotations

import itertools
from typing import Dict, Mapping, Sequence

from colloc.tracking.bridge import Bridge, Point, Refused


class WandbRun(Bridge):
    """The run that WANDB_RUN_ID names."""

    name = "wandb"

    def __init__(self, environment: Mapping[str, str]):
        run = environment.get("WANDB_RUN_ID")
        if not run:
            raise ValueError("the environment names no run: set WANDB_RUN_ID")
        try:
            import wandb  # type: ignore[import-not-found,import,unused-ignore]
        except ImportError:
            raise ValueError("python3 does not have the package wandb") from None
        try:
            settings = wandb.Settings(
                mode="shared", x_primary=False, x_label="colloc", x_disable_stats=True, silent=True
            )
            self.run = wandb.init(
                id=run,
                project=environment.get("WANDB_PROJECT"),
                entity=environment.get("WANDB_ENTITY"),
                settings=settings,
            )
        except Exception as error:  # of the package
            raise ValueError(str(error)) from error

    def send(self, points: Sequence[Point]) -> None:
        for (_, step), group in itertools.groupby(points, lambda p: (p.at_s, p.step)):
            values: Dict[str, float] = {point.name: point.value for point in group}
            values["system/colloc_time_s"] = step
            try:
                self.run.log(values)
            except Exception as error:  # of the package
                raise Refused(str(error)) from error

    def close(self) -> None:
        self.run.finish()
