# SPDX-License-Identifier: Apache-2.0
"""Trains a convolutional network on random pictures, sounds or volumes."""
import argparse

import torch
from torch import nn
from torch.nn import functional


def block(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True),
        nn.Conv2d(outputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True),
    )  # fmt: skip


class UNet(nn.Module):
    def __init__(self, classes=2, width=64):
        super().__init__()
        sizes = [width << i for i in range(5)]
        self.down = nn.ModuleList(block(a, b) for a, b in zip([3, *sizes], sizes))
        pairs = list(zip(sizes[:0:-1], sizes[-2::-1]))
        self.grow = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, 2) for a, b in pairs)
        self.up = nn.ModuleList(block(a, b) for a, b in pairs)
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        kept = []
        for i, layer in enumerate(self.down):
            x = layer(functional.max_pool2d(x, 2) if i else x)
            kept.append(x)
        for grow, layer, skip in zip(self.grow, self.up, kept[-2::-1]):
            x = layer(torch.cat((skip, grow(x)), 1))
        return self.head(x)


class Upscaler(nn.Module):
    """Sub-pixel super-resolution."""

    def __init__(self, factor=3):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 64, 5, padding=2), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(),
            nn.Conv2d(64, 32, 3, padding=1), nn.ReLU(),
            nn.Conv2d(32, factor**2, 3, padding=1), nn.PixelShuffle(factor),
        )  # fmt: skip

    def forward(self, x):
        return self.layers(x)


class Volumes(nn.Module):
    """A U-Net of volumes, with two levels."""

    def __init__(self, width=16):
        super().__init__()
        self.down = nn.ModuleList([self.block(1, width), self.block(width, 2 * width)])
        self.bottom = self.block(2 * width, 4 * width)
        self.grow = nn.ModuleList(
            [
                nn.ConvTranspose3d(4 * width, 2 * width, 2, 2),
                nn.ConvTranspose3d(2 * width, width, 2, 2),
            ]
        )
        self.up = nn.ModuleList([self.block(4 * width, 2 * width), self.block(2 * width, width)])
        self.head = nn.Conv3d(width, 2, 1)

    @staticmethod
    def block(inputs, outputs):
        return nn.Sequential(
            nn.Conv3d(inputs, outputs, 3, padding=1), nn.InstanceNorm3d(outputs), nn.LeakyReLU(),
            nn.Conv3d(outputs, outputs, 3, padding=1), nn.InstanceNorm3d(outputs), nn.LeakyReLU(),
        )  # fmt: skip

    def forward(self, x):
        kept = []
        for layer in self.down:
            x = layer(x)
            kept.append(x)
            x = functional.max_pool3d(x, 2)
        x = self.bottom(x)
        for grow, layer, skip in zip(self.grow, self.up, kept[::-1]):
            x = layer(torch.cat((skip, grow(x)), 1))
        return self.head(x)


class Waves(nn.Module):
    """Dilated, gated convolutions over sound, which answer with one of 256 levels."""

    def __init__(self, width=64, layers=18, levels=256):
        super().__init__()
        self.first = nn.Conv1d(1, width, 1)
        self.gates = nn.ModuleList(
            nn.Conv1d(width, 2 * width, 3, dilation=1 << i % 9, padding=1 << i % 9)
            for i in range(layers)
        )
        self.mixes = nn.ModuleList(nn.Conv1d(width, 2 * width, 1) for _ in range(layers))
        self.last = nn.Sequential(
            nn.ReLU(), nn.Conv1d(width, levels, 1), nn.ReLU(), nn.Conv1d(levels, levels, 1)
        )

    def forward(self, x):
        x, total = self.first(x), 0
        for gate, mix in zip(self.gates, self.mixes):
            value, weight = gate(x).chunk(2, 1)
            more, skip = mix(torch.tanh(value) * torch.sigmoid(weight)).chunk(2, 1)
            x, total = x + more, total + skip
        return self.last(total)


