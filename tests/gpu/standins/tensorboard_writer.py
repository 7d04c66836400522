# SPDX-License-Identifier: Apache-2.0
"""In place of torch.utils.tensorboard: makes its folder and writes nothing."""
import os


class SummaryWriter:
    def __init__(self, *args, log_dir=None, **kwargs):
        self.log_dir = str(log_dir or (args[0] if args else "runs"))
        os.makedirs(self.log_dir, exist_ok=True)

    def __getattr__(self, name):
        return lambda *args, **kwargs: None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False
