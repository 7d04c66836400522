# SPDX-License-Identifier: Apache-2.0
"""The exporter: descriptions of small networks, counted by hand, and that colloc reads them."""
import copy
import functools
import gc
import json
import os
import subprocess
import sys
import tempfile
import threading
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "lib"))

from needs_torch import PYTHON_FOLDER, nn, torch  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

import colloc  # noqa: E402
from colloc_export import Task, export, kernels, tracker  # noqa: E402
from colloc_export.environment import Fake  # noqa: E402
from colloc_export.module import task_of_module  # noqa: E402
from colloc_export.sources import Mistake  # noqa: E402
from colloc_export.summary import text_of  # noqa: E402
from colloc_export.tracker import Storages  # noqa: E402


def mlp():
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))


def mlp_batch(n):
    return (torch.randn(n, 64),), torch.randint(0, 10, (n,))


class Net(nn.Module):
    """A shared in-place layer, a residual sum, dropout, a parameter that no layer reads."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.relu = (
            nn.Conv2d(3, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(inplace=True),
        )
        self.mix, self.drop, self.head = (
            nn.Conv2d(8, 8, 1, bias=False),
            nn.Dropout(0.5),
            nn.Linear(8, 5),
        )

    def forward(self, x):
        x = self.relu(self.norm(self.conv(x)))
        x = self.relu(x + self.mix(x))
        return self.head(self.drop(x).mean((2, 3)))


def net_batch(n):
    return (torch.randn(n, 3, 16, 16),), torch.randint(0, 5, (n,))


class Reader(nn.Module):
    """Looks at values, which a fake tensor does not have."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 10)

    def forward(self, x):
        return self.layer(x) * (2.0 if len(torch.nonzero(x[:1, :1] > 1e9)) else 1.0)


def of_class(description, name, iteration=None):
    index = description["classes"].index(name)
    begin = 0 if iteration is None else description["phases"][iteration]["input"]
    end = (
        description["ticks"]
        if iteration is None or iteration + 1 == description["iterations"]
        else description["phases"][iteration + 1]["input"]
    )
    return [t for t in description["tensors"] if t[4] == index and begin <= t[2] < end]


def total(tensors, batch):
    return sum(fixed + per_sample * batch for fixed, per_sample, *_ in tensors)


