# SPDX-License-Identifier: Apache-2.0
"""Bad input: an error that names what and where; nothing is lost, and no other user notices."""

import http.client
import json
import os
import random
import signal
import socket
import time
import unittest

from daemon_case import LIMIT_S, MIB, DaemonCase, program, read, until


class Fields(DaemonCase):
    WRONG = {
        "script": [None, 5, "", [], {}],
        "arguments": ["x", [1], {}, [None]],
        "name": [5, "x" * 300, []],
        "cwd": [None, 5, "", "relative", "x" * 5000],
        "environment": [None, 5, [], {"A": 5}, {"": "x"}, {"A=B": "x"}],
        "umask": ["022", -1, 0o1000, 1.5, 1e18],
        "slurm_output": ["yes", 1],
        "gpus": [-1, 5, 65, 10**9, 10**15, 1.5, "2", []],
        "policy": ["best", 5, "x" * 100],
        "exclusive": ["yes", 1],
        "sharing": ["mig", 5],
        "time_limit_s": [0, -5, "60", 1e300],
        "memory_mib": [0, -1, 1e18, "8G", 10**7, 50000],
        "host_memory_mib": [0, -1, "32G", []],
        "estimator": ["oracle", 5],
        "summary": [
            "text",
            5,
            {},
            {"name": "x"},
            {"name": "x", "text": 5},
            {"name": "x", "text": "no summary at all"},
            {"name": 5, "text": "x"},
        ],
        "optimizer": [5],
        "precision": [5, "foo", "fp31"],
        "seq": [0, -1, "x"],
        "hold": ["no", 0],
        "output": [5, "x" * 5000],
        "error": [5],
        "grace_s": [-1, "x", 1e9],
        "smact": [-0.1, 1.1, "x"],
        "expected_s": [0, -1, "x"],
    }

    def test_every_key_with_the_wrong_thing(self):
        for key, values in self.WRONG.items():
            for value in values:
                with self.subTest(key=key, value=str(value)[:40]):
                    reply = self.request("POST", "/v1/tasks", {**self.body(), key: value})
                    self.assertEqual(reply.status, 400, reply.data)
                    self.assertTrue(reply.message, reply.data)
        self.assertEqual(self.tasks(state="all"), [])

    def test_messages_name_what_is_wrong(self):
        self.refused(400, "gpuz", gpuz=1)
        self.refused(400, "gpus=65", "at most 4", gpus=65)
        self.refused(400, "policy=best", "exclusive, rr, magm, lug, mug", policy="best")
        self.refused(400, "memory=48.8 GiB", "never", memory_mib=50000)
        for batch in (0, -5, 10**18):
            with open(self.sample("torchinfo_columns.txt"), encoding="utf-8") as file:
                summary = {"name": "model.txt", "text": file.read()}
            reply = self.request("POST", "/v1/tasks", self.body(summary=summary, batch=batch))
            if batch < 1:
                self.assertEqual(reply.status, 400)
            self.assertIn("batch", reply.data.decode())
        self.refused(400, "model.txt", summary={"name": "model.txt", "text": "\x01\x02\x7fELF\x02"})

    def test_doubts_about_memory_are_warnings(self):
        done = self.colloc("submit", "--mem=200", "--memory=200MiB", "--hold", "--", "true")
        self.assertIn("200 MiB of GPU memory is less than a CUDA context takes", done.stderr)
        is_enforced = not any("not enforced" in line and "-memory" in line for line in self.log)
        self.assertEqual("--host-memory is counted, but not" not in done.stderr, is_enforced)
        self.assertEqual(self.task(1)["host_memory_mib"], 200)
        self.assertEqual(self.task(1)["need_mib"], 200)
        shown = self.colloc("show", "1").stdout
        self.assertRegex(shown, r"Host memory +200\.0 MiB")
        self.assertRegex(shown, r"Output +colloc-1\.out\n")
        self.assertEqual(
            self.colloc(
                "submit", "--memory=300MiB", "--hold", "--output=5%%-%j.log", "--", "true"
            ).stderr,
            "",
        )
        self.assertRegex(self.colloc("show", "2").stdout, r"Output +5%-2\.log\n")
        self.refused(400, "host_memory_mib", host_memory_mib="32G")

    def test_a_summary_of_very_many_layers_does_not_delay_others(self):
        rows = "".join(
            f"  (l{i}): Linear(in_features={64 + i * 37 % 1900}, "
            f"out_features={64 + i * 61 % 1900}, bias=True)\n"
            for i in range(60000)
        )
        begin_s = self.cpu_s()
        self.refused(
            400,
            "many.txt",
            "more than 50000 layers",
            summary={"name": "many.txt", "text": f"Net(\n{rows})\n"},
            hold=True,
        )
        rows = rows[: rows.index("(l49900)")].rstrip()
        self.submit(
            summary={"name": "many.txt", "text": f"Net(\n{rows}\n)\n"}, memory_mib=1000, hold=True
        )
        self.assertLess(self.cpu_s() - begin_s, 10)

    def cpu_s(self):
        """Of the daemon and of its helpers that have ended: a busy machine changes it little."""
        times = read(f"/proc/{self.process.pid}/stat").rpartition(")")[2].split()[11:15]
        return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")

    def large_export(self):
        """An export of 6 MiB: a sample, with more tensors."""
        with open(self.sample("../exports/small.json"), encoding="utf-8") as file:
            export = json.load(file)
        n = 200000
        export["tensors"] += [[1000, 100, 6 + 2 * i, 7 + 2 * i, 6] for i in range(n)]
        export["ticks"] += 2 * n
        return self.write("large.json", json.dumps(export))

    def test_a_large_export_is_estimated_beside_the_loop(self):
        path = self.large_export()
        self.assertGreater(os.path.getsize(path), 4 * MIB)
        options = ("--hold", "--batch=8", "--optimizer=adam", "--precision=fp32")
        submit = ("submit", f"--summary={path}", *options, "--", "true")
        done = self.colloc(*submit)
        estimate = json.loads(
            self.colloc(
                "estimate", path, "--gpu=NVIDIA A100-SXM4-40GB", "--json", *options[1:]
            ).stdout
        )
        task = self.task(1)
        self.assertIn("Submitted task 1", done.stdout)
        self.assertAlmostEqual(task["estimate_mib"], estimate["estimates"][0]["p90_mib"], delta=1)
        self.assertEqual(task["summary_name"], "large.json")
        for name, part in (("missing.json", "No such file"), ("", "is no regular file")):
            summary = {"name": "net", "path": os.path.join(self.work, name)}
            self.refused(400, part, summary=summary, batch=8)
        with open(path, "ab") as file:
            file.truncate(65 * MIB)
        self.refused(400, "large.json", summary={"name": "net", "path": path}, batch=8)

    def test_a_submission_that_was_answered_survives_whatever_is_estimated(self):
        path = self.large_export()
        connection = self.connection()
        summary = {"name": "large.json", "path": path}
        connection.request(
            "POST", "/v1/tasks", json.dumps(self.body(summary=summary, batch=8, hold=True))
        )
        task = self.submit(hold=True)
        self.restart(signal.SIGKILL)
        try:
            answered = [json.loads(connection.getresponse().read())["id"]]
        except (OSError, http.client.HTTPException):
            answered = []
        connection.close()
        known = {task["id"] for task in self.tasks()}
        self.assertLessEqual({task, *answered}, known)
        again = self.submit(summary=summary, batch=8, hold=True)
        self.assertGreater(self.task(again)["estimate_mib"], 0)

    def test_an_estimate_at_the_edge_of_64_bits_does_no_harm(self):
        for bits, refused in (
            (63, True),
            (60, False),
        ):  # what is refused would not be read again; what is not, must be
            body = {
                "summary": {"name": "edge.txt", "text": self.horus_summary(2**bits - 256)},
                "batch": 10**9,
                "estimator": "horus",
            }
            if refused:
                self.refused(400, "bytes", hold=True, **body)
            else:
                held = self.submit(hold=True, **body)
            self.restart()
            self.wait(self.submit(), "COMPLETED")
        self.assertGreater(self.task(held)["need_mib"], 2**39)

    @staticmethod
    def horus_summary(size):
        """A summary for which Horus estimates `size` bytes at a batch of 10^9, or some GB less.

        Its formula: ((B x A + P) + B x P) x 4 + 800 MiB.
        """
        batch, sum_wanted = 10**9, (size - (800 << 20)) // 4
        parameters = min(sum_wanted % batch, sum_wanted // batch // 2)
        rule = "=" * 64
        return (
            f"{'-' * 64}\n        Layer (type)               Output Shape         Param #\n{rule}\n"
            f"            Linear-1      [-1, {sum_wanted // batch - parameters}]     "
            f"{parameters:,}\n{rule}\n"
            f"Total params: {parameters:,}\n"
        )

    def sample(self, name):
        return os.path.join(os.path.dirname(__file__), "..", "data", "summaries", name)

    def test_missing_keys_and_other_bodies(self):
        body = self.body()
        for key in ("script", "cwd", "environment"):
            self.refused(400, key, body={k: v for k, v in body.items() if k != key})
        for text in (
            "",
            "nonsense",
            "[]",
            "5",
            "null",
            '"x"',
            "{",
            '{"script": "a", "script": "b"}',
            "[" * 100000,
            '{"a":' * 100000,
            b'{"script": "\xff\xfe"}',
            '{"script": "a\\u0000b"}',
            "1e999999",
            '{"gpus": 123456789012345678901234567890}',
            "\0" * 100,
        ):
            with self.subTest(text=text[:30]):
                reply = self.request("POST", "/v1/tasks", text)
                self.assertEqual(reply.status, 400, reply.data)
                self.assertTrue(reply.message)

    def test_bodies_that_are_bombs(self):
        before = self.rss()
        reply = self.request("POST", "/v1/tasks", b'{"script": "' + b"x" * (17 * MIB) + b'"}')
        self.assertEqual(reply.status, 413)
        self.assertIn("16777216", reply.message)
        for bomb in (b"[" + b"[]," * (5 * MIB) + b"[]]", b"[" + b"1," * (7 * MIB) + b"1]"):
            self.assertEqual(self.request("POST", "/v1/tasks", bomb).status, 400)
        if b"__asan_init" not in read(program("collocd"), "rb"):  # which keeps what was freed
            self.assertLess(self.peak() - before, 150 * MIB)

    def status(self, key):
        lines = read(f"/proc/{self.process.pid}/status").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))

    def rss(self):
        return self.status("VmRSS")

    def peak(self):
        return self.status("VmHWM")

    def test_a_script_of_megabytes_runs(self):
        task = self.submit("# " + "x" * (3 * MIB) + "\necho end")
        self.wait(task, "COMPLETED")
        self.assertEqual(self.output(task), "end\n")
        task = self.wait(self.submit(environment={"BIG": "x" * MIB}), "FAILED")
        self.assertIn("Argument list too long", task["reason_text"])

    def test_a_script_has_at_most_4_mib(self):
        self.refused(413, "4 MiB is the most", script="# " + "x" * (4 * MIB))

    def test_text_of_any_script(self):
        name = "\u8a13\u7df4 \u00e9 \U0001f525 \u202e \x9b \x1b[31m\t"
        task = self.submit("true", name=name)
        self.assertEqual(self.wait(task)["name"], name)
        for output in (
            self.colloc("history").stdout,
            self.colloc("show", str(task)).stdout,
            self.metrics_while_it_runs(name),
            self.colloc("show", str(task), "--json").stdout,
            self.colloc("history", "--csv").stdout,
            self.colloc("trace", "export").stdout,
            self.as_slurm("sacct", "-a", "-P", "--format=JobName"),
        ):
            self.assertFalse(set(output) & set("\u202e\x1b\x9b"), output)
        self.assertEqual(json.loads(self.colloc("show", str(task), "--json").stdout)["name"], name)
        self.assertIn("policy", self.refused(400, policy="\u8a13" * 14).message)

    def as_slurm(self, command, *words):
        """What colloc prints under the name of a command of Slurm."""
        os.symlink(program("colloc"), os.path.join(self.work, command))
        return self.colloc(
            *words, prefix=("bash", "-c", f'shift; exec ./{command} "$@"', "")
        ).stdout

    def metrics_while_it_runs(self, name):
        task = self.submit("while :; do sleep 0.05; done", name=name)
        self.wait_state(task, "RUNNING")
        text = self.request("GET", "/v1/metrics").data.decode()
        self.assertIn(f'task="{task}"', text)
        self.act("cancel", task)
        self.wait(task, "CANCELLED")
        return text


