# SPDX-License-Identifier: Apache-2.0
"""The exporter's rules for what CUDA's kernels keep and take, against sizes measured on an H200."""
import os
import sys
import types
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "lib"))

from needs_torch import nn, torch  # noqa: E402

from colloc_export import Task, export  # noqa: E402
from colloc_export import cuda_rules as rules  # noqa: E402
from colloc_export.attention import attention_with, kernel_of  # noqa: E402
from colloc_export.cuda_rules import cuda_rules  # noqa: E402
from colloc_export.describe import NotLinear, Pairs  # noqa: E402
from colloc_export.normalization import fused_rms_norm, has_fused_kernel  # noqa: E402
from colloc_export.recurrent import Shape  # noqa: E402
from colloc_export.scratch import scratch_of  # noqa: E402
from colloc_export.tracker import Storages, Tracker  # noqa: E402

HALF, FULL = torch.bfloat16, torch.float32


def shaped(*sizes, dtype=FULL):
    return torch.empty(sizes, dtype=dtype, device="meta")


class Scratch(unittest.TestCase):
    def test_reductions(self):
        for sizes, dtype, dims, expected in [
            ((1576, 768), FULL, [0], [9830400, 24]),
            ((1576, 3072), FULL, [0], [39321600, 96]),
            ((197, 8, 2304), FULL, [0, 1], [29491200, 72]),
            ((50176, 384), FULL, [0], [138412032, 12]),
            ((262144, 256), HALF, [0], [138412032, 8]),
            ((25088, 576), HALF, [0], [115605504, 20]),
            ((8960, 33278), HALF, [0], [42595840, 2080]),
        ]:
            with self.subTest(sizes=sizes, dtype=dtype):
                self.assertEqual(
                    scratch_of("sum", (shaped(*sizes, dtype=dtype), dims, True), None), expected
                )
        self.assertEqual(scratch_of("sum", (shaped(64, 1000), [1], True), None), [0, 0])
        self.assertEqual(scratch_of("mean", (shaped(15, 1024, 1472), [1]), None), [146964480, 692])

    def test_softmax_and_norms(self):
        scores = shaped(2, 4, 8, 8)
        self.assertEqual(
            scratch_of("_softmax_backward_data", (scores, scores, -1, FULL), None), [0, 4 * 512]
        )
        self.assertEqual(
            scratch_of("_softmax_backward_data", (scores.transpose(1, 3), scores, -1, FULL), None),
            [4 * 512, 4 * 512],
        )
        self.assertEqual(
            scratch_of("_log_softmax", (scores.transpose(1, 3), 1, False), None), [4 * 512]
        )
        self.assertEqual(scratch_of("_log_softmax", (scores, 1, False), None), [0])
        self.assertEqual(
            scratch_of("native_layer_norm_backward", (scores.transpose(1, 3), scores, [8]), None),
            [4 * 512],
        )

    def test_losses_by_element(self):
        images = shaped(128, 3, 128, 128)
        self.assertEqual(scratch_of("mse_loss", (images, images), None), [25165824, 2112, 4])
        self.assertEqual(scratch_of("mse_loss", (images, images, 0), None), [0, 0, 0])

    def test_embeddings(self):
        gradient, indices = shaped(256, 35, 650), shaped(256, 35, dtype=torch.int64)
        self.assertEqual(
            scratch_of("embedding_dense_backward", (gradient, indices, 33278, -1, False), None)[2:],
            [78848, 25625600],
        )
        few = shaped(64, dtype=torch.int64)
        self.assertEqual(
            sum(
                scratch_of(
                    "embedding_dense_backward", (shaped(64, 650), few, 33278, -1, False), None
                )
            ),
            0,
        )

    def test_operators_without_a_rule_take_nothing(self):
        self.assertEqual(scratch_of("relu", (shaped(8),), shaped(8)), [])

    def test_it_comes_and_goes_within_the_operation(self):
        storages = Storages()
        rule = {"add": [512, 0]}
        with Tracker(storages, lambda *_: None, lambda name, *_: rule.get(name, [])):
            kept = torch.ones(4) + 1
        storages.collect()
        made = [(i.bytes, i.first, i.last) for i in storages.intervals if i.is_scratch]
        self.assertEqual([size for size, *_ in made], [512, 0])
        result = next(i for i in storages.intervals if not i.is_scratch and i.last == -1)
        self.assertLess(result.first, made[0][1])
        self.assertLess(max(first for _, first, _ in made), min(last for *_, last in made))
        self.assertEqual(kept.numel(), 4)

    def test_sizes_in_steps_do_not_tie_a_file_to_one_batch(self):
        pairs = Pairs(8, 16)
        self.assertRaises(NotLinear, pairs, 100, 60)
        self.assertEqual(pairs.scratch(100, 60), [100, 0])
        self.assertEqual(pairs.scratch(80, 160), [0, 10])
        self.assertEqual(Pairs(16, 32).scratch(4505, 9011), [9, 281])

    def at_batch(self, pairs, tokens, channels):
        low, high = (
            scratch_of("sum", (shaped(n * tokens, channels), [0], True), None)[0]
            for n in (pairs.low, pairs.high)
        )
        return int(low), pairs.scratch(low, high)

    def test_a_reduction_that_fills_the_gpu_grows_no_further(self):
        low, (fixed, each) = self.at_batch(Pairs(64, 128), 197, 768)
        self.assertEqual(fixed + 64 * each, low)
        for batch in (16, 256):
            real = scratch_of("sum", (shaped(batch * 197, 768), [0], True), None)[0]
            self.assertLess(abs(fixed + batch * each - real), 0.6 * low * max(1, batch / 64))

    def test_a_reduction_beside_few_samples(self):
        class Products(nn.Module):
            def __init__(self):
                super().__init__()
                self.rows = nn.Parameter(torch.zeros(100000, 8))

            def forward(self, x):
                return (self.rows @ x.t()).sum(0)[:, None]

        for batch in (2, 8):
            self.assertTrue(
                export(
                    Task(
                        Products, lambda n: ((torch.zeros(n, 8),), torch.zeros(n, dtype=torch.long))
                    ),
                    batch,
                )["tensors"]
            )

    def test_nothing_is_reduced_without_scratch(self):
        for sizes, dims in (((0, 1000000), [1]), ((1000000, 0), [0])):
            self.assertEqual(scratch_of("sum", (shaped(*sizes), dims, True), None), [0, 0])

    def test_a_run_at_small_batches_serves_the_one_asked_for(self):
        _, (fixed, each) = self.at_batch(Pairs(2, 4, 64), 197, 768)
        self.assertEqual(
            fixed + 64 * each, scratch_of("sum", (shaped(64 * 197, 768), [0], True), None)[0]
        )

    def test_a_reduction_that_begins_to_share_outputs_above_the_batch_is_none_there(self):
        self.assertEqual(self.at_batch(Pairs(128, 256), 1, 512), (0, [0, 0]))


