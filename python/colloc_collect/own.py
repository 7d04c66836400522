# SPDX-License-Identifier: Apache-2.0
"""Networks that torchvision, timm and transformers do not have.

They are what a user writes for tasks other than classification of images or text.
"""
import torch
from torch import nn


class DoubleConv(nn.Sequential):
    def __init__(self, inputs, outputs):
        super().__init__(
            nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
        )


class UNet(nn.Module):
    def __init__(self, width=64, levels=4, classes=21, bilinear=False):
        super().__init__()
        widths = [width << i for i in range(levels + 1)]
        self.first = DoubleConv(3, width)
        self.down = nn.ModuleList(DoubleConv(a, b) for a, b in zip(widths, widths[1:]))
        self.pool = nn.MaxPool2d(2)
        self.up = nn.ModuleList(self._up(b, a, bilinear) for a, b in zip(widths, widths[1:]))
        self.merge = nn.ModuleList(DoubleConv(2 * a, a) for a in widths[:-1])
        self.head = nn.Conv2d(width, classes, 1)

    @staticmethod
    def _up(inputs, outputs, bilinear):
        if bilinear:
            return nn.Sequential(
                nn.Upsample(scale_factor=2, mode="bilinear"), nn.Conv2d(inputs, outputs, 1)
            )
        return nn.ConvTranspose2d(inputs, outputs, 2, stride=2)

    def forward(self, x):
        kept = [self.first(x)]
        for block in self.down:
            kept.append(block(self.pool(kept[-1])))
        x = kept.pop()
        for up, merge in zip(reversed(self.up), reversed(self.merge)):
            x = merge(torch.cat([kept.pop(), up(x)], 1))
        return self.head(x)


