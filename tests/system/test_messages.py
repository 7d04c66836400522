# SPDX-License-Identifier: Apache-2.0
"""Messages by webhook and mail to real servers on loopback: contents, retries, kill -9, secrets."""

import email.header
import http.server
import json
import mailbox
import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import threading
import unittest

from daemon_case import LIMIT_S, DaemonCase, proc, processes_with, program, uid_of, until
from colloc_slurm.loopback import free_ports  # found by daemon_case

SECRET = "s3cr3t-t0ken"
MAIL_PYTHON = "/usr/bin/python3"  # of Debian's package python3-aiosmtpd
MAILDIR = ("tmp", "new", "cur")


class Receiver(http.server.ThreadingHTTPServer):
    """A webhook: what it got, and what it answers next (then 200 for ever)."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.got, self.news, self.answers = [], threading.Condition(), []
        self.hangs = threading.Event()  # set: requests are not answered
        self.goes_on = threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def url(self, path=f"/hook?key={SECRET}"):
        return f"http://127.0.0.1:{self.server_port}{path}"

    def wait(self, count):
        with self.news:
            if not self.news.wait_for(lambda: len(self.got) >= count, LIMIT_S):
                raise AssertionError(f"{len(self.got)} messages, not {count}: {self.got}")
        return self.got

    def handle_error(self, request, client_address):
        pass  # the daemon's helper was killed


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        server = self.server
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with server.news:
            answer = server.answers.pop(0) if server.answers else 200
            server.got.append((self.path, dict(self.headers), json.loads(body)))
            server.news.notify_all()
        if server.hangs.is_set():
            server.goes_on.wait(LIMIT_S)
        self.send_response(answer)
        if answer == 302:
            self.send_header("Location", server.url("/elsewhere"))
        self.end_headers()

    def log_message(self, *_):
        pass


class MessageCase(DaemonCase):
    gpus = "1xA100-40GB"
    settings = {"message-retry": "50ms"}

    def setUp(self):
        self.receiver = Receiver()
        self.addCleanup(self.receiver.server_close)
        self.addCleanup(self.receiver.shutdown)
        self.addCleanup(self.receiver.goes_on.set)
        super().setUp()

    def command(self, **settings):
        helper = os.path.join(os.path.dirname(program("shim")), "..", "message", "colloc-message")
        return super().command(**{"messenger": os.path.realpath(helper), **settings})

    def submit_with(self, script="true", notify="all", to=None, **members):
        return self.submit(script, notify=notify, notify_to=to or self.receiver.url(), **members)

    def queued(self):
        with sqlite3.connect(os.path.join(self.state, "messages.db"), timeout=LIMIT_S) as db:
            return db.execute("SELECT count(*) FROM messages").fetchone()[0]

    def helpers(self):
        return [
            pid
            for pid in processes_with(self.folder)
            if proc(pid, "comm").strip() == "colloc-message"
        ]

    def assert_no_secret(self):
        self.assertNotIn(SECRET, "\n".join(self.log))
        self.assertNotIn(SECRET, json.dumps(self.get("/v1/info")))
        self.assertNotIn(SECRET, json.dumps(self.get("/v1/tasks?state=all")))


class Webhooks(MessageCase):
    def test_what_a_task_goes_through(self):
        task = self.submit_with("exit 3", name='a "b" ü', command="python train.py")
        self.wait(task)
        got = self.receiver.wait(2)
        self.assertEqual([body["event"] for _, _, body in got], ["start", "fail"])
        path, headers, body = got[1]
        self.assertEqual(path, f"/hook?key={SECRET}")
        self.assertEqual(headers["Content-Type"], "application/json")
        self.assertTrue(headers["User-Agent"].startswith("colloc/"))
        self.assertEqual(body["task"]["id"], task)
        self.assertEqual(body["task"]["state"], "FAILED")
        self.assertEqual(body["task"]["command"], "python train.py")
        self.assertRegex(
            body["text"], rf'^task {task} a "b" ü on \S+: FAILED after .* \(NonZeroExitCode\)$'
        )
        self.assertIn("starts on GPU 0", got[0][2]["text"])
        # Only what was asked for, and Slack's form.
        self.wait(self.submit_with(notify="fail"))
        self.wait(self.submit_with(notify="none"))
        slack = self.receiver.url("/slack")
        done = self.submit_with(notify="end", to="slack+" + slack)
        self.wait(done)
        self.assertEqual(set(self.receiver.wait(3)[2][2]), {"text"})
        self.assertIn(f"task {done} ", self.receiver.got[2][2]["text"])
        until(lambda: self.queued() == 0, "an empty queue")
        self.assertEqual(len(self.receiver.got), 3)
        # The owner sees where to; other users and logs do not.
        self.assertIn(SECRET, self.colloc("show", str(task)).stdout)
        self.assert_no_secret()

    def test_a_task_that_does_not_use_its_gpu(self):
        self.restart(unused_after="500ms")
        task = self.submit_with("exec sleep 1000", notify="idle")
        body = self.receiver.wait(1)[0][2]
        self.assertEqual((body["event"], body["task"]["id"]), ("idle", task))
        self.assertRegex(body["text"], r"has not used its GPUs for \d:\d\d:\d\d")
        self.assertIn("has not used its GPUs", self.colloc("show", str(task)).stdout)
        self.act("cancel", task)

    def test_a_crash_and_the_next_attempt(self):
        first = self.train(30000, 1e6, memory_mib=2000)
        self.wait_gpu(lambda gpu: gpu["tasks"] and gpu["tasks"][0]["settled"])
        second = self.train(
            20000,
            10,
            memory_mib=2000,
            preload="no",
            notify="requeue",
            notify_to=self.receiver.url(),
        )
        body = self.receiver.wait(1)[0][2]
        self.assertEqual((body["event"], body["task"]["id"]), ("requeue", second))
        self.assertIn("is run again", body["text"])
        self.act("cancel", first)
        self.wait(second, "COMPLETED")

    def test_tried_again_and_given_up(self):
        self.receiver.answers = [500, 429, 503]
        self.wait(self.submit_with(notify="end"))
        got = self.receiver.wait(4)
        self.assertEqual(len({headers["Colloc-Message-Id"] for _, headers, _ in got}), 1)
        until(lambda: self.queued() == 0, "the delivery")
        for answer in (404, 302):
            before = len(self.receiver.got)
            self.receiver.answers = [answer]
            self.wait(self.submit_with(notify="end"))
            self.wait_log(f"webhook about task .* answered {answer}; given up")
            until(lambda: self.queued() == 0, "the end of the message")
            self.assertEqual(len(self.receiver.got), before + 1)
        self.assertNotEqual(
            self.receiver.got[-1][1]["Colloc-Message-Id"], got[0][1]["Colloc-Message-Id"]
        )
        # Where no server listens, the message waits; the bound on attempts ends it.
        self.restart(message_retry="1ms")
        gone = self.submit_with(notify="end", to=f"http://127.0.0.1:{free_ports(1)[0]}/{SECRET}")
        self.wait(gone)
        self.wait_log(f"webhook about task {gone} .*; given up")
        until(lambda: self.queued() == 0, "the end of the attempts")
        self.assert_no_secret()

    def kill_within_the_delivery(self):
        self.process.kill()
        self.process.wait(LIMIT_S)
        self.receiver.hangs.clear()
        self.receiver.goes_on.set()  # the helper, which goes on, has the log's end
        self.stop(signal.SIGKILL)
        self.receiver.goes_on.clear()

    def test_kill_9_loses_nothing(self):
        self.receiver.hangs.set()
        task = self.submit_with(notify="end")
        self.wait(task)
        self.receiver.wait(1)
        self.kill_within_the_delivery()
        # An event whose messages were not made yet: its rows as a kill before that leaves them.
        with sqlite3.connect(os.path.join(self.state, "messages.db")) as db:
            cursor = db.execute("SELECT seq FROM cursor").fetchone()[0]
            db.execute("DELETE FROM messages")
            db.execute("UPDATE cursor SET seq = ?", (cursor - 2,))
        self.start()
        got = self.receiver.wait(2)
        self.assertEqual([body["task"]["id"] for _, _, body in got], [task, task])
        until(lambda: self.queued() == 0, "the delivery")
        # A message that stays in the queue keeps its id over a kill.
        self.receiver.hangs.set()
        self.wait(self.submit_with(notify="end"))
        self.receiver.wait(3)
        self.kill_within_the_delivery()
        self.start()
        got = self.receiver.wait(4)
        self.assertEqual(got[2][1]["Colloc-Message-Id"], got[3][1]["Colloc-Message-Id"])
        until(lambda: self.queued() == 0, "the delivery")
        self.restart()
        self.wait(self.submit_with(notify="end"))
        self.assertEqual(len(self.receiver.wait(5)), 5)

    def test_a_server_that_hangs(self):
        self.receiver.hangs.set()
        for _ in range(6):
            self.wait(self.submit_with(notify="end"))
        self.receiver.wait(1)
        self.assertLessEqual(len(self.helpers()), 1, "one at a time for a user")
        self.wait(self.submit(), "COMPLETED")
        until(lambda: self.queued() == 6, "a message of each task")
        if os.geteuid() == 0:
            os.chmod(self.work, 0o777)
            prefix = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
            self.write("task.sh", "#!/bin/sh\ntrue\n")
            self.colloc(
                "submit",
                "task.sh",
                prefix=prefix,
                COLLOC_NOTIFY="end",
                COLLOC_NOTIFY_TO=self.receiver.url("/other"),
            )
            owners = lambda: {uid_of(pid) for pid in self.helpers()}
            until(lambda: 65534 in owners(), "a helper that runs as that user")
        self.receiver.hangs.clear()
        self.receiver.goes_on.set()
        until(lambda: self.queued() == 0, "all deliveries")

    def test_refusals(self):
        for members, message in (
            ({"notify": "sometimes"}, "start, end"),
            ({"notify": "end", "notify_to": f"ftp://{SECRET}"}, "https://"),
            ({"notify": "end", "notify_to": "http://a b"}, "URL"),
            ({"notify_to": "ada"}, "notify"),
            ({"notify": "end"}, "mail-server"),
            ({"notify": "end", "notify_to": "ada@example.org"}, "mail-server"),
        ):
            reply = self.refused(400, message, **members)
            self.assertNotIn(SECRET, reply.message)
        slurm = self.body(notify="end", environment={"COLLOC_SLURM_SCRIPT": "1"})
        reply = self.request("POST", "/v1/tasks", slurm)
        self.assertEqual(reply.status, 201, reply.data)
        self.assertIn("no mail is sent", reply.json["warnings"][0])
        self.assertNotIn("Notify", self.colloc("show", str(reply.json["id"])).stdout)
        status, text = self.run_daemon(mail_server="localhost")
        self.assertNotEqual(status, 0)
        self.assertIn("smtp://", text)


def why_no_mail():
    if not os.path.exists(MAIL_PYTHON):
        return f"no {MAIL_PYTHON} here"
    found = subprocess.run(
        [MAIL_PYTHON, "-c", "import aiosmtpd"], capture_output=True, check=False
    ).returncode
    return None if found == 0 else "no aiosmtpd here (Debian's package python3-aiosmtpd)"


class Gpus(MessageCase):
    """A GPU that fails: a message to the administrator and to the users of its tasks."""

    def test_lost_and_well_again(self):
        administrator = Receiver()
        self.addCleanup(administrator.server_close)
        self.addCleanup(administrator.shutdown)
        self.restart(alerts_to=administrator.url())
        task = self.submit_with("exec sleep 1000", notify="gpu")
        silent = self.submit("exec sleep 1000", notify="end", notify_to=self.receiver.url())
        self.wait_state(task, "RUNNING")
        self.wait_state(silent, "RUNNING")
        self.emulator("set", "0", "lost=on")
        alert = administrator.wait(1)[0][2]
        self.assertEqual((alert["event"], alert["task"]), ("gpu", None))
        self.assertEqual(alert["gpu"]["health"], "lost")
        self.assertRegex(alert["text"], r"^GPU 0 \(.*A100.*\) on \S+: lost: ")
        own = self.receiver.wait(1)[0][2]
        self.assertEqual((own["event"], own["task"]["id"]), ("gpu", task))
        self.assertIn("its GPU 0", own["text"])
        self.emulator("set", "0", "lost=off")
        well = administrator.wait(2)[1][2]
        self.assertEqual(well["gpu"]["health"], "ok")
        self.assertIn("nothing is wrong with it any more", well["text"])
        self.assertEqual(len(self.receiver.got), 1, "not to users")
        self.assertNotIn(SECRET, "\n".join(self.log))

    def test_refusals(self):
        for value, message in (("ftp://x", "mail address"), ("a b", "mail address")):
            status, text = self.run_daemon(alerts_to=value)
            self.assertNotEqual(status, 0)
            self.assertIn(message, text)


@unittest.skipIf(why_no_mail(), why_no_mail())
class Mail(MessageCase):
    def setUp(self):
        (self.port,) = free_ports(1)
        self.settings = {**self.settings, "mail-server": f"smtp://127.0.0.1:{self.port}"}
        super().setUp()
        self.box = os.path.join(self.folder, "mail")

    def start_server(self):
        server = subprocess.Popen(
            [
                MAIL_PYTHON,
                "-m",
                "aiosmtpd",
                "-n",
                "-l",
                f"127.0.0.1:{self.port}",
                "-c",
                "aiosmtpd.handlers.Mailbox",
                self.box,
            ],
            env={**self.env, "PYTHONPATH": ""},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)

    def mails(self, count):
        def find():
            # The server makes three folders, one after the other.
            if not all(os.path.isdir(os.path.join(self.box, part)) for part in MAILDIR):
                return None
            found = list(mailbox.Maildir(self.box, create=False))
            return found if len(found) >= count else None

        return until(find, f"{count} mails")

    def test_mail(self):
        # The server comes later: the message waits for it.
        name = "Modèle\nBcc: eve@example.org\n.\nMAIL FROM:<eve>"
        task = self.submit_with("exit 1", notify="fail", to="mailto:ada@example.org", name=name)
        self.wait(task)
        self.wait_log("the mail about task .* was not delivered: .*; tried again later")
        self.start_server()
        mail = self.mails(1)[0]
        self.assertEqual(mail["X-RcptTo"], "ada@example.org")
        self.assertEqual(mail["To"], "<ada@example.org>")
        self.assertIsNone(mail["Bcc"])
        self.assertRegex(mail["X-MailFrom"], r"^colloc@\S+$")
        subject = str(
            email.header.make_header(email.header.decode_header(mail["Subject"].replace("\n", "")))
        )
        self.assertIn(f"[colloc] task {task} Modèle", subject)
        text = mail.get_payload(decode=True).decode()
        self.assertIn("NonZeroExitCode", text)
        self.assertIn(f"`colloc show {task}`", text)
        self.assertTrue(mail["Message-ID"])
        # Without an address: to the user, on this machine.
        self.wait(self.submit(notify="end"))
        self.assertEqual(len(self.mails(2)), 2)
        self.assert_no_secret()


LOGIN_SERVER = """
import ssl, sys, time
from aiosmtpd.controller import Controller
from aiosmtpd.handlers import Mailbox
from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword
port, box, certificate, key = int(sys.argv[1]), *sys.argv[2:]
context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
context.load_cert_chain(certificate, key)
def check(server, session, envelope, mechanism, data):
    good = isinstance(data, LoginPassword) and data == LoginPassword(b"colloc", b"SECRET")
    return AuthResult(success=good)
