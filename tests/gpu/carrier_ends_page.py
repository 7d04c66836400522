#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints docs/measured/carrier-ends.md from the results of carrier_kills_trial.py,
carrier_slots_trial.py and carrier_lent_trial.py, which one file may have together.

    tests/gpu/carrier_ends_page.py FILE.jsonl >docs/measured/carrier-ends.md

What is not among the results is not on the page, and what did not come to an end is named. The file
may have several runs: all kills count, and of the other results the later one.
"""
import collections
import json
import statistics
import sys

from carrier_page import table
from carrier_slots_trial import SHORTER

HEAD = """# Kills, slots of 5 s and a lent GPU, on H200s

After this page you know what a `SIGKILL` leaves behind while the carrier
([carrier.md](../carrier.md)) has a training's memory, what slots of 5 s cost and bring trainings of
1 to 20 GiB, and how collocd takes a training to a neighbour GPU. NVIDIA H200s, driver 580.159.04,
PyTorch 2.11, three runs of 30 November 2026: two with two GPUs and 32 cores, of which the second
has the slots, and one with one GPU; and a fourth one on 1 December. The kills are of all four.
[carrier-ends.jsonl](carrier-ends.jsonl) has the raw results; this page is made of them.

    tests/gpu/carrier_kills_trial.py BUNDLE kills.jsonl --seconds=S --workers=10 [--sharing=mps] \\
        [--phases=releasing,returning,away,waiting]
    tests/gpu/carrier_slots_trial.py BUNDLE slots.jsonl --seconds=S [--ways=mps]
    tests/gpu/carrier_lent_trial.py BUNDLE lent.jsonl --seconds=S
    cat kills.jsonl slots.jsonl lent.jsonl >docs/measured/carrier-ends.jsonl
    tests/gpu/carrier_ends_page.py docs/measured/carrier-ends.jsonl >docs/measured/carrier-ends.md
"""
KILLS = """Several collocds on one GPU, each with a ResNet-50 of about 3 GiB that is disturbed and
others that are not. `seen` counts the kills at the instant that the library's page named the phase;
the rest came in the next one. After a kill of the task it must have ended, with no process left;
after another one it must go on in the same attempt."""
LOSSES = """Losses of {what} bit for bit, after {kills} kills ({phases}), to their last step:
{equal} of {all} trainings equal those of a run without colloc{compared}; {control} of {all} equal
those of a training under the same collocd that nothing stopped. {none} further ones had printed
none when they were ended, and do not count{spares}."""
SPARES = """: {n} of these were the last of their collocd, there for the next kill of a task, and
had not made their first step"""
MIXED = """Losses of the first run{its_kills} were not compared: trainings of the same number of
several collocds wrote into one file (`losses` in the raw data). Each has a file for itself
since."""
PREDICTED_KILLS = """Predicted was for the second run, time-sliced and under MPS: 90 of 90 kills,
all losses equal. It had 74 s instead of 105, with the starts and the comparison, and all of its
collocds killed in the same order."""
PREDICTED_PHASES = """Predicted was for the third run: each of its {kinds} kinds of kill ten
times, and all losses equal. It had 95 s for each way of sharing, with the starts and the
comparison: {least} to {most} kills of each kind time-sliced, {mps_least} to {mps_most} under MPS,
where a stop is shorter."""
PREDICTED_AGAIN = """Predicted was for the fourth run, of 95 s, which disturbed time-sliced
trainings only while memory was waited for or released: its {kinds} kinds ten times each, each
seen in its phase but for half of the waiting ones, all losses equal. It made {least} to {most}
of each kind, {seen} of {all} seen in their phase."""
STILL_OPEN = """So no kill came while the memory was away or returning, and of such kills the losses
are still to be compared. The trial begins with another kind in each collocd since."""
MIXED_WAYS = """Losses were not compared: trainings of the same number of both collocds wrote
into one file (`marks` in the raw data)."""
SLOTS = """One training at a time on a GPU, all submitted at once, the longest first. `fifo` is one
after the other; the other two are `slots: yes` with `slot-length: 5s`, of which collocd makes 20
times the cost of a stop where that is longer. The shorter half are the last four. A later run, in
which all ways have ended, has contexts that stay on the GPU:
[carrier-slots.md](carrier-slots.md)."""
GOALS = """The goals: a total at most 3 % above FIFO's, and the shorter half at most 0.6 of its
time. "<" is from FIFO's trainings that were still running, which counted as ended when its time
was over. Predicted was, time-sliced: a total of 1.04, the shorter half in 0.7, in 6 to 9
suspensions; under MPS: 1.02, 0.55 and 12 to 18. No total came of it, since the time was too short
for all three ways: {n} trainings of `fifo` took {took:.0f} s instead of the {planned:.0f} that the
trial had chosen their lengths by. It reckons with longer starts and slower steps since. `fifo` and
`streams` ran alone, each on its GPU; `mps` in another lease, with other trials on the second GPU
and on the processors. A time-sliced slot is so long, by the cost of a stop, that all but the
longest trainings ended in their first one, in the order of FIFO: the shorter half is earlier by
what the long ones left to do."""
PLANNED_START_S = 7  # of the trials whose results do not name it
LENT = """A small training of a higher priority takes the GPU of a ResNet-50; its copy goes to
the free memory of the second GPU (`neighbour-memory: yes`). Seconds of collocd are from its
events, from the decision to the end; those of the copy are the library's."""
WANTED = """Predicted was that 20 GiB are at the host after 1.0 s, and that the second GPU is as
before after the kill. The error of `wanted` is the trial's, which by its place in the program
comes after the copy was at the host and the task that wanted the memory had started: it took what
is in use from a reading that collocd did not have yet when the trial began. It waits for one
since. So the way back from the host, and the losses then, are still to be measured, and what a new
process finds in the memory after a kill."""
EMULATED_HEAD = """At random instants of a way out and back, and in each phase of a program whose
calls of the driver are held. A campaign holds if after each kill the task computes on in the same
attempt with its blocks as they were, or has ended with nothing of it left, and others compute on.

    COLLOC_KILLS_FILE=kills.jsonl make soak        # and: cat kills.jsonl >>carrier-ends.jsonl"""
