# SPDX-License-Identifier: Apache-2.0
"""No user with many ids or connections, and no lack of descriptors or memory, stops the service."""

import contextlib
import os
import pwd
import resource
import socket
import time
import unittest

from daemon_case import MIB, DaemonCase, program, queued_s, read, until

UNPRIVILEGED = pwd.getpwnam("nobody").pw_uid  # check-words: allow (the name of an account)
NAMELESS_UID = 100000  # the first of a user's subordinate ids on Debian; no such user has a name
ADA = 64001
CONNECTIONS = 2048  # of all users together
PER_USER = 256


class Limited(DaemonCase):
    def connect(self, data=b""):
        client = socket.socket(socket.AF_UNIX)
        self.addCleanup(client.close)
        client.settimeout(30)
        client.connect(self.socket)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            client.sendall(data)
        return client

    def queued_s(self):
        return queued_s(self.process.pid) + queued_s("self")

    def seconds(self, path="/v1/info"):
        """Of a request, without the time that the two programs waited for a processor."""
        begin, queued = time.monotonic(), self.queued_s()
        self.get(path)
        return time.monotonic() - begin - (self.queued_s() - queued)

    def connections(self):
        """Those that the daemon has open."""
        count, folder = 0, f"/proc/{self.process.pid}/fd"
        for fd in os.listdir(folder):
            with contextlib.suppress(FileNotFoundError):
                count += os.readlink(f"{folder}/{fd}").startswith("socket:")
        return count


class Descriptors(Limited):
    daemon_prefix = ("prlimit", "--nofile=48:48")

    def test_answers_again_after_more_connections_than_descriptors(self):
        for _ in range(10):
            clients = []
            for _ in range(100):
                client = socket.socket(socket.AF_UNIX)
                client.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    client.connect(self.socket)
                clients.append(client)
            until(lambda: self.connections() > 20, "20 open connections")
            for client in clients:
                client.close()
            self.assertLess(self.seconds(), 5)
        self.wait(self.submit("echo done"), "COMPLETED")


@unittest.skipIf(
    b"__asan_init" in read(program("collocd"), "rb"), "the sanitizer needs all addresses"
)
class Memory(Limited):
    """Address space for the daemon itself and little beside."""

    daemon_prefix = ("prlimit", f"--as={52 * MIB}")

    def test_a_body_too_large_for_memory_is_refused(self):
        pid, statuses = self.process.pid, set()
        for size in (1, 4, 6, 8, 10, 12, 13, 14, 15):
            try:
                reply = self.request(
                    "POST", "/v1/tasks", self.body("# " + "x" * (size * MIB), hold=True)
                )
            except (BrokenPipeError, ConnectionResetError):
                continue  # no memory for the answer either: the connection was closed
            statuses.add(reply.status)
            self.assertIn(reply.status, (201, 503, 507), reply.data[:300])
            if reply.status == 503:
                self.assertIn("not enough memory", reply.message)
            self.assertLess(self.seconds(), 2)
        self.assertIn(503, statuses)
        self.assertIsNone(self.process.poll())
        self.assertEqual(self.get("/v1/info")["pid"], pid)
        self.wait(self.submit("echo done"), "COMPLETED")


class Threads(Limited):
    """Stacks of 64 MiB: glibc keeps none of more than 40 MiB for the next thread."""

    daemon_prefix = ("prlimit", f"--stack={64 * MIB}:{64 * MIB}")

    def age_s(self):
        return self.get("/v1/gpus")["gpus"][0]["activity_age_s"]

    def test_a_sample_without_a_thread_is_left_out_and_the_next_ones_come(self):
        pid = self.process.pid
        until(lambda: self.age_s() is not None, "the first sample")
        _, most = resource.prlimit(pid, resource.RLIMIT_AS)
        sizes = []

        def is_short():
            """The stack of a sample's thread may be a part of what the daemon has now."""
            sizes.append(int(read(f"/proc/{pid}/statm").split()[0]) * resource.getpagesize())
            resource.prlimit(pid, resource.RLIMIT_AS, (min(sizes) + 32 * MIB, most))
            return "no thread can be started to sample the GPUs" in "\n".join(self.log)

        until(is_short, "a sample without a thread")
        until(lambda: self.age_s() > 1, "readings that get older")
        resource.prlimit(pid, resource.RLIMIT_AS, (most, most))
        until(lambda: self.age_s() < 0.5, "a later sample")
        self.assertEqual(self.get("/v1/info")["pid"], pid)


