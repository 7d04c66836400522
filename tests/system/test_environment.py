# SPDX-License-Identifier: Apache-2.0
"""The environment of a task: its GPUs, and defaults that the user's values override."""

import contextlib
import os
import shutil
import socket
import subprocess
import unittest

from daemon_case import DaemonCase, read, until
from test_history import SUMMARY

SHOW = 'echo "$CUDA_DEVICE_ORDER $CUDA_VISIBLE_DEVICES"; '
EXCLUSIVE = {"exclusive": True, "gpus": 1}


class Environment(DaemonCase):
    def variables(self, task):
        """Those that the script printed with `env`."""
        self.wait(task, "COMPLETED")
        return dict(
            line.partition("=")[::2] for line in self.output(task).splitlines() if "=" in line
        )

    def seen(self, **members):
        task = self.submit(SHOW, **members)
        self.wait(task, "COMPLETED")
        order, visible = self.output(task).split()
        self.assertEqual(order, "PCI_BUS_ID")
        return visible


class WholeGpus(Environment):
    def test_whole_gpus_have_indices(self):
        task = self.submit("env", gpus=2)
        found = self.variables(task)
        self.assertRegex(found["CUDA_VISIBLE_DEVICES"], r"^[0-3],[0-3]$")
        self.assertEqual(found["COLLOC_GPUS"], found["CUDA_VISIBLE_DEVICES"])
        self.assertEqual(
            (found["COLLOC_TASK_ID"], found["CUDA_DEVICE_ORDER"]), (str(task), "PCI_BUS_ID")
        )

    def test_the_index_is_the_drivers_where_the_daemon_has_some_of_the_gpus(self):
        self.restart(gpus="2,3", sharing="streams")
        self.assertEqual(sorted(self.seen(gpus=2).split(",")), ["2", "3"])
        task = self.train(mib=3000, seconds=1e6, **EXCLUSIVE)
        place = self.wait_state(task, "RUNNING")["gpus"][0]
        until(
            lambda: any(
                gpu["index"] == place and (gpu["mem_used_mib"] or 0) >= 3000
                for gpu in self.get("/v1/gpus")["gpus"]
            ),
            f"its memory on GPU {place}",
        )
        self.act("cancel", task)
        self.wait(task)

    def test_a_task_under_a_profiler(self):
        """A pretend nsys on the task's PATH: it notes its command line where the profile is to be,
        and runs what follows its options."""
        nsys = self.write(
            "nsys",
            "#!/bin/sh\nfor word; do case $word in --output=*)\n"
            'echo "$*" >"${word#*=}.nsys-rep"; esac; done\n'
            'while [ "${1#-}" != "$1" ] || [ "$1" = profile ]; do shift; done\nexec "$@"\n',
        )
        os.chmod(nsys, 0o755)
        plain = self.env["PATH"]
        self.env["PATH"] = f"{self.work}:{plain}"
        script = self.write("job.sh", "echo trained $1\n")
        done = self.colloc("submit", "--profile=nsys", "--wait", script, "quickly")
        self.assertEqual(read(f"{self.work}/colloc-1.out"), "trained quickly\n", done.stderr)
        self.assertIn("profile --output=", read(f"{self.work}/colloc-1.nsys-rep"))
        self.colloc("submit", "--array=3", "--profile=nsys", "--wait", "--", "echo", "in an array")
        (profile,) = (name for name in os.listdir(self.work) if name.endswith("_3.nsys-rep"))
        self.assertIn("in an array", read(f"{self.work}/{profile}"))
        self.assertRegex(self.colloc("show", "1").stdout, r"Profiler +nsys")
        self.env["PATH"] = plain
        self.colloc("submit", "--profile=ncu", "--wait", script, code=1)
        self.assertIn("cannot execute ncu", self.colloc("show", "4").stdout)
        self.colloc("submit", "--profile=perf", script, code=2)

    def test_clients_of_mps_count_the_gpus_of_their_server(self):
        self.restart(sharing="mps")
        self.assertRegex(self.seen(), r"^[0-3]$")
        self.restart(sharing="mps", gpus="2,3")
        self.assertRegex(self.seen(), r"^GPU-")

    def test_a_lost_gpu_makes_indices_unsure(self):
        self.emulator("set", "0", "lost=on")
        self.wait_gpu(lambda gpu: gpu["health"] == "lost", index=0)
        self.assertRegex(self.seen(), r"^GPU-")

    def test_defaults_give_way_to_the_user(self):
        found = self.variables(self.submit("env"))
        self.assertEqual(
            (
                found["PYTHONUNBUFFERED"],
                found["TF_FORCE_GPU_ALLOW_GROWTH"],
                found["XLA_PYTHON_CLIENT_PREALLOCATE"],
            ),
            ("1", "true", "false"),
        )
        own = {
            "PYTHONUNBUFFERED": "",
            "TF_FORCE_GPU_ALLOW_GROWTH": "false",
            "XLA_PYTHON_CLIENT_PREALLOCATE": "true",
        }
        found = self.variables(self.submit("env", environment=own))
        self.assertEqual({name: found[name] for name in own}, own)

    def test_two_tasks_meet_at_two_ports(self):
        listen = (
            "env; exec python3 -c 'import os, socket, time; "
            's = socket.create_server(("", int(os.environ["MASTER_PORT"]))); time.sleep(1e6)\''
        )
        ports = []
        for n_gpus in (2, 1):
            task = self.submit(listen, gpus=n_gpus)
            until(lambda: "MASTER_PORT=" in self.output(task))
            found = dict(
                line.partition("=")[::2] for line in self.output(task).splitlines() if "=" in line
            )
            self.assertEqual(found["MASTER_ADDR"], "127.0.0.1")
            self.assertEqual(found["COLLOC_GPU_COUNT"], str(n_gpus))
            self.assertEqual(found["PET_NPROC_PER_NODE"], str(n_gpus))
            self.assertEqual(found["PET_MASTER_PORT"], found["MASTER_PORT"])
            self.assertFalse({"RANK", "WORLD_SIZE"} & set(found))
            ports.append(int(found["MASTER_PORT"]))
        self.assertNotEqual(*ports)

    def test_a_port_of_the_user_stays(self):
        own = {"MASTER_PORT": "29501", "PET_NPROC_PER_NODE": "8"}
        found = self.variables(self.submit("env", environment=own))
        self.assertEqual({name: found[name] for name in own}, own)

    def test_a_port_that_is_taken_is_not_given(self):
        def port_of(task):
            return int(self.variables(task)["MASTER_PORT"])

        first = port_of(self.submit("env"))
        with contextlib.ExitStack() as stack:
            with contextlib.suppress(OSError):  # of another test: it is taken all the same
                stack.enter_context(socket.create_server(("", first + 1)))
            self.assertNotIn(port_of(self.submit("env")), (first, first + 1))

    def test_a_task_alone_on_its_gpus_keeps_its_frameworks_way(self):
        found = self.variables(self.submit("env", **EXCLUSIVE))
        self.assertEqual(found["PYTHONUNBUFFERED"], "1")
        self.assertFalse(
            {"TF_FORCE_GPU_ALLOW_GROWTH", "XLA_PYTHON_CLIENT_PREALLOCATE"} & set(found)
        )