class Boxes(nn.Module):
    """A detector of one stage: boxes and classes at three scales, for each place."""

    def __init__(self, width=32, outputs=85):
        super().__init__()
        sizes = [width << i for i in range(6)]
        self.first = self.layer(3, width, 3)
        self.stages = nn.ModuleList(
            nn.Sequential(self.layer(a, b, 3, 2), self.layer(b, a, 1), self.layer(a, b, 3))
            for a, b in zip(sizes, sizes[1:])
        )
        self.narrow = nn.ModuleList(nn.Conv2d(size, 128, 1) for size in sizes[3:])
        self.heads = nn.ModuleList(
            nn.Sequential(self.layer(128, 128, 3), nn.Conv2d(128, outputs, 1)) for _ in sizes[3:]
        )

    @staticmethod
    def layer(inputs, outputs, kernel, stride=1):
        return nn.Sequential(
            nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False),
            nn.BatchNorm2d(outputs), nn.SiLU(inplace=True),
        )  # fmt: skip

    def forward(self, x):
        x, maps = self.first(x), []
        for stage in self.stages:
            x = stage(x)
            maps.append(x)
        found, above = [], None
        for map, narrow, head in list(zip(maps[-3:], self.narrow, self.heads))[::-1]:
            map = narrow(map)
            above = map if above is None else map + functional.interpolate(above, scale_factor=2)
            found.append(head(above).flatten(2))
        return torch.cat(found, 2)


def dcgan(width=64, noise=100):
    def grow(a, b, stride, padding):
        return [
            nn.ConvTranspose2d(a, b, 4, stride, padding, bias=False),
            nn.BatchNorm2d(b),
            nn.ReLU(True),
        ]

    def shrink(a, b):
        return [
            nn.Conv2d(a, b, 4, 2, 1, bias=False), nn.BatchNorm2d(b), nn.LeakyReLU(0.2, True)
        ]  # fmt: skip

    generator = nn.Sequential(
        *grow(noise, width * 8, 1, 0), *grow(width * 8, width * 4, 2, 1),
        *grow(width * 4, width * 2, 2, 1), *grow(width * 2, width, 2, 1),
        nn.ConvTranspose2d(width, 3, 4, 2, 1, bias=False), nn.Tanh(),
    )  # fmt: skip
    critic = nn.Sequential(
        nn.Conv2d(3, width, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, True),
        *shrink(width, width * 2), *shrink(width * 2, width * 4), *shrink(width * 4, width * 8),
        nn.Conv2d(width * 8, 1, 4, 1, 0, bias=False), nn.Sigmoid(),
    )  # fmt: skip
    return generator, critic


def patches(inputs=6):
    sizes, layers = [inputs, 64, 128, 256, 512], []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Conv2d(a, b, 4, 2, 1), nn.InstanceNorm2d(b), nn.LeakyReLU(0.2, True)]
    return nn.Sequential(*layers, nn.Conv2d(512, 1, 4, padding=1))


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--benchmark", action="store_true")
    parser.add_argument("--steps", type=int, default=6)
    return parser.parse_args()


def train_gan(args):
    generator, critic = (net.cuda() for net in dcgan())
    criterion = nn.BCELoss()
    optimizers = [torch.optim.Adam(net.parameters(), 2e-4) for net in (critic, generator)]
    real, fake = (torch.full((args.batch_size,), value, device="cuda") for value in (1.0, 0.0))
    for _ in range(args.steps):
        pictures = torch.randn(args.batch_size, 3, 64, 64).to("cuda")
        made = generator(torch.randn(args.batch_size, 100, 1, 1, device="cuda"))
        critic.zero_grad()
        loss = criterion(critic(pictures).view(-1), real)
        loss.backward()
        criterion(critic(made.detach()).view(-1), fake).backward()
        optimizers[0].step()
        generator.zero_grad()
        criterion(critic(made).view(-1), real).backward()
        optimizers[1].step()


