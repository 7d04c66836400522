# SPDX-License-Identifier: Apache-2.0
"""The options of hydra/launcher=colloc, and their registration at Hydra."""

from dataclasses import dataclass, field
from typing import Any, Dict, Optional

from hydra.core.config_store import ConfigStore


@dataclass
class CollocLauncherConf:
    """Options of the tasks of a sweep (docs/hydra.md). None: the default of `colloc submit`."""

    _target_: str = "hydra_plugins.hydra_colloc_launcher.colloc_launcher.CollocLauncher"
    memory: Optional[str] = None  # GPU memory on each GPU, "6GiB"; None: learned from the first
    gpus: int = 1
    limit: Optional[int] = None  # tasks that run at a time
    timeout_min: Optional[float] = None
    sharing: Optional[str] = None  # streams, mps or auto
    name: str = "${hydra.job.name}"
    socket: Optional[str] = None  # of the daemon
    options: Dict[str, Any] = field(default_factory=dict)  # further keys of POST /v1/tasks


ConfigStore.instance().store(
    group="hydra/launcher", name="colloc", node=CollocLauncherConf, provider="colloc_launcher"
)
