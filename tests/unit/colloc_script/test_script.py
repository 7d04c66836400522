# SPDX-License-Identifier: Apache-2.0
"""Training scripts followed without a GPU: what is seen of them, and why others are not followed.

PyTorch is imported once; each script runs in a fork, as it would after its own import.
"""
import collections
import json
import multiprocessing
import os
import runpy
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "lib"))

os.environ["PYTORCH_JIT"] = "0"  # as colloc runs a script, before PyTorch is imported

from needs_torch import nn, torch  # noqa: E402

from colloc_export import Task, export  # noqa: E402
from colloc_script import ending, follow  # noqa: E402
from colloc_script.result import holds  # noqa: E402
from colloc_script.trees import mapped  # noqa: E402
from colloc_export.tracker import NEVER, Interval, tensors_in  # noqa: E402

SCRIPTS = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", "data", "scripts"))
MIB = 1 << 20


def run_here(script, words, folder):
    """Becomes the script. Does not return."""
    os.chdir(folder)
    output = os.open("output", os.O_WRONLY | os.O_CREAT)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.stdin = open(0, encoding="utf-8", closefd=False)
    ending.watch(folder)
    status = 0
    try:
        follow.install(folder)
        sys.argv = [script, *words]
        runpy.run_path(os.path.join(SCRIPTS, script), run_name="__main__")
    except SystemExit:  # which Python does not hand to the hook
        status = 2
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
        status = 1
    ending._at_exit()
    os._exit(status)


def most_bytes(result, sizes=None):
    """The most bytes that live at once; of tensors of these sizes."""
    changes = collections.Counter()
    for size, _, first, last, _ in result["tensors"]:
        if sizes is None or size in sizes:
            changes[first] += size
            changes[last if last >= 0 else result["ticks"]] -= size
    alive = most = 0
    for tick in sorted(changes):
        alive += changes[tick]
        most = max(most, alive)
    return most


def most_alive(result, size):
    """How many tensors of this size live at once."""
    return most_bytes(result, [size]) // size


class Case(unittest.TestCase):
    maxDiff = None

    def follow(self, script, *words):
        """(result or None, reason or None)."""
        folder = tempfile.mkdtemp(prefix="colloc-test-")
        self.addCleanup(shutil.rmtree, folder)
        pid = os.fork()
        if pid == 0:
            run_here(script, words, folder)
        os.waitpid(pid, 0)
        answers = []
        for name in ("result", "failure"):
            path = os.path.join(folder, name)
            text = None
            if os.path.exists(path):
                with open(path, encoding="utf-8") as file:
                    text = file.read()
            answers.append(text)
        with open(os.path.join(folder, "output"), encoding="utf-8") as file:
            self.output = file.read()
        return answers[0] and json.loads(answers[0]), answers[1] and answers[1].strip()

    def result(self, script, *words):
        result, reason = self.follow(script, *words)
        self.assertIsNotNone(result, f"{reason}\n{self.output}")
        return result


def network():
    """That of plain.py."""
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Dropout(0.1),
        nn.Flatten(),
        nn.Linear(16 * 32 * 32, 10),
    )


def pictures(n):
    return (torch.randn(n, 3, 32, 32),), torch.randint(0, 10, (n,))


def exported(batch):
    return export(Task(network, pictures), batch)


def peak(description, batch, start=0):
    """The most that lives at once from the tick `start` on."""
    changes = []
    for fixed, each, first, last, _ in description["tensors"]:
        size = fixed + each * batch
        changes.append((first, size))
        if last != NEVER:
            changes.append((last, -size))
    total = most = 0
    for tick, change in sorted(changes):
        total += change
        most = max(most, total) if tick >= start else most
    return most


class Loaders(Case):
    """What the loaders of a script are seen to do."""

    def test_jpegs_are_counted_of_the_trainings_own_loader(self):
        wanted = {"workers": 3, "data": "jpeg", "pixels": 400 * 300}
        self.assertEqual(self.result("jpegs.py", "JPEG")["loader"], wanted)
        self.assertEqual(self.result("jpegs.py", "JPEG", "0")["loader"], {**wanted, "workers": 0})

    def test_pictures_of_another_format_are_not_known(self):
        self.assertEqual(self.result("jpegs.py", "PNG")["loader"], {"workers": 3, "data": None})

    def test_tensors_and_no_loader(self):
        self.assertEqual(self.result("ddp.py")["loader"], {"workers": 0, "data": "tensors"})
        self.assertIsNone(self.result("by_hand.py")["loader"])


