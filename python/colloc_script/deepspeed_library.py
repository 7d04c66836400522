# SPDX-License-Identifier: Apache-2.0
"""The interface of DeepSpeed for a script that is followed, also where it is not installed.

Where it is, what needs a GPU or other processes is replaced in it. Where it is not, a script that
imports it finds these modules in its place, and a note says so. A library that imports it, or only
asks whether it is there, finds them where the script's text, its arguments or accelerate's
environment name DeepSpeed; otherwise it would choose what the script does not have.

Does not import PyTorch: a script may import DeepSpeed first.
"""
import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import os
import sys

from . import after_import, ending

NAME, VERSION = "deepspeed", "0.19.6"
MISSING, UNKNOWN = "DeepSpeed is not installed here", "is not imitated"
LONGEST_SCRIPT = 1 << 20  # bytes of a script that are searched for the name; chosen

PACKAGES = ("deepspeed",) + tuple(
    f"deepspeed.{name}" for name in "ops runtime runtime.zero utils".split()
)
MODULES = PACKAGES + tuple(
    f"deepspeed.{name}"
    for name in (
        "accelerator checkpointing comm ops.adam ops.lamb ops.lion pipe utils.logging zero "
        "runtime.lr_schedules runtime.zero.partition_parameters"
    ).split()
)


# What Python says of a member that the imitation lacks, for ending.py.
SIGNS = (
    (rf"module '({NAME}[\w.]*)' has no attribute '(\w+)'", f"{MISSING}, and {{}}.{{}} {UNKNOWN}"),
    (rf"cannot import name '(\w+)' from '({NAME}[\w.]*)'", f"{MISSING}, and {{1}}.{{0}} {UNKNOWN}"),
)


class _NotImitated(ImportError):
    """The script may well have this module where DeepSpeed is installed."""

    def __init__(self, name):
        super().__init__("install DeepSpeed where the script is followed, too", name=name)
        self._colloc_own = f"{MISSING}, and {name} {UNKNOWN}"


def _importing_file():
    """The file that imports."""
    frame = sys._getframe(1)
    while frame and (
        "importlib" in frame.f_code.co_filename or frame.f_code.co_filename == __file__
    ):
        frame = frame.f_back
    return frame.f_code.co_filename if frame else ""


def _script_names_it():
    words = [*sys.argv[1:], os.environ.get("ACCELERATE_DEEPSPEED_CONFIG_FILE", "")]
    if any(NAME in word.lower() for word in words) or any(
        os.environ.get(name, "").lower() in ("1", "true")
        for name in ("ACCELERATE_USE_DEEPSPEED", "USE_DEEPSPEED")
    ):
        return True
    try:
        with open(sys.argv[0], "rb") as file:
            return NAME.encode() in file.read(LONGEST_SCRIPT)
    except (OSError, IndexError):
        return False


class _Loader(importlib.abc.Loader):
    def create_module(self, spec):
        return None

    def exec_module(self, module):
        importlib.import_module("torch")  # which follows this process
        fill(module, importlib.import_module("colloc_script.deepspeed_members"))
        if module.__name__ == NAME:
            module.__version__ = module.version = VERSION
            for name in MODULES[1:]:
                importlib.import_module(name)


class _Metadata(importlib.metadata.Distribution):
    def read_text(self, filename):
        return f"Name: {NAME}\nVersion: {VERSION}\n" if filename == "METADATA" else None

    def locate_file(self, path):
        return path


class _Finder(importlib.abc.MetaPathFinder):
    """The last one: it is asked where DeepSpeed is not installed."""

    def __init__(self):
        self.is_used = False

    def find_spec(self, name, path=None, target=None):
        if name != NAME and not name.startswith(f"{NAME}."):
            return None
        if not self.is_used and not (ending._is_users(_importing_file()) or _script_names_it()):
            return None
        if not self.is_used:
            ending.SIGNS.extend(SIGNS)
        self.is_used = True
        if name not in MODULES:
            raise _NotImitated(name)
        return importlib.machinery.ModuleSpec(name, _Loader(), is_package=name in PACKAGES)

    def find_distributions(self, context=importlib.metadata.DistributionFinder.Context()):
        if self.is_used and context.name == NAME:
            yield _Metadata()


FINDER = _Finder()


def fill(module, members):
    """Puts the members of this module's name into it."""
    for name, value in members.of(module.__name__).items():
        setattr(module, name, value)


def find():
    """From now on DeepSpeed is found where it is not installed."""
    if FINDER not in sys.meta_path:
        sys.meta_path.append(FINDER)


def patch_installed():
    """Replaces members of an installed DeepSpeed as its modules are imported. After PyTorch."""
    members = importlib.import_module("colloc_script.deepspeed_members")

    def patch(name):
        return lambda: None if FINDER.is_used else fill(sys.modules[name], members)

    names = [name for name in MODULES if members.of(name) and name != NAME] + [NAME]
    after_import.call({name: patch(name) for name in names})
