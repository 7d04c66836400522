# SPDX-License-Identifier: Apache-2.0
"""Trainings that DeepSpeed's ZeRO divides among four GPUs, followed where it is not installed."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from test_script import Case as Scripts, most_alive, most_bytes  # noqa: E402

import torch  # noqa: E402
from colloc_script import zero_config  # noqa: E402

WEIGHTS = 18_896_896  # of the network in zero.py
PART = WEIGHTS // 4
BUCKET = 5_000_000
MIB = 1 << 20


class Stages(Scripts):
    def zero(self, *words):
        return self.result("zero.py", *words)

    def test_flat_weights(self):
        """Stage 2 in 16 bit: one flat tensor of weights, a quarter of them in 32 bit, two states
        and, in the step, the gradient. The bucket is there in a backward pass."""
        result = self.zero("2", "bf16")
        seen = result["seen"]
        self.assertEqual((seen["zero"], seen["batch"], seen["accumulation"]), (2, 4, 1))
        self.assertEqual((seen["precision"], seen["optimizer"]), ("bf16", "fusedadam"))
        self.assertEqual(result["flags"]["nccl_processes"], 4)
        self.assertEqual(result["parameters"], WEIGHTS)
        self.assertEqual(most_alive(result, 2 * WEIGHTS), 1)
        self.assertEqual(most_alive(result, 4 * PART), 4)
        self.assertEqual(most_alive(result, 2 * BUCKET), 1)
        self.assertIn("DeepSpeed is not installed here", result["warnings"][0])
        more = self.zero("2", "bf16", "overlap", "installed")
        self.assertEqual(most_alive(more, 2 * BUCKET), 2)
        self.assertEqual(more["warnings"], [])

    def test_gradients_stay_in_stage_1(self):
        """Whole ones, until the backward pass ends; in stage 2 they move into the bucket at once,
        and what is copied out is added to the sum of the passes before."""
        first, second = self.zero("1", "bf16"), self.zero("2", "bf16", "file", "accumulates")
        self.assertEqual(second["seen"]["accumulation"], 2)
        self.assertEqual(most_alive(second, 2 * PART), 2)
        self.assertGreater(most_bytes(first), most_bytes(self.zero("2", "bf16")) + 10 * MIB)

    def test_layers_are_gathered(self):
        """Stage 3: a quarter of weights, gradients and states. Near layers stay whole between
        forward and backward pass, which far ones do not. The head takes the first layer's weight
        by a function, and attention that of its inner layer."""
        large = 2 * 2048 * 512
        near, far = self.zero("3", "bf16"), self.zero("3", "bf16", "far", "init")
        for result in (near, far):
            self.assertEqual(result["seen"]["zero"], 3)
            self.assertEqual(result["parameters"], PART)
            self.assertEqual(most_alive(result, 4 * PART), 4)
            self.assertEqual(most_alive(result, 2 * PART), 2)  # gradients, and a copy in the step
        self.assertGreaterEqual(most_alive(near, large), 16)
        self.assertLess(most_alive(far, large), 6)
        self.assertLess(most_bytes(far), most_bytes(near) - 20 * MIB)

    def test_offload(self):
        """States, and in stage 3 the parts of weights, are in the host's memory."""
        two = self.zero("2", "bf16", "states")
        three = self.zero("3", "bf16", "states", "parameters", "far", "init")
        for result in (two, three):
            self.assertEqual(most_alive(result, 4 * PART), 0)
            self.assertEqual(result["seen"]["optimizer"], "deepspeedcpuadam")
        self.assertEqual(three["parameters"], PART)
        self.assertLess(most_bytes(three), most_bytes(two))

    def test_shared_and_frozen_weights(self):
        result = self.zero("3", "bf16", "tied", "frozen", "far")
        self.assertEqual(result["parameters"], PART - 1024 * 512 // 4)
        self.assertEqual(result["trainable"], (1024 * 512 + 4 * 512 * 512 + 4 * 512) // 4)

    def test_schedules(self):
        """Of the caller, for the optimizer within DeepSpeed's, and of the configuration; with what
        accelerate asks of one."""
        plain = most_bytes(self.zero("2", "bf16"))
        for word in ("schedule", "warms"):
            with self.subTest(word=word):
                self.assertEqual(most_bytes(self.zero("2", "bf16", word)), plain)

    def test_errors(self):
        """What DeepSpeed refuses is the script's own; an error of the imitation is not."""
        own = r"^\S*zero\.py, line \d+: "
        for words, reason in (
            (["missing"], own + "AssertionError: DeepSpeed's configuration is missing"),
            (["stage"], own + "ValueError: .* zero_optimization.stage is 4, not 0, 1, 2 or 3"),
            (["rate"], own + "ValueError: .*optimizer.params.lr is auto"),
            (["schedule"], own + "AssertionError: .* scheduler.type is 'Quick', not known"),
            (["2", "member"], own + "colloc cannot .* deepspeed.utils.no_such_member is not imit"),
            (["2", "import"], own + "colloc cannot .* deepspeed.utils.no_such_member is not imit"),
            (["2", "breaks"], own + "colloc cannot follow .* in colloc's deepspeed_members.py: Ty"),
        ):
            with self.subTest(words=words):
                result, given = self.follow("zero.py", *words)
                self.assertIsNone(result)
                self.assertRegex(given, reason)


class Configurations(unittest.TestCase):
    def settings(self, world=4, **config):
        return zero_config.settings_of({"train_micro_batch_size_per_gpu": 2, **config}, world)

    def test_defaults(self):
        settings = self.settings(zero_optimization={"stage": 3}, bf16={"enabled": True})
        self.assertEqual((settings.stage, settings.dtype), (3, torch.bfloat16))
        self.assertEqual((settings.bucket, settings.buckets), (500_000_000, 1))
        self.assertFalse(settings.hosts_states or settings.hosts_parameters)

    def test_auto_has_the_default(self):
        zero = {"stage": 2, "reduce_bucket_size": "auto", "overlap_comm": True}
        settings = self.settings(zero_optimization=zero, fp16={"enabled": "auto"})
        self.assertEqual((settings.bucket, settings.buckets), (500_000_000, 2))
        self.assertEqual(settings.dtype, torch.float32)

    def test_batches(self):
        for given, expected in (
            ({"train_batch_size": 32}, (8, 1)),
            ({"train_batch_size": 32, "gradient_accumulation_steps": 4}, (2, 4)),
            ({"train_batch_size": 32, "train_micro_batch_size_per_gpu": 2}, (2, 4)),
            ({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 3}, (2, 3)),
        ):
            with self.subTest(given=given):
                settings = zero_config.settings_of(given, 4)
                self.assertEqual((settings.batch, settings.accumulation), expected)

    def test_what_is_refused(self):
        for config, words in (
            ({"train_micro_batch_size_per_gpu": None}, "give train_batch_size"),
            ({"train_micro_batch_size_per_gpu": "auto"}, "is auto"),
            ({"train_batch_size": 9}, "train_batch_size is 9, not 2"),
            ({"train_micro_batch_size_per_gpu": 0}, "not a number"),
            ({"zero_optimization": {"stage": 4}}, "stage is 4"),
            ({"zero_optimization": {"stage": "two"}}, "stage is 'two'"),
            ({"zero_optimization": {"stage": float("inf")}}, "stage is inf"),
            ({"zero_optimization": [2]}, "not an object"),
            ({"zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}}, "stage 3"),
            ({"zero_optimization": {"offload_optimizer": {"device": "tpu"}}}, "'tpu'"),
            ({"zero_optimization": {"stage": 2, "reduce_bucket_size": -1}}, "not a number"),
            ({"fp16": {"enabled": True}, "bf16": {"enabled": True}}, "both"),
            ({"data_types": {"grad_accum_dtype": "int8"}}, "int8"),
        ):
            with self.subTest(config=config):
                with self.assertRaisesRegex((AssertionError, ValueError), words):
                    self.settings(**config)

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "ds.json")
            for text, expected in (
                ('{"a": "// no comment", /* but\nthis */ "b": [1, 2,], }', True),
                ("[1]", False),
                ('{"a": ', False),
                ("", False),
            ):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                with self.subTest(text=text):
                    if expected:
                        self.assertEqual(
                            zero_config.read(path), {"a": "// no comment", "b": [1, 2]}
                        )
                    else:
                        self.assertRaisesRegex(ValueError, "is not", zero_config.read, path)
        self.assertEqual(zero_config.read("eyJhIjogMX0="), {"a": 1})
        for source in ("no_such_file.json", "", 5, b"\xff"):
            with self.subTest(source=source):
                self.assertRaisesRegex(
                    ValueError, "no file, no dictionary", zero_config.read, source
                )


if __name__ == "__main__":
    unittest.main()
