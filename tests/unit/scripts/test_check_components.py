# SPDX-License-Identifier: Apache-2.0
"""scripts/check-components over made-up trees: what it finds, and what it lets pass."""

import os
import subprocess
import tempfile
import unittest

CHECK = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "scripts", "check-components"
)
LIST = """The components:

- `src/base`: text. May use: libc.
- `src/daemon`: collocd, which has
  a line more. May
  use: base (text
  only), sharing.
- `src/sharing`: GPUs. May use: base.
- `src/core`: decisions. May use: base.

Its hooks:

- `driver`: calls `base`.
"""


class CheckComponents(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        self.write("docs/architecture.md", LIST)
        self.write("src/base/text.h")

    def write(self, path, *includes):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            for include in includes:
                is_text = not include.endswith(".h")
                file.write(include if is_text else f'#include "{include}"\n')

    def check(self):
        done = subprocess.run([CHECK, self.root], capture_output=True, text=True, check=False)
        self.assertEqual(done.stderr, "")
        self.assertEqual(done.returncode, 1 if done.stdout else 0)
        return done.stdout

    def test_entries_of_several_lines_are_read(self):
        self.write("src/sharing/kinds.h", "base/text.h")
        self.write("src/daemon/driver.h", "base/text.h", "sharing/kinds.h")
        self.assertEqual(self.check(), "")
        self.write("src/sharing/kinds.h", "core/view.h")
        self.assertIn("sharing may not include core/view.h (may: base)", self.check())

    def write_daemon(self):
        """As the daemon is laid out: top -> parts -> table -> driver; http is above gpus."""
        self.write("src/daemon/driver.h", "base/text.h")
        self.write("src/daemon/jobs.h", "base/text.h")
        self.write("src/daemon/gpus/gpus.h", "daemon/driver.h", "daemon/jobs.h")
        self.write("src/daemon/http/http.h", "daemon/gpus/gpus.h", "daemon/jobs.h")
        self.write("src/daemon/http/http_state.h", "daemon/http/http.h")
        self.write("src/daemon/http/routes.c", "daemon/http/http_state.h")
        self.write("src/daemon/daemon.h", "daemon/gpus/gpus.h", "daemon/http/http.h")
        self.write("src/daemon/main.c", "daemon/daemon.h")

    def test_parts_below_the_top_are_fine(self):
        self.write_daemon()
        self.assertEqual(self.check(), "")

    def write_core(self):
        """Each floor of the core uses the one below."""
        self.write("src/core/view.h", "base/text.h")
        self.write("src/core/questions.h", "core/view.h")
        self.write("src/core/state/state.h", "core/view.h")
        self.write("src/core/ask/placement.h", "core/state/state.h")
        self.write("src/core/ask/placement.c", "core/ask/placement.h", "core/questions.h")
        self.write("src/core/decide/place.h", "core/ask/placement.h")
        self.write("src/core/pass/schedule.h", "core/decide/place.h", "core/state/state.h")
        self.write("src/core/explain/explain.c", "core/ask/placement.h", "core/questions.h")
        self.write("src/core/core.h", "core/questions.h")
        self.write("src/core/core.c", "core/core.h", "core/pass/schedule.h", "core/view.h")

    def test_floors_of_the_core_that_use_lower_ones_are_fine(self):
        self.write_core()
        self.assertEqual(self.check(), "")

    def test_an_include_of_a_higher_floor(self):
        ups = [
            ("src/core/view.c", "core/state/state.h", "values", "state"),
            ("src/core/view.c", "core/core.h", "values", "core"),
            ("src/core/state/apply.c", "core/ask/placement.h", "state", "ask"),
            ("src/core/ask/head.c", "core/decide/place.h", "ask", "decide"),
            ("src/core/ask/head.c", "core/core.h", "ask", "core"),
            ("src/core/decide/ends.c", "core/pass/schedule.h", "decide", "pass"),
            ("src/core/pass/slots.c", "core/core.h", "pass", "core"),
            ("src/core/explain/gate.c", "core/decide/place.h", "explain", "decide"),
        ]
        for path, header, floor, other in ups:
            with self.subTest(path=path, header=header):
                self.write_core()
                self.write(path, "core/view.h", header)
                self.assertIn(
                    f"{path}:2: {floor} may not include {header}, which is on the floor {other}",
                    self.check(),
                )
                os.remove(os.path.join(self.root, path))

    def test_a_folder_of_the_core_that_is_no_floor(self):
        self.write_core()
        self.write("src/core/misc/thing.c", "core/view.h")
        self.assertIn("src/core/misc/thing.c: src/core/misc is no floor", self.check())

    def test_a_component_that_another_may_not_use(self):
        self.write("src/base/file.c", "daemon/jobs.h")
        self.assertIn("src/base/file.c:1: base may not include daemon/jobs.h", self.check())

    def test_an_include_of_a_higher_part(self):
        ups = [
            ("src/daemon/gpus/sampler.c", "daemon/http/http.h", "gpus", "http"),
            ("src/daemon/gpus/sampler.c", "daemon/services/services.h", "gpus", "services"),
            ("src/daemon/mps/mps.c", "daemon/attempts/attempts.h", "mps", "attempts"),
            ("src/daemon/attempts/watch.c", "daemon/suspension/x.h", "attempts", "suspension"),
            ("src/daemon/http/routes.c", "daemon/scrape/scrape.h", "http", "scrape"),
            ("src/daemon/jobs.c", "daemon/gpus/gpus.h", "tables", "gpus"),
            ("src/daemon/driver.c", "daemon/jobs.h", "driver", "tables"),
            ("src/daemon/driver_options.h", "daemon/gpus/gpus.h", "driver", "gpus"),
        ]
        for path, header, floor, other in ups:
            with self.subTest(path=path, header=header):
                self.write_daemon()
                self.write(path, "base/text.h", header)
                self.assertIn(
                    f"{path}:2: {floor} may not include {header}, which is on the floor {other}",
                    self.check(),
                )
                os.remove(os.path.join(self.root, path))

    def test_a_folder_of_the_daemon_that_is_no_part(self):
        self.write_daemon()
        self.write("src/daemon/misc/thing.c", "daemon/driver.h")
        self.assertIn("src/daemon/misc/thing.c: src/daemon/misc is no floor", self.check())

    def test_a_cycle_of_three_modules(self):
        self.write_daemon()
        self.write("src/daemon/jobs.c", "daemon/audit.h")
        self.write("src/daemon/audit.h", "daemon/disk.h")
        self.write("src/daemon/disk.c", "daemon/jobs.h")
        found = self.check()
        self.assertIn(
            "src/daemon/audit.h:1: a cycle between modules of the daemon: "
            "audit -> disk -> jobs -> audit",
            found,
        )
        self.assertEqual(found.count("a cycle"), 1)

    def test_a_part_may_not_include_the_list_of_parts(self):
        self.write_daemon()
        self.write("src/daemon/http/routes.c", "daemon/daemon.h")
        self.assertIn("a cycle between modules of the daemon: http -> main -> http", self.check())

    def test_a_ring_of_calls(self):
        self.write_daemon()
        self.write("src/daemon/http/routes.c", "void route(void)\n{\n    reply();\n}\n")
        self.write("src/daemon/http/reply.c", "void reply(void)\n{\n    /* route */\n}\n")
        self.assertEqual(self.check(), "")
        self.write("src/daemon/http/reply.c", "void reply(void)\n{\n    route();\n}\n")
        self.assertEqual(self.check(), "src/daemon: a ring of calls: http/reply, http/routes\n")

    def test_a_ring_in_a_component_without_floors(self):
        self.write("src/base/text.c", "void text(void)\n{\n    words();\n}\n")
        self.write("src/base/words.c", "void words(void)\n{\n    text();\n}\n")
        self.assertEqual(self.check(), "src/base: a ring of calls: text, words\n")

    def test_a_component_leaves_the_list_of_those_with_rings(self):
        self.write("docs/architecture.md", LIST + "- `src/preload`: library. May use: base.\n")
        self.assertEqual(self.check(), "")
        self.write("src/preload/run.c", "void run(void)\n{\n    wake();\n}\n")
        self.assertIn("src/preload: no ring is left: take preload out of RINGS_LEFT", self.check())
        self.write("src/preload/wake.c", "void wake(void)\n{\n    run();\n}\n")
        self.assertEqual(self.check(), "")

    def test_a_ring_of_includes(self):
        self.write_core()
        self.write("src/core/claim.h", "core/view.h")
        self.write("src/core/view.c", "core/claim.h")
        self.assertIn("src/core: a ring of includes: claim, view", self.check())

    def test_a_table_that_the_list_lacks(self):
        self.write_daemon()
        self.write("src/daemon/daemon.h", "/* tables that call no part: jobs */\n")
        self.assertEqual(self.check(), "")
        self.write("src/daemon/disk.h", "daemon/driver.h")
        self.assertIn(
            "src/daemon/daemon.h: its list of the daemon's tables lacks disk", self.check()
        )

    def test_an_internal_header_from_outside(self):
        self.write_daemon()
        self.write("src/daemon/main.c", "daemon/http/http_state.h")
        self.assertIn(
            "daemon/http/http_state.h is internal to the part http",
            self.check(),
        )

    def test_a_path_of_one_machine(self):
        self.write("src/base/file.c", "/* see /wor" + "k/notes */\n")
        self.assertIn("src/base/file.c:1: names a path of one machine", self.check())


if __name__ == "__main__":
    unittest.main()
