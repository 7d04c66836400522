# SPDX-License-Identifier: Apache-2.0
"""`colloc record`: a command measured without a daemon."""

import csv
import json
import os
import signal
import subprocess
import unittest

from daemon_case import LIMIT_S, DaemonCase, program, read, short_training, until


class Record(DaemonCase):
    gpus = "H200,H200"

    def start(self, **settings):
        """No daemon here."""

    def train(self, mib=4000, seconds=100, options=""):
        return [
            "colloc-pretend-train",
            f"--memory-mib={mib}",
            f"--seconds={seconds}",
            "--ramp-seconds=5",
            *options.split(),
        ]

    def record(self, *words, code=0, options=()):
        """The summary as JSON."""
        path = os.path.join(self.work, "summary")
        done = self.colloc(
            "record",
            "--interval=20ms",
            "--json",
            f"--summary={path}",
            *options,
            "--",
            *words,
            code=code,
        )
        return done, json.loads(read(path))

    def test_a_process_that_runs_already(self):
        csv_path, summary_path = (os.path.join(self.work, name) for name in ("looks", "summary"))
        words = [program("colloc"), "record", "--interval=20ms", "--json"]
        files = [f"--output={csv_path}", f"--summary={summary_path}"]
        training = subprocess.Popen(
            ["sh", "-c", '"$@"; read end', "sh", *self.train(seconds=300, options="--epochs=2")],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env=self.env,
            cwd=self.work,
        )
        record = [*words, *files, f"--pid={training.pid}"]
        by_end = subprocess.Popen(record, env=self.env, cwd=self.work)
        other_path = os.path.join(self.work, "other-looks")
        files = [f"--output={other_path}", "--summary=other"]
        by_signal = subprocess.Popen(
            [*words, *files, f"--pid={training.pid}"], env=self.env, cwd=self.work
        )

        def has_seen(path):
            if not os.path.exists(path):
                return False
            with open(path, encoding="utf-8") as file:
                return any(row.get("command_processes") == "1" for row in csv.DictReader(file))

        for path in (csv_path, other_path):
            until(lambda path=path: has_seen(path), "the training is the process's descendant")
        by_signal.send_signal(signal.SIGINT)
        self.assertEqual(by_signal.wait(LIMIT_S), 0)
        self.assertIsNone(training.poll())
        training.communicate(b"\n")
        self.assertEqual(by_end.wait(LIMIT_S), 0)
        gpu = json.loads(read(summary_path))["gpus"][0]
        self.assertTrue(gpu["used"])
        self.assertEqual(gpu["command_mem_peak_mib"], 4000)
        done = self.colloc("record", f"--pid={training.pid}", code=125)
        self.assertIn(f"process {training.pid}: No such process", done.stderr)
        for words in (["record"], ["record", "--pid=1", "true"]):
            self.assertIn("give a command, or --pid", self.colloc(*words, code=2).stderr)

    def test_a_training_alone(self):
        csv_path = os.path.join(self.work, "looks.csv")
        done, summary = self.record(
            *self.train(seconds=300, options="--smact=0.6 --epochs=2"),
            options=[f"--output={csv_path}"],
        )
        self.assertIn("Epoch 2/2", done.stdout)
        gpu, other = summary["gpus"]
        self.assertTrue(gpu["used"] and not gpu["with_others"] and not other["used"])
        self.assertEqual(gpu["command_mem_peak_mib"], 4000)
        # Before its training begins, the program takes as long as the machine lets it.
        expected = 0.6 * 300 / self.speed / summary["elapsed_s"]
        self.assertAlmostEqual(gpu["smact"], expected, delta=0.06)
        self.assertAlmostEqual(gpu["command_energy_j"] / gpu["energy_j"], 1, delta=0.1)
        self.assertEqual(other["command_energy_j"], 0)
        self.assertGreater(summary["elapsed_s"], 0.9)
        with open(csv_path, encoding="utf-8") as file:
            looks = list(csv.DictReader(file))
        self.assertEqual(len(looks), 2 * summary["looks"])
        self.assertEqual(max(float(look["command_mem_mib"]) for look in looks), 4000)
        self.assertEqual(looks[0]["smact"], "")
        # The host's values: once a second, and unknown in between.
        known = [look for look in looks if look["command_cpu_s"]]
        times = [look["time_s"] for look in known if look["gpu"] == "0"]
        self.assertTrue(0 < len(times) <= summary["elapsed_s"] + 2, times)
        self.assertLess(len(known), len(looks))
        self.assertEqual(looks[0]["command_cpu_s"], "")
        self.assertGreater(max(float(look["command_host_mem_mib"]) for look in known), 0.5)
        totals = [float(look["command_cpu_s"]) for look in known]
        self.assertEqual(totals, sorted(totals))
        self.assertEqual(set(look["command_disk_written_mib"] == "" for look in known), {False})

    def test_beside_another_the_parts_are_told_apart(self):
        other = subprocess.Popen(
            self.train(3000, 1e6, "--smact=0.2"),
            env=self.env,
            cwd=self.work,
            stdout=subprocess.DEVNULL,
        )
        self.addCleanup(lambda: (other.kill(), other.wait()))
        until(
            lambda: "streams"
            in subprocess.run(
                [program("emulator"), "show"],
                env=self.env,
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        _, summary = self.record(*self.train(options="--smact=0.6"))
        gpu = summary["gpus"][0]
        self.assertTrue(gpu["with_others"] and not gpu["estimated"])
        self.assertEqual(gpu["command_mem_peak_mib"], 4000)
        self.assertGreaterEqual(gpu["mem_peak_mib"], 7000)
        self.assertLess(gpu["command_smact"], gpu["smact"])
        self.assertLess(gpu["command_energy_j"], gpu["energy_j"])
        self.assertGreater(gpu["command_energy_j"], 0.3 * gpu["energy_j"])

    def test_an_orphan_of_the_command_is_still_its_own(self):
        script = f"mkfifo told; ({' '.join(self.train(options='--epochs=2'))} >told &); cat told"
        done, summary = self.record("sh", "-c", script)
        self.assertIn("Epoch 2/2", done.stdout)
        self.assertTrue(summary["gpus"][0]["used"])

    def test_orphans_that_have_ended_are_buried(self):
        script = """if True:
            import os, time
            for _ in range(5):
                child = os.fork()
                if child == 0:
                    os.fork()
                    os._exit(0)
                os.waitpid(child, 0)
            def zombies():
                for pid in filter(str.isdigit, os.listdir("/proc")):
                    try:
                        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                            words = file.read().rpartition(")")[2].split()
                        yield words[0] == "Z" and int(words[1]) == os.getppid()
                    except OSError:
                        pass
            end = time.monotonic() + 100
            while any(zombies()):
                assert time.monotonic() < end
        """
        self.record("python3", "-c", script)

    def test_the_exit_status_is_the_commands(self):
        for words, code in ((["sh", "-c", "exit 7"], 7), (["sh", "-c", "kill -9 $$"], 137)):
            _, summary = self.record(*words, code=code)
            self.assertEqual(summary["exit_code"], code)
        self.assertIn("nowhere: No such file", self.colloc("record", "nowhere", code=127).stderr)
        self.assertIn(
            "Permission denied", self.colloc("record", self.write("plain", "x"), code=126).stderr
        )
        self.assertIn("no such GPU", self.colloc("record", "--gpus=9", "true", code=125).stderr)
        self.assertIn(
            "must be from 10 ms to 3600 s",
            self.colloc("record", "--interval=1ms", "true", code=2).stderr,
        )
        self.assertIn(
            "/nowhere/x", self.colloc("record", "-o", "/nowhere/x", "true", code=125).stderr
        )

    def test_words_behind_the_command_are_its_own(self):
        self.assertEqual(self.colloc("record", "echo", "--json", "-o", "x").stdout, "--json -o x\n")

    def test_signals_are_passed_on(self):
        script = "trap 'echo got it; exit 5' TERM; echo ready; while :; do sleep 0.05; done"
        with subprocess.Popen(
            [program("colloc"), "record", "sh", "-c", script],
            env=self.env,
            cwd=self.work,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            self.assertEqual(process.stdout.readline(), "ready\n")
            process.send_signal(signal.SIGTERM)
            out, words = process.communicate(timeout=LIMIT_S)
        self.assertEqual((process.returncode, out), (5, "got it\n"))
        self.assertIn("exit 5", words)

    def test_without_gpus(self):
        done = self.colloc("record", "echo", "hello", LD_LIBRARY_PATH="/nowhere")
        self.assertEqual(done.stdout, "hello\n")
        self.assertIn("GPUs      none: no NVIDIA management library", done.stderr)

    def test_for_people(self):
        done = self.colloc("record", "--interval=50ms", *self.train(options="--smact=0.6"))
        for words in ("peak memory 3.9 GiB", "mean SMACT", "of it the command's", "Samples "):
            self.assertIn(words, done.stderr)

    def test_a_driver_that_lists_no_processes(self):
        self.emulator("set", "0", "processes=off")
        done = self.colloc("record", "--interval=50ms", *self.train())
        self.assertIn("(of the whole GPU)", done.stderr)
        self.assertIn("does not list the command's processes", done.stderr)

    def test_a_gpu_that_vanishes(self):
        script = f"colloc-emulator set 0 lost=on; {' '.join(self.train())}; true"
        _, summary = self.record("sh", "-c", script)
        self.assertEqual(summary["exit_code"], 0)


class ShortRuns(DaemonCase):
    """Runs of 2, 5 and 10 s, a fifth of it busy, sampled each second in real time."""

    gpus = "H200"
    speed = 1

    def start(self, **settings):
        """No daemon here."""

    def largest_error(self, seconds):
        path = os.path.join(self.work, "summary")
        self.colloc(
            "record",
            "--interval=200ms",
            "--json",
            f"--summary={path}",
            "--",
            *short_training(seconds),
        )
        summary = json.loads(read(path))
        gpu, elapsed = summary["gpus"][0], summary["elapsed_s"]
        expected = 0.6 * seconds / elapsed
        return max(
            abs(gpu["smact"] - expected),
            abs(gpu["command_smact"] - expected),
            abs(gpu["power_w"] / (gpu["energy_j"] / elapsed) - 1),
        )

    def test_the_last_interval_counts(self):
        """A busy host can delay a sample, once; an interval that is left out is so each time."""
        for seconds in (0.4, 1, 2.1):
            with self.subTest(seconds=seconds):
                errors = [self.largest_error(seconds)]
                while errors[-1] > 0.02 and len(errors) < 3:
                    errors.append(self.largest_error(seconds))
                self.assertLess(errors[-1], 0.02, errors)


if __name__ == "__main__":
    unittest.main()