class Loops(Case):
    def seen(self, script, *words, **wanted):
        result = self.result(script, *words)
        self.assertEqual({key: result["seen"][key] for key in wanted}, wanted)
        return result

    def test_plain_loop_is_what_the_exporter_says(self):
        result = self.seen("plain.py", batch=64, optimizer="adam", precision="fp32", accumulation=1)

        with multiprocessing.get_context("fork").Pool(1) as pool:  # no fork follows autograd's use
            made = pool.apply(exported, (64,))
        here, there = (
            peak(d, 64, d["phases"][1]["forward"]) / MIB for d in (result, made)
        )  # fmt: skip
        self.assertLess(abs(here - there), 0.01 * there)
        self.assertEqual(result["parameters"], made["parameters"])
        self.assertEqual(
            [(row["name"], row["type"], row["shape"]) for row in result["layers"]],
            [(row["name"], row["type"], row["shape"]) for row in made["layers"]],
        )
        self.assertEqual(len(result["convs"]), len(made["convs"]))
        self.assertEqual(
            [conv["phase"] for conv in result["convs"]], [conv["phase"] for conv in made["convs"]]
        )
        print("THERE", self.work(made))
        self.assertEqual(self.work(result), self.work(made))

    def test_mixed_precision(self):
        result = self.seen("amp.py", batch=32, optimizer="momentum", precision="amp")
        self.assertIn("bfloat16" if torch.__version__ < "2" else "float16", self.types(result))
        self.assertEqual(result["seen"]["autocast"], "float16")

    @staticmethod
    def work(result):
        """Calls of the backward pass by operator, and the bytes that they write."""
        found = collections.Counter()
        for row in result["operators"]:
            if row["phase"] == "backward" and row["name"] != "view":
                fixed, per_sample = row["writes"]
                found[row["name"], "calls"] += row["calls"]
                found[row["name"], "bytes"] += row["calls"] * (fixed + per_sample * result["batch"])
        return found

    @staticmethod
    def types(result):
        return {product["dtype"] for product in result["matmuls"]}

    def test_accumulation(self):
        result = self.seen("accumulation.py", batch=16, optimizer="adamw", accumulation=4)
        self.assertEqual(result["seen"]["autocast"], "bfloat16")
        self.assertIn("bfloat16", self.types(result))

    def test_two_optimizers(self):
        result = self.seen("gan.py", batch=8, optimizer="adam", optimizers=2)
        self.assertIn("8.0", self.output)  # a label tensor keeps its values
        self.assertEqual(
            {row["type"] for row in result["layers"] if row["depth"] == 0}, {"Sequential"}
        )

    def test_unet(self):
        result = self.seen("unet.py", optimizer="rmsprop")
        self.assertTrue(result["flags"]["channels_last"])
        self.assertFalse(result["flags"]["cudnn_benchmark"])

    def test_kernels_that_are_tried(self):
        result = self.result("unet.py", "benchmark")
        self.assertTrue(result["flags"]["cudnn_benchmark"] and result["seen"]["cudnn_benchmark"])

    def test_recommender(self):
        result = self.seen("recommender.py", batch=128, optimizer="adagrad")
        self.assertEqual(result["parameters"], 640000 + 13 * 64 + 64 + 65 * 16 + 27 * 32 + 33)

    def test_reinforcement_learning(self):
        self.seen("reinforce.py", optimizer="adam")

    def test_gpt(self):
        result = self.seen("gpt.py", "--batch-size=6", batch=6, optimizer="adamw", precision="amp")
        self.assertEqual(result["sequence_length"], 128)
        tied = [row for row in result["tensors"] if row[0] == 512 * 64 * 4 and row[4] == 0]
        self.assertEqual(len(tied), 1)  # the head's weight is the embedding's
        if hasattr(torch, "compile"):
            self.seen("gpt.py", "--compile", compiled=True)

    def test_trainer(self):
        result = self.seen("trainer.py", batch=16, checkpointing=True, accumulation=1)
        sizes = {row[0]: row[4] for row in result["tensors"]}
        self.assertIn(256 * 1000 * 4, sizes)
        held = [result["tensors"][tensor][0] for tensor, _, _ in result["holds"]]
        self.assertNotIn(16 * 1000 * 4, held)  # the logits do not live until the next step

    def test_output_that_a_loop_keeps(self):
        result = self.result("plain.py")
        held = [result["tensors"][tensor][0] for tensor, _, _ in result["holds"]]
        self.assertIn(64 * 10 * 4, held)

    def test_data_parallel(self):
        result = self.seen("ddp.py", ddp=2, optimizer="sgd", batch=16)
        gradients = 4 * sum(p.numel() for p in nn.Linear(32, 4096).parameters()) + 4 * 4097 * 8
        self.assertTrue([row for row in result["tensors"] if row[0] == gradients], "no bucket")

    def test_gradients_that_autograd_adds(self):
        """The gradient of a residual map is added to where it is: no other map is made."""
        result = self.result("residual.py")
        backward, end = (result["phases"][-1][name] for name in ("backward", "optimizer"))
        maps = [row for row in result["tensors"] if row[0] == 64 * 512 * 4]
        made = [row[2:4] for row in maps if backward <= row[2] < end]
        self.assertEqual(len(made), 1 + 2 * 3)  # the last map's, and three of each block
        self.assertGreater(made[0][1], max(first for first, _ in made))  # the sum's, to the end

    def test_states_that_are_divided(self):
        """ZeroRedundancyOptimizer: this rank has the states of the larger of two weights."""
        result = self.seen("zero_optimizer.py", ddp=2, optimizer="adamw", optimizers=1, batch=16)
        states = [row[0] for row in result["tensors"] if result["classes"][row[4]] == "state"]
        self.assertEqual(states, [2048 * 1024 * 4, 2048 * 1024 * 4])

    def test_fsdp(self):
        """A rank has a quarter of weights, gradients and states. Of the two large matrices of a
        block there are the whole weights and their gradients, of one block at a time."""
        whole = self.result("sharded.py", "whole")
        for how, size in (("wrapped", 4), ("units", 4), ("bf16", 2)):
            with self.subTest(how=how):
                result = self.result("sharded.py", how)
                self.assertEqual((result["seen"]["fsdp"], result["batch"]), (4, 16))
                self.assertEqual(result["flags"]["nccl_processes"], 4)
                self.assertEqual(4 * result["parameters"], whole["parameters"])
                layers = sum(row["parameters"] for row in result["layers"])
                self.assertEqual(layers, result["parameters"])
                self.assertEqual(most_alive(result, 2048 * 512 * size), 4)
                buffer = size * (2 * 2048 * 512 + 2048 + 512)
                self.assertEqual(most_alive(result, buffer), 2)  # and one is of the next block
                self.assertLess(most_bytes(result), 0.4 * most_bytes(whole))

    def test_a_network_that_is_part_of_another(self):
        result = self.result("part.py")
        self.assertEqual(sum(row["parameters"] for row in result["layers"]), result["parameters"])

    def test_weights_updated_by_hand(self):
        result = self.seen("by_hand.py", optimizer="other")
        self.assertTrue(result["flags"]["recurrent"])

    def test_sizes_that_depend_on_values(self):
        result = self.result("detector.py")
        self.assertTrue(
            any("index" in warning for warning in result["warnings"]), result["warnings"]
        )

    def test_what_is_drawn_from_an_unknown_selection(self):
        result = self.result("sampler.py")
        sizes = {row[0] for row in result["tensors"]}
        self.assertIn(32 * 1000 * 4, sizes)
        self.assertNotIn(4000 * 1000 * 4, sizes)
        self.assertIn(" 32\n", self.output)
        self.assertIn("level 0", self.output)
        self.assertLessEqual(self.output.count("level"), 2 * 2)  # two levels in two steps

    @unittest.skipIf(torch.__version__ < "2", "no sparse fake tensors")
    def test_sparse_gradients(self):
        result = self.result("recommender.py", "sparse")
        sizes = [row[0] for row in result["tensors"]]
        self.assertEqual(sizes.count(10000 * 16 * 4), 4)  # the tables, and no gradient like them
        rows = [row for row in result["tensors"] if row[0] == 777 * 16 * 4]
        gradients = [row for row in rows if row[3] == NEVER or row[3] - row[2] > 20]
        copies = [row for row in rows if row[3] - row[2] == 1]
        self.assertEqual((len(gradients), len(copies)), (2 * 4, 2 * 4), rows)  # in two steps

    def test_a_policy(self):
        result = self.seen("policy.py", batch=512, optimizer="adamw")
        sizes = [row[0] + 512 * row[1] for row in result["tensors"]]
        self.assertIn(512 * 300 * 4, sizes)
        self.assertGreaterEqual(sizes.count(512 * 200 * 4), 4)  # also the masked gradient

    def test_labels_that_are_written(self):
        self.seen("labels.py", batch=10)

    def test_edges_that_are_drawn(self):
        self.seen("edges.py", batch=200000)

    def test_evaluations_run_a_few_times(self):
        self.seen("evaluates.py", batch=32)
        self.assertIn("passes 5\npasses 6\n", self.output)  # two of each kind, and the steps

    def test_texts_that_grow_run_at_some_lengths(self):
        self.result("writes.py")
        lengths = [json.loads(line[8:]) for line in self.output.splitlines() if "lengths" in line]
        grown = [16, 17, 20, 23, 26, 30, 34, 39, 44, 50, 57]
        self.assertEqual(lengths[0], grown + [64, 64])

    def test_large_batches_are_read_in_part(self):
        self.seen("large_batch.py", batch=5000)
        self.assertIn("reads 1000 labels [0, 1, 2, 3, 4] 50\n", self.output)
        self.seen("large_batch.py", "texts", batch=5000)
        self.assertIn("reads 6000 labels [0, 1, 2, 3, 4] 50\n", self.output)

    def test_sparse_matrices(self):
        for words in ([], ["there"]):
            with self.subTest(words=words):
                result = self.result("graph.py", *words)
                sizes = [row[0] + result["batch"] * row[1] for row in result["tensors"]]
                self.assertNotIn(3000 * 3000 * 4, sizes)  # not as a dense matrix
                places = [size for size in sizes if 2 * 19000 * 8 < size <= 2 * 20000 * 8]
                self.assertTrue(places, sizes)
        rows = self.result("graph.py", "rows")
        self.assertIn(3001 * 8, [row[0] for row in rows["tensors"]])

    def test_a_view_tells_how_many_a_mask_selects(self):
        result = self.result("crops.py")
        sizes = [row[0] + 40 * row[1] for row in result["tensors"]]
        self.assertIn(40 * 3 * 24 * 24 * 4, sizes)
        self.assertEqual(sizes.count(40 * 3 * 30 * 30 * 4), 1)  # the pictures alone
        self.assertEqual(result["parameters"], 3 * 24 * 24 * 10 + 10)

    def test_time_first(self):
        for layer, batch in [("lstm", 20), ("transformer", 20), ("batch_first", 35)]:
            with self.subTest(layer=layer):
                self.seen("time_first.py", layer, batch=batch)

    def test_inference(self):
        result = self.seen("infers.py", "3", inference=True, batch=64)
        sizes = [row[0] + 64 * row[1] for row in result["tensors"]]
        self.assertEqual(result["parameters"], 257 * 4096 + 4097 * 8)
        self.assertGreaterEqual(sizes.count(64 * 4096 * 4), 2)

    def test_attention_of_other_packages(self):
        """Its output, a float for each row of each head, and no scores."""
        rows = 6 * 4 * 640
        for package in ("flash", "varlen", "xformers"):
            with self.subTest(package=package):
                result = self.result("attends.py", package)
                sizes = [row[0] + result["batch"] * row[1] for row in result["tensors"]]
                self.assertGreaterEqual(sizes.count(rows * 24 * 4), 2 * 4)  # and three gradients
                self.assertIn(rows * 32 * 4, sizes)  # the sums for the query's gradient
                self.assertGreaterEqual(sizes.count(rows * 4), 2)
                self.assertLess(max(sizes), rows * 640)

    def test_quantised_layers_and_optimizers(self):
        count = 512 * 768
        for kind, packed in (("4bit", count // 2), ("8bit", count)):
            with self.subTest(kind=kind):
                result = self.result("quantised.py", kind)
                weights = [row for row in result["tensors"] if row[0] == packed]
                self.assertEqual(len([row for row in weights if row[3] == NEVER]), 1)
                whole = [row for row in result["tensors"] if row[0] == 4 * count]
                halves = [row for row in result["tensors"] if row[0] == 2 * count]
                self.assertFalse([row for row in whole + halves if row[3] == NEVER])
                self.assertTrue(halves)  # unpacked for a pass
                states = [row for row in result["tensors"] if row[0] == 300 * 512]
                self.assertEqual(len([row for row in states if row[3] == NEVER]), 2)
                self.assertEqual(result["optimizer"]["name"], "adamw8bit")

    def test_kernels_of_triton(self):
        result = self.result("launches.py")
        self.assertTrue(any("Triton" in note for note in result["warnings"]), result["warnings"])
        sizes = [row[0] + result["batch"] * row[1] for row in result["tensors"]]
        self.assertGreaterEqual(sizes.count(50 * 333 * 4), 2 * 2)

    def test_the_version_of_cuda(self):
        self.result("version.py")


BY_VALUE = "cannot follow this line .* depends on a value that the GPU computes: "


class Refusals(Case):
    def test_reasons(self):
        for script, words, reason in [
            ("network.py", [], r"network\.py, line 8: .*(unreachable|timed out|refused)"),
            ("standard_input.py", [], "EOFError: .* reads standard input, which is closed"),
            ("never_steps.py", [], "ended without a step of an optimizer"),
            (
                "other_package.py",
                [],
                "ModuleNotFoundError: .*colloc_no_such_package.*, /.*, does not have this package",
            ),
            ("prints.py", ["3"], "ended, and put nothing on the GPU"),
            ("on_cpu.py", [], "trains on the CPU"),
            ("cpu_for_ever.py", [], "trains on the CPU"),
            (
                "crops.py",
                ["31"],
                "crops.py, line 13: colloc cannot follow this line .* may well run",
            ),
            (
                "quantised.py",
                ["plain"],
                "colloc cannot follow this line .* may well run: the kernel of this layer",
            ),
            (
                "divides.py",
                ["offload"],
                r"divides\.py, line \d+: .* FSDP .* host's memory .* --parallel=fsdp and --offload",
            ),
            ("values_decide.py", ["assert"], BY_VALUE + r"AssertionError: not finite$"),
            ("values_decide.py", ["lookup"], BY_VALUE + r"IndexError: "),
            ("values_decide.py", ["graph"], "cannot follow this line .* CUDAGraph is of PyTorch"),
            ("values_decide.py", ["packed"], "cannot follow this line .* values of the tensors"),
            ("values_decide.py", ["name"], r"values_decide\.py, line 21: AttributeError: "),
            ("wrong_shape.py", [], r"wrong_shape\.py, line 6: RuntimeError: "),
            (
                "options.py",
                ["--batch=8"],
                r"options\.py, line 9: sys\.exit\(2\): .* put nothing on",
            ),
        ]:
            with self.subTest(script=script):
                result, given = self.follow(script, *words)
                self.assertIsNone(result)
                self.assertRegex(given, reason)

    def test_a_kernel_that_the_cpu_lacks(self):
        """The script is right, whether this PyTorch has the kernel or not."""
        result, given = self.follow("half_volumes.py")
        if result is None:
            self.assertRegex(given, "line 9: colloc cannot follow this line .*for 16 bit")


class Trees(unittest.TestCase):
    def test_tensors_of_a_tree(self):
        one, two = torch.zeros(1), torch.zeros(2)
        tree = ({"a": [one, None]}, collections.OrderedDict(b=two), torch.Size([3]), 1.5)
        self.assertEqual([tensor.numel() for tensor in tensors_in(tree)], [1, 2])
        sizes = mapped(torch.Tensor.numel, tree)
        self.assertEqual(sizes, ({"a": [1, None]}, {"b": 2}, torch.Size([3]), 1.5))
        self.assertEqual(list(map(type, sizes)), list(map(type, tree)))


class Holds(unittest.TestCase):
    @staticmethod
    def interval(size, first, last):
        one = Interval(size, first, "temp")
        one.last = last
        return one

    def test_what_an_iteration_leaves_has_an_heir(self):
        intervals = [
            self.interval(4, 0, NEVER),  # a weight
            self.interval(8, 1, 12),  # an output, released in the second iteration
            self.interval(16, 2, 3),
            self.interval(32, 4, 11),  # a batch, which has no heir of its size
            self.interval(8, 13, NEVER),
            self.interval(16, 14, 15),
        ]
        self.assertEqual(holds(intervals, 10, 20), [[1, 12, 4]])


@unittest.skipUnless("COLLOC" in os.environ, "colloc is not built")
class Priced(Case):
    def test_an_estimate(self):
        for words in (["gpt.py"], ["sharded.py", "units"], ["zero_optimizer.py"]):
            with self.subTest(words=words), tempfile.NamedTemporaryFile("w") as file:
                json.dump(self.result(*words), file)
                file.flush()
                reply = json.loads(
                    subprocess.check_output(
                        [os.environ["COLLOC"], "estimate", "--json", f"--export={file.name}"]
                    )
                )
                self.assertEqual(reply["estimates"][0]["evidence"], "script")
                self.assertGreater(reply["reserve_mib"], reply["estimates"][0]["mib"])

    def test_progress_of_a_long_run(self):
        run = subprocess.run(
            [os.environ["COLLOC"], "estimate", "--json", "--", sys.executable]
            + [os.path.join(SCRIPTS, "infers.py"), "1000000000"],
            capture_output=True,
            text=True,
            check=True,
        )
        self.assertRegex(  # the line is printed after 10 s: a busy machine still imports then
            run.stderr,
            r"following the script for \d+ s: "
            r"([\d,]+ forward pass(es)?, 0 back|nothing is on|PyTorch is not imported yet)",
        )
        self.assertEqual(run.stderr.count("following"), 1)
        reply = json.loads(run.stdout)
        self.assertEqual((reply["inference"], reply["batch"]), (True, 64))


if __name__ == "__main__":
    unittest.main()
