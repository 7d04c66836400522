# SPDX-License-Identifier: Apache-2.0
"""The `File` and `Params` of a row of radT's tables: names, and commands of trainings.

The options of a training are translated for colloc's train.py, which stands in for a script that is
not there:

    --model resnet26 --batch-size 128 --data-dir /data/cifar10
    train.py resnet26 --batch 128 --side 32 --classes 10
"""

import re
from typing import List

from colloc_bench.text import encode, parse_integer
from colloc_bench.training import NAME, Defaults, training_command

# train.py's names of timm's models, and the image sizes and classes of data sets.
MODELS = {"efficientnetv2_s": "efficientnet", "cait_xxs24_224": "cait"}
DATA_SETS = {"cifar10": (32, 10), "imagenet64_images": (64, 1000), "imagenet": (224, 1000)}
# Bytes of a value, with a NUL; a longer one counts as not given.
MODEL_SIZE, FOLDER_SIZE, BATCH_SIZE = 64, 1024, 16


def option_of(params: str, name: str, size: int) -> str:
    """The value of an option in "--model resnet26 --batch-size=128", or ""."""
    match = re.search(rf"(?:^|(?<= )){re.escape(name)}(?:[ =]+([^ ]*)|$)", params)
    value = (match[1] or "") if match else ""
    return value if len(value) < size else ""


class Params:
    """The options in Params that names and translations use. A --model that is no name is not
    kept."""

    def __init__(self, text: str):
        self.text = text
        model = option_of(text, "--model", MODEL_SIZE)
        self.model = model if NAME.fullmatch(model) else ""
        folder = option_of(text, "--data-dir", FOLDER_SIZE).rstrip("/")
        # The journal itself uses these characters.
        self.data_set = re.sub("[,\"'#\r\n]", "_", folder.rpartition("/")[2])
        batch = option_of(text, "--batch-size", BATCH_SIZE)
        self.has_bad_batch = not re.fullmatch("[0-9]*", batch)
        self.batch = "" if self.has_bad_batch else batch

    def name_of(self, script: str) -> str:
        """ "resnet26 cifar10 b128"; without a --model "train" of "examples/train.py"."""
        if not self.model:
            name = script.rpartition("/")[2]
            stem, dot, _ = name.rpartition(".")
            shown = encode(stem if dot and stem else name).decode("latin-1")
            return re.sub("[^A-Za-z0-9_/-]", "_", shown)
        parts = [MODELS.get(self.model, self.model), self.data_set]
        return " ".join([*filter(None, parts), *([f"b{self.batch}"] if self.batch else [])])

    def translate(self, defaults: Defaults) -> List[str]:
        """The command of colloc's train.py for the training that the row's script would run."""
        side, classes = DATA_SETS.get(self.data_set, (0, 0))
        return training_command(
            defaults,
            MODELS.get(self.model, self.model),
            epochs=defaults.epochs,
            steps=defaults.steps,
            batch=parse_integer(self.batch, 1, 1_000_000) or 0,
            side=side,
            classes=classes,
        )