EMULATED = {
    "Carried.test_kills": "time-sliced, at random",
    "CarriedClients.test_kills": "clients of MPS, at random",
    "Carried.test_killed_tasks": "time-sliced, at random, in turns",
    "CarriedClients.test_killed_tasks": "clients of MPS, at random, in turns",
    "Phases.test_the_daemon_ends": "its connection, in each phase",
    "Phases.test_the_process_is_killed": "the process, in each phase",
    "InEachPhase": "time-sliced, in each phase",
    "Clients": "clients of MPS, in each phase",
}
PHASES = """The last two rows by the phase that the page of the library named at that instant:"""
UNHELD = """A campaign of killed tasks ended when a task was run again: it was killed while the
driver restored it, which fails then, and colloc took the process for one that the driver had lost.
A process that is being killed counts as ended since; the campaign of 400 kills in turns is of the
same seed with that. Two campaigns of killed tasks in each phase came to their end with memory that
was still taken: the helper had reserved it for a task that was then killed before its restore, and
kept it as long as it lived. It is given back since; the campaign of seed 6103, which had found it
too, is with that. A third one ended as a new training made no step for 120 s, on a machine with
many more programs than processors; why is not known. Its seed held when it ran with that."""
VICTIMS = {"task": "the task", "helper": "colloc-checkpoint", "collocd": "collocd"}
CARRIER_PHASES = ("waiting", "copying", "releasing", "away", "returning")
ENDED = ("FAILED", "CANCELLED", "COMPLETED")


def section(title, *parts):
    parts = [part for part in parts if part]
    return f"\n## {title}\n\n" + "\n\n".join(p.rstrip("\n") for p in parts) + "\n" if parts else ""


def wrap(text, columns=100):
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > columns:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word
    return "\n".join(lines)


# ---- kills ----


def is_right(row, victim):
    if victim == "task":
        return row.get("state") == "FAILED" and row.get("is_left") is False
    return row.get("attempts") == 1 and row.get("state") in ("RUNNING", "SUSPENDED")


