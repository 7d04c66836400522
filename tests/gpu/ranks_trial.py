#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What ranks of NCCL do in a step, and how long they may be away (docs/carrier.md), on two GPUs.

    tests/gpu/ranks_trial.py PROGRAMS OUTPUT SECONDS [--small] [PART ...]

As groups_trial.py, with the trainings of ranks_trainings.py. Parts, those of a line together:
    losses, recall, turns
    graph, mps

    losses   experts and a pipeline: all_to_all, send and receive, gather, scatter; each out and in
             at random instants, beside undisturbed runs
    recall   suspended by a user: with `suspend-ranks-max: 10s` the ranks come back by themselves
             before a heartbeat of 24 s ends them. With the default they stay away, and a heartbeat
             of 8 s ends them: so there is something to be prevented
    turns    two trainings on the same two GPUs, slots of 20 s, `suspend-ranks-max: 16s`
    graph    a step in a CUDA graph, by NCCL_GRAPH_REGISTER of 0, 1 and as NCCL chooses: out and in,
             or refused with the reason
    mps      experts whose ranks are clients of MPS
"""
import os
import socket
import threading
import time

import groups_trial as groups
from groups_trial import ENDED, Part, compare, until

groups.TRAININGS = os.environ.get("RANKS_TRAININGS") or os.path.join(
    groups.HERE, "ranks_trainings.py"
)
TOGETHER = [["losses", "recall", "turns"], ["graph", "mps"]]
# The ranks of a line start in about 25 s, all at the same time.
LIMITS_S = {"losses": 75, "recall": 75, "turns": 75, "graph": 65, "mps": 65}
TASK = ("--gpus=2", "--memory=6GiB", "--smact=0.1")
RECALL_S, HEARTBEAT_S, SHORT_HEARTBEAT_S = 10, 24, 8
GRAPH = {"TORCH_NCCL_ASYNC_ERROR_HANDLING": 0}  # as PyTorch asks of a DDP in a graph


def heartbeat(seconds):
    """PyTorch ends a rank whose watchdog stands still for so long, and says so at once."""
    return {"TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC": seconds, "TORCH_NCCL_DUMP_ON_TIMEOUT": 0}


# Without torchrun, whose own start takes as long as that of the ranks. The first that ends badly
# ends the other one.
BOTH = """{exports}
export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT={port}
for rank in 0 1; do RANK=$rank LOCAL_RANK=$rank {command} & done >{output} 2>&1
wait -n && wait -n || {{ kill $(jobs -p); exit 1; }}"""


def free_port():
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return trial.getsockname()[1]


class RanksPart(Part):
    rest_s = 17

    def new(self, kind, ranks=2, env=None, **options):
        work = super().new(kind, 1, **{"batch": 8, **options})
        work.ranks = ranks
        command, output = work.command[-1][len("exec ") : -len(" 2>&1")].split(" >")
        exports = "".join(f"export {key}={value}\n" for key, value in (env or {}).items())
        port = free_port()
        script = BOTH.format(exports=exports, port=port, command=command, output=output)
        work.command = ["bash", "-c", script]
        return work

    def start_reference(self, kind, **_):
        """Of each kind there is one, which all parts compare with."""
        folder = f"{self.work}/reference-{kind}"
        work = self.new(kind, steps=300)
        command = work.command[-1].replace(work.output, f"{folder}/output")
        work.command, work.output = ["bash", "-c", command], f"{folder}/output"
        try:
            os.mkdir(folder)
        except FileExistsError:
            return work
        return work.start()

    # ---- out and in ----

    def out_and_in(self, part, kinds, daemon):
        """kinds: name -> (kind, options of the training)"""
        times = 2 if self.small else 12
        try:
            self.swap_beside_reference(kinds, times, daemon, *TASK, gap_s=(0.02, 0.3))
        finally:
            self.note_log(part, daemon)
        daemon.close()

    def losses(self):
        kinds = {f"losses {kind}": (kind, {}) for kind in ("experts", "pipeline")}
        self.out_and_in("losses", kinds, self.new_daemon())

    def mps(self):
        daemon = self.new_daemon(sharing="mps", mps_memory_limit="no")
        self.out_and_in("mps", {"mps experts": ("experts", {})}, daemon)

    def graph(self):
        kinds = {"graph": GRAPH}
        for register in (0, 1):
            kinds[f"graph register={register}"] = {**GRAPH, "NCCL_GRAPH_REGISTER": register}
        kinds = {name: ("graph", {"env": env}) for name, env in kinds.items()}
        self.out_and_in("graph", kinds, self.new_daemon())

    def note_swaps(self, key, work, reference, rows):
        super().note_swaps(key, work, reference, rows)
        shown = work.show()
        keys = ("carried", "carrier_obstacle", "suspension_error")
        self.note(f"{key}, shown", {k: shown[k] for k in keys if k in shown})

    # ---- how long they may be away ----

    def recall(self):
        """The two daemons at the same time."""
        threads = [
            threading.Thread(target=self.guarded, args=(f, name), daemon=True)
            for f, name in ((self.recalled, "recalled"), (self.not_recalled, "not recalled"))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(1, self.left_s()))

    def guarded(self, work, name):
        try:
            work()
        except Exception as error:  # noqa: BLE001 - a part of the result
            self.note(f"error of {name}", {"error": repr(error)[-2000:]})

    def recalled(self):
        daemon = self.new_daemon(suspend_ranks_max=f"{RECALL_S}s")
        env = heartbeat(HEARTBEAT_S)
        reference = self.start_reference("experts")
        work = self.new("experts", steps=100000, pace=0.2, env=env).submit(daemon, *TASK)
        rows = []
        try:
            work.wait_steps(3)
            self.wait_carrier(work, 10)
            while self.left_s() > RECALL_S + 8 and len(rows) < 2:
                out_s, why = work.ask("suspend")
                begin, row = time.monotonic(), {"out_s": round(out_s, 3), "why": why}
                rows.append(row)
                states = ("RUNNING", *ENDED)
                limit = max(1, min(RECALL_S + 10, self.left_s() - 6))
                row["then"] = until(lambda: (s := work.state()) in states and s, limit, "recall")
                row["away_s"] = round(time.monotonic() - begin, 2)
                n = work.count()
                work.wait_steps(3, max(1, min(20, self.left_s() - 5)))
                row["steps_after"] = work.count() - n
        finally:
            self.note_ends("recall", daemon, [work], reference, rows=rows)

    def not_recalled(self):
        """What happens without: the watchdog stands still, and PyTorch ends the rank."""
        daemon = self.new_daemon()
        options = (*TASK, "--requeue=no")
        env = heartbeat(SHORT_HEARTBEAT_S)
        work = self.new("experts", steps=100000, pace=0.2, env=env).submit(daemon, *options)
        result = {}
        try:
            work.wait_steps(3)
            self.wait_carrier(work, 10)
            _, result["why"] = work.ask("suspend")
            begin = time.monotonic()
            try:
                until(work.has_ended, max(1, self.left_s() - 6), "its end", 0.1)
                result["ended_after_s"] = round(time.monotonic() - begin, 1)
            except TimeoutError:
                result["not_ended_after_s"] = round(time.monotonic() - begin, 1)
            result["state"] = work.state()
            result["says"] = [line[-300:] for line in work.lines() if "eartbeat" in line][:4]
        finally:
            self.note("recall, default", result)
            self.note_log("recall, default", daemon)
        daemon.close()

    def turns(self):
        daemon = self.new_daemon(
            slots="yes", slot_length="20s", tasks_per_gpu="1", suspend_ranks_max="16s"
        )
        env = heartbeat(HEARTBEAT_S)
        options = {"steps": 100000, "pace": 0.05, "env": env}
        works = [self.new("experts", **options).submit(daemon, *TASK) for _ in range(2)]
        reference = self.start_reference("experts")
        story = []
        try:
            self.watch_turns(works, story, time.monotonic(), spare_s=7)
        finally:
            self.note("turns", {"story": story})
            self.note_ends("turns", daemon, works, reference)

    def note_ends(self, part, daemon, works, reference, **more):
        """A work that is away at the end has lost nothing either."""
        for i, work in enumerate(works, start=1):
            shown = work.show()
            keys = ("state", "attempt_count", "suspensions", "suspended_s", "mem_peak_mib")
            result = {key: shown.get(key) for key in keys}
            key = f"{part} {i}" if len(works) > 1 else part
            self.note(key, {**result, **more, **compare(work, reference)})
        self.note_log(part, daemon)
        reference.stop()
        for work in works:
            daemon.colloc("cancel", str(work.task), check=False)
        daemon.close()


if __name__ == "__main__":
    groups.main(RanksPart, TOGETHER, LIMITS_S, __file__)
