# SPDX-License-Identifier: Apache-2.0
"""hydra/launcher=colloc on emulated GPUs.

With hydra-core installed, a real sweep of a real program. Everywhere, the launcher against the
interface that it uses, as hydra-core 1.3.5 has it (hydra/core/utils.py, hydra/core/singleton.py,
hydra/plugins/launcher.py, hydra/types.py): the modules in STAND_IN.
"""

import importlib.util
import json
import os
import re
import subprocess
import sys
import unittest

from daemon_case import LIMIT_S, DaemonCase

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
PLUGIN = os.path.join(ROOT, "python", "hydra-colloc-launcher")
HAS_HYDRA = importlib.util.find_spec("hydra") is not None
HAS_PARTS = all(importlib.util.find_spec(name) for name in ("cloudpickle", "omegaconf"))

APP = """
import os, sys
import hydra

@hydra.main(version_base=None, config_path=None, config_name="conf")
def train(cfg):
    if cfg.lr == 3:
        raise ValueError("lr is 3")
    if cfg.lr == 4:
        os._exit(5)
    print("trained with", cfg.lr)
    return cfg.lr * 10
"""
CONF = """
from dataclasses import dataclass
from hydra.core.config_store import ConfigStore

@dataclass
class Conf:
    lr: float = 1

ConfigStore.instance().store(name="conf", node=Conf)
"""

STAND_IN = {
    "hydra/__init__.py": "",
    "hydra/core/__init__.py": "",
    "hydra/plugins/__init__.py": "",
    "hydra/types.py": "HydraContext = TaskFunction = object\n",
    "hydra/plugins/launcher.py": "class Launcher:\n    pass\n",
    "hydra/core/config_store.py": """
class ConfigStore:
    stored = []
    @classmethod
    def instance(cls):
        return cls
    @classmethod
    def store(cls, name, node, group=None, package="_group_", provider=None):
        cls.stored.append((group, name, node))
""",
    "hydra/core/singleton.py": """
class Singleton(type):
    state = None
    @staticmethod
    def get_state():
        return {"instances": {"one": 1}}
    @staticmethod
    def set_state(state):
        assert state == {"instances": {"one": 1}}, state
        Singleton.state = state
""",
    "hydra/core/utils.py": """
import os, sys
from dataclasses import dataclass
from enum import Enum
from typing import Any
from omegaconf import OmegaConf
from hydra.core.singleton import Singleton

class JobStatus(Enum):
    UNKNOWN = 0
    COMPLETED = 1
    FAILED = 2

@dataclass
class JobReturn:
    overrides: Any = None
    cfg: Any = None
    hydra_cfg: Any = None
    working_dir: Any = None
    task_name: Any = None
    status: JobStatus = JobStatus.UNKNOWN
    _return_value: Any = None

    @property
    def return_value(self):
        assert self.status != JobStatus.UNKNOWN, "return_value not yet available"
        if self.status == JobStatus.COMPLETED:
            return self._return_value
        raise self._return_value

    @return_value.setter
    def return_value(self, value):
        self._return_value = value

def filter_overrides(overrides):
    return [x for x in overrides if not x.startswith("hydra.")]

def setup_globals():
    assert Singleton.state

def run_job(task_function, config, job_dir_key, job_subdir_key, hydra_context,
            configure_logging=True):
    folder = OmegaConf.select(config, job_dir_key), OmegaConf.select(config, job_subdir_key)
    ret = JobReturn()
    ret.working_dir = os.path.join(*map(str, folder))
    os.makedirs(ret.working_dir)
    ret.overrides = list(config.hydra.overrides.task)
    ret.cfg = OmegaConf.create({k: v for k, v in config.items() if k != "hydra"})
    ret.hydra_cfg = OmegaConf.create({"hydra": config.hydra})
    try:
        ret.return_value = task_function(ret.cfg)
        ret.status = JobStatus.COMPLETED
    except Exception as e:
        ret.return_value = e
        ret.status = JobStatus.FAILED
    return ret
""",
}

