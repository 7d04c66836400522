# SPDX-License-Identifier: Apache-2.0
"""The metrics of a running task (`GET /v1/tasks/ID/series`) as points."""

from __future__ import annotations

from typing import Any, Dict, List

from colloc.client import Client
from colloc.tracking.bridge import Point
from colloc.tracking.record_lines import PREFIX

LAG_S = 6.0  # the daemon stores metrics every 5 s; until then the mean of a bucket is not complete


class TaskSeries:
    """The recorded metrics of a task, piece by piece."""

    def __init__(self, client: Client, task: int, since_s: float, period_s: float):
        self.client, self.task, self.period_s = client, task, period_s
        self.next_s, self.sent_s = since_s, 0.0
        self.began_s = since_s  # of the first attempt, once it is known

    def take(self, now_s: float, is_last: bool = False) -> List[Point]:
        """The points since the last call, oldest first.

        is_last: also those of the bucket that is not complete.

        Raises OSError or DaemonError.
        """
        answer = self.client.get(
            f"/v1/tasks/{self.task}/series",
            since=f"{self.next_s:.3f}",
            until=f"{now_s:.3f}",
            step_s=self.period_s,
            range="no",
        )
        if answer["attempts"] and answer["attempts"][0].get("started_at"):
            self.began_s = answer["attempts"][0]["started_at"]
        step_s = answer["step_s"]
        end_s = float("inf") if is_last else now_s - LAG_S - step_s
        points: List[Point] = []
        for series in answer["series"]:
            if series["task"] == self.task:
                points += self._points_of(series, end_s)
        if points:
            self.sent_s = max(point.at_s for point in points)
            self.next_s = self.sent_s + step_s
        return sorted(points, key=lambda point: point.at_s)

    def _points_of(self, series: Dict[str, Any], end_s: float) -> List[Point]:
        gpu = "" if series["gpu"] is None else f"gpu_{series['gpu']}_"
        return [
            Point(f"{PREFIX}{gpu}{metric}", value, at_s, max(0, int(at_s - self.began_s)))
            for metric, values in series["values"].items()
            for at_s, value in zip(series["times"], values)
            if value is not None and self.sent_s < at_s <= end_s
        ]