class Tensors(unittest.TestCase):
    def test_names_hold_until_the_next_iteration_has_its_own(self):
        got = export(Task(mlp, mlp_batch, optimizer="sgd"), 8)
        second = got["phases"][1]
        for tensor in of_class(got, "output", 0):
            self.assertLessEqual(tensor[3], second["backward"])
        first_of_next = max(tensor[2] for tensor in of_class(got, "input", 1))
        for tensor in of_class(got, "input", 0):
            self.assertGreater(tensor[3], first_of_next)

    def test_parameters_states_and_gradients_by_hand(self):
        parameters = 64 * 128 + 128 + 128 * 10 + 10
        states = {"sgd": 0, "momentum": 1, "adam": 2, "adamw": 2}
        for optimizer, copies in states.items():
            with self.subTest(optimizer=optimizer):
                got = export(Task(mlp, mlp_batch, optimizer=optimizer), 8)
                self.assertEqual(
                    (got["parameters"], got["trainable"], got["parameter_bytes"]),
                    (parameters, parameters, 4 * parameters),
                )
                self.assertEqual(total(of_class(got, "param"), 0), 4 * parameters)
                self.assertEqual(total(of_class(got, "grad", 1), 0), 4 * parameters)
                self.assertEqual(total(of_class(got, "state"), 0), 4 * parameters * copies)
                self.assertEqual(got["multiply_adds"], [0, 64 * 128 + 128 * 10])

    def test_what_an_mlp_keeps_for_backward(self):
        got = export(Task(mlp, mlp_batch, optimizer="sgd"), 8)
        # The activation's result and the log-softmax; the weight of the loss is a scalar.
        self.assertEqual([t[1] for t in of_class(got, "saved", 1) if t[1]], [4 * 128, 4 * 10])
        self.assertEqual([t[1] for t in of_class(got, "input", 1)], [4 * 64, 8])

    def test_lives_end_as_in_a_training_loop(self):
        got = export(Task(mlp, mlp_batch, optimizer="adam"), 8)
        second = got["phases"][1]
        self.assertTrue(all(t[3] == -1 for name in ("param", "state") for t in of_class(got, name)))
        self.assertTrue(all(second["zero_grad"] <= t[3] for t in of_class(got, "grad", 1)))
        self.assertTrue(
            all(
                second["input"] > t[2] and t[3] >= second["input"] - 1
                for t in of_class(got, "input", 0)
            )
        )
        ticks = [tick for t in got["tensors"] for tick in t[2:4] if tick >= 0]
        self.assertEqual(len(ticks), len(set(ticks)))
        self.assertLess(max(ticks), got["ticks"])

    def test_an_output_that_the_loop_does_not_keep(self):
        tasks = [
            Task(mlp, mlp_batch, optimizer="sgd", keeps_output=keeps) for keeps in (True, False)
        ]
        kept, released = (export(task, 8) for task in tasks)
        self.assertEqual((kept["keeps_output"], released["keeps_output"]), (True, False))
        self.assertIn(4 * 10, [t[1] for t in of_class(kept, "output", 1)])
        self.assertNotIn(4 * 10, [t[1] for t in of_class(released, "output", 1)])
        second = released["phases"][1]
        logits = next(
            t for t in released["tensors"] if t[1] == 4 * 10 and second["forward"] <= t[2]
        )
        self.assertLess(logits[3], second["backward"])

    def test_one_file_serves_every_batch(self):
        for precision in ("fp32", "amp"):
            low, high = (export(Task(Net, net_batch, precision=precision), n) for n in (4, 48))
            self.assertTrue(
                low["every_batch"] and high["every_batch"], low["warnings"] + high["warnings"]
            )
            self.assertEqual(low["tensors"], high["tensors"])
            self.assertEqual((low["layers"], low["convs"]), (high["layers"], high["convs"]))

    def test_nothing_is_computed(self):
        """What fake tensors do not know they compute on the CPU, of zeros."""
        with mock.patch(
            "torch._subclasses.fake_tensor.run_fallback_kernel",
            side_effect=AssertionError("computed"),
            create=True,
        ):
            got = export(Task(Net, net_batch), 8)
        self.assertEqual((got["method"], got["every_batch"]), ("fake", True))

    def test_cuda_keeps_a_byte_per_element_for_dropout(self):
        got = export(Task(Net, net_batch, optimizer="sgd"), 8)
        self.assertEqual([t[1] for t in of_class(got, "saved", 1)].count(8 * 16 * 16), 1)

    def test_autocast_halves_what_convolutions_keep_and_norms_do_not(self):
        got = export(Task(Net, net_batch, optimizer="sgd", precision="amp"), 8)
        self.assertEqual({conv["dtype"] for conv in got["convs"]}, {"bfloat16"})
        self.assertTrue(got["flags"]["emulated_autocast"])
        layer = nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64), nn.Linear(64, 10))
        kept = of_class(
            export(Task(lambda: layer, mlp_batch, optimizer="sgd", precision="amp"), 8), "saved", 1
        )
        self.assertIn(4 * 64, [t[1] for t in kept])  # the norm's input in fp32

    def test_frozen_parameters_have_neither_gradient_nor_state(self):
        def half_frozen():
            model = mlp()
            model[0].requires_grad_(False)
            return model

        got = export(Task(half_frozen, mlp_batch), 8)
        self.assertEqual(got["flags"]["frozen"], 64 * 128 + 128)
        self.assertEqual(total(of_class(got, "state"), 0), 2 * 4 * (128 * 10 + 10))

    def test_falls_back_to_the_processor_and_says_so(self):
        got = export(Task(Reader, mlp_batch), 32)
        self.assertEqual((got["method"], got["batches"], got["every_batch"]), ("cpu", [2, 4], True))
        self.assertIn("does not run on fake tensors", got["warnings"][0])

    def test_a_run_that_depends_on_the_batch_is_not_stretched(self):
        class Loop(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(64, 10)

            def forward(self, x):
                return torch.stack([self.layer(row) for row in x])

        got = export(Task(Loop, mlp_batch), 8)
        self.assertFalse(got["every_batch"])
        self.assertEqual((got["batch"], got["batches"]), (8, [8]))
        self.assertIn("valid for batch 8 only", got["warnings"][0])

    def test_one_batch_alone_has_the_sizes_that_every_batch_has_there(self):
        every = export(Task(Net, net_batch), 8)
        alone = export(Task(Net, net_batch), 8, at_one_batch=True)
        self.assertEqual((alone["every_batch"], alone["batches"], alone["warnings"]), (0, [8], []))
        self.assertEqual(
            [(row[0], *row[2:]) for row in alone["tensors"]],
            [(row[0] + 8 * row[1], *row[2:]) for row in every["tensors"]],
        )
        of_one_sample = export(Task(Net, net_batch), 1, at_one_batch=True)
        self.assertEqual(of_one_sample["batches"], [2, 4])

    def test_layers_that_are_deep_copies_are_as_those_that_are_not(self):
        def copied():
            layer = nn.Linear(64, 64)
            return nn.Sequential(layer, *(copy.deepcopy(layer) for _ in range(2)))

        def made():
            return nn.Sequential(*(nn.Linear(64, 64) for _ in range(3)))

        for _ in range(2):  # copied weak references ended a process in its second export
            one, other = (export(Task(make, mlp_batch), 8) for make in (copied, made))
            self.assertEqual((one["method"], one["tensors"]), ("fake", other["tensors"]))

    def test_sums_of_autograd_below_a_wrapper(self):
        """PyTorch 2.11 calls the method of a mode through two other functions."""
        folder = os.path.dirname(torch.__file__)
        for wrappers in ((), ("_dynamo/eval_frame.py", "_compile.py")):
            called = []

            def note(_, function, types, arguments=(), options=None, called=called):
                if function is torch.ops.aten.add.Tensor:
                    own = (os.path.dirname(__file__) + os.sep,)
                    called.append(tracker.is_called_by_autograd(own))
                return function(*arguments, **(options or {}))

            for path in wrappers:
                names = {"function": note}
                code = "def note(*arguments): return function(*arguments)"
                exec(compile(code, os.path.join(folder, path), "exec"), names)
                note = names["note"]
            mode = type("Mode", (TorchDispatchMode,), {"__torch_dispatch__": note})
            x = torch.ones(2, requires_grad=True)
            with mode():
                y = 2 * x
                (y.exp() + y.sin()).sum().backward()
            self.assertEqual(called, [False, True])

    def test_a_copy_has_no_mode_of_its_own(self):
        environment = Fake()
        with environment.active() as mode:
            self.assertIs(copy.deepcopy({"of a tensor": mode})["of a tensor"], mode)

    def test_collections_look_at_new_objects_only(self):
        frozen = []

        def noting():
            frozen.append(gc.get_freeze_count())
            return Net()

        export(Task(noting, net_batch), 8)
        self.assertGreater(min(frozen), 10_000)  # PyTorch's own
        self.assertEqual(gc.get_freeze_count(), 0)

    def test_ordinary_operators_are_back_afterwards(self):
        export(Task(Net, net_batch), 4)
        self.assertNotIn(
            "Native", type(nn.Dropout()(torch.ones(3, requires_grad=True)).grad_fn).__name__
        )


class OfAModule(unittest.TestCase):
    """colloc.estimate: of a module that is already there."""

    PROGRAM = os.environ.get("COLLOC", "colloc")

    def estimate(self, *example, **options):
        return colloc.estimate(*example, program=self.PROGRAM, **options)

    def test_it_is_that_of_the_same_model_newly_made(self):
        module, (inputs, target) = Net(), net_batch(3)
        got = export(task_of_module(module, inputs, target, optimizer="sgd"), 16)
        made = export(Task(Net, net_batch, optimizer="sgd"), 16)
        self.assertEqual((got["method"], got["model"], got["warnings"]), ("fake", "Net", []))
        self.assertEqual((got["tensors"], got["convs"]), (made["tensors"], made["convs"]))
        answer = self.estimate(module, inputs, target, batch=16, optimizer="sgd")
        self.assertEqual(answer["model"]["batch"], 16)
        self.assertEqual(answer["model"]["parameters"], sum(p.numel() for p in module.parameters()))
        self.assertGreater(answer["reserve_mib"], 500)  # a context alone has 500 MiB
        client = colloc.Client(socket="/nonexistent")
        example = {"batch": 16, "optimizer": "sgd", "program": self.PROGRAM}
        self.assertEqual(client.estimate(module, inputs, target, **example), answer)

    def test_the_module_stays_as_it_is(self):
        for module, method in ((Net().eval(), "fake"), (Reader(), "cpu")):
            example = net_batch(2) if method == "fake" else mlp_batch(2)
            before = {name: value.clone() for name, value in module.state_dict().items()}
            was_training = module.training
            self.assertEqual(export(task_of_module(module, *example), 8)["method"], method)
            for name, value in module.state_dict().items():
                self.assertTrue(torch.equal(value, before[name]), name)
            self.assertTrue(all(p.grad is None for p in module.parameters()))
            self.assertEqual(module.training, was_training)

    def test_indices_and_keyword_arguments(self):
        class Words(nn.Module):
            def __init__(self):
                super().__init__()
                self.words, self.head = nn.Embedding(50, 32), nn.Linear(32, 7)

            def forward(self, ids, scale=None):
                return self.head(self.words(ids)) * scale

        example = {"ids": torch.full((2, 9), 49), "scale": torch.ones(2, 1, 1)}
        got = export(task_of_module(Words(), example, torch.zeros(2, 9).long()), 8)
        self.assertEqual((got["method"], got["loss"]), ("fake", "cross_entropy"))
        got = export(task_of_module(Words(), example, loss=lambda output, _: output.sum()), 8)
        self.assertEqual((got["loss"], got["every_batch"]), ("own", True))

    def test_an_output_that_is_a_plain_object(self):
        class Output:
            def __init__(self, loss, logits):
                self.loss, self.logits = loss, logits

        class WithLoss(nn.Module):
            def __init__(self, has_loss):
                super().__init__()
                self.head, self.has_loss = nn.Linear(64, 10), has_loss

            def forward(self, x):
                logits = self.head(x)
                return Output(logits.square().mean() if self.has_loss else None, logits)

        batch, labels = torch.zeros(4, 64), torch.zeros(4).long()
        got = export(task_of_module(WithLoss(True), batch), 8)
        self.assertEqual((got["method"], got["loss"]), ("fake", "own"))
        got = export(task_of_module(WithLoss(False), batch, labels), 8)
        self.assertEqual((got["method"], got["loss"]), ("fake", "cross_entropy"))

    def test_what_cannot_be(self):
        batch = torch.zeros(4, 64)
        for example, options, said in (
            ((5, batch), {}, "no torch.nn.Module"),
            ((mlp(), 5), {}, "they have none"),
            ((mlp(), torch.tensor(1.0)), {}, r"they have \[0\]"),
            ((mlp(), batch, torch.zeros(3)), {}, r"they have \[3, 4\]"),
            ((mlp(), batch), {"batch": 0}, "at least 1"),
            ((mlp(), batch), {"optimizer": "lion"}, "must be one of sgd, momentum"),
            ((mlp(), batch), {"precision": "int4"}, "must be fp32 or amp"),
            ((mlp(), batch), {"gpu": "Abacus"}, "unknown GPU model"),
        ):
            with self.assertRaisesRegex((TypeError, ValueError), said):
                self.estimate(*example, **options)
        with self.assertRaises(FileNotFoundError):
            colloc.estimate(mlp(), batch, program="/nonexistent")


class Layers(unittest.TestCase):
    def test_rows_in_the_order_of_execution(self):
        rows = export(Task(Net, net_batch), 4)["layers"]
        self.assertEqual(
            [row["name"] for row in rows],
            ["", "conv", "norm", "relu", "mix", "relu", "drop", "head"],
        )
        self.assertEqual(
            [row["shared"] for row in rows], [False, False, False, False, False, True, False, False]
        )
        self.assertEqual([row["in_place"] for row in rows][3], True)
        self.assertEqual(rows[1]["shape"], [8, 16, 16])
        self.assertEqual(rows[1]["multiply_adds"], [0, 8 * 3 * 9 * 16 * 16])
        self.assertEqual(
            sum(row["parameters"] for row in rows), sum(p.numel() for p in Net().parameters())
        )


class Sequences(nn.Module):
    """An embedding, and a recurrent layer or attention in one kernel."""

    def __init__(self, attends):
        super().__init__()
        self.embed, self.step = nn.Embedding(1000, 16), nn.GRU(16, 16, batch_first=True)
        self.attends = attends

    def forward(self, x):
        x = self.embed(x)
        if not self.attends:
            return self.step(x)[0].mean(1)
        x = x.unsqueeze(1)
        return nn.functional.scaled_dot_product_attention(x, x, x).mean((1, 2))


def sequences_batch(n):
    return (torch.randint(0, 1000, (n, 8)),), torch.randint(0, 16, (n,))


class Operators(unittest.TestCase):
    def rows(self, model, batch, **options):
        rows = export(Task(model, batch, **options), 4)["operators"]
        return {(row["phase"], row["name"]): row for row in rows}

    def test_what_is_read_and_written(self):
        rows = self.rows(Net, net_batch)
        pixels = 8 * 16 * 16 * 4
        relu = rows["forward", "relu_"]
        self.assertEqual((relu["calls"], relu["tensors"]), (2, 1))
        self.assertEqual((relu["reads"], relu["writes"]), ([0, pixels], [0, pixels]))
        added = rows["forward", "add"]
        self.assertEqual((added["reads"], added["writes"]), ([0, 2 * pixels], [0, pixels]))
        self.assertNotIn(("forward", "convolution"), rows)  # they are in `convs` and `matmuls`
        self.assertNotIn(("forward", "addmm"), rows)

    def test_views_and_allocations_write_nothing(self):
        rows = self.rows(Net, net_batch)
        view = rows["forward", "view"]
        self.assertGreater(view["calls"], 0)
        self.assertEqual((view["tensors"], view["writes"]), (0, [0, 0]))
        self.assertTrue(
            all(any(row["writes"]) for (_, name), row in rows.items() if name != "view")
        )

    def test_an_optimizer_writes_lists_of_tensors(self):
        task = Task(mlp, mlp_batch, optimizer=lambda p: torch.optim.SGD(p, lr=1, foreach=True))
        rows = [row for row in export(task, 4)["operators"] if row["phase"] == "optimizer"]
        added = next(row for row in rows if row["name"] == "_foreach_add_")
        self.assertEqual(added["tensors"], 4)
        self.assertEqual(added["writes"], [4 * (64 * 128 + 128 + 128 * 10 + 10), 0])

    def test_an_embedding_reads_only_its_rows(self):
        rows = self.rows(lambda: Sequences(False), sequences_batch)
        self.assertEqual(rows["forward", "embedding"]["reads"], [0, 8 * 16 * 4])
        weights = 3 * 16 * (16 + 16 + 2)
        self.assertEqual(rows["forward", "recurrent"]["tensors"], 8)
        self.assertEqual(rows["forward", "recurrent"]["multiply_adds"], [0, 8 * weights])

    @unittest.skipUnless(
        hasattr(nn.functional, "scaled_dot_product_attention"), "this PyTorch has no such kernel"
    )
    def test_attention_is_one_operator(self):
        rows = self.rows(lambda: Sequences(True), sequences_batch)
        self.assertEqual(rows["forward", "attention"]["multiply_adds"], [0, 2 * 8 * 8 * 16])
        self.assertEqual(rows["backward", "attention"]["multiply_adds"], [0, 5 * 8 * 8 * 16])


class Clock(unittest.TestCase):
    def test_ends_at_the_same_moment_stand_in_the_order_of_their_beginnings(self):
        storages = Storages()
        tensors = [torch.empty(n) for n in (3, 2, 1)]
        for tensor in tensors:
            storages.add(tensor, "temp")
        while tensors:
            tensors.pop()
            tensor = None
        storages.collect()
        storages.close()
        self.assertEqual([(i.first, i.last) for i in storages.intervals], [(0, 3), (1, 4), (2, 5)])
        self.assertEqual(storages.peak_bytes(), 24)


def conv_of(phase, input, output, weight, transposed=False):
    """An entry of `convs`."""
    return {
        "phase": phase,
        "batch": [0, 1],
        "input": input,
        "weight": weight,
        "output": output,
        "stride": [1, 1],
        "padding": [0, 0],
        "dilation": [1, 1],
        "transposed": transposed,
        "output_padding": [0, 0],
        "groups": 1,
        "dtype": "float32",
    }


class FakeGpu:
    """Counts as the caching allocator of a GPU does.

    Every operation allocates `bytes_of` it beside a result of 1000 bytes.
    """

    def __init__(self, scratch, fails=False, counts="requested_bytes"):
        self.scratch, self.fails, self.counts, self.questions, self.now, self.failures = (
            scratch,
            fails,
            counts,
            0,
            0,
            0,
        )
        self.threads = []

    def is_available(self):
        return True

    def get_device_name(self):
        return "NVIDIA H200"

    def memory_reserved(self):
        return 0

    def empty_cache(self):
        pass

    def synchronize(self):
        pass

    def reset_peak_memory_stats(self):
        self.now, self.peak = 5000, 5000

    def run(self, *_):
        self.questions += 1
        self.threads.append(threading.current_thread())
        self.now += 1000
        self.peak = self.now + self.scratch * self.questions
        self.failures += self.fails

    def memory_stats(self):
        return {
            f"{self.counts}.all.peak": getattr(self, "peak", 0),
            f"{self.counts}.all.current": self.now,
            "num_alloc_retries": 0,
            "num_ooms": self.failures,
        }


class Kernels(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        environment = mock.patch.dict(os.environ, XDG_CACHE_HOME=folder.name)
        environment.start()
        self.addCleanup(environment.stop)
        self.cache = os.path.join(folder.name, "colloc", "kernels")

    @staticmethod
    @functools.lru_cache(None)
    def exported():
        return export(
            Task(
                lambda: nn.Sequential(
                    Net().conv,
                    nn.Conv2d(8, 8, 3, padding=1),
                    nn.Conv2d(8, 8, 3, padding=1),
                    nn.Flatten(),
                ),
                net_batch,
            ),
            8,
        )

    def asked(self, gpu, **flags):
        got = copy.deepcopy(self.exported())
        got["flags"].update(flags)
        operators = mock.Mock(convolution=gpu.run, convolution_backward=gpu.run)
        with mock.patch.object(kernels, "_tensor", lambda shape, conv: shape), mock.patch.object(
            torch.ops, "aten", operators
        ):
            return got, kernels.ask(got, gpu)

    def test_each_shape_is_asked_once_for_each_pass(self):
        gpu = FakeGpu(7)
        got, answer = self.asked(gpu)
        self.assertEqual((answer["batch"], answer["gpu"]), (8, "NVIDIA H200"))
        self.assertEqual(
            [len(bytes) for bytes in answer["scratch"]],
            [1 if conv["phase"] == "forward" else 2 for conv in got["convs"]],
        )
        self.assertEqual(gpu.questions, 6)  # of the two equal ones only the first
        self.assertEqual(answer["scratch"], [[7], [14], [14], [21, 28], [21, 28], [35, 42]])

    def test_nothing_is_asked_twice(self):
        first, second, other = FakeGpu(7), FakeGpu(9), FakeGpu(9)
        answer = self.asked(first)[1]
        self.assertEqual(self.asked(second)[1], answer)
        self.assertEqual(second.questions, 0)
        with mock.patch.object(kernels, "driver_version", lambda: "600.1"):
            self.asked(other)
        self.assertEqual(other.questions, 6)
        self.assertEqual(len(os.listdir(self.cache)), 2)

    def test_kept_answers_serve_without_a_gpu(self):
        got, answer = self.asked(FakeGpu(7))
        self.assertEqual(kernels.recall(got, "NVIDIA H200"), answer)
        for changed, gpu in (({"batch": 16}, "NVIDIA H200"), ({}, "NVIDIA H100")):
            with self.assertRaisesRegex(Mistake, "of 4 of 4 convolutions no answer of a NVIDIA"):
                kernels.recall({**got, **changed}, gpu)

    def test_tried_kernels_stand_where_a_shape_first_runs(self):
        gpu = FakeGpu(7)
        got, answer = self.asked(gpu, cudnn_benchmark=True)
        self.assertEqual(gpu.questions, 12)  # the largest of all, then the fastest
        self.assertEqual(
            [len(bytes) for bytes in answer["tried"]],
            [1, 1, 0, 2, 0, 2],  # of the two equal ones the first
        )
        self.assertEqual(answer["tried"][0], [7])
        self.assertEqual(answer["scratch"][0], [14])
        self.assertEqual(kernels.recall(got, "NVIDIA H200"), answer)

    def asked_of(self, gpu, *convs):
        """With cudnn.benchmark, at a batch of 2."""
        operators = mock.Mock(convolution=gpu.run, convolution_backward=gpu.run)
        with mock.patch.object(kernels, "_tensor", lambda shape, conv: shape), mock.patch.object(
            torch.ops, "aten", operators
        ):
            description = {"batch": 2, "flags": {"cudnn_benchmark": True}, "convs": list(convs)}
            return kernels.ask(description, gpu)

    def test_each_thread_of_a_training_tries(self):
        """A generator's transposed convolution is the gradient of a discriminator's: PyTorch asks
        cuDNN the same forward and backward, and tries the kernels in both threads. In the thread
        of the backward pass the gradient of the weight is asked twice, and tried once."""
        plain = conv_of("backward", [8, 4, 4], [16, 2, 2], [16, 8, 2, 2])
        turned = conv_of("forward", [16, 2, 2], [8, 4, 4], [16, 8, 2, 2], transposed=True)
        gpu = FakeGpu(7)
        answer = self.asked_of(gpu, turned, plain, {**turned, "phase": "backward"}, turned)
        self.assertEqual(answer["tried"][0], [7])
        self.assertEqual([len(one) for one in answer["tried"]], [1, 2, 2, 0])
        self.assertIsNone(answer["tried"][2][1])
        self.assertIsNotNone(answer["tried"][2][0])
        self.assertEqual(gpu.threads[0], gpu.threads[1])  # tried, then the fastest
        self.assertEqual(len(set(gpu.threads)), 3)  # one for each convolution
        self.assertNotIn(threading.current_thread(), gpu.threads)

    def test_the_code_of_what_was_tried(self):
        """Only of a process that was asked about all; then it is kept."""
        conv = conv_of("forward", [3, 8, 8], [4, 6, 6], [4, 3, 3, 3])
        other = {**conv, "dtype": "float16"}
        with mock.patch.object(kernels, "_process_bytes", lambda: 1016 << 20):
            self.assertEqual(self.asked_of(FakeGpu(7), conv)["process"], 1016 << 20)
            again, more = FakeGpu(7), FakeGpu(7)
            self.assertEqual(self.asked_of(again, conv)["process"], 1016 << 20)
            self.assertEqual(again.questions, 0)
            self.assertEqual(self.asked_of(more, conv, other)["process"], 1016 << 20)
            self.assertEqual(more.questions, 4)  # the first one again, too
        unseen = FakeGpu(7)
        with mock.patch.object(kernels, "_process_bytes", lambda: None):
            self.assertNotIn("process", self.asked_of(unseen, other))
        self.assertEqual(unseen.questions, 0)
        self.assertNotIn("process", self.asked(FakeGpu(7))[1])  # without cudnn.benchmark

    def test_what_nvidia_smi_says_of_the_process(self):
        def said(text):
            done = subprocess.CompletedProcess([], 0, stdout=text)
            with mock.patch.object(subprocess, "run", return_value=done):
                return kernels._process_bytes()

        own = os.getpid()
        self.assertEqual(said(f"{own + 1}, 99\n{own}, 640\n"), 640 << 20)
        for text in ("", f"{own + 1}, 99\n", f"{own}, [N/A]\n", "No devices were found\n"):
            with self.subTest(text=text):
                self.assertIsNone(said(text))
        with mock.patch.object(subprocess, "run", side_effect=FileNotFoundError):
            self.assertIsNone(kernels._process_bytes())

    def test_a_broken_file_is_asked_again(self):
        for text in ("", "[", "[]", '{"a": 1}', '{"a": [["x"]]}'):
            with self.subTest(text=text):
                self.asked(FakeGpu(7))
                path = os.path.join(self.cache, os.listdir(self.cache)[0])
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                gpu = FakeGpu(7)
                self.asked(gpu)
                self.assertEqual(gpu.questions, 6)

    def test_a_cache_that_cannot_be_written(self):
        with mock.patch.dict(os.environ, XDG_CACHE_HOME="/dev/null"):
            gpu = FakeGpu(7)
            self.asked(gpu)
            self.asked(gpu)
            self.assertEqual(gpu.questions, 12)

    def test_an_older_allocator_counts_rounded_bytes(self):
        self.assertEqual(self.asked(FakeGpu(512, counts="allocated_bytes"))[1]["scratch"][0], [512])

    def test_a_convolution_of_the_loss_runs_forward(self):
        conv = conv_of("loss", [3, 8, 8], [4, 6, 6], [4, 3, 3, 3])
        gpu = FakeGpu(7)
        with mock.patch.object(kernels, "_tensor", lambda shape, conv: shape), mock.patch.object(
            torch.ops, "aten", mock.Mock(convolution=gpu.run)
        ):
            self.assertEqual(kernels.measure(conv, 2, kernels.Scratch(gpu)), [7])

    def test_a_kernel_without_room_is_no_answer(self):
        self.assertEqual(
            {bytes for some in self.asked(FakeGpu(7, fails=True))[1]["scratch"] for bytes in some},
            {None},
        )

    def test_channels_last_is_told(self):
        def channels_last():
            return nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten()).to(
                memory_format=torch.channels_last
            )

        told = [
            conv["channels_last"]
            for task in (Task(Net, net_batch), Task(channels_last, net_batch))
            for conv in export(task, 4)["convs"]
        ]
        self.assertEqual(told, [False] * 4 + [True] * 2)


class Commands(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="colloc-export-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        with open(os.path.join(self.folder, "mine.py"), "w", encoding="utf-8") as file:
            file.write(
                "from torch import nn\n\ndef make():\n"
                "    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(),"
                " nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5))\n"
            )

    def run_it(self, *arguments, code=0):
        done = subprocess.run(
            [sys.executable, "-m", "colloc_export", *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": PYTHON_FOLDER},
            timeout=100,
            check=False,
        )
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def exported(self, *more):
        return self.run_it(
            "mine.py:make", "--input", "3x32x32", "--classes", "5", "--batch", "16", *more
        )

    def estimate(self, *arguments):
        done = subprocess.run(
            [os.environ["COLLOC"], "estimate", "--json", *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_json(self):
        self.exported("-o", "task.json")
        with open(os.path.join(self.folder, "task.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["colloc_export"], 1)

    def test_what_the_loop_keeps(self):
        for words, keeps in ([], True), (["--keeps-output=no"], False):
            self.assertEqual(json.loads(self.exported(*words))["keeps_output"], keeps)

    def test_the_baseline(self):
        got = json.loads(self.exported("--fake"))
        # Three maps of 8 x 30 x 30 floats live at once when the activation's gradient is made.
        self.assertGreaterEqual(got["peak_bytes"], 16 * 3 * 4 * 8 * 30 * 30)
        self.assertEqual((got["colloc_faketensor"], got["method"]), (1, "fake"))

    @unittest.skipUnless("COLLOC" in os.environ, "colloc is not built")
    def test_colloc_reads_the_table_and_counts_the_same(self):
        self.exported("--text", "-o", "table.txt")
        model = self.estimate("--summary", "table.txt", "--batch", "16", "--estimator", "horus")[
            "model"
        ]
        description = json.loads(self.exported())
        self.assertEqual(model["parameters"], description["parameters"])

    def test_mistakes_are_told(self):
        self.assertIn("--input", self.run_it("mine.py:make", code=1))
        self.assertIn("nothing", self.run_it("mine.py:nothing", "--input", "3", code=1))
        self.assertIn("3xz", self.run_it("mine.py:make", "--input", "3xz", code=1))
        self.assertIn(
            "--batch", self.run_it("mine.py:make", "--input", "3", "--batch", "0", code=1)
        )
        if not torch.cuda.is_available():
            self.assertIn("GPU", self.run_it("mine.py:make", "--input", "3", "--kernels", code=1))

    def test_a_table_shows_frozen_and_reused_layers(self):
        text = text_of(export(Task(Net, net_batch), 4))
        self.assertIn("(recursive)", text)
        self.assertIn("[4, 8, 16, 16]", text)


if __name__ == "__main__":
    unittest.main()
