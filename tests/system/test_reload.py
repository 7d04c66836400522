# SPDX-License-Identifier: Apache-2.0
"""The daemon as a service: reload of its configuration, messages to systemd, the audit trail."""

import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import unittest

from daemon_case import LIMIT_S, DaemonCase, program, read, until


class Service(DaemonCase):
    gpus = "2xA100-40GB"

    def setUp(self):
        self.notify_socket = None
        super().setUp()

    def start(self, **settings):
        self.config = os.path.join(self.folder, "collocd.yaml")
        self.inputs = os.path.join(self.folder, "inputs")
        if not os.path.exists(self.config):
            self.configure(smact_max=0.8)
        super().start(record_inputs=self.inputs, config=self.config, **settings)

    def configure(self, **settings):
        with open(self.config, "w", encoding="utf-8") as file:
            file.writelines(
                f"{key.replace('_', '-')}: {value}\n" for key, value in settings.items()
            )

    def reload(self, *patterns, **settings):
        self.configure(**settings)
        self.process.send_signal(signal.SIGHUP)
        return [self.wait_log(pattern) for pattern in patterns]


class Sharing(Service):
    settings = {"sharing": None}  # of the file

    def test_waiting_tasks_keep_their_sharing(self):
        self.submit(hold=True)
        self.submit(hold=True, sharing="mps")
        self.reload(
            "configuration: sharing: 1 waiting task keeps another mode, which was chosen with the "
            "submission; tasks that are submitted from now on get mps$",
            sharing="mps",
        )


