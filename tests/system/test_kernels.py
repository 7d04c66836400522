# SPDX-License-Identifier: Apache-2.0
"""The daemon asks cuDNN for the kernels of a task's convolutions, on emulated GPUs with a pretend
cuDNN, and keeps the answers. Whatever goes wrong there, the task is estimated by rules."""

import json
import os
import signal
import sys
import unittest

from daemon_case import DaemonCase, proc, processes_with, until, words_of

BATCH = 64
USER = 64041
HELPER = 54042  # the user of colloc-cudnn: no system user, as 65534 is none


def conv(tick, phase, inputs=3, outputs=64, **members):
    return {
        "tick": tick,
        "phase": phase,
        "batch": [0, 1],
        "input": [inputs, 56, 56],
        "weight": [outputs, inputs, 3, 3],
        "output": [outputs, 28, 28],
        "stride": [2, 2],
        "padding": [1, 1],
        "dilation": [1, 1],
        "groups": 1,
        "transposed": False,
        "output_padding": [0, 0],
        "dtype": "float32",
        "channels_last": False,
        **members,
    }


def export(*convs, **flags):
    """A training of one layer, with these convolutions."""
    return json.dumps(
        {
            "colloc_export": 1,
            "model": "Net",
            "framework": {"name": "pytorch", "version": "2.6.0+cu124"},
            "method": "script",
            "batch": BATCH,
            "every_batch": True,
            "optimizer": {"name": "sgd"},
            "precision": "fp32",
            "multiply_adds": [0, 1024],
            "flags": flags,
            "layers": [
                {
                    "name": "",
                    "type": "Conv2d",
                    "depth": 0,
                    "leaf": True,
                    "args": "3, 64, kernel_size=(3, 3)",
                    "shape": [64, 28, 28],
                    "activations": [0, 50176],
                    "parameters": 1728,
                    "in_place": False,
                    "calls": 1,
                }
            ],
            "ticks": 6,
            "tensors": [[6912, 0, 0, -1, 0], [0, 37632, 1, -1, 2], [0, 200704, 2, 4, 4]],
            "convs": list(convs) or [conv(2, "forward")],
        }
    )


QUESTION = "forward float32 nchw 1 0 64,3,56,56 64,3,3,3 64,64,28,28 2,2 1,1 1,1"
INPUT_BYTES = 64 * 3 * 56 * 56 * 4  # what the pretend cuDNN takes forward


class KernelsCase(DaemonCase):
    gpus = "1xH200"
    settings = {"cudnn-user": HELPER}

    def emulator(self, *words, **named):
        """As the driver has them: everybody may open the GPUs."""
        super().emulator(*words, **named)
        os.chmod(self.env["COLLOC_EMULATOR"], 0o666)

    def pretend(self, word):
        """How the pretend cuDNN fails; "": not at all."""
        path = self.env["COLLOC_EMULATOR"] + ".cudnn"
        with open(path + ".new", "w", encoding="ascii") as file:
            file.write(word + "\n")
        os.chmod(path + ".new", 0o666)  # the pretend cuDNN, which counts there, is not root's
        os.replace(path + ".new", path)

    def plans(self):
        """How many plans were made since pretend("count")."""
        with open(self.env["COLLOC_EMULATOR"] + ".cudnn", encoding="ascii") as file:
            return file.read().split().count("plan")

    def estimated(self, text=None, **members):
        """A task that has been estimated from an export, once the GPU has a sample that counts."""
        summary = {"name": "net.json", "text": text or export()}
        self.wait_gpu(lambda gpu: gpu["mem_free_mib"] is not None)

        def submit():
            task = self.task(self.submit("true", summary=summary, **members))
            return None if "it is not known how much" in task["estimate_kernels"] else task

        return until(submit, "a sample of the GPU")

    def kept(self):
        folder = os.path.join(self.state, "kernels")
        names = os.listdir(folder) if os.path.isdir(folder) else []
        lines = []
        for name in names:
            with open(os.path.join(folder, name), encoding="ascii", errors="replace") as file:
                lines += file.read().splitlines()
        return lines

    def asking(self):
        """The processes that ask cuDNN."""
        return [
            pid for pid in processes_with(self.folder) if words_of(pid)[0].endswith("/colloc-cudnn")
        ]

    def check_by_rules(self, task, why):
        self.assertEqual(task["estimate_evidence"], "script")
        self.assertRegex(task["estimate_kernels"], rf"^by rules \(cuDNN was not asked: {why}")

    def check_asked(self, text=None):
        """Returns the task. A busy machine may be too slow for the first answer: it is kept."""
        task = until(
            lambda: next(
                (t for t in [self.estimated(text)] if "took longer" not in t["estimate_kernels"]),
                None,
            ),
            "an answer in time",
        )
        self.assertEqual(task["estimate_evidence"], "export with kernels")
        self.assertRegex(
            task["estimate_kernels"], r"^cuDNN 9\.19\.0 on NVIDIA H200.*, driver \d[\d.]+$"
        )
        return task


