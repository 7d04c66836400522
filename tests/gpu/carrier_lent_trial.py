#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""collocd's own way to the memory of a neighbour GPU (docs/carrier.md), on two GPUs that NVLink
joins. Writes JSON lines. carrier_near_trial.py measures the copies alone.

    tests/gpu/carrier_lent_trial.py PROGRAMS OUT.jsonl --seconds=S [--sharing=mps|streams]
                                    [--gpus=0,1] [--batch=208] [--parts=near,wanted,killed]
                                    [--emulated]

PROGRAMS: a folder made by scripts/bundle; with --emulated a build folder (carrier_tasks.py).

collocd has `neighbour-memory: yes`, `preempt: yes` and `tasks-per-gpu: 1`. In each part a ResNet-50
of about 20 GiB trains on the first GPU, and a small training of a higher priority takes its place:

    near          its copy lies on the second GPU. The small one ends: it comes back from there.
                  Then `colloc suspend` and `colloc resume`, by host memory, for comparison
    wanted        its copy lies there, and a task comes that wants the second GPU's memory: the copy
                  goes to the host, that task starts, and the training comes back from the host
    killed        its copy lies there, and it is killed: the second GPU's memory is free. A new
                  process takes all that is free there, and counts what is not zero in a part of
                  it (left_bytes.py)