class Reload(Service):
    def test_what_changes_is_said_and_counts_at_once(self):
        self.reload(
            "smact-max changed from 0.8 to 0.65$",
            "tasks-per-gpu changed from 0 to 1$",
            "gpu-hours-window changed from none to 7d$",
            smact_max=0.65,
            tasks_per_gpu=1,
            gpu_hours_window="7d",
        )
        self.assertEqual(self.get("/v1/share")["window_s"], 7 * 86400)
        shown = self.get("/v1/info")["settings"]
        self.assertEqual((shown["smact_max"], shown["tasks_per_gpu"]), (0.65, 1))
        running = [self.train(2000, 1e6, memory_mib=2000) for _ in range(2)]
        for task in running:
            self.wait_state(task, "RUNNING")
        waiting = self.train(2000, 10, memory_mib=2000)
        self.assertEqual(self.task(waiting)["state"], "PENDING")
        self.reload("tasks-per-gpu changed from 1 to 0$", smact_max=1, policy="first-fit")
        self.wait(waiting, "COMPLETED")
        self.assertEqual(self.get("/v1/info")["policy"], "first-fit")
        for task in running:
            self.act("cancel", task)
            self.wait(task, "CANCELLED")
        self.stop()
        self.decisions_are_the_same(3)

    def decisions_are_the_same(self, changes):
        """And are not without one of the changes."""
        lines = read(self.inputs).splitlines()
        at = [i for i, line in enumerate(lines) if line.startswith('{"settings":')]
        self.assertEqual(len(at), changes - 1)
        self.assertTrue(
            json.loads(self.colloc("replay", "--json", self.inputs).stdout)["identical"]
        )
        without = self.write("without", "\n".join(lines[: at[-1]] + lines[at[-1] + 1 :]) + "\n")
        self.assertIn("then a different decision", self.colloc("replay", without, code=1).stdout)

    def test_a_drained_gpu_gets_no_further_task(self):
        first = self.train(2000, 1e6, memory_mib=2000)
        gpu = self.wait_state(first, "RUNNING")["gpus"][0]
        self.reload(f"GPU {gpu} .* gets no further task", drain=gpu)
        until(lambda: self.health(gpu) == "drained", "the GPU is drained")
        other = self.train(2000, 10, memory_mib=2000)
        self.assertNotEqual(self.wait(other, "COMPLETED")["attempts"][0]["gpus"], [gpu])
        both = self.train(2000, 10, gpus=2)
        why = f"GPU {gpu}: out of use (setting drain)"
        until(lambda: why in self.task(both)["reason_text"], "why the task waits")
        self.assertEqual(self.task(first)["state"], "RUNNING")
        self.stop()
        self.start()
        until(lambda: self.health(gpu) == "drained", "the GPU is drained after a restart")
        self.reload(f"GPU {gpu} .* gets tasks again", smact_max=1)
        self.wait(both, "COMPLETED")
        self.assertEqual(self.task(first)["state"], "RUNNING")
        self.act("cancel", first)
        self.wait(first, "CANCELLED")

    def test_a_drained_gpu_that_is_not_there(self):
        self.reload("drain: there is no GPU '7'$", drain="7,")
        until(lambda: [self.health(gpu) for gpu in "01"] == ["ok", "ok"], "the first samples")

    def health(self, label):
        return next(g["health"] for g in self.get("/v1/gpus")["gpus"] if g["index"] == label)

    def test_a_former_policy_name(self):
        former = "foresee"  # check-words: alias
        self.reload("policy changed from magm to predictive$", policy=former)
        self.assertEqual(self.get("/v1/info")["policy"], "predictive")
        self.reload("policy changed from predictive to magm$", policy="magm")
        task = self.train(2000, 10, policy=former)
        self.assertEqual(self.task(task)["policy"], "predictive")
        self.wait(task, "COMPLETED")

    def test_what_cannot_change_stays(self):
        self.reload(
            "gpus stays all; 0 takes effect when collocd is restarted", gpus=0, smact_max=0.8
        )
        self.assertEqual(len(self.get("/v1/gpus")["gpus"]), 2)
        self.reload("read again, nothing has changed", smact_max="0.80")

    def test_a_mistake_changes_nothing_and_names_its_line(self):
        self.reload(
            r"nothing is changed: \S+collocd.yaml:2: smact-max: .*'much'",
            margin="1GiB",
            smact_max="much",
        )
        self.assertEqual(self.get("/v1/info")["settings"]["margin_mib"], 2048)
        self.reload("margin changed from 2GiB to 1536MiB", margin="1536M", smact_max=0.8)

    def test_the_command_line_wins_and_the_log_level_changes(self):
        self.reload("log-level changed from info to error", log_level="error", window="1s")
        self.reload("log-level changed from error to info", log_level="info", sample_period="1h")
        self.reload("read again, nothing", log_level="info")
        self.assertEqual(self.get("/v1/info")["settings"]["sample_period_s"], 0.1)

    def test_operators_that_are_no_users_are_warned_of(self):
        """In the background: at the start, and where a reload changes the setting."""
        self.stop()
        self.configure(operators="root, nosuch-user")
        self.start()
        self.wait_log("warning: operators: there is no user 'nosuch-user'$")
        long = "x" * 100
        self.reload(
            f"warning: operators: there is no user '{long[:63]}'$",
            "warning: operators: there is no user 'other-user'$",
            operators=f"root, other-user, {long}",
        )
        self.assertFalse([line for line in self.log if "no user 'root'" in line])

    def test_many_hangups_end_nothing(self):
        task = self.submit("exec sleep 1000")
        self.wait_state(task, "RUNNING")
        for _ in range(100):
            self.process.send_signal(signal.SIGHUP)
        self.wait_log("nothing has changed")
        self.assertEqual(self.task(task)["state"], "RUNNING")
        self.stop()


class Terminal(Service):
    def start_in_terminal(self, prefix=()):
        """collocd as the only program of a terminal. Returns its process and the terminal."""
        self.stop()
        child, terminal = pty.fork()
        if child == 0:
            signal.signal(signal.SIGHUP, signal.SIG_DFL)  # also when these tests run under nohup
            os.chdir(self.folder)
            command = [*prefix, *self.command(config=self.config)]
            os.execvpe(command[0], command, self.env)
        self.addCleanup(lambda: self.reap(child))
        self.read_terminal(terminal, b"listening on")
        return child, terminal

    def read_terminal(self, terminal, words):
        """Until they come, in however many pieces."""
        seen = b""
        while words not in seen:
            self.assertTrue(select.select([terminal], [], [], LIMIT_S)[0], seen)
            seen += os.read(terminal, 65536)

    def reap(self, child):
        try:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        except (ChildProcessError, ProcessLookupError):
            pass

    def test_a_closed_terminal_ends_it_and_tasks_go_on(self):
        child, terminal = self.start_in_terminal()
        task = self.submit("exec sleep 1000")
        self.wait_state(task, "RUNNING")
        os.close(terminal)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.start()
        self.assertTrue(
            any(f"task {task} is still running: found again" in line for line in self.log)
        )

    def test_a_hangup_with_the_terminal_there_is_a_reload(self):
        child, terminal = self.start_in_terminal()
        os.kill(child, signal.SIGHUP)
        self.read_terminal(terminal, b"nothing has changed")
        os.close(terminal)
        os.waitpid(child, 0)

    def test_nohup_is_respected(self):
        child, terminal = self.start_in_terminal(prefix=("env", "--ignore-signal=HUP"))
        os.close(terminal)
        os.kill(child, signal.SIGHUP)
        self.assertEqual(self.get("/v1/info")["pid"], child)
        os.kill(child, signal.SIGTERM)
        self.assertEqual(os.waitpid(child, 0)[1], 0)


