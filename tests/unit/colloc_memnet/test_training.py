# SPDX-License-Identifier: Apache-2.0
"""Training: what it learns, the same weights for the same seed, patience, processes."""

import math
import os
import random
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "lib"))

from needs_torch import torch  # noqa: E402

from colloc_memnet import examples, feed, network, pool, training  # noqa: E402

GIB, MIB = 2**30, 2**20
SHALLOW = feed.Plan("shallow", "mlp", "mlp", 1024, (1, 5, 6, 7, 8), (), (1, 2, 3))
DEEP = feed.Plan("deep", "mlp", "transformer", 1024, (1, 6), ((6, 2), (4, 1)), (1, 2))
OTHER = feed.Plan("other", "cnn", "mlp", 8192, (1,), (), (1,))


def make_row(i, rng):
    """A perceptron whose memory follows from its width, its depth and its batch."""
    depth, batch = rng.randint(2, 10), rng.randint(1, 1024)
    width = int(math.exp(rng.random() * math.log(6000)))
    parameters, activations = depth * width * (width + 1), depth * width
    values = [0.0] * 13
    values[0] = values[1] = math.log1p(depth)
    values[5:9] = map(math.log1p, (batch, parameters, activations, batch * activations))
    layer = (1.0, math.log1p(width), math.log1p(width * (width + 1)))
    return feed.Row(
        id=f"r{i}",
        set="mlp",
        real=False,
        part="training" if i % 10 < 7 else "validation" if i % 10 < 9 else "test",
        family="mlp-uniform",
        network=f"m{i}",
        batch=batch,
        optimizer="adam",
        precision="fp32",
        bytes=700 * MIB + 20 * parameters + 8 * batch * activations,
        values=tuple(values),
        tokens=(layer,) * depth,
    )


def make_feed(n, **changes):
    rng = random.Random(7)
    rows = [make_row(i, rng) for i in range(n)]
    return feed.Feed(
        [SHALLOW, DEEP, OTHER], [r.__class__(**{**r.__dict__, **changes}) for r in rows], {}
    )


def train(data, plan, seed=1, epochs=None):
    """(text of weights, Progress of each epoch)"""
    seen = []
    text, _ = training.train(
        data, plan, seed, epochs, lambda p: seen.append(training.Progress(**vars(p)))
    )
    return text, seen


class Training(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.set_num_threads(1)

    def test_learns_a_formula(self):
        for plan, n, epochs in ((SHALLOW, 600, 40), (DEEP, 200, 15)):
            _, seen = train(make_feed(n), plan, epochs=epochs)
            self.assertLess(seen[-1].training_loss, 0.5 * seen[0].training_loss, plan.name)
            self.assertLess(seen[-1].best_loss, 0.6 * seen[0].validation_loss, plan.name)

    def test_same_seed_same_weights(self):
        data = make_feed(150)
        for plan in (SHALLOW, DEEP):
            once, again, other = (train(data, plan, seed, 3)[0] for seed in (5, 5, 6))
            self.assertEqual(once, again)
            self.assertNotEqual(once, other)

    def test_patience_ends_with_the_best_epoch(self):
        rng = random.Random(1)
        data = make_feed(120)
        data.rows = [  # noise: nothing carries over to other rows
            r.__class__(**{**r.__dict__, "bytes": rng.choice((0.5, 1.5)) * GIB}) for r in data.rows
        ]
        text, seen = train(data, SHALLOW)
        self.assertEqual(seen[-1].epoch, seen[-1].best_epoch + training.PATIENCE)
        self.assertEqual(train(data, SHALLOW, epochs=seen[-1].best_epoch)[0], text)

    def test_number_of_processes_does_not_matter(self):
        data = make_feed(120)
        results = []
        for jobs in (1, 3):
            events = list(pool.train_all(data, data.plans, 1, jobs, 2))
            results.append({name: payload for name, kind, payload in events if kind != "epoch"})
        self.assertEqual(results[0], results[1])
        self.assertEqual(results[0]["other"], "0 training rows of kind cnn: at least 20 are needed")

    def test_a_process_that_dies_is_reported(self):
        class Fatal:
            def __iter__(self):
                os._exit(3)

        data = make_feed(40)
        data.rows = Fatal()
        events = list(pool.train_all(data, [SHALLOW], 1, 1, 2))
        self.assertEqual(events, [("shallow", "failed", "its process ended with status 3")])

    def test_too_many_classes(self):
        with self.assertRaisesRegex(ValueError, "101 classes of 1024 MiB: at most 64"):
            train(make_feed(60, bytes=100.5 * GIB), SHALLOW)


class Network(unittest.TestCase):
    def test_padding_has_no_part_in_the_result(self):
        torch.manual_seed(1)
        encoder = network.Encoder(6, 2).eval()
        sequences = [torch.randn(n, 3) for n in (5, 40, 1, 17)]
        together = encoder(sequences)
        for i, sequence in enumerate(sequences):
            torch.testing.assert_close(together[i], encoder([sequence])[0], rtol=1e-4, atol=1e-5)

    def test_layers_are_those_of_pytorch(self):
        torch.manual_seed(1)
        ours = network.EncoderLayer(6)
        theirs = torch.nn.TransformerEncoderLayer(6, 1, 4, dropout=0.0, batch_first=True)
        theirs.load_state_dict(
            {
                name.replace("attention.", "self_attn.")
                .replace("norm_self_attn.", "norm1.")
                .replace("norm_attention.", "norm1.")
                .replace("norm_feed_forward.", "norm2.")
                .replace("up.", "linear1.")
                .replace("down.", "linear2."): tensor
                for name, tensor in ours.state_dict().items()
            }
        )
        x, is_padding = torch.randn(2, 7, 6), torch.zeros(2, 7, dtype=torch.bool)
        torch.testing.assert_close(ours(x, is_padding), theirs(x), rtol=1e-5, atol=1e-6)

    def test_numbers_are_loaded_in_their_order(self):
        one, other = network.Network(DEEP, 4), network.Network(DEEP, 4)
        other.load_numbers(one.numbers())
        self.assertEqual(one.numbers(), other.numbers())
        with self.assertRaises(AssertionError):
            other.load_numbers(one.numbers() + [0.0])


class Examples(unittest.TestCase):
    def test_scaling(self):
        data = make_feed(100)
        rows = examples.rows_of(data, SHALLOW, "training")
        scaling = examples.make_scaling(rows, SHALLOW)
        made = examples.make_examples(rows, SHALLOW, scaling, 4)
        for i in range(len(SHALLOW.values)):
            column = torch.tensor([float(example.values[i]) for example in made])
            self.assertAlmostEqual(column.mean().item(), 0, 4)
            self.assertAlmostEqual(column.std(unbiased=False).item(), 1, 4)
        self.assertEqual(scaling.token_factor[0], 0)  # constant: the network must not depend on it
        self.assertEqual(scaling.longest, max(len(row.tokens) for row in rows))


if __name__ == "__main__":
    unittest.main()
