# SPDX-License-Identifier: Apache-2.0
"""scripts/call-graph over made-up sources, and over the core: floors, and no ring of calls."""

import os
import subprocess
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
PROGRAM = os.path.join(ROOT, "scripts", "call-graph")


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False)


class CallGraph(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name

    def write(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def graph(self, *arguments):
        done = run(f"--root={self.root}", *arguments)
        self.assertEqual(done.stderr, "")
        return done

    def test_a_header_and_its_source_are_one_module(self):
        self.write("src/base/text.h", "int text_size(void);\n")
        self.write("src/base/text.c", '#include "base/text.h"\nint text_size(void)\n{\n}\n')
        out = self.graph("src/base").stdout
        self.assertIn("src/base: 1 modules, 5 lines", out)
        self.assertIn("includes: 0 arrows, no ring", out)

    def test_arrows_are_calls_by_name_also_without_an_include(self):
        self.write("src/base/a.c", "int a_start(void)\n{\n    return b_start();\n}\n")
        self.write("src/base/b.c", "int b_start(void)\n{\n    return 0;\n}\n")
        out = self.graph("--arrows", "src/base").stdout
        self.assertIn("calls: 1 arrows, no ring, 0 run up\n    a -> b\n", out)

    def test_names_in_comments_and_texts_and_static_functions_are_no_calls(self):
        self.write("src/base/b.c", "int b_start(void)\n{\n}\n")
        self.write("src/base/c.c", "static int helper(void)\n{\n}\n")
        self.write("src/base/a.c", '/* b_start() */\nchar *a = "b_start()"; /* " */ int helper;\n')
        self.assertIn("calls: 0 arrows", self.graph("src/base").stdout)

    def test_a_name_with_two_definitions_is_no_arrow(self):
        self.write("src/base/b.c", "int start(void)\n{\n}\n")
        self.write("src/base/c.c", "int start(void)\n{\n}\n")
        self.write("src/base/a.c", "int a(void)\n{\n    start();\n}\n")
        self.assertIn("calls: 0 arrows", self.graph("src/base").stdout)

    def test_the_files_of_a_commit(self):
        def git(*words):
            identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
            subprocess.run(
                ["git", "-C", self.root, *identity, *words], check=True, capture_output=True
            )

        self.write("src/base/a.c", "int a_start(void)\n{\n    return b_start();\n}\n")
        self.write("src/base/b.c", "int b_start(void)\n{\n    return 0;\n}\n")
        git("init", "--quiet")
        git("add", ".")
        git("commit", "--quiet", "-m", "calls")
        self.write("src/base/a.c", "int a_start(void)\n{\n}\n")
        self.assertIn("calls: 0 arrows", self.graph("src/base").stdout)
        self.assertIn("calls: 1 arrows", self.graph("--at=HEAD", "src/base").stdout)
        done = run(f"--root={self.root}", "--at=nothing", "src/base")
        self.assertEqual(done.returncode, 1)
        self.assertIn("call-graph: nothing: ", done.stderr)

    def test_rings_are_found_of_any_length_with_their_lines(self):
        for one, other in (("a", "b"), ("b", "c"), ("c", "a"), ("d", "a"), ("e", "f"), ("f", "e")):
            self.write(f"src/base/{one}.c", f"int {one}_x(void)\n{{\n    return {other}_x();\n}}\n")
        out = self.graph("src/base").stdout
        self.assertIn("calls: 6 arrows, 2 rings, 0 run up", out)
        self.assertIn("ring of 3 (12 lines): a, b, c\n", out)
        self.assertIn("ring of 2 (8 lines): e, f\n", out)

    def test_an_arrow_that_runs_up_is_named_and_fails(self):
        self.write("src/core/pass/slots.c", "int slots_run(void)\n{\n}\n")
        self.write("src/core/state/apply.c", "int apply(void)\n{\n    return slots_run();\n}\n")
        done = self.graph()
        self.assertEqual(done.returncode, 1)
        self.assertIn("1 run up\n    up: state/apply -> pass/slots\n", done.stdout)

    def test_a_folder_without_sources_is_refused(self):
        done = run(f"--root={self.root}", "src/none")
        self.assertEqual(done.returncode, 1)
        self.assertIn("src/none: there are no C files", done.stderr)

    def test_the_core_has_no_ring_of_calls_and_nothing_runs_up(self):
        done = run("src/core")
        self.assertEqual(done.returncode, 0, done.stdout)
        calls = [line for line in done.stdout.splitlines() if line.startswith("  calls:")]
        self.assertRegex(calls[0], r"^  calls: [1-9]\d+ arrows, no ring, 0 run up$")


if __name__ == "__main__":
    unittest.main()
