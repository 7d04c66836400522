# SPDX-License-Identifier: Apache-2.0
"""GPT-2 with DeepSpeed's ZeRO, as transformers.Trainer or Accelerate calls it.

    train_deepspeed.py --by trainer|accelerate --stage 1|2|3
"""
import argparse
import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel


class Texts(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        text = torch.randint(0, 50257, (512,))
        return {"input_ids": text, "labels": text}


def by_trainer(stage):
    from transformers import Trainer, TrainingArguments

    config = {
        "bf16": {"enabled": "auto"},
        "zero_optimization": {"stage": stage},
        "optimizer": {"type": "AdamW", "params": {"lr": "auto", "weight_decay": "auto"}},
        "gradient_accumulation_steps": "auto",
        "train_micro_batch_size_per_gpu": "auto",
        "train_batch_size": "auto",
        "gradient_clipping": "auto",
    }
    with tempfile.TemporaryDirectory() as folder:
        options = TrainingArguments(
            output_dir=folder, per_device_train_batch_size=8, bf16=True, max_steps=6, report_to=[],
            save_strategy="no", deepspeed=config,
        )  # fmt: skip
        model = GPT2LMHeadModel(GPT2Config())
        Trainer(model=model, args=options, train_dataset=Texts()).train()


def by_accelerate(stage):
    from accelerate import Accelerator, DeepSpeedPlugin

    plugin = DeepSpeedPlugin(zero_stage=stage, gradient_accumulation_steps=1)
    accelerator = Accelerator(mixed_precision="bf16", deepspeed_plugin=plugin)
    model = GPT2LMHeadModel(GPT2Config())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    loader = torch.utils.data.DataLoader(Texts(), batch_size=8)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for batch in loader:
        accelerator.backward(model(**batch).loss)
        optimizer.step()
        optimizer.zero_grad()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--by", choices=("trainer", "accelerate"), default="trainer")
    parser.add_argument("--stage", type=int, default=2)
    args = parser.parse_args()
    {"trainer": by_trainer, "accelerate": by_accelerate}[args.by](args.stage)


main()
