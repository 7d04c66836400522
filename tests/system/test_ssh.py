# SPDX-License-Identifier: Apache-2.0
"""ssh into a task by `colloc ssh-proxy`, with the OpenSSH of this machine as client and server.

A real VS Code server runs where COLLOC_CODE_SERVER names the folder of npm's package code-server:

    npm install --ignore-scripts --prefix DIR code-server@4.96.4       # VS Code 1.96.4, node 20
    cd DIR/node_modules/code-server/lib/vscode && rm npm-shrinkwrap.json
    npm install --ignore-scripts --omit=dev
    export COLLOC_CODE_SERVER=DIR/node_modules/code-server

Its shrinkwrap names a dependency on GitHub; npm's registry has it, too. It was run so on
29 November 2026. Without its native modules it serves pages and connections, but no terminal.
4.139.1 wants node 24.
"""

import hashlib
import json
import os
import pwd
import select
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request
import uuid

from daemon_case import (
    LIMIT_S,
    DaemonCase,
    cgroups_of,
    proc,
    processes_with,
    program,
    until,
    words_of,
)

from colloc_slurm.loopback import free_ports

CODE_SERVER = os.environ.get("COLLOC_CODE_SERVER")
SSHD = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin")

# What VS Code starts: it says its port, and answers. Here with the task that it runs in.
SERVER = """
import os, socket, sys
address = sys.argv[1] if len(sys.argv) > 1 else ("127.0.0.1", 0)
server = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
server.bind(address)
server.listen()
print("Listening on", server.getsockname(), flush=True)
while True:
    server.accept()[0].sendall(os.environ["COLLOC_TASK_ID"].encode() + b"\\n")
"""

# The form of the script that VS Code 1.90.1 (Remote-SSH; log in issue 215538 of microsoft/vscode)
# writes to `bash`: the server goes to the background, its output to a file, in which the port is
# read, and the answer stands between two lines with a number.
INSTALL = """
echo "c1c959c5060c: running"
setsid {python} {server} &> "{log}" < /dev/null &
until grep -q "Listening on" "{log}"; do sleep 0.1; done
echo "c1c959c5060c: start"
echo "listeningOn==$(grep -o '[0-9]*)' "{log}" | tr -d ')')=="
echo "c1c959c5060c: end"
"""


def cpu_ticks(pid):
    """The processor time of a process, in hundredths of a second."""
    return sum(map(int, proc(pid, "stat").rpartition(")")[2].split()[11:13]))


