# SPDX-License-Identifier: Apache-2.0
"""hydra/launcher=colloc: the jobs of a sweep are the tasks of one array.

A job composes its configuration in its task, as with Hydra's other remote launchers: job variables
such as the id are known only there. What a job returns comes back as Hydra's JobReturn; Hydra
raises the exception of a failed job when the sweeper reads its value. The task of such a job fails
too, so that colloc runs it again after a GPU memory crash. A job whose task left no JobReturn (time
limit, cancel, a signal) becomes a failed one with the typed exception of colloc.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

from hydra.core.singleton import Singleton
from hydra.core.utils import JobReturn, JobStatus, filter_overrides, run_job, setup_globals
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf, open_dict

log = logging.getLogger(__name__)


class JobFailed(Exception):
    """Carries the JobReturn of a failed job out of its task."""

    def __init__(self, job_return: JobReturn):
        super().__init__(job_return)
        self.job_return = job_return


def failed_job(overrides: Sequence[str], error: BaseException) -> JobReturn:
    """What Hydra gets for a job that left nothing."""
    result = JobReturn()
    result.overrides = list(overrides)
    result.status = JobStatus.FAILED
    result.return_value = error
    return result


def result_of(future: Any, overrides: Sequence[str]) -> JobReturn:
    """What a job came to, once it has ended."""
    error = future.exception()
    if isinstance(error, JobFailed):
        return error.job_return
    return future.result() if error is None else failed_job(overrides, error)


class CollocLauncher(Launcher):
    """See the head of this file. `params`: the members of CollocLauncherConf."""

    def __init__(self, **params: Any) -> None:
        self.params: Dict[str, Any] = {
            key: OmegaConf.to_container(value, resolve=True)
            if OmegaConf.is_config(value)
            else value
            for key, value in params.items()
        }
        self.config: Optional[DictConfig] = None
        self.task_function: Optional[TaskFunction] = None
        self.hydra_context: Optional[HydraContext] = None

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        self.config = config
        self.hydra_context = hydra_context
        self.task_function = task_function

    def run(self, overrides: List[str], number: int, singletons: Dict[type, Any]) -> JobReturn:
        """One job, in its task."""
        assert self.hydra_context and self.config is not None and self.task_function
        Singleton.set_state(singletons)
        setup_globals()
        loader = self.hydra_context.config_loader
        job_config: Any = loader.load_sweep_config(self.config, overrides)
        with open_dict(job_config.hydra.job):
            job_config.hydra.job.id = os.environ["COLLOC_TASK_ID"]
            job_config.hydra.job.num = number
        result = run_job(
            hydra_context=self.hydra_context,
            task_function=self.task_function,
            config=job_config,
            job_dir_key="hydra.sweep.dir",
            job_subdir_key="hydra.sweep.subdir",
        )
        if result.status == JobStatus.FAILED:
            raise JobFailed(result) from result._return_value
        return result

    def task_options(self) -> Dict[str, Any]:
        """The keys of the submission."""
        given = {key: self.params.get(key) for key in ("memory", "gpus", "sharing", "name")}
        if self.params.get("timeout_min") is not None:
            given["time_limit_s"] = 60 * self.params["timeout_min"]
        options = {key: value for key, value in given.items() if value is not None}
        return {**options, **(self.params.get("options") or {})}

    def launch(
        self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int
    ) -> Sequence[JobReturn]:
        import colloc  # Hydra imports all plugins at each start

        assert self.config is not None
        sweep_dir = Path(str(self.config.hydra.sweep.dir))
        sweep_dir.mkdir(parents=True, exist_ok=True)
        if "mode" in self.config.hydra.sweep:
            os.chmod(sweep_dir, mode=int(str(self.config.hydra.sweep.mode), 8))
        log.info("colloc runs %d jobs; sweep output dir: %s", len(job_overrides), sweep_dir)
        for number, overrides in enumerate(job_overrides, start=initial_job_idx):
            log.info("\t#%d : %s", number, " ".join(filter_overrides(overrides)))
        executor = colloc.Executor(
            client=colloc.Client(self.params.get("socket")),
            limit=self.params.get("limit"),
            **self.task_options(),
        )
        with executor:
            return self.run_jobs(executor, job_overrides, initial_job_idx)

    def run_jobs(
        self, executor: Any, job_overrides: Sequence[Sequence[str]], first: int
    ) -> List[JobReturn]:
        """All jobs as one array; their results in order."""
        state = Singleton.get_state()
        futures = [
            executor.submit(self.run, list(overrides), number, state)
            for number, overrides in enumerate(job_overrides, start=first)
        ]
        executor.flush()
        return [result_of(future, overrides) for future, overrides in zip(futures, job_overrides)]
