# SPDX-License-Identifier: Apache-2.0
"""scripts/compare-instructions: what it changes in the benchmarks is there, and finds its rows."""

import importlib.machinery
import importlib.util
import os
import re
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")


def load_script(name):
    path = os.path.join(ROOT, "scripts", name)
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


script = load_script("compare-instructions")


def read_benchmark(program):
    path = os.path.join(ROOT, "tests", "bench", f"bench_{program}.c")
    with open(path, encoding="utf-8") as file:
        return file.read()


class Changes(unittest.TestCase):
    def test_each_row_of_the_core_is_a_call_that_main_makes_alone(self):
        text = script.change_source("core", read_benchmark("core"))
        main = text[text.index("int main(") :]
        for _, program, argument, function in script.ROWS:
            if program == "core":
                self.assertEqual(main.count(f") {argument};\n"), 1, argument)
                self.assertRegex(text, rf"= {function}\(")
        calls = re.findall(r"^    (.*);$", main, flags=re.M)
        self.assertTrue(all(call.startswith(("if (!strcmp(argv[1], ", "return")) for call in calls))

    def test_each_row_of_the_simulator_is_one_that_it_measures(self):
        text = script.change_source("simulate", read_benchmark("simulate"))
        names = re.findall(r'(?:measure|philly)\("([^"]+)"', text)
        for _, program, argument, _ in script.ROWS:
            if program == "simulate":
                self.assertEqual(sum(argument in name for name in names), 1, argument)

    def test_a_benchmark_that_has_changed_is_trouble(self):
        text = read_benchmark("simulate").replace("RUNS_SMALL = 50", "RUNS_SMALL = 60")
        with self.assertRaisesRegex(script.Trouble, "RUNS_SMALL = 50.*0 times"):
            script.change_source("simulate", text)


if __name__ == "__main__":
    unittest.main()