class Paths(DaemonCase):
    def test_paths_methods_and_queries(self):
        self.submit(hold=True)
        for method, path, status in (
            ("GET", "/", 404),
            ("GET", "/v1", 404),
            ("GET", "/v2/tasks", 404),
            ("GET", "/v1/tasks/", 404),
            ("GET", "/v1/tasks/0", 404),
            ("GET", "/v1/tasks/-1", 404),
            ("GET", "/v1/tasks/18446744073709551616", 404),
            ("GET", "/v1/tasks/9223372036854775807", 404),
            ("GET", "/v1/tasks/9223372036854775808", 404),
            ("GET", "/v1/tasks/abc", 404),
            ("GET", "/v1/tasks/1x", 404),
            ("GET", "/v1/tasks/1/2", 404),
            ("GET", "/v1/tasks/" + "1" * 5000, 404),
            ("GET", "/v1/../../etc/passwd", 404),
            ("GET", "/v1/%ff%fe", 404),
            ("DELETE", "/v1/tasks/1", 405),
            ("PUT", "/v1/tasks", 405),
            ("POST", "/v1/tasks/1", 405),
            ("GET", "/v1/tasks/1/cancel", 405),
            ("POST", "/v1/gpus", 405),
            ("BREW", "/v1/info", 405),
            ("POST", "/v1/tasks/2/cancel", 404),
            ("POST", "/v1/tasks/1/release?x=" + "y" * 3000, 200),
            ("GET", "/v1/tasks?state=DANCING", 400),
            ("GET", "/v1/tasks?limit=0", 400),
            ("GET", "/v1/tasks?limit=-1", 400),
            ("GET", "/v1/tasks?limit=99999999999999999999", 400),
            ("GET", "/v1/tasks?limit=x", 400),
            ("GET", "/v1/tasks?user=%00%ff", 200),
            ("GET", "/v1/tasks?state=", 400),
            ("GET", "/v1/tasks/1/wait?timeout_s=-1", 400),
            ("GET", "/v1/tasks/1/wait?timeout_s=nan", 400),
            ("GET", "/v1/tasks/1/wait?timeout_s=soon", 400),
            ("GET", "/v1/tasks/1/log?stream=stdin", 400),
            ("GET", "/v1/tasks/1/log?offset=-1", 400),
            ("GET", "/v1/tasks/1/log?attempt=7", 400),
            ("GET", "/v1/tasks/1/log?offset=9223372036854775807", 200),
            ("GET", "/v1/tasks/1/log?offset=9223372036854775808", 400),
        ):
            with self.subTest(path=f"{method} {path[:50]}"):
                reply = self.request(method, path)
                self.assertEqual(reply.status, status, reply.data[:300])
                self.assertTrue(reply.status == 200 or reply.message)

    def test_log_beyond_its_end(self):
        task = self.submit("echo hello")
        self.wait(task, "COMPLETED")
        for offset in (6, 7, 2**62, 2**63 - 1):
            reply = self.request("GET", f"/v1/tasks/{task}/log?offset={offset}")
            self.assertEqual((reply.status, reply.data), (200, b""), offset)
            self.assertEqual(reply.headers["Colloc-Ended"], "true")

    def test_the_cli_says_what_is_wrong(self):
        script = self.write("job.sh", "#!/bin/bash\n#COLLOC --frobnicate=1\ntrue\n")
        self.assertIn("job.sh:2", self.colloc("submit", script, code=2).stderr)
        self.assertIn("nothing.sh", self.colloc("submit", "nothing.sh", code=2).stderr)
        good = self.write("good.sh", "#!/bin/bash\ntrue\n")
        self.write("binary", bytes(range(256)) * 10)
        for option, word in (
            ("--summary=missing.txt", "missing.txt"),
            ("--summary=binary", "binary"),
            ("--batch=-5", "batch"),
            ("--batch=0", "batch"),
            ("--gpus=65", "65"),
            ("--gpus=-1", "gpus"),
            ("--memory=1000GiB", "GiB"),
            ("--policy=best", "best"),
        ):
            done = self.colloc("submit", option, good, code=None)
            self.assertNotEqual(done.returncode, 0, option)
            self.assertIn(word, done.stderr)
        self.assertIn("99", self.colloc("show", "99", code=None).stderr)
        self.assertEqual(self.tasks(state="all"), [])