class Sanitized(Environment):
    """gcc's AddressSanitizer ends a program that loads any library before it."""

    PROGRAM = (
        "#include <stdio.h>\n#include <stdlib.h>\n"
        'int main(void) { char *p = malloc(4); p[0] = 7; printf("ran %d\\n", p[0]); free(p); }\n'
    )

    @unittest.skipUnless(shutil.which("gcc"), "no gcc")
    def test_a_program_with_address_sanitizer_runs(self):
        source, program = self.write("program.c", self.PROGRAM), f"{self.work}/program"
        built = subprocess.run(
            ["gcc", "-fsanitize=address", "-o", program, source], check=False, capture_output=True
        )
        if built.returncode:
            self.skipTest("gcc has no AddressSanitizer here")
        task = self.submit(f"exec {program}")
        self.assertEqual(self.wait(task, "COMPLETED")["exit_code"], 0)
        self.assertEqual(self.output(task), "ran 7\n")

    def options_of(self, submitted):
        return self.variables(self.submit("env", environment=submitted)).get("ASAN_OPTIONS")

    def test_the_users_options_stay(self):
        ours = "verify_asan_link_order=0"
        self.assertTrue(self.options_of({}).endswith(ours))
        self.assertEqual(self.options_of({"ASAN_OPTIONS": ""}), ours)
        for own in ("verify_asan_link_order=1", "verify_asan_link_order=0:detect_leaks=0"):
            self.assertEqual(self.options_of({"ASAN_OPTIONS": own}), own)
        for own in ("detect_leaks=0", "detect_leaks=0:abort_on_error=1"):
            self.assertEqual(self.options_of({"ASAN_OPTIONS": own}), f"{own}:{ours}")


class Instances(Environment):
    gpus = "1xA100-40GB:3g.20gb+2g.10gb,1xA100-40GB"

    def test_where_a_gpu_is_divided_all_have_uuids(self):
        self.assertRegex(self.seen(memory_mib=30000), r"^GPU-")
        first = self.train(mib=30000, seconds=1e6, memory_mib=30000)
        self.wait_state(first, "RUNNING")  # what it has not taken yet counts
        self.assertRegex(self.seen(memory_mib=3000), r"^MIG-")
        self.act("cancel", first)
        self.wait(first)


class Preallocation(Environment):
    gpus = "1xA100-40GB"

    def learned(self, mib, **members):
        """Whether the next run of the network is estimated from this one, which took so much."""
        network = {
            "summary": {"name": "net.txt", "text": SUMMARY},
            "batch": 32,
            "optimizer": "adam",
        }
        ended = self.wait(self.train(mib, 400, **network, **members), "COMPLETED")
        self.assertEqual(ended["mem_peak_mib"], mib)
        after = self.task(self.submit("true", **network))["estimate_mib"]
        self.assertEqual(after >= 0.9 * mib, not ended["preallocated"])
        return not ended["preallocated"]

    def test_what_was_preallocated_is_not_learned(self):
        self.assertFalse(self.learned(31000, **EXCLUSIVE))
        self.assertFalse(self.learned(20000, environment={"XLA_PYTHON_CLIENT_PREALLOCATE": "true"}))
        self.assertTrue(self.learned(9000, **EXCLUSIVE))
        self.assertTrue(self.learned(31000))


if __name__ == "__main__":
    unittest.main()
