# SPDX-License-Identifier: Apache-2.0
"""colloc's commands on another machine than the controller's: requests that a real munge signs, and
all that is refused: other keys, what is repeated, altered or late, and no munge. The controller's
web page, and agents with a key instead of munge."""

import hashlib
import http.client
import itertools
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import threading
import time
import unittest
import urllib.parse

import test_web_page
from daemon_case import BUILD, LIMIT_S, program, read, until

from colloc_slurm import loopback

CONTROLLER = os.path.abspath(os.path.join(BUILD, "src/slurm/colloc-slurm"))
ADA, BOB = "daemon", "games"  # accounts that every Debian has
PATH = "/v1/info"
# A connection without traffic ends after it (LOGIN_TIMEOUT_S, UNPROVEN_MAX_US), and libmunge gives
# a munged that does not answer up.
IDLE_S = 10
EMULATOR = os.path.dirname(program("emulator"))


def why_not():
    return "jobs of several users need root" if os.geteuid() else loopback.why_not()


class Browser:
    """A session of the web page, begun by the address that `colloc web` prints."""

    def __init__(self, url, is_good=True):
        self.at = urllib.parse.urlsplit(url)
        self.session = ""
        with self.request("POST", f"{self.at.path}?{self.at.query}") as reply:
            if is_good:
                self.session = json.loads(reply.read())["session"]

    def request(self, method, path):
        connection = http.client.HTTPConnection(self.at.hostname, self.at.port, timeout=LIMIT_S)
        headers = {"Colloc-Session": self.session, "Connection": "close"}
        connection.request(method, path, headers=headers)
        return connection.getresponse()

    def get(self, path, method="GET"):
        with self.request(method, path) as reply:
            return reply.status, reply.read().decode()

    def events(self):
        """Each event of the stream: its name and its data."""
        with self.request("GET", "/v1/events") as reply:
            while line := reply.readline().decode():
                name = line.removeprefix("event: ").strip()
                yield name, json.loads(reply.readline().decode().removeprefix("data: "))
                reply.readline()


class Between:
    """Stands between a client and the controller, and alters what passes."""

    def __init__(self, port, request=None, answer=None):
        """At the controller's port, as a request names that, of another address."""
        self.target, self.request, self.answer = port, request, answer
        self.listener = socket.create_server(("127.0.0.9", port))
        self.address = f"127.0.0.9:{port}"
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        client, _ = self.listener.accept()
        self.listener.close()  # before the client's end: then the next one takes the port
        with client, socket.create_connection(("127.0.0.1", self.target), LIMIT_S) as controller:
            data = b""
            while b"\r\n\r\n" not in data:
                data += client.recv(65536)
            controller.sendall(data.replace(*self.request) if self.request else data)
            controller.shutdown(socket.SHUT_WR)
            data = b"".join(iter(lambda: controller.recv(65536), b""))
            client.sendall(data.replace(*self.answer) if self.answer else data)