def kills_of(rows, sharing):
    found = collections.defaultdict(list)
    for row in rows:
        words = row["result"].split()
        if words[0] == "kill" and row.get("sharing") == sharing:
            found[words[1], words[2]].append(row)
    lines = []
    kinds = [(victim, phase) for phase in CARRIER_PHASES for victim in VICTIMS]
    for victim, phase in filter(found.__contains__, kinds):
        some = found[victim, phase]
        made = [r for r in some if "phase_seen" in r and "not_tried" not in r]
        right = [r for r in made if is_right(r, victim) and "error" not in r]
        settled = [r["settled_after_s"] for r in made if "settled_after_s" in r]
        lines.append(
            [
                VICTIMS[victim],
                phase,
                len(made),
                sum(r["phase_seen"] == phase for r in made),
                f"{len(right)} of {len(made)}",
                f"{statistics.median(settled):.1f} / {max(settled):.1f}" if settled else "",
            ]
        )
    head = ["killed", "while its memory is", "times", "seen", "as it must be"]
    return table(head + ["settled after (s): median / most"], lines) if lines else ""


def kills_of_runs(rows, sharing):
    """The kills of runs with losses, and of those without. The last row of a run is `took`."""
    compared, mixed, kills, has_losses = [], [], [], False
    for row in rows:
        if row["result"] == "took":
            (compared if has_losses else mixed).extend(kills)
            kills, has_losses = [], False
        elif row.get("sharing") == sharing and row["result"].startswith("kill "):
            kills.append(row)
        elif row.get("sharing") == sharing and row["result"] == "losses of a training":
            has_losses = True
    return compared, mixed


def spares_of(rows, sharing):
    """How many trainings without a loss were the last ones of their collocd."""
    found, of_run = 0, {}
    for row in rows:
        if row["result"] == "took":
            found += sum(not last["compared"] for last in of_run.values())
            of_run = {}
        elif row["result"] == "losses of a training" and row["sharing"] == sharing:
            last = of_run.get(row["worker"], row)
            of_run[row["worker"]] = max(last, row, key=lambda one: one["task"])
    return found


def kills_of_each_run(rows, sharing):
    """Of each run that has kills of this way: the rows of those that were made."""
    runs, kills = [], []
    for row in rows:
        if row["result"] == "took":
            runs, kills = runs + ([kills] if kills else []), []
        elif "phase_seen" in row and "not_tried" not in row and row["sharing"] == sharing:
            kills.append(row)
    return runs


def kinds_of(kills):
    """How many of each kind."""
    return collections.Counter(row["result"] for row in kills)


def by_phase(kills):
    """How many, in the order of the carrier's phases."""
    counts = collections.Counter(row["result"].split()[2] for row in kills)
    return sorted(counts.items(), key=lambda pair: CARRIER_PHASES.index(pair[0]))


def losses_of(rows, sharing):
    every = [r for r in rows if r["result"] == "losses of a training" and r["sharing"] == sharing]
    own = [r for r in every if r.get("compared") and r.get("control", {}).get("compared")]
    compared, mixed = kills_of_runs(rows, sharing)
    if not own:
        return wrap(MIXED.format(its_kills=""))
    steps, spares = sum(r["compared"] for r in own), spares_of(rows, sharing)
    differ = [r for r in own if not r["control"]["equal"]]
    text = LOSSES.format(
        what="clients of MPS" if sharing == "mps" else "time-sliced trainings",
        kills=len(compared),
        phases=", ".join(f"{n} {phase}" for phase, n in by_phase(compared)),
        none=len(every) - len(own),
        spares=SPARES.format(n=spares) if spares else "",
        equal=sum(r["equal"] for r in own),
        all=len(own),
        control=sum(r["control"]["equal"] for r in own),
        compared=f" ({steps} steps)",
    )
    controls = [r for r in rows if r["result"] == "control" and r.get("sharing") == sharing]
    if controls:
        last = controls[-1]
        word = "are equal" if last["equal"] else f"differ from step {last['first_difference']} on"
        text += f" The losses of that one and of the run without colloc {word}."
    if differ:
        at = sorted(r["control"]["first_difference"] for r in differ)
        text += f" Those that differ from it do so first at step {at[0]} to {at[-1]}."
    if mixed:
        text += " " + MIXED.format(its_kills=f", with {len(mixed)} kills,")
    return wrap(text)


