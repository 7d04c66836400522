#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""colloc estimate -- COMMAND: a training command run in a sandbox, and what it may not do."""

import glob
import json
import os
import subprocess
import sys
import unittest

from cli_case import COLLOC, CliCase

HERE = os.path.dirname(os.path.abspath(__file__))
EXPORT = os.path.join(HERE, "..", "..", "data", "exports", "small.json")
SCRIPTS = os.path.join(HERE, "..", "..", "data", "scripts")
SEEN = {"batch": 16, "optimizer": "adam", "precision": "fp32", "accumulation": 2}


def python_with_torch():
    for program in (sys.executable, "/usr/bin/python3"):
        command = [program, "-c", "import torch"]
        if os.path.exists(program) and subprocess.run(command, capture_output=True).returncode == 0:
            return program
    return None


def has_namespaces():
    return subprocess.run(["unshare", "-Urnmp", "-f", "true"], capture_output=True).returncode == 0


def marked(mark):
    """Processes with this text among their arguments."""
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        found += [path] if mark.encode() in words else []
    return found


class Case(CliCase):
    def setUp(self):
        super().setUp()
        self.temporary = os.path.join(self.folder, "tmp")
        os.mkdir(self.temporary)

    def export(self, **more):
        with open(EXPORT, encoding="utf-8") as file:
            text = json.dumps({**json.load(file), "method": "script", "seen": SEEN, **more})
        return self.write("export.json", text)

    def program(self, text, name="train"):
        path = self.write(name, "#!/bin/sh\n" + text)
        os.chmod(path, 0o700)
        return f"./{name}"

    def estimate(self, *words, code=0, **environment):
        done = self.run_colloc(
            "estimate", "--json", *words, TMPDIR=self.temporary, **environment
        )  # fmt: skip
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertEqual(os.listdir(self.temporary), [], "something was left behind")
        return json.loads(done.stdout) if done.stdout else done.stderr

    def reason(self, text, *words):
        return self.estimate(*words, "--", self.program(text), code=3)["reason"]


class Answers(Case):
    LEAVE = 'cp export.json "$COLLOC_SCRIPT_FOLDER/result"\n'

    def test_contract(self):
        self.export()
        reply = self.estimate("--", self.program(self.LEAVE + "sleep 1000"))
        self.assertEqual({key: reply[key] for key in SEEN}, SEEN)
        self.assertEqual(reply["evidence"], "script")
        self.assertEqual(reply["estimates"][0]["evidence"], "script")
        self.assertEqual(reply["reserve_mib"] % 1, 0)

    def test_first_line(self):
        self.export()
        text = self.colloc("estimate", "--", self.program(self.LEAVE))
        self.assertRegex(text, r"\Areserve \d+ MiB: enough for 99 of 100 such tasks\n")
        self.assertIn("batch 16, optimizer adam, precision fp32, accumulation 2", text)

    def test_interpreter_in_place_of_python(self):
        self.export()
        program = self.program('printf "%s\\n" "$@" > words\ncat words >&2\n' + self.LEAVE, "mine")
        self.estimate("--python=./mine", "--", "/usr/bin/python3", "train.py", "--batch", "8")
        complaint = self.estimate(f"--python={program}", "--", "./train.sh", code=2)
        self.assertIn("--python needs a command that starts with python", complaint)

    def test_kernels_are_added_by_the_python_of_the_command(self):
        """A pretend asker: the command's own Python, which gets the export in a file."""
        self.export()
        asker = self.program(
            'if [ "$2" = colloc_export ]; then printf "%s\n" "$@" > words; '
            f'cat "${{3#--add-kernels=}}"; exit; fi\n{self.LEAVE}',
            "python-mine",
        )
        plain = self.estimate("--gpu=H200", "--", asker)
        self.assertEqual(self.estimate("--kernels", "--gpu=H200", "--", asker), plain)
        with open(os.path.join(self.folder, "words"), encoding="utf-8") as file:
            words = file.read().split("\n")
        self.assertEqual((words[:2], words[3]), (["-m", "colloc_export"], "--gpu=H200"))
        deaf = self.program(
            f'[ "$2" = colloc_export ] && {{ echo no GPU >&2; exit 1; }}\n{self.LEAVE}', "python-x"
        )
        self.assertIn("no GPU", self.estimate("--kernels", "--", deaf, code=2))

    def test_what_it_does_not_go_with(self):
        for word in (
            "--batch=8",
            "--optimizer=adam",
            "--pytorch=a:b",
            "--memory=1G",
            "--classes=3",
        ):
            with self.subTest(word=word):
                complaint = self.estimate(word, "--", "true", code=2)
                self.assertIn(f"{word.split('=')[0]} excludes a command", complaint)
        self.assertIn("a command follows --", self.estimate("a", "b", code=2))
        self.assertIn("no such program", self.estimate("--", "no-such-program-1", code=2))

    def test_a_result_that_is_none(self):
        program = self.program('echo "{}" > "$COLLOC_SCRIPT_FOLDER/result"')
        self.assertIn("not a file of the exporter", self.estimate("--", program, code=2))

    def test_holds_that_cannot_be(self):
        for holds in (3, [[0, 1, 2]], [[-1, 0, 0]], [[0, 10**12, 0]], [["a"]]):
            with self.subTest(holds=holds):
                self.export(holds=holds)
                complaint = self.estimate("--", self.program(self.LEAVE), code=2)
                self.assertIn("holds", complaint)