class Notify(Service):
    def listen(self, address):
        notified = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(notified.close)
        notified.settimeout(LIMIT_S)
        notified.bind("\0" + address[1:] if address[0] == "@" else address)
        self.stop()
        self.env["NOTIFY_SOCKET"] = address
        self.start()
        return notified

    def test_ready_reloading_stopping(self):
        for address in (os.path.join(self.folder, "notify"), f"@colloc-test-{os.getpid()}"):
            with self.subTest(address=address):
                notified = self.listen(address)
                self.assertEqual(notified.recv(200), b"READY=1")
                self.assertTrue(self.get("/v1/info"))
                self.process.send_signal(signal.SIGHUP)
                self.assertRegex(notified.recv(200), rb"^RELOADING=1\nMONOTONIC_USEC=\d+$")
                self.assertEqual(notified.recv(200), b"READY=1")
                task = self.submit("env > seen", environment={"NOTIFY_SOCKET": ""})
                self.wait(task, "COMPLETED")
                self.stop()
                self.assertEqual(notified.recv(200), b"STOPPING=1")
                del self.env["NOTIFY_SOCKET"]
                self.start()

    def test_a_socket_that_is_not_there_stops_nothing(self):
        self.stop()
        self.env["NOTIFY_SOCKET"] = "/nowhere/notify"
        self.start()


