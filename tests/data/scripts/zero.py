# SPDX-License-Identifier: Apache-2.0
"""One rank of a training that DeepSpeed divides among four GPUs, which is not installed.

    zero.py STAGE [bf16] [overlap] [far] [states] [parameters] [file] [accumulates] [tied] [frozen]
        [init] [installed] [breaks] [schedule] [warms] [member] [import]

Other words than a stage give a configuration that DeepSpeed refuses.
"""
import json
import os
import sys

how, words = sys.argv[1], sys.argv[2:]
if "installed" in words:
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "libraries"))

import deepspeed  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402

os.environ.update(WORLD_SIZE="4", RANK="0")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(512, 2048), nn.Linear(2048, 512)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


class Network(nn.Module):
    """A head that may share the weight of the first layer, which it takes by a function."""

    def __init__(self):
        super().__init__()
        self.first = nn.Embedding(1024, 512)
        self.blocks = nn.Sequential(*(Block() for _ in range(8)))
        self.attend = nn.MultiheadAttention(512, 8, batch_first=True)
        self.head = nn.Linear(512, 1024, bias=False)
        if "tied" in words:
            self.head.weight = self.first.weight
        if "frozen" in words:
            self.blocks.requires_grad_(False)

    def forward(self, x):
        x = self.blocks(self.first(x))
        x = x + self.attend(x, x, x)[0]
        return self.head(x) + nn.functional.linear(x, self.first.weight)


def configuration():
    zero = {"stage": int(how), "reduce_bucket_size": 5e6, "overlap_comm": "overlap" in words}
    if "far" in words:
        zero["stage3_max_reuse_distance"] = 1
    if "states" in words:
        zero["offload_optimizer"] = {"device": "cpu"}
    if "parameters" in words:
        zero["offload_param"] = {"device": "cpu", "pin_memory": True}
    return {
        "zero_optimization": zero,
        "bf16": {"enabled": "bf16" in words},
        "train_micro_batch_size_per_gpu": 4,
        "gradient_accumulation_steps": 2 if "accumulates" in words else 1,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
    }


def refused():
    """A configuration that DeepSpeed refuses, by name."""
    return {
        "missing": None,
        "no-file": "no_such_file.json",
        "stage": {"zero_optimization": {"stage": 4}, "train_batch_size": 4},
        "auto": {"train_micro_batch_size_per_gpu": "auto"},
        "rate": {
            "train_batch_size": 4,
            "optimizer": {"type": "AdamW", "params": {"lr": "auto"}},
        },
        "schedule": {"train_batch_size": 4, "scheduler": {"type": "Quick"}},
        "batch": {"zero_optimization": {"stage": 2}},
        "offload": {
            "zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}},
            "train_batch_size": 4,
        },
        "both": {"fp16": {"enabled": True}, "bf16": {"enabled": True}, "train_batch_size": 4},
        "list": {"zero_optimization": [2], "train_batch_size": 4},
    }[how]


if "init" in words:
    with deepspeed.zero.Init():
        network = Network()
else:
    network = Network()
config = configuration() if how.isdigit() else refused()
if "file" in words:
    with open("ds_config.json", "w", encoding="utf-8") as file:
        file.write("// as hjson\n" + json.dumps(config)[:-1] + ", # the end\n}")
    config = "ds_config.json"
if "warms" in words:
    config["scheduler"] = {"type": "WarmupLR"}
if "schedule" in words and how.isdigit():  # as Lightning quietens it
    deepspeed.utils.logging.logger.setLevel("WARNING")
if "member" in words:
    deepspeed.utils.no_such_member()
if "import" in words:
    from deepspeed.utils import no_such_member

    no_such_member()
if "breaks" in words:
    deepspeed.initialize.__globals__["zero_config"].settings_of = None
schedule = None
if "schedule" in words:  # as transformers gives it: of the optimizer within DeepSpeed's
    schedule = lambda inner: torch.optim.lr_scheduler.LambdaLR(inner, lambda step: 1.0)
engine, optimizer, _, schedule = deepspeed.initialize(
    model=network, model_parameters=network.parameters(), config=config, lr_scheduler=schedule
)
if "warms" in words:
    assert type(schedule).__name__ in deepspeed.runtime.lr_schedules.VALID_LR_SCHEDULES
if "schedule" in words:
    assert isinstance(schedule, torch.optim.lr_scheduler.LambdaLR)
for _ in range(6):
    words_in = torch.randint(0, 1024, (4, 96), device="cuda")
    loss = engine(words_in).float().logsumexp(-1).mean()
    engine.backward(loss)
    engine.step()