class Submitted(Case):
    """colloc submit --estimate=script: the daemon gets the export, and runs nothing."""

    LEAVE = Answers.LEAVE

    def request(self, *words):
        return json.loads(self.colloc("submit", "--dry-run", *words, TMPDIR=self.temporary))

    def test_command(self):
        self.export()
        request = self.request("--estimate=script", "--", self.program(self.LEAVE), "7")
        self.assertEqual(json.loads(request["summary"]["text"])["method"], "script")
        self.assertEqual(request["arguments"], ["./train", "7"])
        self.assertNotIn("estimate", request)

    def test_script_with_arguments(self):
        self.export()
        self.write("job.sh", '#!/bin/sh\n#COLLOC --name=seven\n[ "$1" = 7 ] && ' + self.LEAVE)
        request = self.request("--estimate=script", "job.sh", "7")
        self.assertEqual(request["name"], "seven")
        self.assertIn("tensors", json.loads(request["summary"]["text"]))

    def test_not_followed(self):
        for words, text in [
            (["--", "true"], r"nothing was submitted: .* instead\): it ended with status 0"),
            (["--memory=1G", "--", "true"], "--estimate=script excludes --memory"),
        ]:
            done = self.run_colloc("submit", "--estimate=script", *words)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertRegex(done.stderr, text)
        self.assertEqual(self.daemon.requests, [])

    def test_not_followed_says_what_to_do(self):
        done = self.run_colloc("estimate", "--", "true")
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        reason, advice = done.stderr.splitlines()
        self.assertIn("cannot follow the script: it ended with status 0", reason)
        self.assertIn("--memory=SIZE at the submission", advice)


class Bounds(Case):
    def test_reasons(self):
        for text, reason in [
            ("echo last words; exit 7", "ended with status 7.*PyTorch; its last line: last words"),
            ('echo "no good" > "$COLLOC_SCRIPT_FOLDER/failure"', "^no good$"),
            ("sh -c 'kill -9 $$'", "status 137"),
            ("read line || echo no input", "status 0.*no input"),
        ]:
            with self.subTest(text=text):
                self.assertRegex(self.reason(text), reason)

    def test_time(self):
        mark = str(70000000 + os.getpid())
        reason = self.reason(f"sleep {mark}", "--limit=1s")
        self.assertIn("did not reach its second optimizer step within 1 s", reason)
        self.assertEqual(marked(mark), [])

    def test_output_without_end(self):
        self.assertRegex(
            self.reason("yes | head -c 300000000; echo; echo end"), "; its last line: end$"
        )

    def test_no_process_outlives_it(self):
        mark = str(90000000 + os.getpid())
        self.reason(f"sleep {mark} &\nsetsid sh -c 'sleep {mark} & sleep {mark}' &\nsleep 0.1")
        self.assertEqual(marked(mark), [])

    @unittest.skipUnless(has_namespaces(), "no namespaces here")
    def test_files_stay_as_they_were(self):
        self.write("precious", "1")
        reason = self.reason("rm -r precious; mkdir new && echo 2 > new/file; ls; cat new/file")
        self.assertTrue(reason.endswith(": 2"), reason)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "new")))
        with open(os.path.join(self.folder, "precious"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "1")

    @unittest.skipUnless(has_namespaces(), "no namespaces here")
    def test_the_kernels_settings_cannot_be_opened_for_writing(self):
        """Root could change them: in a namespace of their own, or read-only."""
        name = os.uname().nodename
        python = (
            "import os, socket\n"
            "tried = []\n"
            "paths = '/proc/sys/kernel/panic', '/sys/kernel/mm/transparent_hugepage/enabled'\n"
            "for path in paths:\n"
            "    try: os.close(os.open(path, os.O_WRONLY)); tried.append('open')\n"
            "    except OSError as error: tried.append(error.strerror)\n"
            "try: socket.sethostname('inside')\n"
            "except OSError: pass\n"
            "print(*tried)\n"
        )
        self.write("try.py", python)
        reason = self.reason(f"{sys.executable} try.py")
        self.assertNotIn("open", reason)
        self.assertEqual(reason.count("Read-only file system"), 2 if os.geteuid() == 0 else 0)
        self.assertEqual(os.uname().nodename, name)

    @unittest.skipUnless(has_namespaces(), "no namespaces here")
    def test_no_network_and_no_other_processes(self):
        self.assertTrue(
            self.reason("ls /sys/class/net | wc -l; wc -l < /proc/net/route").endswith(" 1")
        )
        self.assertTrue(self.reason("kill -0 1 && echo $$").endswith(" 1"))


@unittest.skipUnless(python_with_torch(), "no Python with PyTorch")
class RealScripts(Case):
    def test_a_script(self):
        words = [os.path.join(SCRIPTS, "plain.py")]
        reply = self.estimate("--", python_with_torch(), *words)
        self.assertEqual((reply["batch"], reply["optimizer"]), (64, "adam"))
        self.assertGreater(reply["reserve_mib"], 100)

    def test_several_processes(self):
        """As launchers do it: the first process that has seen enough ends the run."""
        script = os.path.join(SCRIPTS, "ddp.py")
        command = f"for i in 0 1; do RANK=$i {python_with_torch()} {script} & done; wait"
        two = self.estimate("--", "sh", "-c", command)
        self.assertEqual(two["ddp"], 2)
        self.assertIn("NCCL", two["estimates"][0]["note"])
        gloo = self.estimate("--", "sh", "-c", f"BACKEND=gloo {python_with_torch()} {script}")
        self.assertNotIn("NCCL", gloo["estimates"][0]["note"])
        one = self.estimate("--", "sh", "-c", f"WORLD_SIZE=1 {python_with_torch()} {script}")
        self.assertEqual(two["estimates"][0]["mib"], one["estimates"][0]["mib"] + 850 - 558)


if __name__ == "__main__":
    assert COLLOC
    unittest.main()
