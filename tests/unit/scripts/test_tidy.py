# SPDX-License-Identifier: Apache-2.0
"""scripts/tidy over a pretend clang-tidy: what was found clean is not checked again until something
that clang-tidy sees has changed.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

TIDY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "scripts", "tidy")
# Writes down each source that it is given, and complains of those with "defect" in them.
CLANG_TIDY = f"""#!{sys.executable}
import os, sys
here = os.path.dirname(os.path.abspath(__file__))
if sys.argv[1] == "--version":
    print(open(os.path.join(here, "version")).read())
    sys.exit()
with open(os.path.join(here, "checked"), "a") as file:
    file.write(sys.argv[-1] + "\\n")
print("7 warnings generated.", file=sys.stderr)
if "defect" in open(sys.argv[-1]).read():
    print("a.c:1:1: error: a defect")
    sys.exit(1)
if "leaks" in open(sys.argv[-1]).read():
    print("a.c:2:1: error: Potential leak of memory pointed to by 'x' [clang-analyzer-unix.Malloc]")
    print("    return 1;")
    sys.exit(1)
if "member" in open(sys.argv[-1]).read():
    print("a.c:3:1: error: Potential leak of memory pointed to by 'x.y' [unix.Malloc]")
    sys.exit(1)
"""


class Tidy(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.write("clang-tidy", CLANG_TIDY)
        os.chmod(os.path.join(self.folder, "clang-tidy"), 0o755)
        self.write("version", "clang-tidy 1")
        self.write("a.h", "enum { A = 1 };\n")
        self.write("a.c", '#include "a.h"\nint a = A; /* a comment */\n')
        self.write("b.c", "int b = B;\n")
        os.mkdir(os.path.join(self.folder, "tests"))
        self.write("tests/t.c", "int t;\n")
        self.write_units("-DB=2")

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def write_units(self, option):
        units = [
            {
                "directory": self.folder,
                "file": os.path.join(self.folder, name),
                "command": f"cc {option} -MD -MQ o -MF {name}.d -o {name}.o -c {name}",
            }
            for name in ("a.c", "b.c", "a.c", "tests/t.c")
        ]
        self.write("compile_commands.json", json.dumps(units))

    def tidy(self):
        """Its exit status and output, and the sources that clang-tidy was given."""
        self.write("checked", "")
        env = {
            **os.environ,
            "PATH": self.folder + ":" + os.environ["PATH"],
            "XDG_CACHE_HOME": os.path.join(self.folder, "cache"),
        }
        done = subprocess.run(
            [sys.executable, TIDY, self.folder],
            stdout=subprocess.PIPE,
            universal_newlines=True,
            env=env,
            check=False,
        )
        with open(os.path.join(self.folder, "checked"), encoding="utf-8") as file:
            checked = sorted(os.path.basename(line) for line in file.read().splitlines())
        return done.returncode, done.stdout, checked

    def test_what_is_clean_is_checked_once(self):
        self.assertEqual(self.tidy(), (0, "", ["a.c", "b.c"]))
        self.assertEqual(self.tidy(), (0, "", []))

    def test_what_changed_is_checked_again(self):
        self.tidy()
        self.write("a.h", "enum { A = 3 };\n")
        self.assertEqual(self.tidy(), (0, "", ["a.c"]))
        self.write("a.c", '#include "a.h"\nint a = A; /* NOLINT */\n')
        self.assertEqual(self.tidy(), (0, "", ["a.c"]))
        self.write_units("-DB=4")
        self.assertEqual(self.tidy()[2], ["a.c", "b.c"])
        self.write("version", "clang-tidy 2")
        self.assertEqual(self.tidy()[2], ["a.c", "b.c"])

    def test_a_finding_is_told_each_time(self):
        self.write("a.c", "int a; /* a defect */\n")
        for checked in (["a.c", "b.c"], ["a.c"]):
            self.assertEqual(self.tidy(), (1, "a.c:1:1: error: a defect\n", checked))

    def test_a_leak_of_what_the_end_of_its_block_releases(self):
        self.write("a.c", "char *x = f(); /* leaks */\n")
        self.assertEqual(self.tidy()[0], 1)
        self.assertEqual(self.tidy()[2], ["a.c"])
        self.write("a.c", "#define CLEANUP_FREE\nCLEANUP_FREE char *const *x = f(); /* leaks */\n")
        self.assertEqual(self.tidy(), (0, "", ["a.c"]))
        self.assertEqual(self.tidy(), (0, "", []))

    def test_a_leak_of_a_member_of_it(self):
        self.write("a.c", "struct s x = f(); /* member */\n")
        self.assertEqual(self.tidy()[0], 1)
        self.write("a.c", "#define CLEANUP(f)\nCLEANUP(s_fini) struct s x = f(); /* member */\n")
        self.assertEqual(self.tidy()[:2], (0, ""))

    def test_what_does_not_compile_is_not_remembered(self):
        self.write_units("-DC=2")
        self.write("b.c", "#error\n")
        self.assertEqual(self.tidy()[2], ["a.c", "b.c"])
        self.assertEqual(self.tidy()[2], ["b.c"])

    def test_nothing_to_check_is_an_error(self):
        self.write("compile_commands.json", "[]")
        self.assertEqual(self.tidy(), (1, "", []))


if __name__ == "__main__":
    unittest.main()
