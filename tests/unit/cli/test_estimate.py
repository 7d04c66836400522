#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""colloc estimate: needs no daemon; its JSON is a contract others rely on."""

import json
import math
import os
import re
import unittest

from cli_case import CliCase
from fake_collocd import make_task

EXPORT = os.path.join(os.path.dirname(__file__), "..", "..", "data", "exports", "small.json")

# One layer of 1 000 x 1 000 weights and 1 000 biases, as torchsummary prints it.
SUMMARY = """\
----------------------------------------------------------------
        Layer (type)               Output Shape         Param #
================================================================
            Linear-1                 [-1, 1000]       1,001,000
================================================================
Total params: 1,001,000
Trainable params: 1,001,000
Non-trainable params: 0
----------------------------------------------------------------
"""


class Estimate(CliCase):
    def setUp(self):
        super().setUp()
        self.write("net.txt", SUMMARY)

    def estimate(self, *words, code=0):
        return json.loads(self.colloc("estimate", "--json", *words, code=code))

    def test_contract(self):
        reply = self.estimate("--summary", "net.txt", "--batch=8")
        self.assertEqual([estimate["estimator"] for estimate in reply["estimates"]], ["graph"])
        self.assertGreater(reply["estimates"][0]["mib"], 4 * 1001000 / 2**20)
        self.assertEqual(reply["model"]["parameters"], 1001000)
        self.assertEqual(reply["warnings"], [])
        self.assertEqual(self.daemon.requests, [])

    def test_which_estimator(self):
        summary = ("--summary=net.txt", "--batch=8")
        self.assertEqual(self.estimate(*summary, "--estimator=graph"), self.estimate(*summary))
        self.assertEqual(
            self.estimate("--memory=6G", "--estimator=declared")["estimates"][0]["mib"], 6144
        )
        self.assertEqual(
            self.estimate("--memory=6G", "--estimator=declared"), self.estimate("--memory=6G")
        )
        by_name = {
            estimate["estimator"]: estimate
            for estimate in self.estimate(*summary, "--estimator=all")["estimates"]
        }
        self.assertGreater(by_name["horus"]["mib"], 4 * 1001000 / 2**20)
        self.assertIsNone(by_name["declared"]["mib"])

    def test_the_table_rounds_as_the_line_above_it(self):
        for batch in range(8, 64, 7):
            lines = self.colloc("estimate", "--summary=net.txt", f"--batch={batch}").splitlines()
            reserve = re.search(r"^reserve ([0-9.]+ [GM]iB)", "\n".join(lines), re.M).group(1)
            row = next(line for line in lines if line.startswith("graph "))
            self.assertEqual(re.findall(r"[0-9.]+ [GM]iB", row)[3], reserve, lines)

    def test_table_marks_what_the_daemon_keeps_free(self):
        words = ("--summary=net.txt", "--batch=8", "--estimator=all")
        rows = {row["estimator"]: row for row in self.estimate(*words)["estimates"]}
        self.assertEqual(rows["graph"]["reserved_mib"], rows["graph"]["p90_mib"])
        self.assertEqual(rows["horus"]["reserved_mib"], rows["horus"]["mib"])
        self.assertIsNone(rows["none"]["reserved_mib"])
        lines = self.colloc("estimate", *words).splitlines()
        head, table = lines[4], {line.split()[0]: line for line in lines[5:-2]}
        self.assertEqual(
            head.split(), ["ESTIMATOR", "MEMORY", "P50", "P90", "P99", "FLOOR", "SMACT", "NOTE"]
        )
        self.assertEqual([table[name].count("*") for name in ("graph", "horus", "none")], [1, 1, 0])
        self.assertGreater(table["graph"].index("*"), head.index("P50") + len("P50"))
        self.assertLess(table["graph"].index("*"), head.index("P99"))
        self.assertLess(table["horus"].index("*"), head.index("P50"))
        self.assertTrue(
            lines[-1].startswith("* the daemon reserves this value by default"), lines[-1]
        )
        self.assertNotIn("*", self.colloc("estimate", "--memory=6G", "--estimator=none"))

    def test_options_of_a_task_file(self):
        self.write("train.sh", "#COLLOC --summary=net.txt --batch=8 --memory=6G\ntrue\n")
        self.assertEqual(
            self.estimate("train.sh"),
            self.estimate("--summary=net.txt", "--batch=8", "--memory=6144MiB"),
        )

    def test_a_file_is_what_its_content_shows(self):
        by_option = self.estimate("--summary=net.txt", "--batch=8")
        self.assertEqual(self.estimate("net.txt", "--batch=8"), by_option)
        with open(EXPORT, encoding="utf-8") as file:
            self.write("net.json", file.read())
        self.assertEqual(
            self.estimate("net.json", "--batch=8"), self.estimate("--export=net.json", "--batch=8")
        )
        self.write("keras.txt", 'Model: "net"\n' + SUMMARY)
        self.assertEqual(self.estimate("keras.txt", "--batch=8")["model"]["parameters"], 1001000)
        quoted = "".join(f"# {line}\n" for line in SUMMARY.splitlines())
        self.write("train.sh", f"#!/bin/sh\n#COLLOC --memory=6G\n{quoted}cat <<END\n{SUMMARY}END\n")
        self.assertEqual(self.estimate("train.sh")["reserve_mib"], 6144)
        self.write("broken.txt", SUMMARY.replace("1,001,000", "-5", 1))
        self.assertIn(
            "is no parameter count", self.complaint("estimate", "broken.txt", "--batch=8", code=2)
        )

    def ended(self, task_id, predicted, p99, peak, **members):
        return make_task(
            task_id,
            state="COMPLETED",
            ended_at=1700000100 + task_id,
            estimator="graph",
            predicted_mib=predicted,
            p99_mib=p99,
            mem_peak_mib=peak,
            **members,
        )

    def test_a_printed_module_with_an_input(self):
        self.write(
            "net.txt",
            "Net(\n  (conv): Conv2d(3, 64, kernel_size=(7, 7), stride=(2, 2))\n"
            "  (fc): Linear(in_features=64, out_features=10, bias=True)\n)\n",
        )
        known = self.estimate("net.txt", "--batch=8", "--input=3x224x224")
        larger = self.estimate("net.txt", "--batch=8", "--input=3x448x448")
        self.assertGreater(larger["reserve_mib"], known["reserve_mib"])
        (without,) = self.estimate("net.txt", "--batch=8")["estimates"]
        self.assertIn("with --input", without["note"])
        self.assertIn(
            "such as 3x224x224", self.complaint("estimate", "net.txt", "--input=3,4", code=2)
        )

    def test_several_gpus(self):
        summary = ("net.txt", "--batch=8", "--optimizer=adam", "--precision=fp32")
        one, four = self.estimate(*summary), self.estimate(*summary, "--gpus=4")
        self.assertGreater(four["estimates"][0]["mib"], one["estimates"][0]["mib"])
        self.assertIn("DistributedDataParallel", four["estimates"][0]["note"])
        alone = self.estimate(*summary, "--gpus=4", "--parallel=none")
        self.assertEqual(alone["estimates"][0]["mib"], one["estimates"][0]["mib"])
        self.assertIn(
            "must be one of none, ddp, zero1, zero2, fsdp",
            self.complaint("estimate", *summary, "--parallel=pipeline", code=2),
        )

    def test_tensor_and_pipeline_parallelism(self):
        blocks = "".join(
            f"├─Block: 1-{i}  [-1, 512]  --\n│    ├─Linear: 2-{2 * i}  [-1, 2048]  1,050,624\n"
            f"│    ├─Linear: 2-{2 * i + 1}  [-1, 512]  1,049,088\n"
            for i in range(1, 9)
        )
        head = "Layer (type:depth-idx)  Output Shape  Param #\n====\nNet: 0-1  [-1, 512]  --\n"
        total = "Total params: 16,797,696\n"
        self.write("blocks.txt", f"{head}{blocks}====\n{total}")
        given = ("blocks.txt", "--batch=20000", "--optimizer=adam", "--precision=fp32")

        def estimate(*options):
            return self.estimate(*given, *options)["estimates"][0]

        alone, plain = estimate("--gpus=4", "--parallel=none"), estimate("--gpus=4")
        for way, words in (
            ("tp", "tensor parallelism of 4: the products of the repeated blocks (100 % of"),
            ("pp", "a pipeline of 4 stages, 4 micro-batches by 1F1B: stage"),
            ("tp:2", "tensor parallelism of 2"),
        ):
            found = estimate("--gpus=4", f"--parallel={way}")
            self.assertIn(words, found["note"])
            self.assertLess(found["mib"], plain["mib"])
            self.assertEqual(found["evidence"], plain["evidence"])
            self.assertIn("with 1290 MiB for NCCL", found["note"])
        offloaded = estimate("--offload=optimizer")
        # Not measured on GPUs, so how far the estimate may be wrong is not known well.
        self.assertEqual(offloaded["evidence"], "doubtful summary")
        self.assertGreater(offloaded["p99_mib"] / offloaded["mib"], alone["p99_mib"] / alone["mib"])
        self.assertLess(offloaded["mib"], alone["mib"])
        self.assertIn("in the host's memory: the optimizer's states", offloaded["note"])
        self.assertIn(
            "8 micro-batches", estimate("--gpus=2", "--parallel=pp", "--micro-batches=8")["note"]
        )
        for options, words in (
            (("--gpus=4", "--parallel=tp:3"), "the GPUs are not a multiple of"),
            (("--gpus=4", "--micro-batches=4"), "--micro-batches needs --parallel=pp"),
            (("--gpus=4", "--offload=parameters"), "--offload=parameters needs --parallel=fsdp"),
            (("--gpus=64", "--parallel=pp"), "a pipeline of 64 stages over"),
        ):
            self.assertIn(words, self.complaint("estimate", *given, *options, code=2))

    def test_how_good_the_estimates_were(self):
        self.assertIn("No task completed", self.colloc("estimate", "--history"))
        self.daemon.tasks = [
            self.ended(1, 1000, 1100, 1000),
            self.ended(2, 990, 1100, 1000),
            self.ended(3, 1000, 1100, 2000, gpus_requested=2),
            self.ended(4, None, None, 9000),  # declared
            self.ended(5, 1000, 1100, 9000, preallocated=True),
        ]
        line = "3 tasks, median error 0.0 %, none above P99\n"
        self.assertEqual(self.colloc("estimate", "--history"), line)
        self.daemon.tasks += [self.ended(6, 1000, 1100, 1250), self.ended(7, 1000, None, 1250)]
        self.assertEqual(
            self.colloc("estimate", "--history"),
            "5 tasks, median error 1.0 %, 1 above P99\n",
        )
        self.assertEqual(
            json.loads(self.colloc("estimate", "--json", "--history")),
            {"tasks": 5, "median_error": 0.01, "p95_error": 0.2, "above_p99": 1},
        )

    def test_a_history_with_a_file_is_for_the_estimator(self):
        self.write("runs.csv", "fingerprint,batch,seq,optimizer,precision,gpu,peak_mib,outcome\n")
        for words in (("--history=runs.csv",), ("--history", "runs.csv")):
            self.estimate(*words, "net.txt", "--batch=8")
        self.assertEqual(self.daemon.requests, [])
        self.assertIn(
            "give --history=FILE", self.complaint("estimate", "net.txt", "--history", code=2)
        )

    def test_the_answer_comes_first(self):
        reply = self.estimate("net.txt", "--batch=8")
        reserve = reply["reserve_mib"]
        self.assertEqual(reserve, math.ceil(reply["estimates"][0]["p99_mib"]))
        first = f"reserve {reserve:.0f} MiB: enough for 99 of 100 such tasks"
        self.assertEqual(self.colloc("estimate", "net.txt", "--batch=8").splitlines()[0], first)
        self.assertEqual(
            self.colloc("estimate", "net.txt", "--batch=8", "--estimator=all").splitlines()[0],
            first,
        )
        horus = self.estimate("net.txt", "--batch=8", "--estimator=horus")
        self.assertEqual(
            self.colloc("estimate", "net.txt", "--batch=8", "--estimator=horus").splitlines()[0],
            f"reserve {math.ceil(horus['estimates'][0]['mib'])} MiB: the estimate of horus, whose "
            "error "
            "is not calibrated",
        )
        self.assertEqual(
            self.colloc("estimate", "--memory=1G", "--estimator=none").splitlines()[0],
            "reserve: unknown",
        )
        self.assertIsNone(self.estimate("--memory=1G", "--estimator=none")["reserve_mib"])
        self.assertRegex(
            self.colloc("estimate", "net.txt", "--batch=8"), r" \d+ % no optimizer is given"
        )

    def test_precisions(self):
        def at(name):
            answer = self.estimate(
                "net.txt", "--batch=5000", "--optimizer=adam", f"--precision={name}"
            )["estimates"][0]
            return answer["mib"], answer["note"]

        self.assertEqual(at("tf32"), at("fp32"))
        for name in ("bf16", "fp16", "fp8"):
            self.assertEqual(at(name)[0], at("amp")[0])
            self.assertIn(f"{name}: taken as autocast", at(name)[1])
        self.assertNotEqual(at("amp")[0], at("fp32")[0])
        self.assertEqual(at("BFloat16"), at("bf16"))

    def test_an_unknown_optimizer_is_named_with_the_list(self):
        answer = self.estimate("net.txt", "--batch=8", "--optimizer=lion")["estimates"][0]
        self.assertIn(
            "the optimizer lion is not known (known are sgd, momentum, adam, adamw, rmsprop, "
            "adagrad), taken for adam",
            answer["note"],
        )

    def test_warnings(self):
        self.write("net.txt", SUMMARY.replace("Total params: 1,001,000", "Total params: 7"))
        self.assertEqual(len(self.estimate("--summary=net.txt", "--batch=8")["warnings"]), 1)
        done = self.run_colloc("estimate", "--summary=net.txt", "--batch=8")
        self.assertTrue(done.stderr.startswith("colloc: warning: net.txt: "), done.stderr)
        self.assertIn("graph", done.stdout)

    def test_an_estimate_without_an_answer_is_no_error(self):
        answer = self.estimate("--memory=6G", "--estimator=none")["estimates"][0]
        self.assertIsNone(answer["mib"])
        self.assertNotEqual(answer["note"], "")

    def test_text_that_is_cut_stays_text(self):
        name = "a" + "é" * 60
        answer = self.estimate("--summary=net.txt", "--batch=8", f"--optimizer={name}")[
            "estimates"
        ][0]
        self.assertIn("the optimizer a" + "é" * 10, answer["note"])
        self.assertEqual(answer["evidence"], "summary")
        with open(EXPORT, encoding="utf-8") as file:
            self.write("net.json", json.dumps({**json.load(file), "warnings": [name * 3]}))
        self.assertIn("é" * 60, self.estimate("--export=net.json", "--batch=8")["warnings"][0])

    def test_sizes_beyond_any_machine(self):
        self.write(
            "net.txt",
            SUMMARY + "Forward/backward pass size (MB): 900000000000\nParams size (MB): 1\n",
        )
        self.assertRegex(
            self.complaint(
                "estimate", "--summary=net.txt", "--batch=10000000", "--estimator=summary", code=2
            ),
            r"^summary comes to .*e\+\d+ bytes: the batch or the summary cannot be right$",
        )

    def test_export(self):
        with open(EXPORT) as file:
            self.write("net.json", file.read())
        reply = self.estimate("--export=net.json", "--batch=8")
        self.assertEqual(reply["model"]["format"], "export")
        self.assertEqual(reply["model"]["parameters"], 448)
        self.assertGreater(reply["estimates"][0]["mib"], 0)
        self.assertEqual(reply, self.estimate("--summary=net.json", "--batch=8"))

    def waiting(self, loader, *words, **members):
        """The estimate of a script whose loader was seen to do this."""
        with open(EXPORT, encoding="utf-8") as file:
            export = {**json.load(file), **members, "loader": loader}
        self.write("net.json", json.dumps(export))
        return self.estimate("--export=net.json", "--batch=8", *words)["estimates"][0]

    def test_the_wait_for_data_by_what_the_host_decodes(self):
        self.write("host.txt", "constant decode_rate 100\nconstant decode_most 1000\n")
        jpegs, here = {"workers": 4, "data": "jpeg", "pixels": 187500}, "--calibration=host.txt"
        alone = self.waiting(None, here)
        self.assertNotIn("waits", alone["note"])
        waits = self.waiting(jpegs, here)
        self.assertAlmostEqual(waits["step_ms"], 1000 * 8 / 400)
        self.assertAlmostEqual(waits["smact"] * 20, alone["smact"] * alone["step_ms"])
        self.assertIn("with 400 samples a second", waits["note"])
        self.assertEqual(waits["mib"], alone["mib"])
        twice = self.waiting(jpegs, here, seen={"accumulation": 2})
        self.assertAlmostEqual(twice["step_ms"], 1000 * 16 / 400)
        given = self.waiting(jpegs, here, "--loader-rate=50")
        self.assertAlmostEqual(given["step_ms"], 1000 * 8 / 50)
        tensors = self.waiting({"workers": 4, "data": "tensors"}, here)
        self.assertEqual((tensors["smact"], tensors["note"]), (alone["smact"], alone["note"]))

    def test_a_wait_for_data_that_is_not_known(self):
        self.write("host.txt", "constant switch_cost 0.1\n")
        jpegs, here = {"workers": 4, "data": "jpeg", "pixels": 187500}, "--calibration=host.txt"
        alone = self.waiting(None, here)
        self.assertIn("how fast this host does is not known", self.waiting(jpegs, here)["note"])
        self.assertEqual(self.waiting(jpegs, here)["smact"], alone["smact"])
        unknown = self.waiting({"workers": 4, "data": None}, here)
        self.assertIn("how fast its data are loaded is not known", unknown["note"])
        self.write("wrong.txt", "constant decode_rate 9\nconstant decode_most 8\n")
        for path, why in (("wrong.txt", "must not be below"), ("none.txt", "No such file")):
            words = ("net.json", "--batch=8", f"--calibration={path}")
            self.assertIn(why, self.complaint("estimate", *words, code=2))

    def test_tried_kernels(self):
        """The first line is of the task without the kernels that cuDNN tries, which take what is
        free; the JSON keeps reserve_mib, and has both."""
        with open(EXPORT) as file:
            export = json.load(file)
        self.write("plain.json", json.dumps(export))
        export["flags"]["cudnn_benchmark"] = True
        self.write("tried.json", json.dumps(export))
        plain, tried = (
            self.estimate(f"--export={name}.json", "--batch=8", "--gpu=H200")
            for name in ("plain", "tried")
        )
        self.assertEqual((plain["tries_kernels"], tried["tries_kernels"]), (False, True))
        self.assertEqual(plain["needs_mib"], plain["reserve_mib"])
        self.assertEqual(tried["needs_mib"], plain["reserve_mib"])
        self.assertEqual(tried["reserve_mib"], math.ceil(tried["estimates"][0]["p99_mib"]))
        self.assertGreater(tried["reserve_mib"], tried["needs_mib"])
        lines = self.colloc(
            "estimate", "--export=tried.json", "--batch=8", "--gpu=H200"
        ).splitlines()
        self.assertEqual(
            lines[0],
            f"reserve {tried['needs_mib']:.0f} MiB: enough for 99 of 100 such tasks that try no "
            "kernels",
        )
        self.assertIn("may take all memory that is free", lines[1])
        self.assertIn(f"P99 with them: {tried['reserve_mib']:.0f} MiB", lines[1])

    def test_known_workspaces_of_tried_kernels(self):
        """The largest workspace is there once, before the cache is emptied."""
        with open(EXPORT) as file:
            export = json.load(file)
        counts = [1 if conv["phase"] == "forward" else 2 for conv in export["convs"]]
        member = {"batch": 8, "gpu": "H200", "scratch": [[1 << 20] * n for n in counts]}
        mib = {}
        for tried in (0, 4 << 30):
            export["flags"]["cudnn_benchmark"] = True
            export["kernels"] = {**member, "tried": [[tried] * n for n in counts]}
            self.write("tried.json", json.dumps(export))
            reply = self.estimate("--export=tried.json", "--batch=8", "--gpu=H200")
            self.assertEqual(reply["estimates"][0]["evidence"], "export with kernels")
            self.assertFalse(reply["tries_kernels"])
            mib[tried] = reply["estimates"][0]["mib"]
        self.assertAlmostEqual(mib[4 << 30] - mib[0], 4096, delta=64)
        del export["kernels"]["tried"]  # asked without cudnn.benchmark: other kernels
        self.write("tried.json", json.dumps(export))
        reply = self.estimate("--export=tried.json", "--batch=8", "--gpu=H200")
        self.assertEqual(reply["estimates"][0]["evidence"], "export")
        export["kernels"]["tried"] = [[0]] * (len(counts) + 1)
        self.write("tried.json", json.dumps(export))
        text = self.complaint("estimate", "--export=tried.json", "--batch=8", code=2)
        self.assertIn("kernels", text)

    def doubt(self, text, warning):
        """An answer all the same, with the reason and wider than that of the sound summary."""
        sound, doubtful = (
            self.estimate(f"--summary={self.write('doubt.txt', what)}", "--batch=8")
            for what in (SUMMARY, text)
        )
        self.assertEqual(doubtful["estimates"][0]["evidence"], "doubtful summary")
        self.assertIn(warning, "; ".join(doubtful["warnings"]))
        self.assertIn("see its warnings", doubtful["estimates"][0]["note"])
        widths = [
            (row["p90_mib"] - row["p50_mib"]) / row["mib"]
            for row in (sound["estimates"][0], doubtful["estimates"][0])
        ]
        self.assertLess(*widths)

    def test_doubtful_summaries(self):
        self.doubt(SUMMARY + SUMMARY, "line 11: a second summary begins; only the first is read")
        self.doubt(
            SUMMARY[: SUMMARY.index("Total")], "cut off: there are no totals behind its layers"
        )
        self.doubt(SUMMARY[: SUMMARY.index("Total")] + SUMMARY, "a second summary begins")
        self.doubt(
            SUMMARY + "Net(\n  (fc): Linear(in_features=8, out_features=4, bias=True)\n)\n",
            "a second summary begins",
        )
        self.doubt(
            SUMMARY.replace(
                "[-1, 1000]       1,001,000", "[64, 1000]       1,001,000\n Linear-2 [32, 10] 0"
            ),
            "not of the batch of 64",
        )
        self.doubt(
            SUMMARY.replace("Total params: 1,001,000", "Total params: 2,002,000"),
            "its layers add up to 1001000",
        )

    def test_another_batch_than_printed(self):
        self.write("net.txt", SUMMARY.replace("[-1,", "[64,"))
        self.assertIn(
            "printed for a batch of 64, scaled to 8",
            self.estimate("--summary=net.txt", "--batch=8")["estimates"][0]["note"],
        )
        self.assertEqual(
            self.estimate("--summary=net.txt"), self.estimate("--summary=net.txt", "--batch=64")
        )

    def test_bad_summaries(self):
        for old, new, complaint in [
            (
                "            Linear-1                 [-1, 1000]       1,001,000\n",
                "",
                "line 2: a table without a layer that can be read",
            ),
            (
                "[-1, 1000]",
                "[-1, 99999999999, 99999999999]",
                "line 4: the product of the output shape is beyond 64 bits",
            ),
            (
                "[-1, 1000]",
                "[-1, 99999999999999999999]",
                "line 4: a dimension of the output shape is beyond 64 bits",
            ),
            ("[-1, 1000]", "[-1, 0]", "line 4: a dimension of 0 in the output shape"),
            ("[-1, 1000]", "[-1, -1000]", "line 4: a negative dimension in the output shape"),
            ("1,001,000", "9,999,999,999,999,999,999", "line 4: a parameter count beyond 64 bits"),
            ("1,001,000", "-5", 'line 4: "-5" is no parameter count'),
        ]:
            self.write("net.txt", SUMMARY.replace(old, new, 1))
            self.assertIn(
                f"net.txt: {complaint}",
                self.complaint("estimate", "--summary=net.txt", "--batch=8", code=2),
            )

    def test_bad_exports(self):
        with open(EXPORT, encoding="utf-8") as file:
            good = file.read()
        whole = json.loads(good)
        for text, complaint in [
            (good[:500], "no JSON"),
            (good + good, "no JSON: end of file expected"),
            (good + SUMMARY, "no JSON: end of file expected"),
            (SUMMARY + good, "not an export"),
            ("[]", "not an export"),
            ("{}", "it has no member colloc_export with its version"),
            (
                json.dumps({**whole, "colloc_export": 2}),
                "version 2 of the exporter's format; this colloc reads version 1",
            ),
            (
                json.dumps({**whole, "colloc_export": "1"}),
                "it has no member colloc_export with its version",
            ),
            (json.dumps({**whole, "layers": []}), "layers: must be a list that is not empty"),
            (json.dumps({**whole, "tensors": []}), "tensors: must be a list that is not empty"),
            (
                json.dumps({**whole, "tensors": [[2**60, 0, 0, -1, 0]]}),
                "tensors[0]: must be [fixed, per sample, first, last, class], whole",
            ),
            (
                json.dumps({**whole, "tensors": [[2**52, 0, 0, -1, 0]]}),
                "at a batch of 8 the export's tensors are more than any GPU holds",
            ),
            (
                json.dumps({**whole, "parameters": 447}),
                "its layers have 448 parameters, more than the 447 of the model",
            ),
            (json.dumps({**whole, "batch": 0}), "batch: must be a positive whole number"),
        ]:
            self.write("net.json", text)
            self.assertIn(
                complaint, self.complaint("estimate", "--export=net.json", "--batch=8", code=2)
            )
        self.write("net.json", json.dumps({**whole, "every_batch": False}))
        answer = self.estimate("--export=net.json", "--batch=9")["estimates"][0]
        self.assertEqual(
            (answer["mib"], answer["note"]), (None, "the export holds for a batch of 8 alone")
        )

    def test_mistakes(self):
        self.write("train.py", "import torch\n")
        self.write("text.txt", "nothing of a network\n")
        self.write(
            "lightning.txt", "  | Name | Type   | Params | Mode\n0 | head | Linear | 15     | x\n"
        )
        with open(os.path.join(self.folder, "binary"), "wb") as file:
            file.write(b"\x7fELF\0\0")
        for words, text in [
            (
                [],
                "no model given: give a model summary, an export, a training command after --, "
                "--pytorch=SOURCE or --memory=SIZE",
            ),
            (
                ["train.py"],
                "train.py is a script, not a model: did you mean `colloc estimate -- python "
                "train.py`?",
            ),
            (
                ["net.txt", "--summary=net.txt"],
                "net.txt is a model description already: leave out --summary",
            ),
            (
                ["net.txt", "--batch=8", "--gpu=RTX9090"],
                "--gpu=RTX9090: unknown GPU model: give one of H200, H100, A100, V100, T4, ",
            ),
            (["lightning.txt"], "lightning.txt: this is a ModelSummary of Lightning, which shows "),
            (["--summary=lightning.txt", "--batch=8"], "this is a ModelSummary of Lightning"),
            (["text.txt"], "text.txt: no model summary in it, none of torchsummary, torchinfo, "),
            (["net.txt", "--batch=8", "--gpu=NVIDIA RTX A1000"], "unknown GPU model"),
            (
                ["net.txt", "--batch=8", "--precision=foo"],
                "--precision=foo: must be one of fp32, tf32, bf16, fp16, amp, fp8",
            ),
            (["--export=net.txt", "--batch=8"], "net.txt: not an export"),
            (
                ["--summary=net.txt", "--export=net.txt"],
                "--summary and --export exclude each other: give one of them",
            ),
            (["--summary=none.txt"], "model summary: none.txt: No such file or directory"),
            (["--summary=binary"], "model summary: binary:1: has a NUL byte"),
            (["--summary=net.txt", "--batch=0"], "--batch=0: must be from 1"),
            (["--summary=net.txt", "--batch=-5"], "--batch=-5: must be from 1"),
            (["--summary=net.txt", "--batch=1000000000000000000"], "must be from 1"),
            (["--memory=1G", "--estimator=crystal"], 'no estimator is called "crystal"'),
            (["--gpux=2"], "--gpux: no such option; did you mean --gpu?"),
        ]:
            self.assertIn(text, self.complaint("estimate", *words, code=2))


if __name__ == "__main__":
    unittest.main()