class Kernels(KernelsCase):
    def test_asked_once_and_kept(self):
        self.pretend("count")
        task = self.check_asked()
        self.assertEqual(self.plans(), 1)
        self.assertIn(f"{INPUT_BYTES} {QUESTION}", self.kept())
        shown = self.colloc("show", str(task["id"])).stdout
        self.assertRegex(shown, r"(?m)^Kernels +cuDNN 9\.19\.0 on NVIDIA H200")
        self.check_asked()
        self.assertEqual(self.plans(), 1)
        self.check_asked(export(conv(2, "forward"), conv(4, "backward")))
        self.assertEqual(self.plans(), 2)  # only the new one, of which a gradient is needed
        self.restart(signal.SIGKILL)
        self.check_asked()
        self.assertEqual(self.plans(), 2)
        until(lambda: not self.asking(), "the end of colloc-cudnn")

    def test_answers_of_other_drivers_serve_where_none_can_be_asked(self):
        self.check_asked()
        self.stop()
        folder = os.path.join(self.state, "kernels")
        (name,) = os.listdir(folder)
        with open(os.path.join(folder, name), encoding="ascii") as file:
            lines = file.read().splitlines()
        lines[2] = "driver 1.2.3"
        with open(os.path.join(folder, name), "w", encoding="ascii") as file:
            file.write("\n".join(lines) + "\n")
        self.pretend("refuse")
        self.start()
        task = self.estimated()
        self.assertEqual(task["estimate_evidence"], "export with kernels")
        self.assertIn("driver 1.2.3", task["estimate_kernels"])
        self.assertIn("cuDNN was not asked", task["estimate_kernels"])

    def test_a_broken_file_is_asked_again(self):
        self.check_asked()
        self.stop()
        folder = os.path.join(self.state, "kernels")
        (name,) = os.listdir(folder)
        os.truncate(os.path.join(folder, name), os.stat(os.path.join(folder, name)).st_size - 9)
        with open(os.path.join(folder, "noise.txt"), "wb") as file:
            file.write(b"\0\xff" * 100)
        self.start()
        self.check_asked()
        self.restart()
        self.assertIn(f"{INPUT_BYTES} {QUESTION}", self.kept())

    def test_no_library(self):
        self.restart(cudnn_library="/nonexistent/libcudnn.so.9")
        self.check_by_rules(self.estimated(), "/nonexistent/libcudnn.so.9: cannot open")
        self.check_by_rules(self.estimated(), "/nonexistent/libcudnn.so.9: cannot open")

    def test_no_program(self):
        self.restart(cudnn_program="/nonexistent/colloc-cudnn")
        self.check_by_rules(self.estimated(), "colloc-cudnn is not installed")

    def test_refused(self):
        self.pretend("refuse")
        self.check_by_rules(self.estimated(), r"cuDNN cannot use the GPU \(status 4\)")

    def test_garbage(self):
        program = self.write(
            "garbage", "#!/bin/sh\necho cudnn 91900\necho answer -5\nexec sleep 600\n"
        )
        os.chmod(program, 0o755)
        self.restart(cudnn_program=program)
        self.check_by_rules(self.estimated(), "colloc-cudnn answered with nonsense")
        self.assertEqual(self.kept(), [])

    def test_a_line_without_end(self):
        program = self.write("endless", "#!/bin/sh\nexec tr '\\0' x < /dev/zero\n")
        os.chmod(program, 0o755)
        self.restart(cudnn_program=program)
        self.check_by_rules(self.estimated(), "colloc-cudnn ended before it had answered")

    def test_slow_answers_are_for_the_next_estimate(self):
        self.pretend("hang")
        self.check_by_rules(self.estimated(), "cuDNN took longer than 2 s")
        self.pretend("count")
        until(lambda: f"{INPUT_BYTES} {QUESTION}" in self.kept(), "the late answer")
        self.check_asked()

    def test_killed(self):
        self.pretend("hang")
        connection = self.connection()
        self.addCleanup(connection.close)
        self.wait_gpu(lambda gpu: gpu["mem_used_mib"] is not None)
        summary = {"name": "net.json", "text": export()}
        connection.request("POST", "/v1/tasks", json.dumps(self.body("true", summary=summary)))
        for pid in until(self.asking, "colloc-cudnn"):
            os.kill(pid, signal.SIGKILL)
        reply = connection.getresponse()
        self.assertEqual(reply.status, 201)
        task = self.task(json.load(reply)["id"])
        self.assertIn("by rules (cuDNN was not asked: ", task["estimate_kernels"])
        self.wait_log(r"cuDNN is not asked for kernels( of user 0)? for 10 min: colloc-cudnn ended")

    @unittest.skipIf(os.geteuid() != 0, "becoming another user needs root")
    def test_a_question_that_ends_it_stops_its_user_alone(self):
        program = self.write(
            "delicate",
            "#!/bin/sh\necho cudnn 91900\nwhile read -r question; do\n"
            'case "$question" in *" 65,3,3,3 "*) exit 1 ;; esac\necho answer 5 5 1\ndone\n',
        )
        os.chmod(program, 0o755)
        self.restart(cudnn_program=program)
        for text in (export(conv(2, "forward", outputs=65)), export()):
            os.seteuid(USER)
            try:
                task = self.estimated(text)
            finally:
                os.seteuid(0)
            self.check_by_rules(task, "colloc-cudnn ended before it had answered")
        self.assertEqual(self.estimated()["estimate_evidence"], "export with kernels")
        self.assertEqual(len([line for line in self.log if "cuDNN is not asked" in line]), 1)

    @unittest.skipIf(os.geteuid() != 0, "becoming another user needs root")
    def test_a_user_has_10000_new_questions_a_day(self):
        """Networks with ever new shapes: neither the store nor the asking is for one user alone."""
        program = self.write(
            "quick",
            f"#!{sys.executable}\nimport sys\nprint('cudnn 91900', flush=True)\n"
            "for line in sys.stdin:\n    print('answer 5 5 1', flush=True)\n",
        )
        os.chmod(program, 0o755)
        self.restart(cudnn_program=program)

        def answers():
            return len([line for line in self.kept() if " forward " in line])

        first = 1
        for questions in (500,) * 20 + (1,):
            shapes = range(first, first + questions)
            text = export(*(conv(2, "forward", outputs=n) for n in shapes))
            first += questions
            os.seteuid(USER)
            try:
                last = self.estimated(text)
            finally:
                os.seteuid(0)
            until(lambda: answers() == min(first - 1, 10000), "its answers")
        self.check_by_rules(last, "its user has had 10,000 new questions asked within a day")
        self.check_asked(export(conv(2, "forward", outputs=70000)))
        self.assertEqual(answers(), 10001)

    def test_too_much_memory(self):
        self.pretend("large")
        self.assertIn("by rules", self.estimated()["estimate_kernels"])
        self.wait_log("took more GPU memory than the setting kernels-memory")
        until(lambda: not self.asking(), "the end of colloc-cudnn")

    def test_its_context_has_no_stacks(self):
        """The pretended context takes 32 MiB, of which 16 are stacks."""
        self.restart(kernels_memory="24MiB")
        self.pretend("hang")
        self.check_by_rules(self.estimated(), "cuDNN took longer than 2 s")
        self.assertTrue(self.asking())
        self.wait_gpu(lambda gpu: [one["mem_used_mib"] for one in gpu["foreign_processes"]] == [16])

    def test_only_in_free_memory(self):
        mib = int(self.gpu()["mem_total_mib"]) - 900  # NVIDIA's driver reserves some
        holder = self.train(mib, 1e6, memory_mib=mib)
        self.wait_state(holder, "RUNNING")
        self.check_by_rules(self.estimated(), "the GPU has too little free memory")

    def test_never_beside_an_exclusive_task(self):
        self.wait_state(self.train(2000, 1e6, exclusive=True), "RUNNING")
        self.check_by_rules(self.estimated(), "the GPU is kept for a task")

    def test_an_exclusive_task_ends_the_asking(self):
        self.pretend("hang")
        self.check_by_rules(self.estimated(), "cuDNN took longer than 2 s")
        self.assertTrue(self.asking())
        exclusive = self.train(2000, 1e6, exclusive=True)
        until(lambda: not self.asking(), "the end of colloc-cudnn")
        self.wait_state(exclusive, "RUNNING")

    def test_trained_with_benchmark_is_not_asked(self):
        self.pretend("count")
        task = self.estimated(export(cudnn_benchmark=True))
        self.assertEqual(task["estimate_evidence"], "script")
        self.assertIn("with cudnn.benchmark all kernels are tried", task["estimate_kernels"])
        self.assertEqual(self.plans(), 0)

    def test_off(self):
        self.restart(kernels_memory="0")
        self.pretend("count")
        task = self.estimated()
        self.assertEqual(task["estimate_kernels"], "by rules")
        self.assertEqual(self.plans(), 0)