class Ssh(DaemonCase):
    gpus = "2xA100-40GB"

    def setUp(self):
        if not (SSHD and shutil.which("ssh") and shutil.which("ssh-keygen")):
            self.skipTest("needs ssh and sshd")
        if os.geteuid() == 0:
            # Root's sshd wants it. It stays: this test may run twice at the same time.
            os.makedirs("/run/sshd", 0o755, exist_ok=True)
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

    def ssh_words(self, *words, name="dev", key=None):
        return (
            ["ssh", "-F", "/dev/null", "-i", key or self.key]
            + ["-o", f"ProxyCommand={self.proxy(name)}"]
            + ["-o", "StrictHostKeyChecking=accept-new", "-o", "BatchMode=yes"]
            + ["-o", f"UserKnownHostsFile={self.keys}/known", "-o", "IdentitiesOnly=yes"]
            + ["-l", pwd.getpwuid(os.geteuid()).pw_name, *words]
        )

    def ssh(self, command, name="dev", code=0, key=None, text=None):
        done = subprocess.run(
            self.ssh_words("task", command, name=name, key=key),
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

    def connect(self, *words):
        """An ssh that stays, as an editor's does."""
        client = subprocess.Popen(
            self.ssh_words(*words), env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.addCleanup(client.stdout.close)
        self.addCleanup(client.wait)
        self.addCleanup(client.stdin.close)
        self.addCleanup(client.kill)
        return client

    def test_vs_code(self):
        """`ssh -T -D PORT HOST bash` with a script on standard input, as VS Code calls it; the
        server that the script leaves running is reached through the connection, and is the task's.
        """
        server = self.write("server.py", SERVER)
        log, (local,) = os.path.join(self.work, "server.log"), free_ports(1)
        script = INSTALL.format(python=sys.executable, server=server, log=log)
        client = self.connect("-T", "-D", str(local), "task", "bash")
        client.stdin.write(script.encode())
        client.stdin.flush()
        lines = iter(client.stdout.readline, b"")
        [port] = [line.split(b"==")[1] for line in self.until_end(lines) if b"listeningOn" in line]
        task = self.words("echo $COLLOC_TASK_ID")[0]
        with socket.create_connection(("127.0.0.1", local), timeout=LIMIT_S) as one:
            one.sendall(b"\x05\x01\x00")  # SOCKS 5, as the forward of -D speaks it
            self.assertEqual(one.recv(2), b"\x05\x00")
            one.sendall(b"\x05\x01\x00\x01\x7f\x00\x00\x01" + struct.pack(">H", int(port)))
            self.assertEqual(one.recv(10, socket.MSG_WAITALL)[:2], b"\x05\x00")
            self.assertEqual(one.makefile().readline().strip(), task)
        self.act("cancel", int(task))
        self.wait(int(task), "CANCELLED")
        with socket.socket() as one:
            until(
                lambda: one.connect_ex(("127.0.0.1", int(port))) != 0,
                "the end of the editor's server",
            )

    @staticmethod
    def until_end(lines):
        for line in lines:
            yield line
            if b": end" in line:
                return

    def test_code_server_behind_a_socket(self):
        """`ssh -L PORT:SOCKET HOST code-server --socket=SOCKET`: no other user can connect."""
        server, path = self.write("server.py", SERVER), os.path.join(self.keys, "s")
        (local,) = free_ports(1)
        words = f"exec {sys.executable} {server} {path}"
        client = self.connect("-L", f"127.0.0.1:{local}:{path}", "task", words)
        self.assertIn(b"Listening on", client.stdout.readline())
        task = self.words("echo $COLLOC_TASK_ID")[0]
        with socket.create_connection(("127.0.0.1", local), timeout=LIMIT_S) as one:
            self.assertEqual(one.makefile().readline().strip(), task)

    @unittest.skipUnless(CODE_SERVER, "needs COLLOC_CODE_SERVER")
    def test_a_real_vs_code_server(self):
        """Its page and its connection for editors come through the forward; it is the task's."""
        main, path = f"{CODE_SERVER}/lib/vscode/out/server-main.js", os.path.join(self.keys, "s")
        (local,) = free_ports(1)
        words = f"exec node {main} --socket-path={path} --server-data-dir={self.keys}/data"
        words += " --without-connection-token --accept-server-license-terms"
        client = self.connect("-L", f"127.0.0.1:{local}:{path}", "task", words)
        for line in iter(client.stdout.readline, b""):
            if b"Extension host agent listening" in line:
                break
        self.assertIsNone(client.poll())
        with open(f"{CODE_SERVER}/lib/vscode/product.json", encoding="utf-8") as file:
            commit = json.load(file)["commit"]
        address = f"http://127.0.0.1:{local}"
        with urllib.request.urlopen(f"{address}/version", timeout=LIMIT_S) as answer:
            self.assertEqual(answer.read().decode(), commit)
        with urllib.request.urlopen(address, timeout=LIMIT_S) as answer:
            self.assertIn("vscode-workbench-web-configuration", answer.read().decode())
        with socket.create_connection(("127.0.0.1", local), timeout=LIMIT_S) as one:
            lines = [
                f"GET /?reconnectionToken={uuid.uuid4()}&reconnection=false HTTP/1.1",
                *("Host: localhost", "Connection: Upgrade", "Upgrade: websocket"),
                *("Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Version: 13"),
            ]
            one.sendall("".join(line + "\r\n" for line in [*lines, ""]).encode())
            self.assertIn("101", one.makefile(newline="\n").readline())
        task = self.words("echo $COLLOC_TASK_ID")[0]
        [server] = [pid for pid in processes_with(main) if words_of(pid)[0].endswith("node")][:1]
        self.assertIn(f"COLLOC_TASK_ID={task}", proc(server, "environ").split("\0"))
        self.act("cancel", int(task))
        self.wait(int(task), "CANCELLED")
        self.wait_gone(server)

    def test_many_connections_at_once(self):
        """As of scp in a loop of a shell: one task, which is submitted once, serves all."""
        words = self.ssh_words("task", "echo $COLLOC_TASK_ID")
        options = {"env": self.env, "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE}
        clients = [subprocess.Popen(words, **options) for _ in range(24)]
        said = [client.communicate(timeout=LIMIT_S)[0].split() for client in clients]
        self.assertEqual([client.returncode for client in clients], [0] * len(clients))
        self.assertEqual(said, said[:1] * len(clients))
        tasks = [task["name"] for task in self.get("/v1/tasks?state=all")["tasks"]]
        self.assertEqual(tasks, ["dev"])

    def test_connections_beyond_its_limit_wait(self):
        """A server with its 64 sessions sleeps, and takes the next one when one has ended."""
        words = self.proxy("full").split()
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        clients = [subprocess.Popen(words, env=self.env, **pipes) for _ in range(65)]
        for client in clients:
            self.addCleanup(client.wait)
            self.addCleanup(client.stdout.close)
            self.addCleanup(client.stdin.close)
            self.addCleanup(client.kill)
        waiting = {client.stdout: client for client in clients}

        def greet():
            for stream in select.select(list(waiting), [], [], 0)[0]:
                self.assertTrue(stream.readline().startswith(b"SSH-2.0-"))
                del waiting[stream]
            return len(waiting) == 1

        until(greet, "the greetings of 64 servers")
        [server] = [pid for pid in processes_with("ssh-serve") if "ssh-serve" in words_of(pid)[1:2]]
        before = cpu_ticks(server)
        time.sleep(1)
        self.assertLess(cpu_ticks(server) - before, 30)  # of 100
        next(client for client in clients if client not in waiting.values()).stdin.close()
        until(lambda: greet() or not waiting, "the last greeting")

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