class Server(Controller):
    def factory(self):
        return SMTP(self.handler, tls_context=context, require_starttls=True,
                    auth_required=True, authenticator=check)
Server(Mailbox(box), hostname="127.0.0.1", port=port).start()
while True:
    time.sleep(1000)
""".replace(
    "SECRET", SECRET
)


@unittest.skipIf(why_no_mail(), why_no_mail())
@unittest.skipUnless(shutil.which("openssl"), "no openssl here")
class MailLogin(Mail):
    """A server that takes mail over TLS from those who log in."""

    def setUp(self):
        certificates = tempfile.mkdtemp(prefix="colloc-mail-")
        self.addCleanup(shutil.rmtree, certificates)
        os.chmod(certificates, 0o755)
        self.certificate = os.path.join(certificates, "cert.pem")
        self.key = os.path.join(certificates, "key.pem")
        self.login = os.path.join(certificates, "login")
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
            + ["-nodes", "-days=2", "-subj=/CN=127.0.0.1", "-addext=subjectAltName=IP:127.0.0.1"]
            + ["-keyout", self.key, "-out", self.certificate],
            check=True,
            capture_output=True,
        )
        self.write_login("colloc:wrong")
        self.settings = {**self.settings, "mail-login-file": self.login}
        self.settings["mail-ca-file"] = self.certificate
        super().setUp()

    def write_login(self, text, mode=0o600):
        with open(self.login, "w", encoding="utf-8") as file:
            os.chmod(self.login, mode)
            file.write(text + "\n")

    def start_server(self):
        server = subprocess.Popen(
            [MAIL_PYTHON, "-c", LOGIN_SERVER, str(self.port), self.box]
            + [self.certificate, self.key],
            env={**self.env, "PYTHONPATH": ""},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)

    def test_mail(self):
        self.restart(message_retry="300ms")
        self.start_server()
        task = self.submit(notify="end", notify_to="ada@example.org")
        self.wait(task)
        self.wait_log("mail about task .* was not delivered: .*; tried again later")
        self.write_login(f"colloc:{SECRET}", 0o644)
        self.wait_log("mail-login-file: .*: must be a file that other users cannot read")
        self.write_login("no-colon")
        self.wait_log("mail-login-file: .*: its first line must be USER:PASSWORD")
        self.write_login(f"colloc:{SECRET}")
        mail = self.mails(1)[0]
        self.assertEqual(mail["X-RcptTo"], "ada@example.org")
        self.assert_no_secret()
        with open(os.path.join(self.state, "messages.db"), "rb") as file:
            self.assertNotIn(SECRET.encode(), file.read())

    def test_a_server_that_is_not_to_be_trusted(self):
        """Neither without encryption nor with a certificate of unknown origin: no password."""
        self.write_login(f"colloc:{SECRET}")
        super().start_server()  # it has no TLS
        self.wait(self.submit(notify="end", notify_to="ada@example.org"))
        self.wait_log("was not delivered: .*SSL.*; tried again later")
        self.assertEqual(list(mailbox.Maildir(self.box)), [])


if __name__ == "__main__":
    unittest.main()