@unittest.skipIf(why_not(), why_not())
class Login(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        settings = {"PrivateData": "jobs"}
        cls.slurm = loopback.Loopback(nodes=1, gpus=2, settings=settings)
        cls.enterClassContext(cls.slurm)
        (cls.port,) = loopback.free_ports(1)
        cls.address = f"127.0.0.1:{cls.port}"
        cls.munge = cls.slurm.path("munge/socket")
        cls.start_controller()
        cls.other_munge("own", key="munge/key")
        cls.jobs = {user: cls.sbatch(user) for user in (ADA, BOB)}
        for job in cls.jobs.values():
            cls.slurm.wait_job(job, "RUNNING")

    @classmethod
    def start_controller(cls):
        cls.slurm.spawn(
            CONTROLLER,
            "--intake-partition=gpu",
            "--run-partition=gpu-run",
            f"--state-dir={cls.slurm.path('run/colloc')}",
            f"--socket={cls.slurm.path('run/api/socket')}",
            f"--login-listen={cls.address}",
            f"--munge-socket={cls.munge}",
            "--wake-file=none",
            "--poll=200ms",
            log="controller",
        )

    def start_second(self, name, *settings):
        """One more controller, of partitions that are not there: it changes no job."""
        return self.slurm.spawn(
            CONTROLLER,
            "--intake-partition=none-1",
            "--run-partition=none-2",
            f"--state-dir={self.slurm.path('run/' + name)}",
            "--socket=none",
            "--wake-file=none",
            *settings,
            log=name,
        )

    @classmethod
    def other_munge(cls, name, key):
        """A munged as of another machine; its socket."""
        path = cls.slurm.path(f"munge-{name}")
        os.mkdir(path)
        process = cls.slurm.spawn(
            "munged",
            "--foreground",
            "--force",
            "--num-threads=2",
            f"--key-file={cls.slurm.path(key)}",
            f"--socket={path}/socket",
            f"--pid-file={path}/pid",
            f"--log-file={path}/log",
            f"--seed-file={path}/seed",
            log=f"munged-{name}",
        )
        until(lambda: os.path.exists(f"{path}/socket"), "munged's socket")
        return process, f"{path}/socket"

    @classmethod
    def sbatch(cls, user):
        script = "#!/bin/sh\n#COLLOC --memory=10GiB\nexec sleep 1000\n"
        return cls.slurm.sbatch(script, "--partition=gpu", f"--job-name=of-{user}", user=user)

    def colloc(self, *words, munge="munge-own/socket", user=None, status=0, controller=None):
        """What the command prints to this user on a login node: one whose folder of slurm.conf has
        a colloc.conf."""
        etc = self.slurm.path("login")
        os.makedirs(etc, exist_ok=True)
        with open(os.path.join(etc, "colloc.conf"), "w", encoding="utf-8") as file:
            file.write(f"Controller={self.address}\nMungeSocket={self.slurm.path(munge)}\n")
        command = [program("colloc"), *words, f"--controller={controller or self.address}"]
        if user:
            command[:0] = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        return self.run_command(command, etc, status)

    def run_command(self, command, etc, status):
        env = {**os.environ, "SLURM_CONF": os.path.join(etc, "slurm.conf")}
        done = subprocess.run(
            command,
            env={name: env[name] for name in env if not name.startswith("COLLOC_S")},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
            cwd="/",
        )
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout if status == 0 else done.stderr

    # ---- what is answered ----

    def wait_running(self, user):
        """What `colloc queue` prints to the user, once the controller knows that the job runs."""
        line = rf"(?m)^ *{self.jobs[user]} +of-{user} +{user} +RUNNING"

        def list_running():
            listed = self.colloc("queue", user=user)
            return listed if re.search(line, listed) else None

        return until(list_running, "the job's state")

    def test_users_see_what_munge_says_they_may(self):
        listed = self.wait_running(ADA)
        self.assertNotIn("of-games", listed)
        self.wait_running(BOB)
        everything = self.colloc("queue")
        self.assertIn("of-daemon", everything)
        self.assertIn("of-games", everything)
        self.assertIn("no job", self.colloc("show", self.jobs[BOB], user=ADA, status=1))
        shown = json.loads(self.colloc("show", self.jobs[BOB], "--json", user=BOB))
        self.assertEqual((shown["user"], shown["state"]), (BOB, "RUNNING"))
        gpus = json.loads(self.colloc("gpus", "--json", user=ADA))["gpus"]
        self.assertEqual([gpu["index"] for gpu in gpus], ["n0:0", "n0:1"])
        self.assertRegex(self.colloc("info", user=ADA), r"slurm +yes")
        self.assertIn("scancel", self.colloc("cancel", self.jobs[ADA], user=ADA, status=1))

    def test_found_by_its_file(self):
        """Where no daemon of this machine is found: without its /run."""
        hidden = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /run && exec "$@"', "sh"]
        if subprocess.run([*hidden, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("/run cannot be hidden here")
        self.colloc("info")  # writes the file
        words = [*hidden, program("colloc"), "info"]
        self.assertRegex(self.run_command(words, self.slurm.path("login"), 0), r"slurm +yes")

    @unittest.skipUnless(shutil.which("tmux"), "needs tmux")
    def test_top(self):
        server = ["tmux", "-f", "/dev/null", "-S", self.slurm.path("work/tmux")]
        status = self.slurm.path("work/top-status")
        self.colloc("info")  # writes the file of the login node
        top = f"{program('colloc')} top --interval=100ms --controller={self.address}"
        shell = f"SLURM_CONF={self.slurm.path('login/slurm.conf')} {top}; echo $? >{status}; cat"

        def tmux(*words):
            done = subprocess.run(
                [*server, *words],
                env={**os.environ, "TERM": "xterm"},
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
                check=True,
            )
            return done.stdout

        tmux("-u", "new-session", "-d", "-x", "110", "-y", "30", shell)
        self.addCleanup(tmux, "kill-server")
        for part in ("of-games", r"(?m)^ *n0:0 ", rf"{self.jobs[ADA]} +of-daemon +daemon +RUNNING"):
            until(lambda: re.search(part, tmux("capture-pane", "-p")), f"'{part}' on the screen")
        tmux("send-keys", "Enter")  # the page of the job that is selected
        until(lambda: "10.0 GiB" in tmux("capture-pane", "-p"), "a job's page")
        tmux("send-keys", "Escape")
        until(lambda: "of-games" in tmux("capture-pane", "-p"), "the list again")
        tmux("send-keys", "q")
        until(lambda: os.path.exists(status) and read(status), "its end")
        self.assertEqual(read(status), "0\n")

    # ---- the page ----

    def colloc_web(self, *words, user="root"):
        """What the command prints to this user on the controller's machine."""
        command = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        command += [program("colloc"), "web", f"--socket={self.slurm.path('run/api/socket')}"]
        return self.run_command([*command, *words], self.slurm.path("login"), 0)

    def test_no_login_goes_over_the_network(self):
        words = self.colloc("web", user=ADA, status=1)
        self.assertIn("run `colloc web` there", words)
        status, text = self.send(
            self.credential(method="POST", path="/v1/web"), method="POST", path="/v1/web"
        )
        self.assertEqual((status, "token" in text), (409, False), text)

    def test_web(self):
        said = self.colloc_web(user=ADA)
        url = said.split()[0]
        self.assertIn("good once", said)
        browser = Browser(url)
        self.assertEqual(browser.get("/page.js")[0], 200)
        tasks = json.loads(browser.get("/v1/tasks?page=300")[1])["tasks"]
        self.assertEqual([task["name"] for task in tasks], ["of-daemon"])  # PrivateData
        gpus = json.loads(browser.get("/v1/gpus")[1])["gpus"]
        self.assertEqual([gpu["index"] for gpu in gpus], ["n0:0", "n0:1"])
        self.assertEqual([gpu["mem_used_mib"] for gpu in gpus], [None, None])
        self.assertTrue(json.loads(browser.get("/v1/info")[1])["slurm"])
        for path in ("/v1/gpus/all/series", f"/v1/tasks/{self.jobs[ADA]}/series"):
            status, text = browser.get(path)
            self.assertEqual((status, "does not record" in text), (404, True), text)
        self.assertEqual(next(browser.events()), ("reset", {"all": True}))
        self.assertEqual(browser.get("/v1/web", method="POST")[0], 404)  # it changes nothing
        self.assertEqual(Browser(url, is_good=False).get("/v1/gpus")[0], 401)
        # A stream cannot be signed.
        status, text = self.send(self.credential(path="/v1/events"), path="/v1/events")
        self.assertEqual((status, "other machines" in text), (409, True), text)

    def test_ended_jobs_are_named_at_once(self):
        browser = Browser(self.colloc_web("--print-url", user=ADA).strip())
        mine, other = (int(self.sbatch(user)) for user in (ADA, BOB))
        until(
            lambda: mine in [t["id"] for t in json.loads(browser.get("/v1/tasks")[1])["tasks"]],
            "the job",
        )
        events = browser.events()
        self.assertEqual(next(events), ("reset", {"all": True}))
        self.slurm.run("scancel", str(other), str(mine))
        some = itertools.islice(events, 40)  # two minutes of "reset"
        ended = next((data for name, data in some if name == "ended"), None)
        self.assertEqual(ended, {"ids": [mine]})  # PrivateData
        events.close()
        tasks = json.loads(browser.get("/v1/tasks")[1])["tasks"]
        self.assertNotIn(mine, [task["id"] for task in tasks])

    @unittest.skipUnless(os.environ.get("COLLOC_SOAK"), "a part of make soak")
    def test_page_in_a_browser(self):
        if test_web_page.why_not():
            self.skipTest(test_web_page.why_not())
        job = self.sbatch(ADA)
        url = self.colloc_web("--print-url").strip()
        page = os.path.join(os.path.dirname(__file__), "web_page.mjs")
        given = json.dumps({"url": url, "task": int(job)})
        programs = [test_web_page.playwright(), test_web_page.chromium()]
        process = subprocess.Popen(
            ["node", page, *programs, "slurm", given],
            env={**os.environ, "HOME": self.slurm.path("work")},
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.addCleanup(process.kill)
        line = process.stdout.readline()
        self.assertEqual(line, "shown\n", "" if line else process.stderr.read()[-3000:])
        self.slurm.run("scancel", job)
        _, words = process.communicate("\n", timeout=LIMIT_S)
        self.assertEqual(process.returncode, 0, words[-3000:])

    # ---- the agents' key ----

    def start_agent(self, name, port, key_file):
        emulated = self.slurm.path(f"work/gpus-{name}")
        self.slurm.run(program("emulator"), "create", "--gpus", "2xA100-80GB", emulated)
        return self.slurm.spawn(
            program("collocd"),
            "--node",
            f"--controller=127.0.0.1:{port}",
            "--node-name=n0",
            "--node-auth=tls",
            f"--node-key-file={key_file}",
            f"--munge-socket={self.slurm.path('no-munge')}",
            f"--node-socket={self.slurm.path(f'run/{name}.sock')}",
            f"--state-dir={self.slurm.path(f'run/state-{name}')}",
            log=name,
            COLLOC_EMULATOR=emulated,
            LD_LIBRARY_PATH=EMULATOR,
        )

    def test_agents_with_a_key(self):
        """The link of the agents within TLS, without munge."""
        for name in ("node-key", "node-key-other"):
            self.slurm.write(name, os.urandom(32).hex() + "\n", mode=0o400)
        key, (port,) = self.slurm.path("node-key"), loopback.free_ports(1)
        settings = [f"--listen=127.0.0.1:{port}", "--node-auth=tls", f"--node-key-file={key}"]
        controller = self.start_second("controller-key", *settings)
        other = self.start_agent("agent-other", port, self.slurm.path("node-key-other"))
        line = "node n0 has another key: copy the file of node-key-file from this machine"
        until(lambda: line in read(controller.log), "the refusal of another key")
        line = "it has another key than this node: copy the file of node-key-file"
        until(lambda: line in read(other.log), "the other agent's log")
        agent = self.start_agent("agent-key", port, key)
        until(lambda: "accepts the reports of node n0" in read(agent.log), "the agent's reports")
        line = "node n0: its agent reports from 127.0.0.1"
        until(lambda: line in read(controller.log), "the controller's log")
        self.assertNotIn("accepts", read(other.log))
        agent.kill()
        until(lambda: "its agent has gone" in read(controller.log), "the agent's end")
        for process in (other, controller):
            process.kill()

    def test_agent_of_munge_and_controller_of_tls(self):
        """Both logs say which setting differs."""
        self.slurm.write("node-key", os.urandom(32).hex() + "\n", mode=0o400)
        key, (port,) = self.slurm.path("node-key"), loopback.free_ports(1)
        controller = self.start_second("controller-munge", f"--listen=127.0.0.1:{port}")
        agent = self.start_agent("agent-tls", port, key)
        line = "it speaks TLS: is node-auth munge on both machines?"
        until(lambda: line in read(controller.log), "the controller's log")
        line = "during the handshake of TLS: is node-auth tls there, too?"
        until(lambda: line in read(agent.log), "the agent's log")
        for process in (agent, controller):
            process.kill()

    def test_bad_key_files(self):
        for text, mode, auth, said in (
            ("x" * 64, 0o644, "tls", "must be a file that other users cannot read"),
            ("short", 0o400, "tls", "must have at least 32 characters"),
            ("x" * 64, 0o400, "munge", "node-auth is munge; set node-auth to tls"),
        ):
            self.slurm.write("node-key-bad", text, mode=mode)
            settings = [
                f"--node-auth={auth}",
                f"--node-key-file={self.slurm.path('node-key-bad')}",
                "--listen=127.0.0.1:0",
            ]
            process = self.start_second("controller-bad", *settings)
            process.wait()
            self.assertIn(said, read(process.log))
            check = [program("collocd"), "--node", "--check", "--controller=ctl1:7490"]
            done = subprocess.run([*check, *settings[:2]], text=True, capture_output=True)
            self.assertEqual(done.returncode, 1)
            self.assertIn(said, done.stderr)
            check = [CONTROLLER, "--check", *settings]
            done = subprocess.run(check, text=True, capture_output=True)
            self.assertEqual(done.returncode, 1)
            self.assertIn(said, done.stderr)
            os.unlink(self.slurm.path("node-key-bad"))

    # ---- what is refused ----

    def test_another_key(self):
        self.slurm.write("munge/other-key", os.urandom(128).hex(), mode=0o400)
        self.other_munge("other", key="munge/other-key")
        words = self.colloc("gpus", munge="munge-other/socket", status=1)
        self.assertIn("refuses the credential: Invalid credential: is the munge key", words)

    def test_no_munged_here(self):
        words = self.colloc("gpus", munge="munge-none/socket", status=3)
        self.assertIn("is munged running?", words)

    def test_no_munged_there(self):
        stopped, stopped_socket = self.other_munge("stopped", key="munge/key")
        (port,) = loopback.free_ports(1)
        settings = [f"--login-listen=127.0.0.1:{port}", f"--munge-socket={stopped_socket}"]
        self.start_second("controller-second", *settings)
        address = f"127.0.0.1:{port}"
        until(lambda: loopback_answers(port), "the second controller")
        self.colloc("info", controller=address)
        stopped.kill()
        words = self.colloc("info", controller=address, status=1)
        self.assertRegex(words, "on the controller's machine: munge .*: is munged running")

    def test_no_controller_there(self):
        words = self.colloc("gpus", controller="127.0.0.1:1", status=3)
        self.assertIn("cannot reach colloc-slurm at 127.0.0.1:1", words)
        self.assertIn("not a host and a port", self.colloc("gpus", controller="x/y:1", status=3))

    def test_altered_on_the_way(self):
        between = Between(self.port, request=(b"/v1/gpus", b"/v1/info"))
        words = self.colloc("gpus", controller=between.address, status=1)
        self.assertIn("altered on its way", words)
        between = Between(self.port, answer=(b'"n0:1"', b'"n0:7"'))
        words = self.colloc("gpus", controller=between.address, status=3)
        self.assertIn("not signed by colloc-slurm, or was altered", words)
        between = Between(self.port, answer=(b"HTTP/1.1 200", b"HTTP/1.1 203"))
        self.assertIn("not signed", self.colloc("gpus", controller=between.address, status=3))

    # ---- requests as a program of another make would send them ----

    def credential(self, *options, path=PATH, user=None, **members):
        """As colloc makes it for this user, but by munge(1)."""
        text = {
            "v": 1,
            "for": "colloc-slurm",
            "to": self.address,
            "method": "GET",
            "path": path,
            "body": hashlib.sha256(b"").hexdigest(),
            "key": "5f" * 32,
            **members,
        }
        command = ["munge", f"--socket={self.munge}", f"--string={json.dumps(text)}", *options]
        if user:
            command[:0] = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=True,
            timeout=LIMIT_S,
        )
        return "Munge " + done.stdout.strip()

    def send(
        self, authorization, method="GET", path=PATH, body=None, source="127.0.0.1", port=None
    ):
        connection = http.client.HTTPConnection(
            "127.0.0.1", port or self.port, timeout=LIMIT_S, source_address=(source, 0)
        )
        headers = {"Authorization": authorization} if authorization else {}
        connection.request(method, path, body=body, headers=headers)
        reply = connection.getresponse()
        text = reply.read().decode()
        connection.close()
        return reply.status, text

    def test_repeated(self):
        made = self.credential()
        status, text = self.send(made)
        self.assertEqual(status, 200, text)
        status, text = self.send(made)
        self.assertEqual(status, 401)
        self.assertIn("Replayed credential: each request is accepted once", text)

    def test_late(self):
        made, since = self.credential("--ttl=1"), time.time()
        until(lambda: time.time() > since + 2.5, "the end of a second's validity")
        status, text = self.send(made)
        self.assertEqual(status, 401)
        self.assertIn("Expired credential: do the clocks of the two machines differ?", text)

    def test_a_port_that_a_user_has_taken(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            login = [f"--login-listen=127.0.0.1:{port}", f"--munge-socket={self.munge}"]
            second = self.start_second("controller-taken", *login)
            line = f"login-listen: 127.0.0.1:{port}: Address already in use; it is tried again"
            until(lambda: line in read(second.log), "the error in the log")
        until(lambda: "login-listen: requests of other" in read(second.log), "the next try")
        self.assertEqual(self.send(self.credential(to=f"x:{port}"), port=port)[0], 200)
        second.kill()

    def test_another_controller(self):
        """Two controllers with one munge key: each accepts only what is meant for it."""
        (port,) = loopback.free_ports(1)
        login = [f"--login-listen=127.0.0.1:{port}", f"--munge-socket={self.munge}"]
        second = self.start_second("controller-port", *login)
        until(lambda: loopback_answers(port), "the second controller")
        status, text = self.send(self.credential(), port=port)
        self.assertEqual((status, f"but this one has port {port}" in text), (401, True), text)
        self.assertEqual(self.send(self.credential(to=f"x:{port}"), port=port)[0], 200)
        second.kill()
        named = self.start_second("controller-name", *login, f"--login-name=ctl2:{port}")
        until(lambda: loopback_answers(port), "the controller with a name")
        words = self.colloc("info", controller=f"127.0.0.1:{port}", status=1)
        self.assertIn(f"but this is ctl2:{port}: name it so", words)
        self.assertEqual(self.send(self.credential(to=f"CTL2:{port}"), port=port)[0], 200)
        named.kill()

    def test_not_the_signed_request(self):
        digest = hashlib.sha256(b"{}").hexdigest()
        for given in (
            dict(path="/v1/info?user=games"),
            dict(path="/v1/info", method="POST"),
            dict(body=digest),
        ):
            status, text = self.send(self.credential(**given))
            self.assertEqual((status, "altered" in text), (401, True), text)
        # A body that was put under a signed request.
        made = self.credential(method="POST", path="/v1/tasks")
        status, text = self.send(made, method="POST", path="/v1/tasks", body='{"script": "x"}')
        self.assertEqual((status, "altered" in text), (401, True), text)
        made = self.credential(method="POST", path="/v1/tasks", body=digest)
        status, text = self.send(made, method="POST", path="/v1/tasks", body="{}")
        self.assertEqual((status, "sbatch" in text), (409, True), text)

    def hold(self, n, source, port=None):
        """Connections that stay open."""
        self.held_since = self.held_since or time.monotonic()
        address = ("127.0.0.1", port or self.port)
        held = [socket.create_connection(address, LIMIT_S, (source, 0)) for _ in range(n)]
        self.held += held
        return held

    def in_time(self, attempt):
        """Calls attempt(number). On a busy machine connections that are held may end for being idle
        before its end: the failure of such an attempt says nothing, and the next one is made."""
        for number in range(10):
            self.held, self.held_since = [], None
            try:
                return attempt(number)
            except AssertionError:
                if not self.held_since or time.monotonic() - self.held_since < IDLE_S:
                    raise
            finally:
                for connection in self.held:
                    connection.close()
                until(lambda: not count_connections(self.port), "the end of all connections")
        return self.fail(f"no attempt held its connections for less than {IDLE_S} s")

    def test_machines_do_not_take_all_places(self):
        """Two machines with connections that send nothing: each new one costs their oldest."""

        def attempt(_number):
            held = self.hold(280, "127.0.0.1") + self.hold(280, "127.0.0.2")
            until(lambda: sum(map(is_ended, held)) >= 560 - 256, "the end of those too many")
            self.assertTrue(is_ended(held[0]) and is_ended(held[280]))
            self.assertFalse(is_ended(held[-1]))
            for source in ("127.0.0.1", "127.0.0.2", "127.0.0.3"):
                self.assertEqual(self.send(self.credential(), source=source)[0], 200)

        self.in_time(attempt)

    def test_one_user_does_not_take_all_places(self):
        """A user may have 32 connections, which count for no machine."""

        def attempt(_number):
            credentials = [self.credential(user=ADA) for _ in range(33)]
            bobs = self.credential(user=BOB)
            held = self.hold(32, "127.0.0.4")
            for one, credential in zip(held, credentials):
                one.sendall(request_head(credential))
            for one in held:
                self.assertIn(b" 200 ", one.recv(65536))
            status, text = self.send(credentials[32], source="127.0.0.4")
            self.assertEqual((status, "too many connections" in text), (503, True), text)
            self.assertEqual(self.send(bobs, source="127.0.0.4")[0], 200)
            unproven = self.hold(280, "127.0.0.4")
            until(lambda: sum(map(is_ended, unproven)) >= 280 - 256, "the end of some")
            self.assertNotIn(True, map(is_ended, held))

        self.in_time(attempt)

    def test_requests_that_munged_does_not_judge_take_no_further_places(self):
        """munged is stopped: a connection beyond the limit ends although its request is judged."""
        self.in_time(self.ask_a_stopped_munged)

    def ask_a_stopped_munged(self, number):
        munged, path = self.other_munge(f"stuck-{number}", key="munge/key")
        (port,) = loopback.free_ports(1)
        listen = (f"--login-listen=127.0.0.1:{port}", f"--munge-socket={path}")
        controller = self.start_second(f"controller-stuck-{number}", *listen)
        until(lambda: loopback_answers(port), "the second controller")
        munged.kill(signal.SIGSTOP)
        self.addCleanup(munged.kill, signal.SIGCONT)
        before = count_files(controller.pid)
        crowd = self.hold(250, "127.0.0.6", port)
        head = request_head(self.credential())
        for one in crowd:
            one.sendall(head)
        until(lambda: not count_unread(port), "the requests are judged")
        self.hold(50, "127.0.0.7", port)
        until(lambda: not count_unread(port), "their places")
        until(lambda: count_files(controller.pid) <= before + 256, "the end of those beyond it")
        self.assertFalse(is_ended(crowd[0]), "before libmunge has given munged up")
        munged.kill(signal.SIGCONT)
        credential = self.credential(to=f"127.0.0.1:{port}")
        self.assertEqual(self.send(credential, source="127.0.0.8", port=port)[0], 200)

    @unittest.skipUnless(os.environ.get("COLLOC_SOAK"), "takes ten seconds")
    def test_a_byte_now_and_then_keeps_no_place(self):
        slow = socket.create_connection(("127.0.0.1", self.port), LIMIT_S, ("127.0.0.5", 0))
        self.addCleanup(slow.close)
        since = time.monotonic()

        def is_closed_after_a_byte():
            try:
                slow.sendall(b"G")
            except OSError:
                return True
            return is_ended(slow)

        until(is_closed_after_a_byte, "the end of a connection without a request")
        self.assertGreater(time.monotonic() - since, 8)

    def test_no_request_at_all(self):
        for authorization in (
            None,
            "Basic eA==",
            "Munge ",
            "Munge MUNGE:AwQ:",
            "Munge " + "x" * 9000,
            self.credential("--restrict-uid=1"),
            self.credential(v=2),
            self.credential(to="127.0.0.1"),
            self.credential(to=None),
            self.credential(key="5f"),
            self.credential(**{"for": "slurmctld"}),
        ):
            status, text = self.send(authorization)
            self.assertEqual(status, 401, (authorization, text))
        self.assertEqual(self.send(self.credential())[0], 200)


def count_files(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def request_head(credential):
    return f"GET {PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: {credential}\r\n\r\n".encode()


def sockets_at(port):
    """The fields of the server's sockets at the port (proc_net_tcp(5))."""
    with open("/proc/net/tcp", encoding="ascii") as file:
        fields = [line.split() for line in file][1:]
    return [one for one in fields if int(one[1].split(":")[1], 16) == port]


def count_unread(port):
    """The bytes that the server has not read yet, and the connections that it has not accepted."""
    return sum(int(one[4].split(":")[1], 16) for one in sockets_at(port))


def count_connections(port):
    """Those that the server has not closed yet."""
    established, close_wait = "01", "08"
    return sum(one[3] in (established, close_wait) for one in sockets_at(port))


def is_ended(connection):
    """Has the controller closed it? It has sent nothing that was not read."""
    return bool(select.select([connection], [], [], 0)[0])


def loopback_answers(port):
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


if __name__ == "__main__":
    unittest.main(verbosity=2)