class LanguageRnn(nn.Module):
    def __init__(self, kind="LSTM", vocabulary=33278, width=650, layers=2, dropout=0.5):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.embedding = nn.Embedding(vocabulary, width)
        self.rnn = getattr(nn, kind)(width, width, layers, dropout=dropout, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        x, _ = self.rnn(self.drop(self.embedding(tokens)))
        return self.head(self.drop(x))


class Tagger(nn.Module):
    def __init__(self, vocabulary=50000, width=300, hidden=512, layers=2, tags=50):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.rnn = nn.LSTM(width, hidden, layers, bidirectional=True, batch_first=True)
        self.head = nn.Linear(2 * hidden, tags)

    def forward(self, tokens):
        return self.head(self.rnn(self.embedding(tokens))[0])


class Recommender(nn.Module):
    """A deep recommendation model: dense features, categories, their products, a tower on top."""

    def __init__(
        self, tables=26, rows=100_000, width=64, dense=13, bottom=(512, 256), top=(512, 256)
    ):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum") for _ in range(tables))
        self.bottom = self._tower(dense, (*bottom, width))
        self.top = self._tower(width + (tables + 1) * tables // 2, top)
        self.head = nn.Linear(top[-1], 1)
        self.register_buffer(
            "pairs", torch.tril_indices(tables + 1, tables + 1, -1), persistent=False
        )

    @staticmethod
    def _tower(width, widths):
        layers = []
        for following in widths:
            layers += [nn.Linear(width, following), nn.ReLU()]
            width = following
        return nn.Sequential(*layers)

    def forward(self, dense, categories):
        x = self.bottom(dense)
        vectors = torch.stack(
            [x, *(table(categories[:, i : i + 1]) for i, table in enumerate(self.tables))], 1
        )
        products = torch.bmm(vectors, vectors.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        return self.head(self.top(torch.cat([x, products], 1)))


class Factorization(nn.Module):
    def __init__(self, users=138_000, items=27_000, width=64, tower=(256, 128, 64)):
        super().__init__()
        self.users, self.items = nn.Embedding(users, width), nn.Embedding(items, width)
        self.tower = Recommender._tower(2 * width, tower)
        self.head = nn.Linear(tower[-1] + width, 1)

    def forward(self, users, items):
        u, i = self.users(users), self.items(items)
        return self.head(torch.cat([u * i, self.tower(torch.cat([u, i], 1))], 1))


class Autoencoder(nn.Module):
    def __init__(self, width=64, levels=4):
        super().__init__()
        widths = [3, *(width << i for i in range(levels))]
        down = [
            layer
            for a, b in zip(widths, widths[1:])
            for layer in (nn.Conv2d(a, b, 4, 2, 1), nn.BatchNorm2d(b), nn.LeakyReLU(0.2))
        ]
        up = [
            layer
            for b, a in zip(widths[::-1], widths[-2:0:-1])
            for layer in (nn.ConvTranspose2d(b, a, 4, 2, 1), nn.BatchNorm2d(a), nn.ReLU())
        ]
        self.encoder = nn.Sequential(*down)
        self.decoder = nn.Sequential(*up, nn.ConvTranspose2d(widths[1], 3, 4, 2, 1), nn.Tanh())

    def forward(self, x):
        return self.decoder(self.encoder(x))


class AudioConv(nn.Module):
    def __init__(self, width=128, classes=35):
        super().__init__()
        widths = [1, width, width, 2 * width, 4 * width]
        self.body = nn.Sequential(
            *(
                layer
                for i, (a, b) in enumerate(zip(widths, widths[1:]))
                for layer in (
                    nn.Conv1d(a, b, 80 if i == 0 else 3, 4 if i == 0 else 1),
                    nn.BatchNorm1d(b),
                    nn.ReLU(),
                    nn.MaxPool1d(4),
                )
            )
        )
        self.head = nn.Linear(widths[-1], classes)

    def forward(self, x):
        return self.head(self.body(x).mean(-1))


class TemporalConv(nn.Module):
    class Block(nn.Module):
        def __init__(self, inputs, outputs, dilation):
            super().__init__()
            self.body = nn.Sequential(
                *(
                    layer
                    for width in (inputs, outputs)
                    for layer in (
                        nn.Conv1d(width, outputs, 3, padding=dilation, dilation=dilation),
                        nn.ReLU(),
                        nn.Dropout(0.2),
                    )
                )
            )
            self.skip = nn.Conv1d(inputs, outputs, 1) if inputs != outputs else nn.Identity()
            self.last = nn.ReLU()

        def forward(self, x):
            return self.last(self.body(x) + self.skip(x))

    def __init__(self, inputs=32, width=256, levels=8, classes=10):
        super().__init__()
        self.body = nn.Sequential(
            *(self.Block(width if i else inputs, width, 1 << i) for i in range(levels))
        )
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.body(x)[:, :, -1])


class PointNet(nn.Module):
    def __init__(self, classes=40):
        super().__init__()
        widths = [3, 64, 128, 1024]
        self.points = nn.Sequential(
            *(
                layer
                for a, b in zip(widths, widths[1:])
                for layer in (nn.Conv1d(a, b, 1), nn.BatchNorm1d(b), nn.ReLU())
            )
        )
        self.head = nn.Sequential(
            nn.Linear(1024, 512),
            nn.BatchNorm1d(512),
            nn.ReLU(),
            nn.Dropout(0.3),
            nn.Linear(512, classes),
        )

    def forward(self, points):
        return self.head(self.points(points).max(-1)[0])


class TabularResNet(nn.Module):
    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.body = nn.Sequential(
                nn.BatchNorm1d(width),
                nn.Linear(width, 2 * width),
                nn.ReLU(),
                nn.Dropout(0.2),
                nn.Linear(2 * width, width),
                nn.Dropout(0.2),
            )

        def forward(self, x):
            return x + self.body(x)

    def __init__(self, inputs=200, width=512, blocks=8, classes=10):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(inputs, width), *(self.Block(width) for _ in range(blocks))
        )
        self.head = nn.Sequential(nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, classes))

    def forward(self, x):
        return self.head(self.body(x))
