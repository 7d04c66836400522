# SPDX-License-Identifier: Apache-2.0
"""LoRA by PEFT, trained by a loop, transformers.Trainer, Accelerate or Lightning."""
import argparse
import tempfile

import torch
from peft import LoraConfig, get_peft_model

import language_models


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="gpt2")
    parser.add_argument("--method", default="peft")
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--steps", type=int, default=6)
    return parser.parse_args()


class Texts(torch.utils.data.Dataset):
    def __init__(self, words, length, count):
        self.words, self.length, self.count = words, length, count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        text = torch.randint(0, self.words, (self.length,))
        return {"input_ids": text, "labels": text}


def train_by_trainer(model, texts, args):
    from transformers import Trainer, TrainingArguments

    with tempfile.TemporaryDirectory() as folder:
        options = TrainingArguments(
            output_dir=folder, per_device_train_batch_size=args.batch_size, bf16=True,
            max_steps=args.steps, report_to=[], save_strategy="no", logging_steps=100,
        )  # fmt: skip
        Trainer(model=model, args=options, train_dataset=texts).train()


def train_by_accelerate(model, loader):
    from accelerate import Accelerator

    accelerator = Accelerator(mixed_precision="bf16")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for batch in loader:
        loss = model(**batch).loss
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()


def train_by_lightning(model, loader):
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = model

        def training_step(self, batch, _):
            return self.model(**batch).loss

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=1e-4)

    trainer = lightning.Trainer(
        max_epochs=1, precision="bf16-mixed", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, accelerator="gpu", devices=1,
    )  # fmt: skip
    trainer.fit(Module(), loader)


def train_by_loop(model, loader):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for batch in loader:
        batch = {name: value.to("cuda") for name, value in batch.items()}
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def main():
    args = parse()
    model = language_models.load(args.model, "fp32" if args.method != "peft" else "bf16")
    targets = {"gpt2": ["c_attn"]}.get(args.model.partition("-")[0], ["q_proj", "v_proj"])
    model = get_peft_model(model, LoraConfig(r=16, target_modules=targets, task_type="CAUSAL_LM"))
    print(model)
    model.print_trainable_parameters()
    words = language_models.CONFIGS[args.model].get("vocab_size", 50257)
    texts = Texts(words, args.length, args.steps * args.batch_size)
    loader = torch.utils.data.DataLoader(texts, batch_size=args.batch_size)
    if args.method == "trainer":
        train_by_trainer(model, texts, args)
    elif args.method == "accelerate":
        train_by_accelerate(model, loader)
    elif args.method == "lightning":
        train_by_lightning(model, loader)
    else:
        train_by_loop(model, loader)


main()
