# SPDX-License-Identifier: Apache-2.0
"""`make install` into a DESTDIR, what works from there, and `make uninstall`."""

import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from daemon_case import BUILD, LIMIT_S, read, until

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def build_option(name):
    text = subprocess.run(
        ["meson", "introspect", "--buildoptions", BUILD], check=True, capture_output=True, text=True
    ).stdout
    return next(option["value"] for option in json.loads(text) if option["name"] == name)


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="colloc-install-")
        cls.destdir = os.path.join(cls.folder, "dest")
        cls.prefix = build_option("prefix")
        cls.installed = cls.destdir + cls.prefix
        # What Python leaves in the source.
        left = os.path.join(ROOT, "python", "colloc", "__pycache__", "left.pyc")
        os.makedirs(os.path.dirname(left), exist_ok=True)
        with open(left, "wb"):
            pass
        cls.addClassCleanup(os.unlink, left)
        # Without rebuilding: another test may run from the same folder.
        subprocess.run(
            ["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", cls.destdir],
            check=True,
            stdout=subprocess.DEVNULL,
        )

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def run_installed(self, program, *arguments, code=0, **env):
        done = subprocess.run(
            [os.path.join(self.installed, "bin", program), *arguments],
            env={**os.environ, **env},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout

    def test_a_server_with_pretend_gpus_from_a_moved_prefix(self):
        socket = os.path.join(self.folder, "s")
        log = os.path.join(self.folder, "log")
        with open(log, "wb") as out:
            process = subprocess.Popen(
                [
                    os.path.join(self.installed, "bin", "colloc"),
                    "serve",
                    "--emulate=2xA100-40GB",
                    f"--socket={socket}",
                    "--state-dir=" + os.path.join(self.folder, "state"),
                ],
                stderr=out,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        try:
            words = r"A pretend training: (\S+) "
            until(lambda: process.poll() is not None or re.search(words, read(log)), "its words")
            until(lambda: process.poll() is not None or "listening on" in read(log), "listening")
            self.assertIsNone(process.poll(), read(log))
            train = re.search(words, read(log))[1]
            self.assertTrue(train.startswith(os.path.realpath(self.installed)), train)
            self.run_installed(
                "colloc",
                "--socket=" + socket,
                "submit",
                "--wait",
                "--",
                train,
                "--memory-mib=2000",
                "--seconds=1",
            )
        finally:
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(LIMIT_S), 0, read(log))

    def test_the_client_package(self):
        packages = os.path.join(self.destdir + self.prefix, "share", "colloc", "python")
        done = subprocess.run(
            [
                "/usr/bin/python3",
                "-B",
                "-c",
                "import colloc; print(colloc.__file__, colloc.Client)",
            ],
            env={**os.environ, "PYTHONPATH": packages},
            capture_output=True,
            text=True,
            check=True,
        )
        self.assertIn(os.path.join(packages, "colloc", "__init__.py"), done.stdout)

    def test_no_bytecode_is_installed(self):
        left = glob.glob(os.path.join(self.installed, "**", "__pycache__"), recursive=True)
        self.assertEqual(left, [])

    def test_the_exporter_is_found_by_python(self):
        packages = os.path.join(self.prefix, "share", "colloc", "python")
        self.assertTrue(
            os.path.exists(self.destdir + os.path.join(packages, "colloc_export", "__main__.py"))
        )
        done = subprocess.run(
            [os.path.join(self.installed, "bin", "colloc-export"), "--help"],
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertRegex(
            done.stdout + done.stderr,
            "--input|^colloc-export: colloc_export needs PyTorch, and .* has none",
        )
        places = subprocess.run(
            ["/usr/bin/python3", "-c", "import site; print(*site.getsitepackages())"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()
        if not any(place.startswith(self.prefix + "/") for place in places):
            self.skipTest(f"Python looks for nothing below {self.prefix}")
        found = [
            path for place in places for path in glob.glob(self.destdir + place + "/colloc.pth")
        ]
        self.assertEqual([read(path) for path in found], [packages + "\n"])
        # As Python's site module reads it, but for DESTDIR.
        moved = os.path.join(self.folder, "site")
        os.mkdir(moved)
        with open(os.path.join(moved, "colloc.pth"), "w", encoding="utf-8") as file:
            file.write(self.destdir + read(found[0]))
        done = subprocess.run(
            [
                "/usr/bin/python3",
                "-c",
                "import site, sys; site.addsitedir(sys.argv[1]);"
                "import importlib.util; print(importlib.util.find_spec('colloc_export'))",
                moved,
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertIn(self.destdir, done.stdout, done.stderr)

    def test_pip_takes_the_packages(self):
        python, source, target = (
            "/usr/bin/python3",
            os.path.join(self.folder, "source"),
            os.path.join(self.folder, "pip"),
        )
        if subprocess.run(
            [python, "-c", "import setuptools, wheel, pip"], capture_output=True, check=False
        ).returncode:
            self.skipTest("no pip, setuptools or wheel")
        shutil.copytree(os.path.join(ROOT, "python"), source)  # pip builds within
        done = subprocess.run(
            [
                python,
                "-m",
                "pip",
                "install",
                "--quiet",
                "--no-index",
                "--no-build-isolation",
                "--no-deps",
                "--target",
                target,
                source,
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("colloc_export/__main__.py", "colloc_script/inject/sitecustomize.py"):
            self.assertTrue(os.path.exists(os.path.join(target, name)), name)
        done = subprocess.run(
            [
                python,
                "-B",
                "-c",
                "import colloc.radt, colloc_evaluate, colloc_pipeline, colloc_script",
            ],
            env={**os.environ, "PYTHONPATH": target},
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_drawer_of_sweeps(self):
        done = subprocess.run(
            [os.path.join(self.installed, "bin", "colloc-plot-sweep"), "--help"],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode and "matplotlib is missing" in done.stderr:
            self.skipTest("no matplotlib")
        self.assertIn("colloc-plot-sweep", done.stdout, done.stderr)

    def test_documents_that_helps_name_are_there(self):
        named = set()
        for command in re.findall(r"^  ([a-z]+) ", self.run_installed("colloc", "help"), re.M):
            named.update(
                re.findall(r"docs/([a-z/]+\.md)", self.run_installed("colloc", "help", command))
            )
        self.assertTrue(named)
        for name in named | {"protocol.md"}:
            self.assertTrue(
                os.path.exists(os.path.join(self.installed, "share", "doc", "colloc", name)), name
            )

    def test_documents_that_the_installed_ones_link_to_are_there(self):
        folder = os.path.join(self.installed, "share", "doc", "colloc")
        pages = glob.glob(os.path.join(folder, "*.md"))
        self.assertTrue(pages)
        for page in pages:
            for name in re.findall(r"\]\(([a-z-]+\.md)[)#]", read(page)):
                self.assertTrue(os.path.exists(os.path.join(folder, name)), (page, name))

    def test_uninstall_leaves_nothing_but_what_is_not_ours(self):
        copy = os.path.join(self.folder, "copy")
        shutil.copytree(self.destdir, copy, symlinks=True)
        python = os.path.join(copy + self.prefix, "share", "colloc", "python", "colloc_export")
        os.makedirs(os.path.join(python, "__pycache__"), exist_ok=True)
        with open(os.path.join(python, "__pycache__", "x.pyc"), "wb"):
            pass
        foreign = os.path.join(copy + self.prefix, "share", "colloc", "mine")
        with open(foreign, "wb"):
            pass
        command = [sys.executable, os.path.join(ROOT, "scripts", "uninstall"), BUILD]
        for expected in ([foreign], []):
            done = subprocess.run(
                command,
                env={**os.environ, "DESTDIR": copy},
                capture_output=True,
                text=True,
                check=False,
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            left = [
                os.path.join(folder, name) for folder, _, names in os.walk(copy) for name in names
            ]
            self.assertEqual(left, expected)
            for path in left:
                os.unlink(path)
        self.assertEqual(os.listdir(copy), [])


if __name__ == "__main__":
    unittest.main()