def train_pair(args):
    generator, critic = UNet(3, 32).cuda(), patches().cuda()
    optimizers = [torch.optim.Adam(net.parameters(), 2e-4) for net in (generator, critic)]
    for _ in range(args.steps):
        pair = torch.randn(2, args.batch_size, 3, args.size, args.size).to("cuda")
        made = generator(pair[0])
        verdict = critic(torch.cat((made, pair[0]), 1))
        loss = functional.mse_loss(verdict, torch.ones_like(verdict))
        loss = loss + 100 * functional.l1_loss(made, pair[1])
        optimizers[0].zero_grad()
        loss.backward()
        optimizers[0].step()
        optimizers[1].zero_grad()
        good = critic(torch.cat((pair[1], pair[0]), 1))
        bad = critic(torch.cat((made.detach(), pair[0]), 1))
        loss = functional.mse_loss(good, torch.ones_like(good)) + (bad**2).mean()
        loss.backward()
        optimizers[1].step()


def make_model(name):
    if name.startswith("timm/"):  # where torchvision has another one of that name
        import timm

        return timm.create_model(name[len("timm/") :])
    if name == "unet":
        return UNet()
    own = {"upscaler": Upscaler, "volumes": Volumes, "waves": Waves, "boxes": Boxes}
    if name in own:
        return own[name]()
    import torchvision

    if hasattr(torchvision.models.video, name):
        return getattr(torchvision.models.video, name)(weights=None)

    if name.startswith(("fcn", "deeplab")):
        kind = getattr(torchvision.models.segmentation, name)
        return kind(weights=None, weights_backbone=None, num_classes=21)
    if name == "googlenet":
        return torchvision.models.googlenet(weights=None, aux_logits=False, init_weights=False)
    if hasattr(torchvision.models, name):
        return getattr(torchvision.models, name)(weights=None)
    import timm

    return timm.create_model(name)


def batch_for(args):
    """Pictures, sounds or volumes, and what the network shall answer."""
    n, size, model = args.batch_size, args.size, args.model
    if model == "upscaler":
        small = size // 3
        return torch.rand(n, 1, small, small), torch.rand(n, 1, small * 3, small * 3)
    if model == "volumes":
        shape = (size // 2, size, size)
        return torch.rand(n, 1, *shape), torch.randint(0, 2, (n, *shape))
    if model == "waves":
        return torch.rand(n, 1, size * 100), torch.randint(0, 256, (n, size * 100))
    if model == "boxes":
        places = sum((size // step) ** 2 for step in (8, 16, 32))
        return torch.rand(n, 3, size, size), torch.rand(n, 85, places)
    if model.startswith("r3d"):
        return torch.rand(n, 3, 16, size, size), torch.randint(0, 400, (n,))
    pictures = torch.rand(n, 3, size, size)
    if model == "unet" or model.startswith(("fcn", "deeplab")):
        classes = 2 if model == "unet" else 21
        return pictures, torch.randint(0, classes, (n, size, size))
    return pictures, torch.randint(0, 1000, (n,))


CRITERIA = {"upscaler": nn.MSELoss, "boxes": nn.BCEWithLogitsLoss}


def train(args):
    model = make_model(args.model).cuda()
    if args.channels_last:
        model = model.to(memory_format=torch.channels_last)
    print(model)
    criterion = CRITERIA.get(args.model, nn.CrossEntropyLoss)()
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    scaler = torch.cuda.amp.GradScaler(enabled=args.amp)
    for _ in range(args.steps):
        pictures, target = (one.cuda(non_blocking=True) for one in batch_for(args))
        if args.channels_last:
            pictures = pictures.to(memory_format=torch.channels_last)
        with torch.autocast("cuda", enabled=args.amp):
            output = model(pictures)
            loss = criterion(output["out"] if isinstance(output, dict) else output, target)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    print(f"loss {loss.item():.3f}")


def main():
    args = parse()
    torch.backends.cudnn.benchmark = args.benchmark
    {"dcgan": train_gan, "pix2pix": train_pair}.get(args.model, train)(args)


main()