class Attention(unittest.TestCase):
    def heads(self, size, dtype, heads=12, tokens=197):
        return shaped(4, heads, tokens, size, dtype=dtype)

    def test_which_kernel(self):
        learned, fixed = (
            shaped(1, 12, 197, 197, dtype=HALF).requires_grad_(grad) for grad in (True, False)
        )
        for size, dtype, mask, expected in [
            (64, HALF, None, "cudnn"),
            (64, HALF, fixed, "cudnn"),
            (256, HALF, None, "cudnn"),
            (60, HALF, None, "flash"),
            (264, HALF, None, "efficient"),
            (64, HALF, learned, "efficient"),
            (64, FULL, None, "efficient"),
            (60, FULL, None, "efficient"),
            (62, FULL, None, "math"),
            (64, HALF, learned.transpose(2, 3), "math"),
        ]:
            with self.subTest(size=size, dtype=dtype, mask=mask is not None):
                one = self.heads(size, dtype)
                self.assertEqual(kernel_of(one, one, one, mask), expected)
        query, key = self.heads(64, HALF), self.heads(64, HALF, heads=2)
        self.assertEqual(kernel_of(query, key, key), "cudnn")
        self.assertEqual(kernel_of(query.float(), key.float(), key.float()), "math")

    def test_shapes_that_only_plain_products_take(self):
        alone, many = shaped(1, 8, 5, 64), shaped(4, 8, 5, 64)
        for query, key in [
            (alone, many),
            (shaped(4, 2, 5, 64), many),
            (shaped(5, 64), shaped(5, 64)),
            (alone.double(), alone.double()),
        ]:
            with self.subTest(query=query.shape):
                self.assertEqual(kernel_of(query, key, key), "math")

    def made_by_backward(self, query, key, mask=None):
        """Sizes of what backward makes, in order."""
        sizes = []
        inputs = [query.requires_grad_(), key.requires_grad_(), key.clone().requires_grad_()]
        output = attention_with(lambda *_: None)(*inputs, mask)
        gradient = torch.empty_like(output)
        storages = Storages()
        with Tracker(storages, lambda *_: None):
            output.backward(gradient)
        sizes = [i.bytes for i in storages.intervals]
        storages.close()
        return sizes

    def test_efficient(self):
        query = torch.empty(16, 197, 12, 64).transpose(1, 2)
        mask = torch.empty(16, 12, 197, 197).requires_grad_()
        made = self.made_by_backward(query, query.detach().clone(), mask)
        for size in (9682944, 31469568, 12595200):
            self.assertIn(size, made)

    def test_a_mask_of_yes_and_no_becomes_one_of_numbers(self):
        query = torch.empty(2, 4, 16, 64, dtype=HALF, requires_grad=True)
        storages = Storages()
        with Tracker(storages, lambda *_: None):
            output = attention_with(lambda *_: None)(
                query, query, query, torch.ones(2, 1, 16, 16, dtype=torch.bool)
            )
        storages.collect()
        kept = [i.bytes for i in storages.intervals if i.last == -1]
        self.assertIn(2 * 2 * 16 * 16, kept)
        self.assertIn(2 * output.numel(), kept)
        storages.close()

    def test_cudnn(self):
        query = torch.empty(4, 8, 1024, 104, dtype=HALF)
        self.assertIn(13762816, self.made_by_backward(query, query.clone()))
        grouped = torch.empty(8, 14, 512, 64, dtype=HALF)
        self.assertIn(29589760, self.made_by_backward(grouped, grouped[:, :2].clone()))

    def test_flash_pads_heads(self):
        query = torch.empty(64, 4, 256, 36, dtype=HALF)
        self.assertIn(16777216, self.made_by_backward(query, query.clone()))

    def test_it_tells_of_what_one_kernel_does(self):
        told = []
        one = torch.empty(1, 2, 8, 64)
        attention_with(lambda query, key, _: told.append((query.shape, key.shape)))(one, one, one)
        self.assertEqual(told, [(one.shape, one.shape)])