DRIVER = """
import json, sys
from omegaconf import OmegaConf
from hydra.core.utils import JobReturn
from hydra.core.config_store import ConfigStore
from hydra_plugins.hydra_colloc_launcher.colloc_launcher import CollocLauncher
from hydra_plugins.hydra_colloc_launcher.config import CollocLauncherConf

assert ("hydra/launcher", "colloc", CollocLauncherConf) in ConfigStore.stored

class Loader:
    def load_sweep_config(self, config, overrides):
        given = dict(o.split("=") for o in overrides)
        return OmegaConf.create({
            "lr": int(given["lr"]),
            "hydra": {"job": {"name": "app"}, "overrides": {"task": list(overrides)},
                      "sweep": {"dir": "multirun", "subdir": "${hydra.job.num}"}}})

class Context:
    config_loader = Loader()

def train(cfg):
    import os, sys
    if cfg.lr == 3:
        raise ValueError("lr is 3")
    if cfg.lr == 4:
        os._exit(5)
    if cfg.lr == 5:
        raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")
    return cfg.lr * 10

launcher = CollocLauncher(memory="1GiB", gpus=1, limit=2, name="app", options=OmegaConf.create({}))
config = OmegaConf.create({"hydra": {"sweep": {"dir": "multirun", "mode": "0755"}}})
launcher.setup(hydra_context=Context(), task_function=train, config=config)
rows = []
for job in launcher.launch([[f"lr={x}"] for x in sys.argv[1:]], initial_job_idx=7):
    row = {"status": job.status.name, "overrides": list(job.overrides)}
    try:
        row.update(value=job.return_value, folder=job.working_dir,
                   num=job.hydra_cfg.hydra.job.num, id=job.hydra_cfg.hydra.job.id)
    except Exception as error:
        row.update(error=type(error).__name__, text=str(error))
    rows.append(row)
print(json.dumps(rows))
"""


def commands_of_the_page():
    """The arguments of its `python train.py`."""
    with open(os.path.join(ROOT, "docs", "hydra.md"), encoding="utf-8") as page:
        lines = re.findall(r"(?m)^ {4}python train\.py (.*)$", page.read())
    assert len(lines) == 2, lines
    return lines


@unittest.skipUnless(HAS_PARTS, "needs cloudpickle and omegaconf")
class Hydra(DaemonCase):
    gpus = "2xA100-40GB"

    def run_python(self, path, *arguments, extra=(), code=0):
        search = [*extra, PLUGIN, os.path.join(ROOT, "python"), os.environ.get("PYTHONPATH", "")]
        env = {**self.task_environment(), "PYTHONPATH": ":".join(filter(None, search))}
        env["HYDRA_FULL_ERROR"] = "1"
        done = subprocess.run(
            [sys.executable, path, *arguments],
            cwd=self.work,
            env=env,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def test_the_interface_of_hydra(self):
        for name, text in STAND_IN.items():
            path = os.path.join(self.work, "stand-in", name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        driver = self.write("driver.py", DRIVER)
        stand_in = os.path.join(self.work, "stand-in")
        done = self.run_python(driver, "1", "2", "3", "4", "5", extra=[stand_in])
        rows = json.loads(done.stdout.splitlines()[-1])
        ids = [task["id"] for task in self.tasks(state="all")]
        self.assertEqual(
            [row["status"] for row in rows],
            ["COMPLETED", "COMPLETED", "FAILED", "FAILED", "FAILED"],
        )
        self.assertEqual([row.get("value") for row in rows], [10, 20, None, None, None])
        self.assertEqual([row["overrides"] for row in rows], [[f"lr={x}"] for x in range(1, 6)])
        self.assertEqual((rows[0]["num"], rows[0]["folder"]), (7, "multirun/7"))
        self.assertIn(int(rows[0]["id"]), ids)
        self.assertEqual((rows[2]["error"], rows[2]["text"]), ("ValueError", "lr is 3"))
        self.assertEqual(rows[3]["error"], "TaskCrashed")
        self.assertEqual(rows[4]["error"], "TaskOutOfMemory")
        (array,) = {task["array_id"] for task in self.tasks(state="all")}
        info = self.client.array(array)
        self.assertEqual((info["name"], info["limit"]), ("app", 2))
        self.assertEqual(info["states"], {"COMPLETED": 2, "FAILED": 2, "OUT_OF_MEMORY": 1})

    @unittest.skipUnless(HAS_HYDRA, "hydra-core is not installed")
    def test_a_sweep_of_a_real_program(self):
        self.write("conf.py", CONF)
        app = self.write("app.py", "import conf\n" + APP + "\ntrain()\n")
        options = ["--multirun", "hydra/launcher=colloc", "hydra.launcher.memory=1GiB"]
        done = self.run_python(app, *options, "lr=1,2")
        self.assertIn("#1 : lr=2", done.stdout)
        (array,) = {task["array_id"] for task in self.tasks(state="all")}
        self.assertEqual(self.client.array(array)["states"], {"COMPLETED": 2})
        for line in commands_of_the_page():
            self.write("train.py", "import conf\n" + APP + "\ntrain()\n")
            self.run_python("train.py", *line.split())
        failed = self.run_python(app, *options, "lr=1,3", code=1)
        self.assertIn("lr is 3", failed.stderr)
        failed = self.run_python(app, *options, "lr=4", code=1)
        self.assertIn("TaskCrashed", failed.stderr)


if __name__ == "__main__":
    unittest.main()