def memory_of(rows, sharing):
    own = [r for r in rows if r["result"] == "kills, memory" and r["sharing"] == sharing]
    known = [r for r in own if r["before_mib"] is not None]
    text = "; ".join(f"before {r['before_mib']}, after {r['after_mib']}" for r in known)
    return f"MiB in use on the GPU, in each run: {text}." if text else ""


def not_made(rows, sharing):
    own = [r for r in rows if r["result"].startswith("kill ") and r.get("sharing") == sharing]
    lines = []
    for row in own:
        why = row.get("not_tried") or row.get("error")
        if why:
            lines.append(f"- {row['result']}, round {row['round'] + 1}: {why[:200]}")
    return "\n".join(lines)


def predicted_kills(rows):
    """What was, and what is still open of it."""
    compared = [kill for sharing in ("streams", "mps") for kill in kills_of_runs(rows, sharing)[0]]
    phases = {phase for phase, _ in by_phase(compared)}
    text = PREDICTED_KILLS + (" " + STILL_OPEN if not phases & {"away", "returning"} else "")
    sliced, mps = (kills_of_each_run(rows, sharing) for sharing in ("streams", "mps"))
    if "releasing" not in phases or len(sliced) < 3 or len(mps) < 3:
        return text
    third, third_mps = kinds_of(sliced[2]).values(), kinds_of(mps[2]).values()
    counts = {"least": min(third), "most": max(third), "mps_least": min(third_mps)}
    said = PREDICTED_PHASES.format(kinds=len(third_mps), mps_most=max(third_mps), **counts)
    return " ".join([text, said, *map(predicted_again, sliced[3:4])])


def predicted_again(kills):
    """Of the fourth run."""
    kinds = kinds_of(kills).values()
    seen = sum(row["result"].endswith(row["phase_seen"]) for row in kills)
    return PREDICTED_AGAIN.format(
        kinds=len(kinds), least=min(kinds), most=max(kinds), seen=seen, all=len(kills)
    )


def kills(rows):
    text = ""
    for sharing, name in (("streams", "Killed, time-sliced"), ("mps", "Killed, clients of MPS")):
        made = kills_of(rows, sharing)
        if made:
            said = KILLS if sharing == "streams" else ""
            parts = [said, made, losses_of(rows, sharing), memory_of(rows, sharing)]
            text += section(name, *parts, not_made(rows, sharing))
            predicted = wrap(predicted_kills(rows)) if sharing == "mps" else ""
            text += f"\n{predicted}\n" if predicted else ""
    return text


# ---- kills on emulated GPUs ----


def kills_by_phase(rows):
    """Of the campaigns that know it: a sentence and a table."""
    found = collections.defaultdict(collections.Counter)
    for row in rows:
        for kind, n in row.get("phases", {}).items():
            victim, way, phase = kind.replace(":", "").split()
            found[way, phase][victim] += n
    order = "held gate waiting copying releasing away returning here".split()
    lines = [
        [f"{way}: {phase}", *[found[way, phase][victim] for victim in VICTIMS]]
        for way in ("suspend", "resume")
        for phase in sorted((p for w, p in found if w == way), key=order.index)
    ]
    return [PHASES, table(["what was asked, phase", *VICTIMS.values()], lines)] if lines else []


def emulated_kills(rows):
    """Of the lines that tests/lib/kill_counts.py wrote."""
    own = [row for row in rows if row["result"] == "emulated kills"]
    lines = []
    for name, what in EMULATED.items():
        some = [row for row in own if name in (row["test"], row["test"].split(".")[0])]
        killed = collections.Counter()
        for row in some:
            killed.update(row["killed"])
        held = sum(row["has_held"] for row in some)
        if some:
            counts = [killed[victim] for victim in VICTIMS]
            lines.append([what, *counts, f"{held} of {len(some)}"])
    if not lines:
        return ""
    total = sum(sum(line[1:4]) for line in lines)
    head = ["what is killed, and when", *VICTIMS.values(), "campaigns that held"]
    parts = [table(head, lines), *kills_by_phase(own)]
    said = f"{total} kills. {UNHELD}" if any(not r["has_held"] for r in own) else f"{total} kills."
    return section("Killed, on emulated GPUs", EMULATED_HEAD, *parts, wrap(said))