class RmsNorm(unittest.TestCase):
    """What rms_norm keeps for the backward pass (normalization.py says from where)."""

    rows, width = 6, 16

    def kept(self, norm, dtype=FULL, of_weight=FULL):
        """Shapes and types that are kept beside the weight, and the result."""
        kept = {}

        def pack(tensor):
            kept[tensor.data_ptr()] = (tuple(tensor.shape), tensor.dtype)
            return tensor

        weight = torch.ones(self.width, dtype=of_weight, requires_grad=True)
        values = torch.ones(2, self.rows // 2, self.width, dtype=dtype, requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            result = norm(values, weight)
        kept.pop(weight.data_ptr(), None)
        result.sum().backward()
        self.assertEqual((values.grad.shape, values.grad.dtype), (values.shape, dtype))
        self.assertEqual((weight.grad.shape, weight.grad.dtype), (weight.shape, of_weight))
        return sorted(kept.values(), key=str), result

    def test_the_kernel_keeps_its_input_and_a_float_for_each_row(self):
        def norm(values, weight):
            return fused_rms_norm(values, [self.width], weight, 1e-6)[0]

        for dtype in (FULL, HALF):
            with self.subTest(dtype=dtype):
                kept, result = self.kept(norm, dtype, dtype)
                self.assertEqual(kept, [((2, 3, 1), FULL), ((2, 3, self.width), dtype)])
                self.assertEqual((result.shape, result.dtype), ((2, 3, self.width), dtype))

    def test_a_weight_or_an_input_without_gradient(self):
        values = torch.ones(4, 8, requires_grad=True)
        fused_rms_norm(values, [8])[0].sum().backward()
        self.assertEqual(values.grad.shape, (4, 8))
        weight = torch.ones(8, requires_grad=True)
        fused_rms_norm(torch.ones(4, 8), [8], weight)[0].sum().backward()
        self.assertEqual(weight.grad.shape, (8,))

    def test_several_axes_and_an_input_in_another_order(self):
        values = torch.ones(5, 3, 4).transpose(0, 1).requires_grad_()
        output, scales = fused_rms_norm(values, [5, 4])
        self.assertTrue(output.is_contiguous())
        self.assertEqual(tuple(scales.shape), (3, 1, 1))
        self.assertFalse(scales.requires_grad)

    def registered(self, operators, cast):
        """The operators that are replaced, where PyTorch has these operators."""
        library, found = mock.Mock(), rules._operator
        named = lambda name: mock.Mock() if name == "rms_norm" else found(name)  # noqa: E731
        with mock.patch.object(rules, "is_cast_by_autocast", lambda: cast), mock.patch.object(
            rules, "has_fused_kernel", lambda _: has_fused_kernel(operators)
        ), mock.patch.object(rules, "_operator", named):
            rules._override(library, lambda *_: None, lambda *_: None)
        return {(call[0][0], call[0][2]) for call in library.impl.call_args_list}

    def test_by_version(self):
        fused, cast = ("_fused_rms_norm", "AutogradCPU"), ("rms_norm", "AutocastCPU")
        of_apple = types.SimpleNamespace(_fused_rms_norm=None)
        of_cuda = types.SimpleNamespace(_fused_rms_norm=None, _fused_rms_norm_backward=None)
        for operators, is_cast, expected in [
            (types.SimpleNamespace(), False, set()),
            (of_apple, False, set()),
            (of_cuda, False, {fused}),
            (of_cuda, True, {fused, cast}),
        ]:
            with self.subTest(operators=operators, is_cast=is_cast):
                self.assertEqual(self.registered(operators, is_cast) & {fused, cast}, expected)

    @unittest.skipUnless(
        has_fused_kernel(torch.ops.aten), "CUDA has no such kernel in this PyTorch"
    )
    def test_pytorch_calls_it(self):
        def norm(values, weight):
            return nn.functional.rms_norm(values, [self.width], weight, 1e-6)

        with cuda_rules():
            self.assertEqual(len(self.kept(norm, HALF, HALF)[0]), 2)
            # Another type of the weight: five operators.
            self.assertGreater(len(self.kept(norm, HALF, FULL)[0]), 2)
        self.assertGreater(len(self.kept(norm)[0]), 2)


class Speaker(nn.Module):
    def __init__(self, kind=nn.LSTM, **options):
        super().__init__()
        self.words, self.layers = nn.Embedding(500, 64), kind(
            64, 64, 2, batch_first=True, dropout=0.5, **options
        )
        self.head = nn.Linear(64 * (1 + bool(options.get("bidirectional"))), 500)

    def forward(self, words):
        return self.head(self.layers(self.words(words))[0]).flatten(0, 1)


def words(n):
    return (torch.randint(0, 500, (n, 8)),), torch.randint(0, 500, (8 * n,))


class Recurrent(unittest.TestCase):
    def test_reserve_and_workspace(self):
        for kind, directions, dropout, sizes, weights, element, reserve, workspace in [
            ("lstm", 1, True, (35, 256, 650, 650), 6770400, 2, 128856256, 118491520),
            ("lstm", 1, True, (128, 64, 1500, 1500), 36024000, 4, 542208256, 512521984),
            ("lstm", 2, False, (128, 128, 300, 512), 9633792, 4, 738197760, 574031104),
            ("gru", 1, True, (70, 32, 650, 650), 5077800, 4, 75894272, 72833728),
            ("gru", 1, True, (70, 8, 650, 650), 5077800, 2, 9509760, 31389536),
        ]:
            with self.subTest(kind=kind, directions=directions, sizes=sizes):
                shape = Shape(kind, 2, directions, True, dropout)
                steps, batch, inputs, units = sizes
                self.assertLess(abs(shape.reserve(steps, batch, units, element) - reserve), 512)
                self.assertEqual(
                    shape.workspace(steps, batch, inputs, units, element, weights), workspace
                )

    def sizes(self, description, name):
        index = description["classes"].index(name)
        begin = description["phases"][-1]["forward"]
        return [
            (fixed, each)
            for fixed, each, first, _, kind in description["tensors"]
            if kind == index and first >= begin
        ]

    def test_gradients_of_all_weights_lie_in_one_block(self):
        got = export(Task(Speaker, words, optimizer="sgd"), 4)
        weights = 4 * sum(p.numel() for p in nn.LSTM(64, 64, 2).parameters())
        self.assertIn((weights, 0), self.sizes(got, "grad"))
        self.assertTrue(got["every_batch"], got["warnings"])

    def test_weights_move_into_one_block_on_their_way_to_a_gpu(self):
        got = export(Task(Speaker, words, optimizer="sgd"), 4)
        block = 4 * sum(p.numel() for p in nn.LSTM(64, 64, 2).parameters())
        kind, begin = got["classes"].index("param"), got["phases"][0]["input"]
        lives = [(fixed, last) for fixed, _, _, last, of in got["tensors"] if of == kind]
        self.assertIn((block, -1), lives)
        self.assertEqual(sum(fixed for fixed, last in lives if last != -1), block)
        self.assertTrue(all(last < begin for _, last in lives))

    def test_autocast_computes_in_half_with_weights_in_one_buffer(self):
        got = export(Task(Speaker, words, optimizer="sgd", precision="amp"), 4)
        weights = 2 * sum(p.numel() for p in nn.LSTM(64, 64, 2).parameters())
        self.assertIn((weights, 0), self.sizes(got, "saved"))
        self.assertIn((256, 2 * 11 * 8 * 64 + 8 * 64 // 8), self.sizes(got, "saved"))


class Sequences(unittest.TestCase):
    def test_transformers_sees_whole_sequences_among_fake_tensors(self):
        answers = []
        masks = types.ModuleType("transformers.masking_utils")
        masks.find_packed_sequence_indices = lambda position_ids: "packed"
        masks._ignore_causal_mask_sdpa = lambda padding_mask, query_length: padding_mask is None

        class Model(nn.Linear):
            def forward(self, x):
                answers.append(
                    (
                        masks.find_packed_sequence_indices(x),
                        masks._ignore_causal_mask_sdpa(x, 3),
                        masks._ignore_causal_mask_sdpa(padding_mask=x, query_length=3),
                    )
                )
                return super().forward(x)

        with mock.patch.dict(sys.modules, {masks.__name__: masks}):
            export(
                Task(
                    lambda: Model(64, 10),
                    lambda n: ((torch.randn(n, 64),), torch.randint(0, 10, (n,))),
                    optimizer="sgd",
                ),
                4,
            )
        self.assertEqual(set(answers), {(None, True, True)})
        self.assertEqual(masks.find_packed_sequence_indices(torch.ones(1)), "packed")
        self.assertFalse(masks._ignore_causal_mask_sdpa(torch.ones(1), 3))


class Autocast(unittest.TestCase):
    def test_the_loss_keeps_log_probabilities_in_the_type_of_the_logits(self):
        got = export(
            Task(
                lambda: nn.Linear(64, 1000),
                lambda n: ((torch.randn(n, 64),), torch.randint(0, 1000, (n,))),
                optimizer="sgd",
                precision="amp",
            ),
            8,
        )
        begin = got["phases"][-1]["forward"]
        each = [t[1] for t in got["tensors"] if t[2] >= begin]
        self.assertEqual(each.count(2 * 1000), 4)  # logits, log-softmax, and their gradients
        self.assertEqual(each.count(4 * 1000), 2)  # the loss computes in fp32

    def test_a_norm_casts_its_result_and_not_its_input(self):
        class Directions(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(64, 128)

            def forward(self, x):
                return torch.linalg.vector_norm(self.layer(x), dim=-1, keepdim=True)

        got = export(
            Task(
                Directions,
                lambda n: ((torch.randn(n, 64),), torch.randn(n, 1)),
                optimizer="sgd",
                precision="amp",
            ),
            8,
        )
        forward, backward = got["phases"][-1]["forward"], got["phases"][-1]["backward"]
        self.assertNotIn(4 * 128, [t[1] for t in got["tensors"] if forward <= t[2] < backward])


if __name__ == "__main__":
    unittest.main()
