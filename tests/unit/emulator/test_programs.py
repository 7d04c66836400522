# SPDX-License-Identifier: Apache-2.0
"""The emulator's programs as their users call them."""
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

FOLDER = os.environ["EMULATOR_FOLDER"]
LIMIT_S = 20


class Machine(unittest.TestCase):
    gpus = "2xA100-40GB"
    kinds = ""  # lines as in data/gpu-kinds.txt

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.children = []
        self.addCleanup(self.end_children)
        self.env = dict(
            os.environ,
            COLLOC_EMULATOR=self.folder + "/gpus",
            CUDA_MPS_PIPE_DIRECTORY=self.folder,
            CUDA_MPS_LOG_DIRECTORY=self.folder,
            CUDA_VISIBLE_DEVICES="0",
        )
        with open(self.folder + "/kinds", "w") as file:
            file.write(self.kinds)
        self.run_program(
            "colloc-emulator",
            "create",
            "--gpus=" + self.gpus,
            "--gpu-kinds=" + file.name,
            "--speed=500",
            self.env["COLLOC_EMULATOR"],
        )

    def end_children(self):
        for child in self.children:
            child.kill()
            child.communicate()

    def run_program(self, name, *arguments, code=0, text=None, **env):
        done = subprocess.run(
            [FOLDER + "/" + name, *arguments],
            env=dict(self.env, **env),
            input=text,
            text=True,
            capture_output=True,
            timeout=LIMIT_S,
        )
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def train(self, *arguments, **options):
        return self.run_program("colloc-pretend-train", *arguments, **options)

    def start(self, *arguments, mib, seconds="1e8", **env):
        """A training that has all its memory when this returns."""
        command = [
            FOLDER + "/colloc-pretend-train",
            f"--memory-mib={mib}",
            f"--seconds={seconds}",
            *arguments,
        ]
        child = subprocess.Popen(
            command,
            env=dict(self.env, **env),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.children.append(child)
        self.wait_for(lambda: (child.pid, mib) in [(p, m) for p, m, _ in self.processes()])
        return child

    def wait_for(self, condition):
        end = time.monotonic() + LIMIT_S
        while not condition():
            self.assertLess(time.monotonic(), end)

    def read(self, name):
        with open(self.folder + "/" + name) as file:
            return file.read()

    def show(self):
        return self.run_program("colloc-emulator", "show").stdout

    def processes(self):
        rows = re.findall(r"pid (\d+) .*?(\d+) MiB  (\w+)", self.show())
        return [(int(pid), int(mib), how) for pid, mib, how in rows]

    def set(self, *arguments, **options):
        return self.run_program("colloc-emulator", "set", *arguments, **options)


class Training(Machine):
    def test_trains_and_ends(self):
        out = self.train(
            "--memory-mib=7106", "--seconds=48", "--epochs=3", "--exit-code=7", code=7
        ).stdout
        self.assertIn("(streams)", out)
        self.assertEqual(re.findall(r"Epoch (\d)/3", out), ["1", "2", "3"])
        self.assertEqual(self.processes(), [])

    def test_nothing_to_do_is_done_at_once(self):
        self.train("--memory-mib=1", "--seconds=0")

    def test_memory_is_the_figure_asked_for(self):
        for mib in (2, 100, 500, 502, 508, 7106, 19018):
            child = self.start("--ramp-seconds=0", mib=mib)
            self.assertIn((child.pid, mib, "streams"), self.processes())
            child.kill()
            child.wait()

    def test_uses_as_many_gpus_as_asked(self):
        child = self.start("--gpus=2", mib=3000, CUDA_VISIBLE_DEVICES="1,0")
        self.assertEqual([m for p, m, _ in self.processes() if p == child.pid], [3000, 3000])
        self.assertIn(
            "invalid device ordinal",
            self.train("--memory-mib=3000", "--seconds=9", "--gpus=2", code=1).stderr,
        )

    def test_no_gpu_in_sight(self):
        for visible in ("", "7", "GPU-elsewhere"):
            done = self.train(
                "--memory-mib=3000", "--seconds=9", code=1, CUDA_VISIBLE_DEVICES=visible
            )
            self.assertIn(
                "RuntimeError: CUDA error: no CUDA-capable device is detected", done.stderr
            )

    def test_a_polite_end_and_a_rude_one(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            child = self.start(mib=3000)
            child.send_signal(number)
            self.assertEqual(child.wait(LIMIT_S), -number)
            self.assertEqual(self.processes(), [])

    def test_neighbours_slow_each_other_until_they_leave(self):
        self.start("--smact=0.9", mib=3000)
        second = self.start("--smact=0.9", mib=3000)
        speeds = [float(s) for s in re.findall(r"speed ([\d.]+)", self.show())]
        self.assertEqual(len(speeds), 2)
        self.assertTrue(all(0.4 < s < 0.55 for s in speeds), speeds)
        second.kill()
        second.wait()
        self.assertIn("speed 1.00", self.show())

    def test_a_lost_gpu_ends_it(self):
        child = self.start(mib=3000)
        self.set("0", "lost=on")
        self.assertIn("unspecified launch failure", child.communicate(timeout=LIMIT_S)[1])
        self.assertEqual(child.returncode, 1)


class OutOfMemory(Machine):
    WORDS = {
        "pytorch": r"^torch\.OutOfMemoryError: CUDA out of memory\. Tried to allocate 7\.20 GiB\. "
        r"GPU 0 has a total "
        r"capacity of 39\.39 GiB of which \d+\.\d\d GiB is free\. Process (\d+) has 29\.30 GiB "
        r"memory in "
        r"use\. Including non-PyTorch memory, this process has [\d.]+ GiB memory in use\. ",
        "tensorflow": r"^tensorflow\.python\.framework\.errors_impl\.ResourceExhaustedError: "
        r".*\n\nOOM when allocating "
        r"tensor with shape\[\d+\]",
        "jax": r"^jaxlib\.xla_extension\.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while "
        r"trying to allocate "
        r"\d+ bytes\.$",
        "cuda": r"^CUDA error at train\.cu:57 code=2\(cudaErrorMemoryAllocation\)",
    }

    def test_each_framework_dies_with_its_own_words(self):
        neighbour = self.start(mib=30000)
        for framework, words in self.WORDS.items():
            done = self.train(
                "--memory-mib=30000", "--seconds=900", "--framework=" + framework, code=1
            )
            found = re.search(words, done.stderr, re.MULTILINE)
            self.assertTrue(found, done.stderr)
            if framework == "pytorch":
                self.assertEqual(int(found[1]), neighbour.pid)
        self.assertEqual([p for p, _, _ in self.processes()], [neighbour.pid])

    def test_free_memory_can_be_had_wherever_it_lies(self):
        self.set("0", "foreign-mib=10000", "foreign-at-mib=15000")  # leaves 15000 and 15336 MiB
        self.train("--memory-mib=30000", "--seconds=900")


class LinearMemory(Machine):
    kinds = "constant linear_memory 1\n"

    def test_free_memory_in_pieces_is_not_enough(self):
        self.set("0", "foreign-mib=10000", "foreign-at-mib=15000")  # leaves 15000 and 15336 MiB
        done = self.train("--memory-mib=30000", "--seconds=900", code=1)
        free = float(re.search(r"of which ([\d.]+) GiB is free", done.stderr)[1])
        wanted = float(re.search(r"allocate ([\d.]+) GiB", done.stderr)[1])
        self.assertGreater(free, wanted)


class Mps(Machine):
    def setUp(self):
        super().setUp()
        self.run_program("nvidia-cuda-mps-control", "-d", CUDA_VISIBLE_DEVICES="0,1")
        self.daemon = int(self.read("nvidia-cuda-mps-control.pid"))
        self.addCleanup(lambda: self.alive() and os.kill(self.daemon, signal.SIGKILL))

    def alive(self):
        try:
            with open(f"/proc/{self.daemon}/stat") as file:
                return file.read().split(") ")[1][0] != "Z"
        except FileNotFoundError:
            return False

    def control(self, command, **options):
        return self.run_program("nvidia-cuda-mps-control", text=command + "\n", **options).stdout

    def test_a_second_daemon_is_refused(self):
        self.assertIn(
            "already running", self.run_program("nvidia-cuda-mps-control", "-d", code=1).stderr
        )

    def test_clients_share_through_a_server(self):
        self.assertEqual(self.control("get_server_list"), "")
        a = self.start("--smact=0.4", mib=2000)
        b = self.start("--smact=0.4", mib=2000)
        server = self.control("get_server_list").strip()
        self.assertEqual({how for p, _, how in self.processes() if p != int(server)}, {"MPS"})
        self.assertIn((int(server), 30, "MPS"), self.processes())
        with open(f"/proc/{server}/cmdline") as file:
            self.assertIn("nvidia-cuda-mps-server", file.read())
        self.assertEqual(self.control("get_server_status " + server), "ACTIVE\n")
        self.assertEqual(
            set(self.control("get_client_list " + server).split()), {str(a.pid), str(b.pid)}
        )
        self.assertIn(str(a.pid), self.control("get_device_client_list").splitlines()[0])
        self.assertEqual(self.control("get_client_list 1"), "Server not found\n")

    def test_without_a_daemon_they_take_turns(self):
        child = self.start(mib=2000, CUDA_MPS_PIPE_DIRECTORY=self.folder + "/elsewhere")
        self.assertEqual([(p, how) for p, _, how in self.processes()], [(child.pid, "streams")])

    def test_a_client_has_the_gpus_of_its_server_only(self):
        self.control("quit")
        self.wait_for(lambda: not self.alive())
        self.run_program("nvidia-cuda-mps-control", "-d", CUDA_VISIBLE_DEVICES="1")
        self.daemon = int(self.read("nvidia-cuda-mps-control.pid"))
        self.start(mib=2000, CUDA_VISIBLE_DEVICES="1")
        done = self.train("--memory-mib=2000", "--seconds=1e8", code=1)
        self.assertIn("no CUDA-capable device is detected", done.stderr)

    def test_a_client_can_be_ended(self):
        child = self.start(mib=2000)
        server = self.control("get_server_list").strip()
        self.assertEqual(self.control(f"terminate_client {server} 1"), "201\n")
        self.control(f"terminate_client {server} {child.pid}")
        self.assertIn("MPS client has been terminated", child.communicate(timeout=LIMIT_S)[1])

    def test_a_dead_server_takes_its_clients_along_and_is_replaced(self):
        child = self.start(mib=2000)
        server = int(self.control("get_server_list"))
        os.kill(server, signal.SIGKILL)
        self.assertEqual(child.wait(LIMIT_S), 1)
        self.start(mib=2000)
        self.assertNotEqual(int(self.control("get_server_list")), server)

    def test_a_thread_percentage_limits_new_clients(self):
        self.assertEqual(self.control("get_default_active_thread_percentage"), "100.0\n")
        self.assertEqual(self.control("set_default_active_thread_percentage 25"), "25.0\n")
        self.assertEqual(
            self.control("set_default_active_thread_percentage 0"), "Invalid percentage\n"
        )
        self.start("--smact=0.5", mib=2000)
        # GRACT 0.65: kernels take 2 instead of 0.65 on a quarter of the SMs, and launches of a
        # client 0.429 * 0.35 longer
        self.assertIn("speed 0.40", self.show())

    def test_quit_waits_for_clients(self):
        child = self.start(mib=2000)
        quitting = subprocess.Popen(
            [FOLDER + "/nvidia-cuda-mps-control"], env=self.env, stdin=subprocess.PIPE, text=True
        )
        self.children.append(quitting)
        quitting.stdin.write("quit\n")
        quitting.stdin.flush()
        self.wait_for(lambda: "Quit" in self.read("control.log"))
        self.assertTrue(self.alive())
        self.assertIsNone(quitting.poll())
        child.kill()
        quitting.stdin.close()
        self.assertEqual(quitting.wait(LIMIT_S), 0)
        self.wait_for(lambda: not self.alive())
        self.assertEqual(self.control("get_server_list", code=1), "")
        self.assertFalse(os.path.exists(self.folder + "/control"))

    def test_quit_with_a_limit_does_not(self):
        child = self.start(mib=2000)
        self.control("quit -t 0")
        self.assertEqual(child.wait(LIMIT_S), 1)

    def test_a_killed_daemon_leaves_no_process(self):
        child = self.start(mib=2000)
        os.kill(self.daemon, signal.SIGKILL)
        self.assertEqual(child.wait(LIMIT_S), 1)
        self.wait_for(lambda: self.processes() == [])
        self.run_program("nvidia-cuda-mps-control", "-d")
        self.control("quit")


class Kinds(Machine):
    gpus = "Mine,H100-80GB"
    kinds = "kind Mine 9000 1000 20 100 12 30 55\nnvml 7.5 6 1000 5000 3 1EB810DE  Card of Mine\n"

    def test_kinds_of_ones_own(self):
        self.assertRegex(self.show(), r"(?m)^0 +Mine .* 9000 MiB")
        self.assertRegex(self.show(), r"(?m)^1 +H100 ")
        self.assertIn(
            "out of memory", self.train("--memory-mib=8002", "--seconds=0", code=1).stderr
        )
        self.train("--memory-mib=8000", "--seconds=0")

    def test_a_wrong_file_is_refused(self):
        with open(self.folder + "/wrong", "w") as file:
            file.write("kind X\n")
        for path, words in (
            (file.name, "/wrong:1: kind NAME"),
            ("/nonexistent", "/nonexistent: No such file"),
        ):
            done = self.run_program(
                "colloc-emulator",
                "create",
                "--gpus=H200",
                "--gpu-kinds=" + path,
                self.folder + "/other",
                code=2,
            )
            self.assertIn(words, done.stderr)


class WrongUse(Machine):
    def test_it_says_what_is_wrong(self):
        for arguments, words in (
            (["--seconds=3"], "--memory-mib and --seconds are needed"),
            (["--memory-mib=0", "--seconds=3"], "--memory-mib=0: not a value"),
            (["--memory-mib=9", "--seconds=-1"], "--seconds=-1: not a value"),
            (["--memory-mib=9", "--seconds=3", "--framework=mxnet"], "--framework=mxnet"),
            (["--memory-mib=9", "--seconds=3", "--smact=1.5"], "--smact=1.5"),
            (["--memory-mib=9", "--seconds=3", "more"], "more: unexpected"),
        ):
            self.assertIn(words, self.train(*arguments, code=2).stderr)
        self.assertIn(
            "/nonexistent: No such file",
            self.train(
                "--memory-mib=9", "--seconds=3", code=2, COLLOC_EMULATOR="/nonexistent"
            ).stderr,
        )
        for arguments, words in (
            (["2", "lost=on"], "no GPU of that index"),
            (["0", "lost=maybe"], "on or off"),
            (["0", "colour=red"], "colour: unknown"),
            (["0", "foreign-mib=x"], "number of MiB"),
        ):
            self.assertIn(words, self.set(*arguments, code=2).stderr)


if __name__ == "__main__":
    unittest.main()
