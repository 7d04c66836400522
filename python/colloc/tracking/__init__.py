# SPDX-License-Identifier: Apache-2.0
"""System metrics of a task or command for MLflow, Weights & Biases and TensorBoard.

`colloc record --mlflow` and `colloc submit --track=mlflow` start `python3 -m colloc.tracking`,
which sends what colloc measures into the run that the environment names, as system/colloc_*:

    place                 the run is named by                     needs
    mlflow                MLFLOW_RUN_ID, MLFLOW_TRACKING_URI      for addresses other than http(s)
                                                                  the package mlflow
    wandb                 WANDB_RUN_ID, WANDB_PROJECT and so on   the package wandb
    tensorboard:FOLDER    -                                       nothing

Nothing here fails the task or command: what cannot be sent is tried again, and reported.
"""

from colloc.tracking.bridge import Bridge, Point, Refused, open_bridges
from colloc.tracking.sender import Sender

__all__ = ["Bridge", "Point", "Refused", "Sender", "open_bridges"]