class Arguments(Limited):
    def test_too_many_query_arguments_are_refused_at_once(self):
        for count in (64, 500, 5000):
            begin, queued = time.monotonic(), self.queued_s()
            client = self.connect(
                b"GET /v1/tasks?" + b"&" * count + b" HTTP/1.1\r\nHost: x\r\n\r\n"
            )
            self.assertTrue(client.recv(4096).startswith(b"HTTP/1.1 400 "), count)
            self.assertEqual(client.recv(4096), b"")
            took = time.monotonic() - begin - (self.queued_s() - queued)
            self.assertLess(took, 5)
        self.assertEqual(self.request("GET", "/v1/tasks?" + "&" * 63).status, 200)


@unittest.skipIf(os.geteuid() != 0, "becoming other users needs root")
class ManyUsers(Limited):
    settings = {"request-memory": "256MiB"}

    def setUp(self):
        super().setUp()
        files = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, files)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, files[1]), files[1]))
        os.chmod(self.work, 0o777)

    def start(self, **settings):
        """The address sanitizer keeps up to 256 MiB of freed memory, as much as the limit: here 16.

        Seen resident: 473 MiB, and with this 234.
        """
        if "ASAN_OPTIONS" in self.env:
            self.env["ASAN_OPTIONS"] += ":quarantine_size_mb=16"
        super().start(**settings)

    @contextlib.contextmanager
    def user(self, uid):
        os.seteuid(uid)
        try:
            yield
        finally:
            os.seteuid(0)

    def connect_as(self, uid, count, data=b""):
        with self.user(uid):
            return [self.connect(data) for _ in range(count)]

    def test_root_has_connections_left(self):
        for uid in sorted({entry.pw_uid for entry in pwd.getpwall()} - {0})[:9]:
            self.connect_as(uid, PER_USER)
        self.assertLess(self.seconds(), 5)
        until(lambda: self.connections() <= CONNECTIONS, "the refusal of the rest")

    def test_a_user_with_many_connections_leaves_some_to_others(self):
        self.connect_as(ADA, 600)
        until(lambda: self.connections() < 300, "the refusal of the rest")
        with self.user(UNPRIVILEGED):
            self.assertLess(self.seconds(), 5)

    def test_users_without_a_name_count_together(self):
        for uid in range(NAMELESS_UID, NAMELESS_UID + 8):
            self.connect_as(uid, 100)
            until(lambda: self.connections() <= PER_USER + 20, "the refusal of the rest")
        with self.user(UNPRIVILEGED):
            self.assertLess(self.seconds(), 5)

    def test_root_has_bytes_left(self):
        half = b"POST /v1/tasks HTTP/1.1\r\nContent-Length: 16777216\r\n\r\n" + b" " * (12 * MIB)
        known = sorted({entry.pw_uid for entry in pwd.getpwall()} - {0})
        for uid in known[:4]:
            self.connect_as(uid, 5, half)
        lines = read(f"/proc/{self.process.pid}/status").splitlines()
        resident = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024
        self.assertLess(resident, 256 + 50)
        with self.user(known[5]):
            script = "# " + "x" * (3 * MIB)  # it may have 4 MiB
            reply = self.request("POST", "/v1/tasks", self.body(script))
            self.assertEqual(reply.status, 503, reply.data[:300])
            self.assertIn("pending requests of all users", reply.message)
        self.submit(script, hold=True)


if __name__ == "__main__":
    unittest.main()