@unittest.skipIf(os.geteuid() != 0, "becoming another user needs root")
class Confined(KernelsCase):
    """What users' shapes are handed to has no rights (tests/unit/kernels/test_confine.c)."""

    def helper(self):
        """The process, once it asks."""
        self.pretend("hang")
        self.check_by_rules(self.estimated(), "cuDNN took longer than 2 s")
        (pid,) = self.asking()
        return pid

    def test_it_has_no_rights(self):
        pid = self.helper()
        status = dict(line.split(":", 1) for line in proc(pid, "status").splitlines())
        self.assertEqual(status["Uid"].split(), [str(HELPER)] * 4)
        self.assertEqual(status["Gid"].split(), [str(HELPER)] * 4)
        self.assertEqual(status["Groups"].split(), [str(HELPER)])
        self.assertEqual(
            [int(status[name], 16) for name in ("CapPrm", "CapEff", "CapInh")], [0] * 3
        )
        self.assertEqual((status["NoNewPrivs"].strip(), status["Seccomp"].strip()), ("1", "2"))
        self.assertEqual(proc(pid, "oom_score_adj").strip(), "1000")
        limits = proc(pid, "limits")
        self.assertRegex(limits, r"(?m)^Max core file size +0 +0 ")
        self.assertRegex(limits, r"(?m)^Max cpu time +120 +120 ")
        # The pipes, and the emulated GPU.
        opened = {
            os.readlink(f"/proc/{pid}/fd/{fd}").split(":")[0]
            for fd in os.listdir(f"/proc/{pid}/fd")
        }
        self.assertLessEqual(
            opened, {"pipe", "socket", self.env["COLLOC_EMULATOR"], "/dev/null"}, opened
        )

    def test_it_ends_with_the_daemon(self):
        pid = self.helper()
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        until(lambda: not proc(pid, "cmdline"), "the end of colloc-cudnn")

    def test_it_asks_as_that_user(self):
        self.check_asked()

    def test_root_is_refused(self):
        self.restart(cudnn_user="root")
        self.check_by_rules(self.estimated(), "the user of colloc-cudnn must not be root")

    def test_a_user_that_there_is_not(self):
        self.restart(cudnn_user="no-such-user")
        self.check_by_rules(self.estimated(), "there is no user no-such-user")

    def test_a_library_that_the_user_may_not_read(self):
        library = self.write("libcudnn.so.9", "")
        os.chmod(library, 0)
        self.restart(cudnn_library=library)
        self.check_by_rules(self.estimated(), f"{library}: cannot open shared object file")

    def test_its_user_gets_no_message(self):
        """It is a person for the setting `outside`, and uses a GPU outside of tasks."""
        self.restart(outside="message", outside_after="0")
        self.helper()
        self.wait_gpu(lambda gpu: gpu["foreign_processes"])
        self.assertEqual([line for line in self.log if "outside:" in line], [])


if __name__ == "__main__":
    unittest.main()
