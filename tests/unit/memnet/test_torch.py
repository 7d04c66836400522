# SPDX-License-Identifier: Apache-2.0
"""A step of training in C against the same network built of PyTorch's own modules: the loss, every
gradient, and the running moments of the batch norms. PyTorch computes in 64 bit."""
import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "lib"))

from needs_torch import nn, torch  # noqa: E402

PRINT_STEP = os.environ["PRINT_STEP"]
DTYPE = torch.float64
WITHIN = 2e-4  # of the largest gradient of the tensor: sums of 32-bit numbers over the batch


def tensor(values, *shape):
    return (
        torch.tensor(values, dtype=DTYPE).reshape(*shape)
        if shape
        else torch.tensor(values, dtype=DTYPE)
    )


class Net(nn.Module):
    """The network that print-step describes, from its description alone."""

    def __init__(self, step):
        super().__init__()
        self.compared = []  # (name, parameter, gradient by C), and buffers with what C made of them
        self.encoders = nn.ModuleList(
            self.encoder(f"encoder {i}", e) for i, e in enumerate(step["encoders"])
        )
        self.members = nn.ModuleList(
            self.member(f"member {i}", m) for i, m in enumerate(step["members"])
        )

    def load(self, name, parameter, pair):
        weights, gradients = (tensor(side, *parameter.shape) for side in pair)
        with torch.no_grad():
            parameter.copy_(weights)
        if parameter.requires_grad:
            self.compared.append((name, parameter, gradients))
        return gradients

    def linear(self, name, told):
        linear = nn.Linear(told["in"], told["out"], dtype=DTYPE)
        self.load(f"{name} weight", linear.weight, told["weight"])
        self.load(f"{name} bias", linear.bias, told["bias"])
        return linear

    def norm(self, name, told, norm):
        self.load(f"{name} scale", norm.weight, told["scale"])
        self.load(f"{name} shift", norm.bias, told["shift"])
        for buffer, key in (("running_mean", "mean"), ("running_var", "variance")):
            if key in told:
                getattr(norm, buffer).copy_(tensor(told[key][0]))
                norm.after = getattr(norm, "after", []) + [(name, buffer, tensor(told[key][1]))]
        return norm

    def block(self, name, told):
        out = told["linear"]["out"]
        return nn.Sequential(
            self.linear(name, told["linear"]),
            self.norm(f"{name} norm", told["norm"], nn.BatchNorm1d(out, dtype=DTYPE)),
            nn.ReLU(),
        )

    def encoder_layer(self, name, told, width):
        layer = nn.TransformerEncoderLayer(
            width,
            1,
            told["up"]["out"],
            dropout=0.0,
            batch_first=True,
            norm_first=False,
            dtype=DTYPE,
        )
        attention = layer.self_attn
        for parameter, part, which in (
            (attention.in_proj_weight, "qkv", "weight"),
            (attention.in_proj_bias, "qkv", "bias"),
            (attention.out_proj.weight, "projection", "weight"),
            (attention.out_proj.bias, "projection", "bias"),
            (layer.linear1.weight, "up", "weight"),
            (layer.linear1.bias, "up", "bias"),
            (layer.linear2.weight, "down", "weight"),
            (layer.linear2.bias, "down", "bias"),
        ):
            self.load(f"{name} {part} {which}", parameter, told[part][which])
        self.norm(f"{name} norm of attention", told["norm_attention"], layer.norm1)
        self.norm(f"{name} norm of feed-forward", told["norm_feed_forward"], layer.norm2)
        return layer

    def encoder(self, name, told):
        module = nn.Module()
        module.width = told["width"]
        module.embedding = nn.Sequential(
            *(
                self.block(f"{name} embedding {i}", block)
                for i, block in enumerate(told["embedding"])
            )
        )
        module.layers = nn.ModuleList(
            self.encoder_layer(f"{name} layer {i}", layer, module.width)
            for i, layer in enumerate(told["layers"])
        )
        return module

    def member(self, name, told):
        blocks = [self.block(f"{name} block {i}", block) for i, block in enumerate(told["blocks"])]
        return nn.Sequential(*blocks, self.linear(f"{name} logits", told["logits"]))

    def encode(self, encoder, sequences):
        """Sums over each sequence; batch norm is over the tokens of all of them."""
        embedded = encoder.embedding(torch.cat(sequences))
        sums = []
        for x in embedded.split([len(sequence) for sequence in sequences]):
            places = torch.arange(len(x), dtype=DTYPE)[:, None]
            channels = torch.arange(0, encoder.width, 2, dtype=DTYPE)
            angle = places * 1e4 ** (-channels / encoder.width)
            x = x + torch.stack((angle.sin(), angle.cos()), -1).flatten(1)
            for layer in encoder.layers:
                x = layer(x[None])[0]
            sums.append(x.sum(0))
        return torch.stack(sums)

    def forward(self, values, sequences):
        inputs = torch.cat([*(self.encode(e, sequences) for e in self.encoders), values], 1)
        return torch.stack([member(inputs) for member in self.members]).mean(0)


class Step(unittest.TestCase):
    def check(self, family, method):
        printed = subprocess.run([PRINT_STEP, family, method], stdout=subprocess.PIPE, check=True)
        step = json.loads(printed.stdout)
        net = Net(step).train()
        values = tensor([row["values"] for row in step["rows"]])
        logits = net(values, [tensor(row["tokens"]) for row in step["rows"]])
        loss = nn.functional.cross_entropy(
            logits, torch.tensor([row["class"] for row in step["rows"]])
        )
        loss.backward()
        self.assertAlmostEqual(loss.item(), step["loss"], 5)
        largest = 0
        for name, parameter, theirs in net.compared:
            scale = parameter.grad.abs().max().item()
            off = (parameter.grad - theirs).abs().max().item()
            self.assertLessEqual(off, WITHIN * scale + 2e-6, name)
            largest = max(largest, scale)
        self.assertGreater(largest, 0.01)
        self.assertGreater(len(net.compared), 100)
        for norm in net.modules():
            for name, buffer, theirs in getattr(norm, "after", []):
                off = (getattr(norm, buffer) - theirs).abs().max().item()
                self.assertLess(off, 1e-5, f"{name} {buffer}")

    def test_ensembles(self):
        self.check("mlp", "mlp")
        self.check("cnn", "mlp")

    def test_encoders(self):
        self.check("mlp", "transformer")
        self.check("transformer", "transformer")


if __name__ == "__main__":
    unittest.main()
