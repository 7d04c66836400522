# SPDX-License-Identifier: Apache-2.0
"""ssh into a task by `colloc ssh-proxy`, with the OpenSSH of this machine as client and server."""

import hashlib
import os
import pwd
import shutil
import subprocess
import tempfile
import unittest

from daemon_case import LIMIT_S, DaemonCase, cgroups_of, program

SSHD = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin")


class Ssh(DaemonCase):
    gpus = "2xA100-40GB"

    def setUp(self):
        if not (SSHD and shutil.which("ssh") and shutil.which("ssh-keygen")):
            self.skipTest("needs ssh and sshd")
        if os.geteuid() == 0 and not os.path.isdir("/run/sshd"):
            os.mkdir("/run/sshd", 0o755)  # which root's sshd wants
            self.addCleanup(os.rmdir, "/run/sshd")
        # sshd trusts keys in folders that only their user can change, up to the home.
        self.keys = tempfile.mkdtemp(prefix=".colloc-test-", dir=os.path.expanduser("~"))
        self.addCleanup(shutil.rmtree, self.keys)
        super().setUp()
        self.env["XDG_STATE_HOME"] = os.path.join(self.keys, "state")
        self.env["COLLOC_SOCKET"] = self.socket
        self.key = os.path.join(self.keys, "id")
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.key]
        subprocess.run(words, check=True)
        os.rename(self.key + ".pub", os.path.join(self.keys, "authorized"))

    def proxy(self, name):
        keys = os.path.join(self.keys, "authorized")
        return f"{program('colloc')} ssh-proxy --name={name} --authorized-keys={keys} --gpus=1"

    def ssh(self, command, name="dev", code=0, key=None, text=None):
        done = subprocess.run(
            [
                "ssh",
                "-F",
                "/dev/null",
                "-i",
                key or self.key,
                "-o",
                f"ProxyCommand={self.proxy(name)}",
            ]
            + ["-o", "StrictHostKeyChecking=accept-new", "-o", "BatchMode=yes"]
            + ["-o", f"UserKnownHostsFile={self.keys}/known", "-o", "IdentitiesOnly=yes"]
            + [f"{pwd.getpwuid(os.geteuid()).pw_name}@task", command],
            env=self.env,
            input=text,
            capture_output=True,
            timeout=LIMIT_S,
            check=False,
        )
        self.assertEqual(done.returncode, code, done.stderr.decode("utf-8", "replace"))
        return done

    def words(self, command, **options):
        return self.ssh(command, **options).stdout.decode().split()

    def test_it_is_in_the_task_with_its_gpu(self):
        other = self.submit("exec sleep 1000", exclusive=True)
        taken = self.wait_state(other, "RUNNING")["gpus"]
        task, gpus, visible = self.words("echo $COLLOC_TASK_ID $COLLOC_GPUS $CUDA_VISIBLE_DEVICES")
        self.assertEqual(self.task(int(task))["state"], "RUNNING")
        self.assertEqual(self.task(int(task))["gpus"], [gpus])
        self.assertNotEqual([gpus], taken)
        self.assertEqual(visible, gpus)
        cgroups = cgroups_of(self.state)
        if cgroups:
            path = self.words("grep ^0:: /proc/self/cgroup")[0][3:]
            self.assertTrue(any(one.endswith(path) for one in cgroups), (path, cgroups))
        # The next connection gets the same task, and the same host key, as one from an editor.
        self.assertEqual(self.words("echo $COLLOC_TASK_ID"), [task])
        self.assertNotEqual(self.words("echo $COLLOC_TASK_ID", name="b"), [task])
        self.act("cancel", int(task))
        self.wait(int(task), "CANCELLED")
        again = self.words("echo $COLLOC_TASK_ID")
        self.assertNotEqual(again, [task])

    def test_bytes_and_exit_codes_pass(self):
        data = os.urandom(3 << 20)
        done = self.ssh("sha256sum; exit 7", text=data, code=7)
        self.assertEqual(done.stdout.decode().split()[0], hashlib.sha256(data).hexdigest())
        self.assertEqual(self.ssh("cat", text=data).stdout, data)

    def test_refusals(self):
        unlisted = os.path.join(self.keys, "unlisted")
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", unlisted], check=True)
        done = self.ssh("true", key=unlisted, code=255)
        self.assertIn(b"Permission denied", done.stderr)
        task = self.submit("exec sleep 1000", name="train")
        self.wait_state(task, "RUNNING")
        done = self.ssh("true", name="train", code=255)
        self.assertIn(b"serves no ssh", done.stderr)
        done = self.colloc("ssh-serve", "colloc-terminal-x", code=2)
        self.assertIn("`colloc ssh-proxy` starts it", done.stderr)

    def test_it_ends_without_connections(self):
        keys = os.path.join(self.keys, "authorized")
        words = ["ssh-proxy", "--name=short", "--keep=1s", f"--authorized-keys={keys}"]
        self.colloc(*words, text="no client of ssh\n")
        task = next(
            t["id"] for t in self.get("/v1/tasks?state=all")["tasks"] if t["name"] == "short"
        )
        self.assertEqual(self.wait(task)["state"], "COMPLETED")


if __name__ == "__main__":
    unittest.main()