# ---- slots ----


def marks_equal(one, other):
    """Of each training that has made a step in both: is it equal, and how many steps both have."""
    pairs = [(a, b) for a, b in zip(one["loss_marks"], other["loss_marks"]) if a and b]
    n = [min(len(a), len(b)) for a, b in pairs]
    equal = [a[:k] == b[:k] for (a, b), k in zip(pairs, n)]
    return equal, [k // 4 for k in n]


def time_had(row):
    """Seconds that a way ran: to the last look at the trainings that had not ended."""
    begin = min(at for at in row["started_at"] if at)
    waiting = [s for s, state in zip(row["wait_s"], row["state"]) if state == "PENDING"]
    lasted = [at - begin + s for at, s in zip(row["started_at"], row["exec_s"]) if at]
    return max(lasted + waiting)


def shorter_half_at_least(row):
    """Its mean end, where what has not ended counts as ended when the time was over."""
    ends = [time_had(row) if end is None else end for end in row["ends_s"]]
    shorter = ends[len(ends) // 2 :]
    return sum(shorter) / len(shorter)


def slot_lengths(row):
    """Seconds from a start or a return to the suspension of the same task."""
    begun, lengths = {}, []
    for at, task, event in sorted(row.get("stops", [])):
        if event in ("STARTED", "RESUMED"):
            begun[task] = at
        elif event == "SUSPENDING" and task in begun:
            lengths.append(at - begun.pop(task))
    return lengths


def describe_end(way, row):
    """What did not come to its end in the time that it had."""
    ended = sum(end is not None for end in row["ends_s"])
    if ended == len(row["ends_s"]):
        return f"- {way}: all ended."
    there_were = f"in the {time_had(row):.0f} s that there were"
    text = f"- {way}: {ended} of {len(row['ends_s'])} ended {there_were}"
    if not any(row["n_losses"]):
        started = sum(bool(s) for s in row["started_at"])
        text += f"; none of the {started} that had started made a step"
    for warning in row["warnings"]:
        text += f'; the daemon said "{warning.partition("warning: ")[2]}"'
    return text + "."


def planned(row):
    """Of the trainings that have ended: how many, the seconds they took, and were to take."""
    ended = [i for i, end in enumerate(row["ends_s"]) if end is not None]
    start_s = row.get("start_s", PLANNED_START_S)
    each = [start_s + row["longest_s"] * SHORTER**i for i in ended]
    return {"n": len(ended), "took": sum(row["exec_s"][i] for i in ended), "planned": sum(each)}


def half_of_fifo(half, fifo):
    """Of FIFO's; where FIFO did not end, what it is less than."""
    if not fifo or not half:
        return ""
    ended = fifo["shorter_half_mean_s"]
    is_below = "" if ended else "< "
    return f"{is_below}{half / (ended or shorter_half_at_least(fifo)):.2f}"


def slots(rows):
    ways = {r["way"]: r for r in rows if r["result"] == "eight trainings"}
    if not ways:
        return ""
    fifo = ways.get("fifo")
    head = ["GiB", "steps"] + [f"ends, {way} (s)" for way in ways]
    head += [f"times suspended, {way}" for way in ways if way != "fifo"]
    first = next(iter(ways.values()))
    lines = []
    for i, steps in enumerate(first["steps"]):
        peak = max(r["mem_peak_mib"][i] or 0 for r in ways.values())
        line = [f"{peak / 1024:.1f}", steps]
        line += [r["ends_s"][i] if r["ends_s"][i] is not None else "-" for r in ways.values()]
        lines.append(line + [r["suspensions"][i] for way, r in ways.items() if way != "fifo"])
    summary, said = [], []
    for way, row in ways.items():
        total, half = row["total_s"], row["shorter_half_mean_s"]
        line = [way, total if total is not None else "not ended", f"{half:.1f}" if half else ""]
        both = fifo and fifo["total_s"] and total
        line.append(f"{total / fifo['total_s']:.3f}" if both else "")
        line.append(half_of_fifo(half, fifo))
        lengths = slot_lengths(row)
        slot = f"{min(lengths):.0f} to {max(lengths):.0f}" if lengths else ""
        line += [sum(row["suspensions"]), f"{sum(row['suspension_cost_s']):.1f}", slot]
        summary.append(line)
        if fifo and way != "fifo" and "loss_marks" in row:
            equal, steps = marks_equal(row, fifo)
            said.append(f"{way} {sum(equal)} of {len(equal)} ({sum(steps)} steps)")
    titles = ["way", "total (s)", "mean end of the shorter half (s)", "total / FIFO"]
    titles += ["shorter half / FIFO", "suspensions", "their cost (s)", "a slot (s)"]
    losses = f"Losses as in `fifo`, bit for bit: {'; '.join(said)}." if said else wrap(MIXED_WAYS)
    losses += "\n\n" + "\n".join(describe_end(way, row) for way, row in ways.items())
    goals = wrap(GOALS.format(**planned(fifo))) if fifo else ""
    return section(
        "Eight trainings in slots of 5 s",
        SLOTS,
        table(head, lines),
        table(titles, summary),
        goals,
        losses,
    )


# ---- lent ----


def took(events, begin, end):
    at = {}
    for name, when, _ in events:
        at.setdefault(name, when)
    return f"{at[end] - at[begin]:.2f}" if begin in at and end in at else ""


def has_relocated(row):
    return any(event[0] == "RELOCATED" for event in row.get("events", []))


def lent_results(rows):
    """Those of the trial's parts, without "not run" of a part that another run has tried."""

    def part(row):
        return row["result"].split(", ")[1].replace("error of ", ""), row["sharing"]

    own = [r for r in rows if r["result"].startswith("lent, ") and r["result"] != "lent, log"]
    tried = {part(row) for row in own if "not_run" not in row}
    return [row for row in own if "not_run" not in row or part(row) not in tried]


def lent(rows):
    lines, said, rows = [], [], lent_results(rows)
    for row in rows:
        words = row["result"].split(", ")
        if not ("lies" in row or has_relocated(row)):
            continue
        words[1] = words[1].replace("error of ", "")
        events = row.get("events", [])
        lines.append(
            [
                words[1] + (", MPS" if row["sharing"] == "mps" else ""),
                row.get("gib", ""),
                row.get("lies", "neighbour, then host"),
                took(events, "SUSPENDING", "SUSPENDED"),
                took(events, "RELOCATING", "RELOCATED"),
                took(events, "RESUMING", "RESUMED"),
                " / ".join(f"{s:.2f}" for s in row.get("copy_s", [])),
                row.get("neighbour_mib", ""),
                row.get("neighbour_mib_after", ""),
                "" if "equal" not in row else ("equal" if row["equal"] else "differ"),
            ]
        )
        if "wants_starts_s" in row:
            said.append(
                f"The task that wants the memory ran {row['wants_starts_s']:.2f} s after it was "
                f"submitted."
            )
        if words[1] == "killed":
            said.append(f"The killed training was {row['state']}.")
    for row in rows:
        if row["result"].startswith("lent, error"):
            said.append(f"{row['result'][15:].capitalize()} failed: {row['error']}.")
        elif "not_run" in row:
            said.append(f"Not run, {row['not_run']}: {row['result'][6:]} ({row['sharing']}).")
    said = wrap(" ".join(said))
    if any(row["result"] == "lent, error of wanted" and has_relocated(row) for row in rows):
        said += "\n\n" + wrap(WANTED)
    head = ["part", "GiB", "its copy lies", "out (s)", "to the host (s)", "back (s)"]
    head += ["copies: out / back (s)", "MiB there", "MiB there afterwards", "losses"]
    return section("By collocd to a neighbour GPU", LENT, table(head, lines), said) if lines else ""


def main():
    with open(sys.argv[1]) as source:
        rows = [json.loads(line) for line in source]
    print(HEAD + kills(rows) + emulated_kills(rows) + slots(rows) + lent(rows), end="")


if __name__ == "__main__":
    main()
