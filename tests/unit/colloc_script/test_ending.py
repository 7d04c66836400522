# SPDX-License-Identifier: Apache-2.0
"""Why a followed process ended: what it leaves in the file `failure`."""
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

PYTHON = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", "..", "python"))

# What colloc puts before a script, with an end that is no result.
BEFORE = """
import sys
from colloc_script import ending
ending.watch(sys.argv[1])
ending.explain_end_by(lambda: "nothing trained")
"""


class Ending(unittest.TestCase):
    def reason(self, text):
        with tempfile.TemporaryDirectory(prefix="colloc-test-") as folder:
            with open(os.path.join(folder, "sitecustomize.py"), "w", encoding="utf-8") as out:
                out.write(BEFORE.replace("sys.argv[1]", repr(folder)))
            with open(os.path.join(folder, "train.py"), "w", encoding="utf-8") as out:
                out.write(textwrap.dedent(text).lstrip())
            subprocess.run(
                [sys.executable, "train.py"],
                cwd=folder,
                env=dict(os.environ, PYTHONPATH=f"{folder}:{PYTHON}"),
                capture_output=True,
                timeout=60,
            )
            with open(os.path.join(folder, "failure"), encoding="utf-8") as file:
                return file.read().strip().replace(os.path.join(folder, ""), "")

    def test_an_exit_that_ends_the_process(self):
        for text, reason in [
            ("import sys\nsys.exit(2)", "train.py, line 2: sys.exit(2)"),
            ("import sys\nsys.exit('no data')", "train.py, line 2: sys.exit: no data"),
            (
                """
                import sys
                def main():
                    try:
                        with open(__file__):
                            sys.exit(3)
                    finally:
                        print("the end")
                main()
                print("unreached")
                """,
                "train.py, line 5: sys.exit(3)",
            ),
            (
                """
                import sys
                for status in (1, 2):
                    try:
                        sys.exit(status)
                    except SystemExit:
                        if status == 2:
                            sys.exit(4)
                """,
                "train.py, line 7: sys.exit(4)",
            ),
        ]:
            with self.subTest(text=text):
                self.assertEqual(self.reason(text), f"{reason}: nothing trained")

    def test_an_exit_that_the_script_caught(self):
        for text in [
            "import sys\ntry:\n    sys.exit(2)\nexcept SystemExit:\n    pass",
            """
            import sys
            def parse():
                try:
                    sys.exit(2)
                except SystemExit:
                    return None
            parse()
            """,
            """
            import sys
            for i in range(3):
                try:
                    sys.exit(2)
                except SystemExit:
                    continue
            """,
            "import sys\ntry:\n    sys.exit(2)\nexcept SystemExit:\n    sys.exit()",
            """
            import sys, threading
            thread = threading.Thread(target=sys.exit, args=(2,))
            thread.start()
            thread.join()
            """,
        ]:
            with self.subTest(text=text):
                self.assertEqual(self.reason(text), "nothing trained")

    def test_an_operator_that_pytorch_knows_without_its_sizes(self):
        """What PyTorch says where a mode of tensors without data meets such an operator."""
        for kind in ("HOP", "HigherOrderOperator"):
            text = f"There was no rule registered for {kind} flex_attention and mode <Device>."
            self.assertEqual(
                self.reason(f"raise NotImplementedError({text!r})"),
                "train.py, line 1: colloc cannot follow this line without a GPU, where it may well "
                "run: flex_attention has no rule of its sizes here: NotImplementedError: " + text,
            )

    def test_what_fake_tensors_refuse(self):
        """Newer PyTorch says it by the class alone; its text is the operation."""
        kind = "class Refused(RuntimeError):\n    __module__ = 'torch._subclasses.fake_tensor'\n"
        self.assertEqual(
            self.reason(kind + "raise Refused('aten._pack_padded_sequence.default')"),
            "train.py, line 3: colloc cannot follow this line without a GPU, where it may well "
            "run: it needs values of the tensors: Refused: aten._pack_padded_sequence.default",
        )

    def test_an_error_after_a_caught_exit(self):
        text = "import sys\ntry:\n    sys.exit(2)\nexcept SystemExit:\n    pass\n1 / 0"
        self.assertIn("train.py, line 6: ZeroDivisionError", self.reason(text))
        self.assertNotIn("sys.exit", self.reason(text))


class Launchers(unittest.TestCase):
    """Their own processes are not followed; those that they start are."""

    def setUp(self):
        sys.path.insert(0, PYTHON)
        from colloc_script import launchers

        self.is_launcher = launchers.is_launcher

    def test_launchers(self):
        for line in (
            "python /opt/bin/torchrun --nproc_per_node=2 train.py",
            "python3 -u /opt/bin/accelerate launch train.py",
            "python -m torch.distributed.run train.py",
            "python -W ignore -X dev -mtorch.distributed.launch train.py",
            "python -u -m deepspeed.launcher.launch train.py",
        ):
            self.assertTrue(self.is_launcher(line.split()), line)

    def test_scripts_whose_arguments_are_called_so(self):
        for line in (
            "python train.py --method accelerate",
            "python train.py torchrun",
            "python -m train --with deepspeed",
            "python -W accelerate train.py",
            "python -c accelerate_this torchrun",
            "python -X",
            "python -m",
            "python",
        ):
            self.assertFalse(self.is_launcher(line.split()), line)

    def test_a_followed_process(self):
        """The process itself reads its command line."""
        with tempfile.TemporaryDirectory(prefix="colloc-test-") as folder:
            stand_in = os.path.join(folder, "torch.py")
            with open(stand_in, "w", encoding="utf-8") as out:
                out.write("")
            with open(os.path.join(folder, "train.py"), "w", encoding="utf-8") as out:
                out.write("import sys\nprint('torch' in sys.meta_path[0]._calls)\n")
            inject = os.path.join(PYTHON, "colloc_script", "inject")
            environment = dict(
                os.environ, COLLOC_SCRIPT_FOLDER=folder, PYTHONPATH=f"{inject}:{folder}"
            )
            output = subprocess.run(
                [sys.executable, "train.py", "--method", "accelerate"],
                cwd=folder, env=environment, capture_output=True, text=True, timeout=60,
            ).stdout  # fmt: skip
            self.assertEqual(output.strip(), "True")


if __name__ == "__main__":
    unittest.main()