class Clients(DaemonCase):
    def connect(self):
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(LIMIT_S)
        client.connect(self.socket)
        self.addCleanup(client.close)
        return client

    def quick(self):
        """The best of a few: the machine may be busy with other things."""

        def seconds():
            begin = time.monotonic()
            self.get("/v1/info")
            return time.monotonic() - begin

        self.assertTrue(any(seconds() < 5 for _ in range(5)))

    def test_silent_and_half_spoken(self):
        """As root, which has no limit."""
        clients = [self.connect() for _ in range(200)]
        for i, client in enumerate(clients):
            client.sendall(
                (
                    b"",
                    b"G",
                    b"POST /v1/tasks HTTP/1.1\r\nContent-Length: 100\r\n\r\n{",
                    b"GET /v1/info HTTP/1.1\r\nX:",
                )[i % 4]
            )
        self.quick()
        self.wait(self.submit(), "COMPLETED")
        for client in clients:
            client.close()
        self.all_closed()

    def all_closed(self):
        until(
            lambda: len(os.listdir(f"/proc/{self.process.pid}/fd")) < 40,
            "the closing of connections",
        )

    def test_header_floods_and_nonsense(self):
        for data in (
            b"X" * 100000,
            b"\r\n" * 1000 + b"\0" * 1000,
            b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 20000 + b"\r\n",
            b"GET /v1/info HTTP/9.9\r\n\r\n",
            b"POST /v1/tasks HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
            b"POST /v1/tasks HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n",
            b"POST /v1/tasks HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nZZZ\r\n",
            b"POST /v1/tasks HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        ):
            client = self.connect()
            client.settimeout(0.5)  # some of it is no end of a request: then there is no answer
            try:
                client.sendall(data)
                client.recv(65536)
            except (BrokenPipeError, ConnectionResetError, TimeoutError):
                pass
            self.quick()

    def test_random_bytes(self):
        seed = int(os.environ.get("COLLOC_SEED", random.randrange(1 << 30)))
        noise = random.Random(seed)
        good = [
            b"GET /v1/tasks/1/log?stream=stdout&offset=0 HTTP/1.1\r\nHost: x\r\n\r\n",
            b"POST /v1/tasks HTTP/1.1\r\nContent-Length: 60\r\n\r\n"
            + json.dumps({"script": "true", "cwd": "/", "gpus": 65, "environment": {}}).encode(),
        ]
        end = time.monotonic() + 2
        while time.monotonic() < end:
            data = bytearray(noise.choice(good))
            for _ in range(noise.randrange(1, 8)):
                at = noise.randrange(len(data))
                data[at : at + noise.randrange(3)] = noise.randbytes(noise.randrange(3))
            client = self.connect()
            try:
                client.sendall(bytes(data))
                if noise.random() < 0.5:
                    client.settimeout(0.1)
                    client.recv(100)
            except OSError:
                pass
            client.close()
        self.assertIsNone(self.process.poll(), f"COLLOC_SEED={seed}")
        self.quick()

    def test_slow_reader_of_a_large_reply(self):
        task = self.submit("head -c 3000000 /dev/zero | tr '\\0' x")
        self.wait(task, "COMPLETED")
        slow = [self.connect() for _ in range(20)]
        for client in slow:
            client.sendall(f"GET /v1/tasks/{task}/log HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        self.quick()
        self.assertEqual(len(self.output(task)), 256 * 1024)
        self.assertEqual(self.colloc("logs", str(task)).stdout, "x" * 3000000)

    def test_clients_that_go_while_they_wait(self):
        task = self.submit("while :; do sleep 0.05; done")
        for _ in range(50):
            connection = self.connection()
            connection.request("GET", f"/v1/tasks/{task}/wait?timeout_s=60")
            connection.close()
        self.act("cancel", task)
        self.wait(task, "CANCELLED")
        self.quick()
        self.restart()

    def test_many_requests_on_one_connection(self):
        connection = self.connection()
        for _ in range(300):
            connection.request("GET", "/v1/info")
            reply = connection.getresponse()
            self.assertEqual(reply.status, 200)
            reply.read()
        connection.close()
        self.all_closed()


if __name__ == "__main__":
    unittest.main()
