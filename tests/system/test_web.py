# SPDX-License-Identifier: Apache-2.0
"""The web page's server and the stream of events: logins, what is shown, going on after a pause."""

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import unittest

from daemon_case import LIMIT_S, DaemonCase, in_time
from colloc_slurm.loopback import free_ports


class Events:
    """A reader of GET /v1/events over a Unix socket or TCP."""

    def __init__(self, address, headers=""):
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.settimeout(LIMIT_S)
        self.socket.connect(address)
        self.socket.sendall(f"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode())
        self.file = self.socket.makefile("rb")
        self.status = int(self.file.readline().split()[1])
        self.headers = {}
        while (line := self.file.readline().decode().strip()) != "":
            key, value = line.split(": ", 1)
            self.headers[key] = value
        self.text = b""

    def next(self):
        """The next event: (name, id or None, data)."""
        while b"\n\n" not in self.text:
            size = int(self.file.readline(), 16)
            if size == 0:
                return None
            self.text += self.file.read(size)
            self.file.readline()
        event, self.text = self.text.split(b"\n\n", 1)
        fields = dict(line.split(": ", 1) for line in event.decode().split("\n"))
        return fields["event"], fields.get("id"), json.loads(fields["data"])

    def until(self, condition):
        while True:
            event = self.next()
            if condition(*event):
                return event

    def close(self):
        self.file.close()
        self.socket.close()


class Stream(DaemonCase):
    gpus = "2xA100-40GB"

    def events(self, last=None):
        reader = Events(self.socket, f"Last-Event-ID: {last}\r\n" if last is not None else "")
        self.addCleanup(reader.close)
        return reader

    def test_tasks_and_gpus(self):
        reader = self.events()
        self.assertEqual(reader.status, 200)
        self.assertEqual(reader.headers["Content-Type"], "text/event-stream")
        name, first, _ = reader.next()
        self.assertEqual(name, "reset")
        _, _, data = reader.until(lambda name, *_: name == "gpus")
        self.assertEqual([gpu["index"] for gpu in data["gpus"]], ["0", "1"])
        task = self.submit("exit 3", command="secret word")
        self.wait(task)
        _, last, data = reader.until(
            lambda name, _, data: name == "tasks" and data["tasks"][0]["state"] == "FAILED"
        )
        shown = data["tasks"][0]
        self.assertEqual(shown["id"], task)
        self.assertIsNone(shown["command"], "what only the owner may see")
        self.assertIsNone(shown["evidence"])
        self.assertGreater(int(last), int(first))

    def test_a_reader_goes_on_where_it_was(self):
        reader = self.events()
        _, last, _ = reader.next()
        reader.close()
        tasks = [self.submit("true") for _ in range(3)]
        for task in tasks:
            self.wait(task)
        self.restart(signal.SIGKILL)  # also at another daemon
        name, now, data = self.events(last).next()
        self.assertEqual(name, "tasks")
        self.assertEqual([task["id"] for task in data["tasks"]], tasks)
        self.assertEqual({task["state"] for task in data["tasks"]}, {"COMPLETED"})
        # One that has everything gets no tasks; one from nowhere starts anew.
        self.assertEqual(self.events(now).next()[0], "gpus")
        self.assertEqual(self.events(10**12).next()[0], "reset")
        self.assertEqual(self.events("x").status, 400)
        # Too much has changed: read the lists.
        for _ in range(201):
            self.submit("true", hold=True)
        self.assertEqual(self.events(now).next()[0], "reset")

    def test_by_the_python_client(self):
        events = self.client.events()
        first = next(events)
        self.assertEqual((first["event"], first["data"]), ("reset", {}))
        task = self.client.submit(["sh", "-c", "exit 3"], memory="1GiB")
        self.assertEqual(task.wait()["state"], "FAILED")
        seen = next(
            e for e in events if e["event"] == "tasks" and e["data"]["tasks"][0]["id"] == task
        )
        self.assertGreater(seen["id"], first["id"])
        events.close()
        self.assertEqual(next(self.client.events(after=first["id"]))["event"], "tasks")

    def test_many_that_missed_something(self):
        # Each text has 190 tasks. All of them at once held the loop for 1.6 s: a few have a turn.
        _, last, _ = self.events().next()
        tasks = [self.submit("true", hold=True) for _ in range(190)]
        readers = [self.events(last) for _ in range(60)]
        self.assertEqual({reader.status for reader in readers}, {200})
        for reader in readers:
            name, _, data = reader.next()
            self.assertEqual(name, "tasks")
            self.assertEqual([task["id"] for task in data["tasks"]], tasks)
        more = self.submit("true", hold=True)
        for reader in readers:
            reader.until(lambda name, _, data: name == "tasks" and data["tasks"][-1]["id"] == more)

    def test_a_slow_reader_harms_no_other(self):
        slow = [self.events() for _ in range(20)]
        reader = self.events()
        for _ in range(3):
            reader.until(lambda name, *_: name == "gpus")
        for one in slow:  # read late, they get what is new
            self.assertEqual(one.next()[0], "reset")
        task = self.submit("true")
        self.wait(task)
        for one in slow:
            one.until(lambda name, _, data: name == "tasks" and data["tasks"][0]["id"] == task)
        more = [Events(self.socket) for _ in range(60)]
        for one in more:
            self.addCleanup(one.close)
        self.assertEqual({one.status for one in more}, {200, 503})
        self.assertEqual(self.get("/v1/info")["queued"], 0)


class Page(DaemonCase):
    gpus = "1xA100-40GB"
    settings = {"web": "127.0.0.1:0"}

    def start(self, **settings):
        """The page's address is logged before the daemon listens to commands."""
        super().start(**settings)
        lines = [line for line in self.log if "the web page is at" in line]
        self.port = int(re.search(r"127\.0\.0\.1:(\d+)", lines[-1])[1])

    def fetch(self, path, method="GET", **headers):
        return in_time(
            lambda: self.fetch_once(path, method, headers),
            lambda reply: reply.text if reply.status == 503 else "",
        )

    def fetch_once(self, path, method, headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_S)
        self.addCleanup(connection.close)
        connection.request(
            method, path, headers={name.replace("_", "-"): value for name, value in headers.items()}
        )
        reply = connection.getresponse()
        reply.text = reply.read().decode()
        return reply

    def redeem(self, path):
        """What the page does with the address of a login."""
        self.assertIn('<div id="app">', self.fetch(path).text)
        return self.fetch(path, method="POST")

    def login(self):
        """The secret of a new session, by the command line."""
        url = self.colloc("web", "--print-url").stdout.strip()
        match = re.fullmatch(rf"http://127\.0\.0\.1:{self.port}(/login\?token=[0-9a-f]{{64}})", url)
        self.assertTrue(match, url)
        reply = self.redeem(match[1])
        self.assertEqual(reply.status, 200)
        self.assertNotIn("Set-Cookie", reply.headers, "other ports of the host would get it")
        self.assertEqual(self.redeem(match[1]).status, 403, "a token is good once")
        session = json.loads(reply.text)["session"]
        self.assertRegex(session, "^[0-9a-f]{64}$")
        return session

    def test_silent_connections_give_up_their_places(self):
        session = self.login()
        reader = Events(("127.0.0.1", self.port), f"Colloc-Session: {session}\r\n")
        self.addCleanup(reader.close)
        self.assertEqual(reader.next()[0], "reset")
        for _ in range(600):
            silent = socket.create_connection(("127.0.0.1", self.port))
            self.addCleanup(silent.close)
            silent.sendall(b"GET / HTTP/1.1\r\n")  # not a whole request
        self.assertEqual(self.fetch("/").status, 200)
        self.assertEqual(self.fetch("/v1/tasks", Colloc_Session=session).status, 200)
        self.wait(self.submit("true"))
        reader.until(lambda name, *_: name == "tasks")

    def test_who_gets_in(self):
        for path in ("/v1/tasks", "/v1/gpus", "/v1/events", "/v1/info", "/v1/tasks/1/log"):
            reply = self.fetch(path)
            self.assertEqual(reply.status, 401, path)
            self.assertIn("colloc web --print-url", reply.text)
        session = self.login()
        self.assertEqual(self.fetch("/v1/tasks", Colloc_Session=session).status, 200)
        for wrong in (
            "0" * 64,
            session[:-1],
            f"{session}0",
            "",
            f"x{session}",
            f"session={session}",
        ):
            self.assertEqual(self.fetch("/v1/tasks", Colloc_Session=wrong).status, 401, wrong)
            self.assertEqual(self.fetch("/logout", "POST", Colloc_Session=wrong).status, 401, wrong)
        for name in ("Cookie", "Authorization", "X-Colloc"):
            reply = self.fetch("/v1/tasks", **{name: f"Colloc-Session={session}"})
            self.assertEqual(reply.status, 401, name)
        for token in ("", "0" * 64, session):
            self.assertEqual(self.fetch(f"/login?token={token}", "POST").status, 403)
        self.assertEqual(self.fetch("/login", "POST").status, 403)
        left = self.login()
        self.assertEqual(self.fetch("/logout", "POST", Colloc_Session=left).status, 200)
        self.assertEqual(self.fetch("/v1/tasks", Colloc_Session=left).status, 401)
        self.restart()  # sessions end with the daemon
        self.assertEqual(self.fetch("/v1/tasks", Colloc_Session=session).status, 401)

    def test_it_only_shows(self):
        session = self.login()
        task = self.submit("true", hold=True)
        for path in (f"/v1/tasks/{task}/cancel", "/v1/tasks", "/v1/web", "/v1/gpus/clear"):
            reply = self.fetch(path, method="POST", Colloc_Session=session)
            self.assertIn(reply.status, (404, 405), path)
        self.assertEqual(self.task(task)["state"], "PENDING")
        self.assertNotIn("token", json.dumps(self.get("/v1/info")))

    def test_other_host_names(self):
        session = self.login()
        for host in ("evil.example", f"evil.example:{self.port}", "localhost.evil.example", ""):
            for path in ("/", "/page.js", "/v1/tasks", "/login?token=" + "0" * 64):
                self.assertEqual(
                    self.fetch(path, Host=host, Colloc_Session=session).status, 403, host
                )
        for host in ("localhost", f"localhost:{self.port}", "127.0.0.1:1234", "[::1]:80"):
            self.assertEqual(
                self.fetch("/v1/tasks", Host=host, Colloc_Session=session).status, 200, host
            )

    def test_the_files_of_the_page(self):
        page = self.fetch("/")
        self.assertEqual(page.status, 200)
        policy = page.headers["Content-Security-Policy"]
        self.assertIn("default-src 'none'", policy)
        self.assertNotIn("unsafe", policy)
        self.assertNotIn("http", policy)
        self.assertEqual(page.headers["X-Content-Type-Options"], "nosniff")
        self.assertEqual(page.headers["Referrer-Policy"], "no-referrer")
        for path, kind in (("/page.js", "text/javascript"), ("/page.css", "text/css")):
            self.assertIn(path, page.text.replace("./", "/"))
            reply = self.fetch(path)
            self.assertEqual(reply.status, 200)
            self.assertTrue(reply.headers["Content-Type"].startswith(kind))
        self.assertNotRegex(page.text, r"""(src|href)=["']?(https?:)?//""")
        self.assertEqual(self.fetch("/../collocd").status, 404)

    def test_events_over_tcp(self):
        reader = Events(("127.0.0.1", self.port), f"Colloc-Session: {self.login()}\r\n")
        self.addCleanup(reader.close)
        self.assertEqual(reader.next()[0], "reset")
        task = self.submit("true")
        self.wait(task)
        reader.until(lambda name, _, data: name == "tasks" and data["tasks"][0]["id"] == task)
        self.stop()
        while reader.next():
            pass

    @unittest.skipIf(os.geteuid(), "only root has several users")
    def test_whose_session_it_is(self):
        task = self.submit("echo mine")
        self.wait(task)
        own = self.fetch(f"/v1/tasks/{task}/log?stream=stdout", Colloc_Session=self.login())
        self.assertEqual((own.status, own.text), (200, "mine\n"))
        url = self.colloc(
            "web", "--print-url", prefix=("setpriv", "--reuid=65534", "--clear-groups")
        ).stdout
        other = json.loads(self.redeem(url.strip().split(str(self.port))[1]).text)["session"]
        self.assertEqual(self.fetch(f"/v1/tasks/{task}", Colloc_Session=other).status, 200)
        log = self.fetch(f"/v1/tasks/{task}/log?stream=stdout", Colloc_Session=other)
        self.assertEqual(log.status, 403)


class OnDemand(DaemonCase):
    gpus = "1xA100-40GB"

    def test_it_listens_when_it_is_asked_for(self):
        self.assertNotIn("web page", "\n".join(self.log))
        shown = self.colloc("web").stdout
        self.assertRegex(shown, r"^http://127\.0\.0\.1:\d+/login\?token=[0-9a-f]{64}\n")
        port = re.search(r":(\d+)/", shown)[1]
        self.assertIn(f"ssh -L {port}:127.0.0.1:{port} ", shown)
        self.wait_log("the web page is at")
        self.assertIn(f":{port}/", self.colloc("web", "--print-url").stdout)
        self.restart(web="none")
        refused = self.colloc("web", code=None)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("setting web: none", refused.stderr)
        status, words = self.run_daemon(web="nowhere")
        self.assertNotEqual(status, 0)
        self.assertIn("an address with a port", words)

    def test_a_port_that_a_user_has_taken(self):
        self.stop()
        ports = free_ports(2)  # which no client of another test gets, once they are given up
        places = [f"127.0.0.1:{port}" for port in ports]
        with contextlib.ExitStack() as stack:
            for port in ports:
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
            self.start(web=places[0], metrics_listen=places[1])
            errors = "\n".join(line for line in self.log if "error: " in line)
            for setting, place in zip(("web", "metrics-listen"), places):
                self.assertIn(f"{setting}: {place}: Address already in use", errors)
            refused = self.colloc("web", code=None)
            self.assertIn("Address already in use", refused.stderr)
        self.assertIn(f"http://{places[0]}/login", self.colloc("web").stdout)
        self.wait_log(f"metrics for Prometheus are at http://{places[1]}/")


if __name__ == "__main__":
    unittest.main()