Times are those of collocd's events, and of the library (`copy_s`: out, back). Losses are those of a
run without colloc (`equal`).
"""
import os
import signal
import subprocess
import sys
import time

import carrier_tasks as ct
from groups_trial import until, write

pd = ct.pd
STEPS_MAX = 100000
DECLARED = "--memory=22GiB"
POLLS_S = 1.2  # two of the daemon
COMPARE_S = 2  # chosen: what the reference has not come to by then is not compared
PART_S = 12  # chosen: no part begins later before the end
TAKEN_MIB = {
    False: str(1 << 20),
    True: "1024",
}  # all that a real GPU has; emulated it is the host's
READ_MIB = 16384  # chosen: of a copy of 20 GiB in 140 free ones some 2 GiB are among them
LEFT_S = 25  # chosen: to start, and 25 ms for each of 256 chunks


class Trial:
    def __init__(self, machine, options):
        self.machine, self.options = machine, options
        self.end = time.monotonic() + options.seconds
        self.first, self.second = options.gpus.split(",")
        settings = {"sharing": options.sharing, "neighbour_memory": "yes", "preempt": "yes"}
        settings["tasks_per_gpu"] = "1"
        if options.sharing == "mps":
            settings["mps_memory_limit"] = "no"
        self.daemon = ct.Daemon(machine, options.gpus, **settings)
        self.size = {"batch": options.batch, "mib": 200}
        self.reference = ct.Reference(machine, "resnet50", STEPS_MAX, self.second, **self.size)
        self.training, self.pid, self.n_events = None, 0, 0

    def submit(self, kind, gpu, *options, **training):
        want = (f"--gpu-ids={gpu}", "--smact=0.1", *options)
        return ct.Task(self.daemon, kind, STEPS_MAX, *want, **training)

    def note(self, name, **row):
        row = {"result": f"lent, {name}", "sharing": self.options.sharing, **row}
        write(self.options.out, row)

    # ---- what is seen ----

    def second_mib(self):
        """In use on the second GPU, by colloc, which knows nothing before its first poll."""

        def known():
            gpus = {str(gpu["index"]): gpu for gpu in self.daemon.gpus()}
            used = gpus[self.second]["mem_used_mib"]
            return None if used is None else (used,)

        return until(known, 10, "a reading of the second GPU", 0.1)[0]

    def left_pages(self):
        """[bytes, bytes, pages]: taken of the second GPU by a new process, read of them, and of
        these not all zero."""
        env = dict(self.machine.env, CUDA_VISIBLE_DEVICES=self.second)
        words = [sys.executable, os.path.join(os.path.dirname(__file__), "left_bytes.py")]
        words += TAKEN_MIB[self.machine.is_emulated], str(READ_MIB)
        try:
            done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=LEFT_S)
        except subprocess.TimeoutExpired:
            return f"not read within {LEFT_S} s"
        numbers = [int(word) for word in done.stdout.split()]
        return numbers if len(numbers) == 3 else done.stderr[-200:]

    def lies(self, shown):
        """Where the copy is, in the words of `colloc show`."""
        return "neighbour" if f"lies on GPU {self.second}" in shown["reason_text"] else "host"

    def wait_away(self):
        """Returns where its copy lies then. The state is SUSPENDED from the decision on."""

        def is_away():
            shown = self.training.show()
            names = [event["event"] for event in shown["events"][self.n_events :]]
            return shown if "SUSPENDED" in names else None

        return self.lies(until(is_away, 30, "the training to give way", 0.02))

    def copy_s(self):
        page = pd.ProcessPage(self.pid, self.daemon.process.pid)
        row = [page.u64(at) / 1e6 for at in (pd.CARRY_OUT_US, pd.CARRY_IN_US)]
        self.gib = round(page.u64(pd.CARRY_BYTES) / 2**30, 2)
        page.close()
        return row

    def events(self):
        """[name, at, text]: those of the training that are new."""
        events = self.training.show()["events"] if self.training else []
        new, self.n_events = events[self.n_events :], len(events)
        return [[e["event"], e["at"], e["text"][:120]] for e in new]

    # ---- parts ----

    def begin(self):
        """A new training: one that has given way is not stopped again soon."""
        self.training = self.submit("resnet50", self.first, DECLARED, **self.size)
        self.training.wait_steps(3)
        until(lambda: self.training.show()["carried"], 20, "its carrier", 0.05)
        self.pid, self.n_events = until(self.training.find_pid, 20, "its page"), 0
        self.events()

    def finish(self):
        self.daemon.ask("cancel", str(self.training.id))
        self.training.wait("CANCELLED", "FAILED", "COMPLETED")

    def come_back(self, way):
        """Returns the seconds until it runs."""
        begin = time.monotonic()
        way()
        self.training.wait("RUNNING", limit_s=30)
        back_s = time.monotonic() - begin
        self.training.wait_steps(2)
        return round(back_s, 3)

    def rest(self):
        """The library's seconds, the events, and whether its losses are right."""
        row = {"copy_s": self.copy_s(), "gib": self.gib, "events": self.events()}
        row["attempts"] = self.training.show()["attempt_count"]
        return {**row, **self.reference.compare(self.training.losses(), COMPARE_S)}

    def displace(self):
        """Returns the task that takes its place, and what is seen then."""
        before, begin = self.second_mib(), time.monotonic()
        other = self.submit("resnet18", self.first, DECLARED, "--priority=high")
        lies = self.wait_away()
        row = {"lies": lies, "out_s": round(time.monotonic() - begin, 3)}
        until(lambda: other.state() == "RUNNING", 30, "the other's start", 0.02)
        row["other_starts_s"] = round(time.monotonic() - begin, 3)
        time.sleep(POLLS_S)
        row["neighbour_mib"] = self.second_mib() - before
        return other, row

    def displace_new(self):
        """The same for a new training. Returns also what was in use there before."""
        before = self.second_mib()
        self.begin()
        return (before, *self.displace())

    def cancel(self, other):
        self.daemon.ask("cancel", str(other.id))

    def near(self):
        self.begin()
        other, row = self.displace()
        row["back_s"] = self.come_back(lambda: self.cancel(other))
        self.note("near", **row, **self.rest())
        # The daemon knows that it can be carried again from its next poll on.
        until(lambda: self.training.show()["carried"], 20, "its carrier", 0.05)
        begin = time.monotonic()
        self.daemon.ask("suspend", str(self.training.id))
        row = {"lies": self.wait_away(), "out_s": round(time.monotonic() - begin, 3)}
        row["back_s"] = self.come_back(lambda: self.daemon.ask("resume", str(self.training.id)))
        self.note("host", **row, **self.rest())
        self.finish()

    def wanted(self):
        before, other, row = self.displace_new()
        free = {str(g["index"]): g for g in self.daemon.gpus()}[self.second]["mem_free_mib"]
        begin = time.monotonic()
        wants = self.submit("resnet18", self.second, f"--memory={int(free)}MiB")
        until(lambda: self.lies(self.training.show()) == "host", 30, "the copy at the host", 0.02)
        row["to_host_s"] = round(time.monotonic() - begin, 3)
        wants.wait("RUNNING", limit_s=30)
        row["wants_starts_s"] = round(time.monotonic() - begin, 3)
        self.cancel(wants)
        wants.wait("CANCELLED")
        time.sleep(POLLS_S)
        row["neighbour_mib_after"] = self.second_mib() - before
        row["back_s"] = self.come_back(lambda: self.cancel(other))
        self.note("wanted", **row, **self.rest())
        self.finish()

    def killed(self):
        before, other, row = self.displace_new()
        os.kill(self.pid, signal.SIGKILL)
        row["state"] = self.training.wait("FAILED", "COMPLETED", "CANCELLED")
        time.sleep(POLLS_S)
        row["neighbour_mib_after"] = self.second_mib() - before
        row["left_pages"] = self.left_pages()
        self.cancel(other)
        other.wait("CANCELLED")
        self.note("killed", **row)

    def close(self):
        warnings = self.daemon.warnings()
        self.note("log", lines=warnings[-20:], n_lines=len(warnings))
        self.daemon.close()
        self.reference.end()


def end_part(own, part, error):
    shown = own.training.show() if own.training else {"state": None, "reason_text": ""}
    row = {"state": shown["state"], "why": shown["reason_text"]}
    own.note(f"error of {part}", error=repr(error)[-300:], **row, events=own.events())
    for task in own.daemon.tasks:
        own.daemon.ask("cancel", str(task))


def trial(machine, options):
    own = Trial(machine, options)
    ct.run_parts(own, options.parts, own.end, PART_S, end_part)
    own.close()


if __name__ == "__main__":
    more = {"sharing": "mps", "gpus": "0,1", "batch": 208, "parts": "near,wanted,killed"}
    ct.run(__doc__, trial, **more)
