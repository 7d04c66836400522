# SPDX-License-Identifier: Apache-2.0
"""Services beside trainings: restarts, latency, who gives way, and what is refused."""

import os
import pwd
import re
import signal
import socket
import subprocess
import unittest

from daemon_case import LIMIT_S, DaemonCase, program, until
from colloc_slurm.loopback import free_ports  # found by daemon_case


class Services(DaemonCase):
    gpus = "1xA100-40GB"
    settings = {"service-hold": "3s", "suspend": "no"}

    def serve(self, options="", **members):
        (port,) = free_ports(1)
        script = f"exec colloc-pretend-service {options}"
        return self.submit(script, service=True, port=port, memory_mib=2000, **members)

    def events(self, task):
        return [event["event"] for event in self.task(task)["events"]]

    def test_a_training_gives_way_and_comes_back(self):
        service = self.serve("--request-ms=450", p99_s=0.75, smact=0.1)
        shown = until(
            lambda: next(
                (t for t in [self.task(service)] if t["target_state"] == "met"),
                None,
            ),
            "the target to be met",
        )
        self.assertGreater(shown["p99_now_s"], 0.449)
        self.assertEqual((shown["priority"], shown["p99_target_s"]), ("high", 0.75))
        # What it says of its activity is wrong: it is admitted, and makes requests take 0.87 s.
        training = self.train(2000, 1e6, "--smact=0.95", memory_mib=2000, smact=0.001)
        paused = self.wait_state(training, "PAUSED")
        self.assertEqual(paused["reason"], "Suspended")
        self.assertIn(f"task {service}, a service that missed", paused["reason_text"])
        # Another is not admitted meanwhile, and its owner reads why. No hold ends before that.
        self.restart(signal.SIGKILL, service_hold="1h")
        self.wait_state(training, "PAUSED")
        waiting = self.train(2000, 1, memory_mib=2000, smact=0.9)
        self.wait_reason(waiting, f"task {service}, a service")
        self.assertEqual(self.act("cancel", waiting).status, 200)
        self.restart(signal.SIGKILL, service_hold="1h")
        self.assertEqual(self.task(training)["state"], "PAUSED")
        self.restart(signal.SIGKILL)
        until(lambda: "CONTINUE" in self.events(training), "that the training goes on")
        # Without the service nothing stops it.
        self.assertEqual(self.act("cancel", service).status, 200)
        self.wait(service, "CANCELLED")
        self.wait_state(training, "RUNNING")

    def test_run_again_whenever_it_ends(self):
        service = self.serve("--request-ms=1 --requests=3")
        until(lambda: self.task(service)["restart_count"] >= 2, "two restarts")
        shown = self.task(service)
        self.assertNotIn(shown["state"], ("COMPLETED", "FAILED"))
        self.assertIsNone(shown["target_state"])
        self.assertEqual(self.act("cancel", service).status, 200)
        ended = self.wait(service, "CANCELLED")
        self.assertGreaterEqual(ended["restart_count"], 2)
        self.assertIn("RESTART", self.events(service))

    def test_latency_that_the_service_reports(self):
        service = self.submit("exec sleep 1000", service=True, p99_s=0.05)
        self.wait_state(service, "RUNNING")
        path = f"/v1/tasks/{service}/latency"
        self.assertEqual(self.request("POST", path, {"p99_ms": 12.5}).status, 200)
        shown = self.task(service)
        self.assertEqual((shown["p99_now_s"], shown["target_state"]), (0.0125, "met"))
        self.client.report_latency(service, 80)
        self.assertEqual(self.task(service)["target_state"], "missed")
        shown = self.colloc("show", str(service)).stdout
        self.assertRegex(shown, r"p99 now +80\.0 ms")
        self.assertRegex(shown, r"Target +missed")
        self.assertRegex(shown, r"Target p99 +50\.0 ms")
        for bad in ({}, {"p99_ms": -1}, {"p99_ms": "12"}, {"p99_ms": 1e300}):
            self.assertEqual(self.request("POST", path, bad).status, 400, bad)
        training = self.submit("exec sleep 1000", hold=True)
        self.refused(409, "no service", path=f"/v1/tasks/{training}/latency", body={"p99_ms": 1})

    def test_another_programs_port(self):
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
            service = self.submit("exec sleep 1000", service=True, port=port, p99_s=0.05)
            words = f"port {port} is taken by another program"
            shown = until(
                lambda: next((t for t in [self.task(service)] if words in t["reason_text"]), None),
                "the reason",
            )
            self.assertEqual((shown["state"], shown["p99_now_s"]), ("PENDING", None))
            # Meanwhile another task has the GPU to itself.
            training = self.submit("exec sleep 1000", exclusive=True)
            self.wait_state(training, "RUNNING")
            self.assertIn(words, self.colloc("show", str(service)).stdout)
        self.assertEqual(self.act("cancel", training).status, 200)
        self.wait_state(service, "RUNNING")

    def test_another_services_port(self):
        service = self.serve()
        port = self.task(service)["port"]
        self.refused(409, f"port={port}", f"task {service},", service=True, port=port)
        self.assertEqual(self.act("cancel", service).status, 200)
        self.wait_state(self.submit("exec sleep 1000", service=True, port=port), "RUNNING")

    def test_what_is_refused(self):
        for words, members in [
            (("p99_s", "service"), {"p99_s": 0.1}),
            (("port", "service"), {"port": 8000}),
            (("probe", "service"), {"probe": "/"}),
            (("probe", "port"), {"service": True, "probe": "/"}),
            (("port",), {"service": True, "port": 80}),
            (("port",), {"service": True, "port": 65536}),
            (("probe", "blanks"), {"service": True, "port": 8000, "probe": "/a b"}),
            (("probe", "blanks"), {"service": True, "port": 8000, "probe": "/\r\nHost: x"}),
            (("probe", "begins"), {"service": True, "port": 8000, "probe": "a"}),
            (("array",), {"service": True, "array": "0-3"}),
        ]:
            self.refused(400, *words, **members)

    @unittest.skipUnless(os.geteuid() == 0, "needs another user")
    def test_who_may_submit_one(self):
        other = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
        os.chmod(self.work, 0o777)
        submit = ("submit", "--service", "--output=/dev/null", "--", "true")
        refused = self.colloc(*submit, prefix=other, code=1)
        self.assertIn("services-for-all", refused.stderr)
        self.restart(**{"services-for-all": "yes"})
        done = self.colloc(*submit, prefix=other)
        self.assertIn("Submitted", done.stdout)
        self.restart(operators=pwd.getpwuid(65534).pw_name)
        self.colloc(*submit, prefix=other)

    @unittest.skipUnless(os.geteuid() == 0, "needs another user")
    def test_a_user_may_have_few_ports(self):
        other = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
        os.chmod(self.work, 0o777)
        self.restart(**{"services-for-all": "yes"})

        def submit(port, prefix=other, code=0):
            options = ("--service", "--hold", f"--port={port}", "--output=/dev/null")
            return self.colloc("submit", *options, "--", "true", prefix=prefix, code=code)

        for port in range(20000, 20016):
            first = submit(port)
        self.assertIn("the most for a user", submit(20016, code=1).stderr)
        submit(20016, prefix=())  # root's
        last = re.search(r"\d+", first.stdout).group(0)
        self.act("cancel", last)
        self.wait(int(last))
        submit(20015)

    def test_pretend_service_says_what_is_wrong(self):
        for arguments in ((), ("--port=0",), ("--port=1", "--smact=2"), ("--port=1", "more")):
            done = self.run_pretend(*arguments)
            self.assertEqual(done.returncode, 2, done)
            self.assertIn("--help", done.stderr)

    def run_pretend(self, *arguments):
        path = os.path.join(os.path.dirname(program("emulator")), "colloc-pretend-service")
        return subprocess.run(
            [path, *arguments],
            env=self.env,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )


if __name__ == "__main__":
    unittest.main()
