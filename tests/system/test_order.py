# SPDX-License-Identifier: Apache-2.0
"""When a task starts: begin times, priorities, dependencies; and what is refused."""

import glob
import json
import os
import pwd
import signal
import time
import unittest

from daemon_case import DaemonCase, until, read

OTHER = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


class Order(DaemonCase):
    gpus = "1xA100-40GB"

    def events(self, task):
        return [(event["event"], event["text"]) for event in self.task(task)["events"]]

    def test_a_chain_runs_in_its_order_also_over_a_restart(self):
        first = self.submit("exec sleep 1000")
        second = self.submit("exit 3", after=f"any:{first}")
        third = self.submit("true", after=f"notok:{second}", hold=True)
        never = self.submit("true", after=f"ok:{second}")
        behind = self.submit("true", after=f"ok:{never},any:{third}")
        self.wait_state(first, "RUNNING")
        task = self.task(second)
        self.assertEqual((task["state"], task["reason"]), ("PENDING", "Dependency"))
        self.assertEqual(task["reason_text"], f"waits for any:{first}")
        self.assertEqual(task["waits_for"], [f"any:{first}"])
        self.assertEqual(self.task(behind)["after"], f"ok:{never},any:{third}")
        self.assertIn(f"(Dependency) waits for any:{first}", self.colloc("queue").stdout)
        self.restart(signal.SIGKILL)
        self.assertEqual(self.task(second)["waits_for"], [f"any:{first}"])
        self.act("cancel", first)
        self.wait(second, "FAILED")
        ended = self.wait(never, "CANCELLED")
        self.assertEqual(ended["reason"], "DependencyNeverSatisfied")
        self.assertIn(f"--after=ok:{second} can never hold", ended["reason_text"])
        self.assertEqual(self.wait(behind, "CANCELLED")["reason"], "DependencyNeverSatisfied")
        self.assertIn(("DEPENDENCY", f"ok:{never} can never hold"), self.events(behind))
        self.act("release", third)
        self.wait(third, "COMPLETED")
        self.assertIn(("DEPENDENCY", f"notok:{second} holds"), self.events(third))
        # Of tasks that have ended, what holds already is no dependency any more.
        self.wait(self.submit("true", after=f"ok:{third},notok:{second},any:{never}"), "COMPLETED")

    def test_when_it_starts(self):
        alone = {"policy": "exclusive"}
        first = self.submit("exec sleep 1000", time_limit_s=3600, **alone)
        second = self.submit("true", time_limit_s=600, **alone)
        third = self.submit("true", **alone)
        fourth = self.submit("true", **alone)
        self.wait_state(first, "RUNNING")
        starts = json.loads(self.colloc("queue", "--start", "--json").stdout)["starts"]
        self.assertEqual([start["id"] for start in starts], [second, third, fourth])
        at = self.task(first)["started_at"] + 3600
        self.assertAlmostEqual(starts[0]["expected_start"], at, delta=LATE_S)
        self.assertAlmostEqual(starts[1]["expected_start"], at + 600, delta=LATE_S)
        self.assertIsNone(starts[2]["expected_start"])
        lines = self.colloc("queue", "--start").stdout.splitlines()
        self.assertIn("START", lines[0].split())
        year = time.strftime("%Y", time.localtime(at))
        self.assertEqual([f" {year}-" in line for line in lines[1:]], [False, True, True, False])
        shown = self.colloc("show", str(second)).stdout
        moment = time.strftime("%Y-%m-%d %H:%M", time.localtime(starts[0]["expected_start"]))
        self.assertRegex(shown, f"(?m)^Starts +{moment}:..,")
        shown = self.colloc("show", str(fourth)).stdout
        self.assertRegex(shown, "(?m)^Starts +not known: .* neither --time nor --expect")
        self.assertNotRegex(self.colloc("show", str(first)).stdout, "(?m)^Starts ")
        self.wait_reason(third, "to start before task")
        # A task starts no earlier than it begins; where the prediction ends, that is all it says.
        begin = round(at) + 300
        soon = self.submit("true", begin=begin, priority="high", time_limit_s=60, **alone)
        late = self.submit("true", begin=begin + 86400, **alone)
        held = self.submit("true", begin=begin, hold=True, **alone)
        answer = json.loads(self.colloc("queue", "--start", "--json").stdout)["starts"]
        starts = {start["id"]: start for start in answer}
        self.assertEqual(list(starts), [second, third, fourth, soon, late])
        self.assertIsNone(starts[second]["earliest_start"])
        self.assertAlmostEqual(starts[soon]["expected_start"], at + 600, delta=LATE_S)
        self.assertAlmostEqual(starts[soon]["earliest_start"], begin, delta=1)
        self.assertAlmostEqual(starts[third]["expected_start"], at + 660, delta=LATE_S)
        self.assertIsNone(starts[late]["expected_start"])
        self.assertAlmostEqual(starts[late]["earliest_start"], begin + 86400, delta=1)
        lines = self.colloc("queue", "--start").stdout.splitlines()
        rows = {int(line.split()[0]): line for line in lines[1:]}
        self.assertIn(f" {year}-", rows[soon])
        self.assertNotIn(" after ", rows[soon])
        self.assertRegex(rows[late], r" after \d{4}-\d\d-\d\d \d\d:\d\d:\d\d \(BeginTime\)")
        self.assertRegex(rows[held], r" - +\(JobHeldUser\)")
        for task in (soon, late, held):
            self.act("cancel", task)
        self.act("cancel", first)
        self.wait(fourth, "COMPLETED")

    def test_begin(self):
        later = self.submit("true", begin=time.time() + 3600)
        soon = self.submit("true", begin=time.time() + 1)
        past = self.submit("true", begin=1.0)
        self.wait(past, "COMPLETED")
        task = self.task(later)
        self.assertEqual((task["state"], task["reason"]), ("PENDING", "BeginTime"))
        self.assertRegex(task["reason_text"], "^may begin [0-9:]+ from now$")
        self.assertAlmostEqual(task["begin_at"], time.time() + 3600, delta=LATE_S)
        ended = self.wait(soon, "COMPLETED")
        self.assertGreaterEqual(ended["started_at"], ended["begin_at"] - 0.1)
        self.restart()
        self.assertEqual(self.task(later)["reason"], "BeginTime")
        self.assertIn("Begins", self.colloc("show", str(later)).stdout)

    def test_priority(self):
        running = self.submit("exec sleep 1000", exclusive=True)
        self.wait_state(running, "RUNNING")
        ids = {
            name: self.submit(f"echo {name} >> order", exclusive=True, priority=name)
            for name in ("low", "normal", "high", "urgent")
        }
        self.assertEqual(
            [self.task(ids[name])["position"] for name in ("urgent", "high", "normal", "low")],
            [1, 2, 3, 4],
        )
        self.act("cancel", running)
        for task in ids.values():
            self.wait(task, "COMPLETED")
        self.assertEqual(self.read("order").split(), ["urgent", "high", "normal", "low"])

    def test_update_before_the_start_and_after(self):
        first = self.submit("exec sleep 1000", time_limit_s=3600)
        self.wait_state(first, "RUNNING")
        third = self.submit("true", exclusive=True)
        second = self.submit("true", exclusive=True, name="before")
        done = self.colloc("update", "--priority=high", "--time=2h", str(third))
        self.assertEqual(done.stdout, f"Task {third} PENDING: time 2:00:00, priority high\n")
        done = self.colloc(
            "update", f"--after=any:{third}", "--name=later", "--memory=6GiB", str(second)
        )
        self.assertEqual(
            done.stdout,
            f"Task {second} PENDING: name later, memory 6.0 GiB, after any:{third}\n",
        )
        task = self.task(second)
        self.assertEqual(
            [task[key] for key in ("name", "need_mib", "reason", "waits_for")],
            ["later", 6144, "Dependency", [f"any:{third}"]],
        )
        self.assertIn(
            ("UPDATE", f"memory 6.0 GiB, after any:{third}, name later"), self.events(second)
        )
        self.wait_log(f"audit event=update task={third} .*by_uid=.* priority=high")
        self.restart(signal.SIGKILL)
        task = self.task(third)
        self.assertEqual((task["priority"], task["time_limit_s"]), ("high", 7200))
        self.assertEqual(self.task(second)["name"], "later")
        self.colloc("update", "--time=2h", "--cpus=2", "--mem=3GiB", str(first))  # by an operator
        found = [os.path.join(path, n) for path, _, names in os.walk(self.state) for n in names]
        limits = [read(path) for path in found if path.endswith("time-limit")]
        self.assertEqual((limits, self.task(first)["time_limit_s"]), (["7200000000"], 7200))
        self.assertIn(
            ("UPDATE", "time limit 2:00:00, 2 CPUs, main memory 3.0 GiB"), self.events(first)
        )
        self.assertEqual((self.task(first)["cpus"], self.task(first)["host_memory_mib"]), (2, 3072))
        self.assertNotIn("older", self.colloc("update", "--time=3h", str(first)).stderr)
        self.assertIn("more CPUs", self.colloc("update", "--cpus=9999", str(first), code=1).stderr)
        self.assertIn(
            "has started", self.colloc("update", "--memory=9G", str(first), code=1).stderr
        )
        self.colloc("update", "--time=1s", str(first))
        self.wait(first, "TIMEOUT")
        self.wait(third, "COMPLETED")
        self.assertEqual(self.wait(second, "COMPLETED")["name"], "later")
        self.assertIn("ended", self.colloc("update", "--time=1h", str(first), code=1).stderr)

    def test_a_longer_time_of_a_task_that_an_older_version_started(self):
        begun = 'echo yes > "begun-$COLLOC_ARRAY_INDEX"; exec sleep 1000'
        array = self.submit(begun, array="0-1", time_limit_s=3600)
        for i in range(2):
            self.wait_file(f"begun-{i}")  # from here on the shim has read its spec
            self.wait_state(f"{array}_{i}", "RUNNING")
        specs = glob.glob(f"{self.state}/tasks/*/*/spec")
        self.assertEqual(len(specs), 2)
        for path in specs:
            with open(path, "rb") as file:
                fields = file.read().split(b"\n")
            fields.remove(b"reads_time_limit 1 1")  # specs of that version did not have it
            with open(path, "wb") as file:
                file.write(b"\n".join(fields))
        for tasks in (f"{array}_0", str(array)):
            done = self.colloc("update", "--time=2h", tasks)
            self.assertIn("an older colloc started it", done.stderr)
            self.assertIn("it ends at the former one at the latest", done.stderr)
        self.wait_log("an older colloc started it")
        self.assertEqual(self.colloc("update", "--time=1h", f"{array}_0").stderr, "")
        self.assertEqual(self.colloc("update", "--name=x", f"{array}_1").stderr, "")

    def test_an_update_that_cannot_be(self):
        task = self.submit(hold=True)
        path = f"/v1/tasks/{task}/update"
        for body, word in (
            ({}, "what to change"),
            ({"gpus": 2}, "gpus: cannot be changed"),
            ({"time_limit_s": -1}, "time_limit_s"),
            ({"priority": "x"}, "priority"),
            ({"memory_mib": 1 << 20}, "too few GPUs that large"),
            ({"after": f"ok:{task + 1}"}, "no task"),
            ({"after": f"ok:{task}"}, "earlier tasks only"),
        ):
            reply = self.request("POST", path, body)
            self.assertIn(reply.status, (400, 409), reply.data)
            self.assertIn(word, reply.message)
        self.assertEqual(self.request("POST", "/v1/tasks/99/update", {"name": "x"}).status, 404)
        self.assertIn("--time=2h", self.colloc("update", str(task), code=2).stderr)

    def test_update_of_an_array(self):
        array = self.submit(array="0-3", hold=True)
        done = self.colloc("update", "--priority=low", "--begin=now+1h", str(array))
        self.assertRegex(
            done.stdout, rf"^Array {array}: 4 of 4 tasks updated: priority low, begin .*\d:\d\d"
        )
        self.colloc("update", "--priority=normal", f"{array}_2")
        self.assertEqual(
            [self.task(f"{array}_{i}")["priority"] for i in range(4)],
            ["low", "low", "normal", "low"],
        )
        self.act("release", array)
        self.assertEqual(self.task(f"{array}_0")["reason"], "BeginTime")
        other = self.submit("exec sleep 1000")
        done = self.colloc("update", "--begin=now", f"--after=any:{other}", str(array), code=1)
        self.assertIn("none of its tasks", done.stderr)  # they are earlier
        later = self.submit("true", array="0-2", hold=True)
        self.colloc("update", f"--after=any:{other}", str(later))
        self.assertEqual(
            [self.task(f"{later}_{i}")["waits_for"] for i in range(3)], 3 * [[f"any:{other}"]]
        )
        self.act("release", later)
        self.act("cancel", other)
        self.wait(f"{later}_2", "COMPLETED")

    def test_a_reservation_in_advance(self):
        user = pwd.getpwuid(os.geteuid()).pw_name
        self.assertIn("No GPUs are reserved", self.colloc("reserve").stdout)
        done = self.colloc("reserve", "--gpus=1", "--from=now+1h", "--for=2h", "--users=daemon")
        self.assertEqual(done.stdout, "Reservation 1 is made\n")
        self.wait_log("audit event=reserve reservation=1 by_uid=")
        unknown = self.submit("true")
        short = self.submit("true", time_limit_s=60)
        self.wait(short, "COMPLETED")
        self.wait_reason(unknown, "kept free for reservation 1")
        self.restart(signal.SIGKILL)
        (row,) = self.get("/v1/reservations")["reservations"]
        self.assertEqual((row["gpus"], row["active"]), (1, False))
        until(lambda: "daemon" in self.colloc("reserve").stdout, "the name of the user")
        self.assertAlmostEqual(row["until"] - row["from"], 7200, delta=1)
        self.assertRegex(self.colloc("reserve").stdout, r"\n +1 +1 .*daemon")
        self.assertIn("of which 1 are reserved", self.reserve_fails("--gpus=1", "--for=2h"))
        self.assertIn("no user", self.reserve_fails("--gpus=1", "--for=1h", "--users=no-such-one"))
        self.assertIn("required", self.reserve_fails("--gpus=1"))
        self.assertEqual(self.task(unknown)["state"], "PENDING")
        self.colloc("reserve", "--cancel=1")
        self.wait(unknown, "COMPLETED")
        self.assertIn("no reservation 1", self.colloc("reserve", "--cancel=1", code=1).stderr)
        done = self.colloc("reserve", "--gpus=1", "--for=1h", f"--users={user}")
        self.assertEqual(done.stdout, "Reservation 2 is made\n")
        self.wait(self.submit("true"), "COMPLETED")
        self.refused(400, "gpus", path="/v1/reservations", body={"gpus": 0, "uids": [1]})
        self.refused(
            400, "uids", path="/v1/reservations", body={"gpus": 1, "until": 9e9, "uids": []}
        )
        self.refused(
            400, "over", path="/v1/reservations", body={"gpus": 1, "until": 1, "uids": [1]}
        )

    def reserve_fails(self, *words):
        users = () if any(word.startswith("--users") for word in words) else ("--users=daemon",)
        users = () if len(words) == 1 else users
        done = self.colloc("reserve", "--from=now+1h", *words, *users, code=None)
        self.assertNotEqual(done.returncode, 0)
        return done.stderr

    def test_what_cannot_be_is_refused(self):
        failed = self.submit("false")
        self.wait(failed, "FAILED")
        self.refused(400, "after", "no task 99", after="ok:99")
        self.refused(400, "after", "FAILED", after=f"ok:{failed}")
        self.refused(400, "after", "ok:ID", after="after:1")
        self.refused(400, "after", after=["ok:1"])
        self.refused(400, "begin", begin=-1)
        self.refused(400, "begin", begin="16:00")
        self.refused(400, "priority", "must be one of", priority="higher")
        self.refused(400, "requeue", requeue="no")
        done = self.colloc("submit", "--begin=yesterdays", "--", "true", code=2)
        self.assertIn("--begin=yesterdays: not a moment to come", done.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "needs another user")
    def test_limits_of_a_user(self):
        os.chmod(self.work, 0o777)
        self.restart(running_per_user=1, gpus_per_user=1)
        for _ in range(2):
            self.colloc("submit", "--", "sleep", "1000", prefix=OTHER)
        self.submit("exec sleep 1000")
        self.wait_state(1, "RUNNING")
        self.assertEqual(self.task(2)["reason"], "QOSMaxJobsPerUserLimit")
        self.restart(signal.SIGKILL, running_per_user=1, gpus_per_user=1)
        self.wait_reason(2, "running-per-user")
        self.act("cancel", 1)
        self.wait_state(2, "RUNNING")
        self.colloc("cancel", "--user", pwd.getpwuid(65534).pw_name)
        self.assertEqual(self.wait(2, "CANCELLED")["cancelled_by"], "root")
        self.assertIn("cancelled by root", self.colloc("show", "2").stdout)
        self.wait_state(3, "RUNNING")
        self.assertIsNone(self.task(3)["cancelled_by"])

    @unittest.skipUnless(os.geteuid() == 0, "needs another user")
    def test_who_may_have_a_priority(self):
        os.chmod(self.work, 0o777)
        refused = self.colloc("submit", "--priority=high", "--", "true", prefix=OTHER, code=1)
        self.assertIn("only root and operators", refused.stderr)
        self.colloc("submit", "--priority=low", "--", "true", prefix=OTHER)
        done = self.colloc("reserve", "--gpus=1", "--for=1h", "--users=0", prefix=OTHER, code=1)
        self.assertIn("only root and operators", done.stderr)
        roots = str(self.submit(hold=True))
        own = self.colloc("submit", "--hold", "--", "true", prefix=OTHER).stdout.split()[-1]
        for words, complaint in (
            (("--name=x", roots), "is not yours"),
            (("--priority=high", own), "only root and operators"),
        ):
            done = self.colloc("update", *words, prefix=OTHER, code=1)
            self.assertIn(complaint, done.stderr)
        self.colloc("update", "--priority=low", own, prefix=OTHER)
        self.colloc("update", "--priority=high", own)
        self.colloc("release", roots, own)
        self.restart(operators=f"ada, {pwd.getpwuid(65534).pw_name}")
        self.colloc("submit", "--priority=high", "--", "true", prefix=OTHER)
        until(lambda: not self.tasks(), "the end of all tasks")


LATE_S = 100  # of a machine with other work

if __name__ == "__main__":
    unittest.main()