class Check(Service):
    def check(self, *options):
        done = subprocess.run(
            [program("collocd"), "--check", *options],
            env=self.env,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    def test_check(self):
        bad = self.write("bad.yaml", "# settings\nsmact-max: 0.7\npolicy: best\n")
        good = self.write("good.yaml", "smact-max: 0.7\n")
        self.assertEqual(self.check(f"--config={good}"), (0, "configuration is fine\n"))
        self.assertEqual(
            self.check("--config", good, "--margin=1GiB"), (0, "configuration is fine\n")
        )
        status, text = self.check("--config=" + self.write("bare", "margin: 2\n"))
        self.assertEqual(status, 0, text)
        self.assertIn("warning: margin: '2' has no unit", text)
        status, text = self.check("--config=" + self.write("twice", "margin: 1G\nmargin: 2G\n"))
        self.assertEqual(status, 0, text)
        self.assertIn("warning: margin: is set twice", text)
        status, text = self.check("--config=" + self.write("zero", "recovery-step: 0\n"))
        self.assertEqual((status, text), (0, "configuration is fine\n"))
        status, text = self.check("--operators=nosuch-user, root")
        self.assertEqual(status, 0, text)
        self.assertIn("warning: operators: there is no user 'nosuch-user'\n", text)
        self.assertNotIn("'root'", text)
        status, text = self.check("--web=0.0.0.0:7480")
        self.assertEqual(status, 0, text)
        self.assertIn("warning: the web page at 0.0.0.0:7480 is not encrypted", text)
        status, text = self.check("--drain=9, 0", "--gpus=0,7", "--mps-gpus=all")
        self.assertEqual(status, 0, text)
        self.assertIn("warning: drain: there is no GPU '9'\n", text)
        self.assertIn("warning: gpus: there is no GPU '7'\n", text)
        self.assertEqual(text.count("warning"), 2, text)
        lists = self.write("lists", "operators: [root]\ndrain:\n  - 0\nsuspend: false\n")
        self.assertEqual(self.check(f"--config={lists}"), (0, "configuration is fine\n"))
        # What the start refuses.
        status, text = self.check("--shim=/nowhere/shim")
        self.assertEqual(status, 1, text)
        self.assertIn("/nowhere/shim: No such file", text)
        for address in ("0.0.0.0:7282", "[::]:7282"):
            status, text = self.check(f"--metrics-listen={address}")
            self.assertEqual(status, 1, text)
            self.assertIn(f"metrics-listen: other machines reach {address}", text)
        self.assertEqual(self.check("--metrics-listen=127.0.0.1:7282")[0], 0)
        for options, words in (
            ([f"--config={bad}"], "bad.yaml:3: policy: "),
            (["--config=/nowhere/x"], "/nowhere/x: "),
            (["--nothing=1"], "nothing: "),
            (["--config=" + self.write("two", "policy: best\nwindow: 0\n")], "two:1: policy: "),
            (["--config=" + self.write("two", "policy: best\nwindow: 0\n")], "two:2: window: "),
            (["--config=" + self.write("list", "- a\n")], "list:1: "),
            (["--config=" + self.write("of", "suspend: [yes]\n")], "of:1: suspend: a list is no"),
            (["--config=" + self.write("in", "mps:\n  gpus: 0\n")], "the file has no sections"),
            (["--shares=" + self.write("yaml", "vision:\n  ada: 2\n")], "the file is not YAML"),
        ):
            status, text = self.check(*options)
            self.assertEqual(status, 1, text)
            self.assertIn(words, text)


class Audit(Service):
    FORM = (
        r"^\S+ \S+ info: audit event=([a-z]+) task=(\d+)"
        r'((?: [a-z_]+=(?:[\w.,:/+@-]+|"(?:[^"\\]|\\.)*"))+)$'
    )

    def trail(self, task):
        """[(event, {key: value})] of a task. Every line of the trail has the one form."""
        found = []
        for line in self.log:
            if " audit " not in line:
                continue
            match = re.match(self.FORM, line)
            self.assertTrue(match, line)
            if int(match[2]) == task:
                found.append(
                    (match[1], dict(re.findall(r' ([a-z_]+)=("(?:[^"\\]|\\.)*"|\S+)', match[3])))
                )
        return found

    def test_a_task_from_submission_to_end(self):
        task = self.submit(name="resnet50")
        self.wait(task, "COMPLETED")
        self.wait_log(f"audit event=end task={task} ")
        (first, submitted), (second, started), (third, ended) = self.trail(task)
        self.assertEqual((first, second, third), ("submit", "start", "end"))
        self.assertEqual(
            (submitted["uid"], submitted["name"], submitted["gpus"]),
            (str(os.getuid()), "resnet50", "1"),
        )
        self.assertEqual(submitted["user"], self.task(task)["user"])
        self.assertEqual(
            (started["gpus"], started["attempt"], started["sharing"]), ("0", "1", "streams")
        )
        self.assertEqual(ended["state"], "COMPLETED")

    def test_crash_hold_release_cancel_and_a_restart(self):
        crashed = self.submit("exit 3")
        self.wait(crashed, "FAILED")
        held = self.submit("exec sleep 1000", hold=True)
        self.act("release", held)
        self.wait_state(held, "RUNNING")
        self.restart()
        self.assertTrue(
            any(f"task {held} is still running: found again" in line for line in self.log)
        )
        self.act("cancel", held)
        self.wait(held, "CANCELLED")
        self.wait_log(f"audit event=end task={held} ")
        self.assertEqual(
            [event for event, _ in self.trail(held)],
            ["submit", "release", "start", "cancel", "end"],
        )
        self.assertEqual(self.trail(held)[3][1]["by_uid"], str(os.getuid()))
        crash = next(values for event, values in self.trail(crashed) if event == "crash")
        self.assertEqual((crash["class"], crash["exit"], crash["signal"]), ("program", "3", "0"))

    def test_a_users_text_stays_a_value(self):
        name = 'a" task=7 state=X \\ \n\x1b[2J\u0085 \u00e4' + "x" * 200
        task = self.submit(
            "echo secret-in-script", name=name, environment={"TOKEN": "secret-in-environment"}
        )
        self.wait(task, "COMPLETED")
        self.wait_log(f"audit event=end task={task} ")
        value = self.trail(task)[0][1]["name"]
        self.assertTrue(value.startswith('"a\\" task=7 state=X \\\\ ??[2J? ä'), value)
        for line in self.log:
            self.assertLess(len(line), 1100)
            self.assertNotIn("secret", line)
            self.assertFalse(re.search(r"[\x00-\x1f\x7f-\x9f]", line), repr(line))


if __name__ == "__main__":
    unittest.main()
