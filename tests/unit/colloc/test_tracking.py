#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bridges to MLflow, TensorBoard and W&B, and the context for radT's scripts."""

import contextlib
import io
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import textwrap
import unittest
import urllib.error
import urllib.request
from unittest import mock

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
PYTHON = os.path.join(ROOT, "python")
sys.path[:0] = [PYTHON, os.path.join(ROOT, "tests", "lib")]

from colloc.radt import RADTBenchmark  # noqa: E402
from colloc.tracking import Bridge, Point, Refused, Sender, open_bridges  # noqa: E402
from colloc.tracking import event_file, sender  # noqa: E402
from colloc.tracking.bridge import shown_address  # noqa: E402
from colloc.tracking.record_lines import read_points  # noqa: E402
from colloc.tracking.task_series import TaskSeries  # noqa: E402
from fake_mlflow import FakeMlflow  # noqa: E402

LIMIT_S = 60
SECRET = "s3cr3t"


def point(name="system/colloc_gpu_0_smact", value=0.5, at_s=1700000000.25, step=7):
    return Point(name, value, at_s, step)


class TrackingCase(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="colloc-test-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.errors = io.StringIO()
        redirect = contextlib.redirect_stderr(self.errors)
        redirect.__enter__()
        self.addCleanup(redirect.__exit__, None, None, None)

    def server(self, **given):
        server = FakeMlflow(**given)
        self.addCleanup(server.close)
        return server

    def set_environment(self, **variables):
        patch = mock.patch.dict(os.environ, variables)
        patch.start()
        self.addCleanup(patch.stop)


class Mlflow(TrackingCase):
    def bridge(self, server, **more):
        names = {"MLFLOW_RUN_ID": "run1", "MLFLOW_TRACKING_URI": server.uri() + "/", **more}
        return open_bridges("mlflow", names)[0]

    def test_a_batch(self):
        server = self.server()
        self.bridge(server).send([point(), point("loss", 2.5, 1700000001, 8)])
        self.assertEqual(
            server.metrics,
            [
                {
                    "key": "system/colloc_gpu_0_smact",
                    "value": 0.5,
                    "timestamp": 1700000000250,
                    "step": 7,
                },
                {"key": "loss", "value": 2.5, "timestamp": 1700000001000, "step": 8},
            ],
        )

    def test_large_batches_are_divided(self):
        server = self.server()
        self.bridge(server).send([point(step=step) for step in range(2500)])
        self.assertEqual([len(body["metrics"]) for _, body in server.requests], [1000, 1000, 500])
        self.assertEqual([metric["step"] for metric in server.metrics], list(range(2500)))

    def test_numbers_that_json_lacks(self):
        server = self.server()
        values = (float("nan"), float("inf"), float("-inf"), 2.5)
        self.bridge(server).send([point(value=value) for value in values])
        taken = [metric["value"] for metric in server.metrics]
        self.assertEqual(taken, ["NaN", "Infinity", "-Infinity", 2.5])
        bare = urllib.request.Request(server.uri(), b'{"value": NaN}', method="POST")
        with self.assertRaisesRegex(urllib.error.HTTPError, "400") as caught:
            urllib.request.urlopen(bare, timeout=LIMIT_S)
        caught.exception.close()

    def test_who_may_write(self):
        server = self.server(authorization="Basic YWRhOnMzY3IzdA==")
        user = {"MLFLOW_TRACKING_USERNAME": "ada", "MLFLOW_TRACKING_PASSWORD": SECRET}
        self.bridge(server, **user).send([point()])
        with self.assertRaisesRegex(Refused, "HTTP 401") as caught:
            self.bridge(server, MLFLOW_TRACKING_TOKEN=SECRET).send([point()])
        self.assertNotIn(SECRET, str(caught.exception))
        self.assertEqual(len(server.metrics), 1)
        self.assertEqual(shown_address(f"https://ada:{SECRET}@h/m?k=v"), "https://h/m")

    def test_a_user_in_the_address(self):
        server = self.server(authorization="Basic YWRhOnMzY3IzdC8=")  # ada:s3cr3t/
        address = server.uri().replace("//", f"//ada:{SECRET}%2F@")
        self.bridge(server, MLFLOW_TRACKING_URI=address).send([point()])
        server.authorization = "Basic Ym9iOnB3"  # bob:pw
        user = {"MLFLOW_TRACKING_USERNAME": "bob", "MLFLOW_TRACKING_PASSWORD": "pw"}
        self.bridge(server, MLFLOW_TRACKING_URI=address, **user).send([point()])
        self.assertEqual(len(server.metrics), 2)

    def test_a_token_read_from_a_file(self):
        server = self.server(authorization=f"Bearer {SECRET}")
        self.bridge(server, MLFLOW_TRACKING_TOKEN=f"{SECRET}\n").send([point()])
        self.assertEqual(len(server.metrics), 1)

    def test_secrets_are_not_reported(self):
        server = self.server()
        odd = server.uri().replace("//", f"//ada:{SECRET}/@")  # its port would be the password
        with self.assertRaisesRegex(OSError, "InvalidURL$") as caught:
            self.bridge(server, MLFLOW_TRACKING_URI=odd).send([point()])
        self.assertNotIn(SECRET, str(caught.exception))
        worker = Sender(self.bridge(server, MLFLOW_TRACKING_TOKEN=f"a\n{SECRET}"))
        worker.add([point()])
        worker.close(LIMIT_S)
        self.assertEqual(self.errors.getvalue(), "colloc: mlflow: not sent: ValueError\n")
        names = {"MLFLOW_RUN_ID": "r", "MLFLOW_TRACKING_URI": f"mysql://ada:{SECRET}@host/db"}
        with mock.patch.dict(sys.modules, {"mlflow": None, "mlflow.entities": None}):
            with self.assertRaisesRegex(ValueError, "mysql://host/db") as caught:
                open_bridges("mlflow", names)
        self.assertNotIn(SECRET, str(caught.exception))

    def test_what_is_tried_again(self):
        server = self.server()
        for status, kind in ((500, OSError), (429, OSError), (400, Refused), (307, Refused)):
            server.failures = [status]
            with self.assertRaises(kind, msg=status):
                self.bridge(server).send([point()])
        self.assertNotIn("/elsewhere", [path for path, _ in server.requests])
        server.close()
        with self.assertRaises(OSError):
            self.bridge(server).send([point()])

    def test_what_is_missing(self):
        for names, text in (
            ({}, "MLFLOW_RUN_ID"),
            ({"MLFLOW_RUN_ID": "r", "MLFLOW_TRACKING_URI": "file:/x"}, "package mlflow"),
        ):
            with mock.patch.dict(sys.modules, {"mlflow": None, "mlflow.entities": None}):
                with self.assertRaisesRegex(ValueError, text):
                    open_bridges("mlflow", names)
        for places in ("", "mlflow,", "comet", "tensorboard:"):
            with self.assertRaisesRegex(ValueError, "must be mlflow|MLFLOW_RUN_ID"):
                open_bridges(places, {})

    def test_what_cannot_be_opened(self):
        names = {"MLFLOW_RUN_ID": "r", "MLFLOW_TRACKING_URI": "https://127.0.0.1"}
        names["MLFLOW_TRACKING_SERVER_CERT_PATH"] = os.path.join(self.folder, "none.pem")
        with self.assertRaisesRegex(ValueError, "FileNotFoundError"):
            open_bridges("mlflow", names)
        packages = {"mlflow.entities": mock.Mock(), "mlflow.tracking": mock.Mock()}
        packages["mlflow.tracking"].MlflowClient.side_effect = RuntimeError("no such store")
        with mock.patch.dict(sys.modules, {"mlflow": mock.Mock(), **packages}):
            with self.assertRaisesRegex(ValueError, "RuntimeError: no such store"):
                open_bridges("mlflow", {"MLFLOW_RUN_ID": "r", "MLFLOW_TRACKING_URI": "x:y"})


def read_events(folder):
    """The events of all files in the folder as {field: value}, each record checked."""
    events = []
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as file:
            data = file.read()
        while data:
            size = struct.unpack("<Q", data[:8])[0]
            body = data[12 : 12 + size]
            for at, covered in ((8, data[:8]), (12 + size, body)):
                stored = struct.unpack("<I", data[at : at + 4])[0]
                assert stored == event_file.masked_crc(covered)
            events.append(read_fields(body))
            data = data[16 + size :]
    return events


def read_varint(data):
    number = shift = 0
    while True:
        byte, data = data[0], data[1:]
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number, data


def read_fields(data):
    """A message of protobuf: {number: [values]}."""
    fields = {}
    while data:
        key, data = read_varint(data)
        if key & 7 == 0:
            value, data = read_varint(data)
        elif key & 7 == 2:
            size, data = read_varint(data)
            value, data = data[:size], data[size:]
        else:
            form, size = ("<d", 8) if key & 7 == 1 else ("<f", 4)
            value, data = struct.unpack(form, data[:size])[0], data[size:]
        fields.setdefault(key >> 3, []).append(value)
    return fields


class TensorBoard(TrackingCase):
    def test_crc(self):
        self.assertEqual(event_file.crc32c(b"123456789"), 0xE3069283)  # the check value of CRC-32C
        self.assertEqual(event_file.crc32c(bytes(32)), 0x8A9136AA)  # RFC 3720, B.4
        self.assertEqual(event_file.crc32c(bytes(range(32))), 0x46DD794E)

    def test_the_file(self):
        folder = os.path.join(self.folder, "runs", "7")
        bridge = open_bridges(f"tensorboard:{folder}", {})[0]
        bridge.send([point("a", 0.5), point("b", 300.25), point("a", 1.0, 1700000010, 300)])
        bridge.close()
        (name,) = os.listdir(folder)
        self.assertTrue(name.startswith("events.out.tfevents."))
        with open(os.path.join(folder, name), "rb") as file:
            self.assertEqual(file.read(12), b"\x1a" + bytes(7) + file_crc(26))
        version, first, second = read_events(folder)
        self.assertEqual(version[3], [b"brain.Event:2"])
        self.assertEqual((first[1], first[2]), ([1700000000.25], [7]))
        values = [read_fields(value) for value in read_fields(first[5][0])[1]]
        self.assertEqual([(v[1], v[2]) for v in values], [([b"a"], [0.5]), ([b"b"], [300.25])])
        self.assertEqual(second[2], [300])

    def test_what_tensorflow_writes_first(self):
        # The header of the 24 bytes {wall_time, file_version} with which its files begin.
        self.assertEqual(file_crc(24), b"\xa3\x7f\x4b\x22")

    def test_a_folder_that_cannot_be(self):
        path = os.path.join(self.folder, "file")
        with open(path, "w", encoding="utf-8"):
            pass
        with self.assertRaisesRegex(ValueError, "file"):
            open_bridges(f"tensorboard:{path}", {})

    def test_the_real_reader(self):
        try:
            from tensorboard.backend.event_processing import event_accumulator
        except ImportError:
            self.skipTest("no tensorboard here")
        bridge = open_bridges(f"tensorboard:{self.folder}", {})[0]
        bridge.send([point()])
        bridge.close()
        found = event_accumulator.EventAccumulator(self.folder)
        found.Reload()
        (scalar,) = found.Scalars("system/colloc_gpu_0_smact")
        self.assertEqual((scalar.step, scalar.value), (7, 0.5))


def file_crc(size):
    return struct.pack("<I", event_file.masked_crc(struct.pack("<Q", size)))


FAKE_WANDB = """
import json, os
class Settings:
    def __init__(self, **given): self.given = given
class Run:
    def __init__(self, about): self.about = about; write(about)
    def log(self, values): write({"log": values})
    def finish(self): write({"finish": True})
def write(what):
    with open(os.environ["FAKE_WANDB_FILE"], "a") as file:
        print(json.dumps(what), file=file)
def init(settings, **given):
    return Run({"init": given, "settings": settings.given})
"""


class Wandb(TrackingCase):
    def run_record(self, lines, **environment):
        """The tracker as `colloc record --wandb` starts it."""
        return subprocess.run(
            [sys.executable, "-m", "colloc.tracking", "record", "wandb"],
            env={**os.environ, "PYTHONPATH": f"{PYTHON}:{self.folder}", **environment},
            input=lines,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )

    def test_the_package_joins_the_run(self):
        with open(os.path.join(self.folder, "wandb.py"), "w", encoding="utf-8") as file:
            file.write(FAKE_WANDB)
        log = os.path.join(self.folder, "log")
        done = self.run_record(LINES, WANDB_RUN_ID="r7", WANDB_PROJECT="p", FAKE_WANDB_FILE=log)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        with open(log, encoding="utf-8") as file:
            text = file.read()
        self.assertIn('"init": {"id": "r7", "project": "p"', text)
        self.assertIn('"mode": "shared", "x_primary": false', text)
        self.assertIn('"system/colloc_gpu_0_smact": 0.5', text)
        self.assertIn('"finish": true', text)

    def test_without_the_package(self):
        done = self.run_record(LINES, WANDB_RUN_ID="r7")
        self.assertEqual(done.returncode, 2)
        self.assertIn("does not have the package wandb", done.stderr)
        done = self.run_record(LINES, WANDB_RUN_ID="")
        self.assertIn("WANDB_RUN_ID", done.stderr)


LINES = textwrap.dedent(
    """\
    time_s,gpu,uuid,command_mem_mib,smact,command_smact,smocc,dram_active,pcie_tx_mib_per_s,\
pcie_rx_mib_per_s,command_energy_j,command_processes,other_processes,command_cpu_s,\
command_host_mem_mib,command_disk_read_mib,command_disk_written_mib
    0.0,0,G0,1000,0.8,0.25,0.1,0.2,,,0,1,0,0,100,0,0
    0.0,1,G1,,0.8,,0.1,0.2,,,0,0,1,0,100,0,0
    4.0,0,G0,3000,0.8,0.75,0.3,0.2,,,1600,1,0,8,300,40,0
    4.0,1,G1,,0.8,,0.1,0.2,,,0,0,1,8,300,40,0
    10.0,0,G0,5000,0.8,0.5,0.5,0.2,,,2200,1,1,,,,
    10.0,1,G1,,0.8,,0.1,0.2,,,0,0,1,,,,
    """
)


class Lines(unittest.TestCase):
    def test_means_of_a_period(self):
        periods = list(read_points(iter(LINES.splitlines()), 10, 1000.0))
        first = {p.name.replace("system/colloc_", ""): p for p in periods[0]}
        self.assertEqual({p.step for p in periods[0]}, {4})
        self.assertEqual(first["gpu_0_mem_used_mib"].value, 2000)
        self.assertEqual(first["gpu_0_smact"].value, 0.5)
        self.assertEqual(first["gpu_0_power_w"].value, 400)
        self.assertAlmostEqual(first["gpu_0_smocc"].value, 0.2)
        self.assertEqual(first["cpu_cores"].value, 2)
        self.assertEqual(first["disk_read_mib_s"].value, 10)
        self.assertEqual(first["host_mem_mib"].value, 200)
        self.assertEqual(first["host_mem_mib"].at_s, 1004)
        self.assertFalse([name for name in first if "gpu_1" in name], "a GPU that it does not use")
        last = {p.name: p.value for p in periods[1]}
        self.assertEqual(last["system/colloc_gpu_0_power_w"], 100)
        self.assertNotIn("system/colloc_gpu_0_smocc", last, "with others on the GPU")
        self.assertNotIn("system/colloc_host_mem_mib", last, "not read in this period")

    def test_no_lines(self):
        self.assertEqual(list(read_points(iter([]), 10, 0)), [[]])


class Series(unittest.TestCase):
    ANSWER = {
        "attempts": [{"started_at": 990}],
        "step_s": 10,
        "series": [
            {
                "task": 3,
                "gpu": "1",
                "times": [1000, 1010, 1020],
                "values": {"smact": [0.5, None, 0.7]},
            },
            {"task": 3, "gpu": None, "times": [1000], "values": {"cpu_cores": [2]}},
            {"task": 4, "gpu": "1", "times": [1000], "values": {"smact": [1]}},
        ],
    }

    def test_each_bucket_once(self):
        client = mock.Mock()
        client.get.return_value = self.ANSWER
        series = TaskSeries(client, 3, 1000.0, 10)
        names = [(p.name[14:], p.value, p.step) for p in series.take(1021)]
        self.assertEqual(names, [("gpu_1_smact", 0.5, 10), ("cpu_cores", 2, 10)])
        self.assertEqual(client.get.call_args[1]["since"], "1000.000")
        self.assertEqual([p.value for p in series.take(1022, is_last=True)], [0.7])
        self.assertEqual(series.take(1023, is_last=True), [])


class Slow(Bridge):
    """Raises the failures one after the other."""

    name = "slow"

    def __init__(self, failures):
        self.failures, self.got = failures, []

    def send(self, points):
        if self.failures:
            raise self.failures.pop(0)
        self.got += points


class Sending(TrackingCase):
    def test_tried_again_in_order_and_reported_once(self):
        bridge = Slow([OSError("no route"), OSError("no route")])
        with mock.patch.object(sender, "RETRY_S", 0.01):
            worker = Sender(bridge)
            worker.add([point(step=1)])
            worker.add([point(step=2)])
            worker.close(LIMIT_S)
        self.assertEqual([p.step for p in bridge.got], [1, 2])
        self.assertEqual(self.errors.getvalue(), "colloc: slow: no route; trying again\n")

    def test_refused_points_are_dropped(self):
        bridge = Slow([Refused("HTTP 404")])
        worker = Sender(bridge)
        worker.add([point()])
        worker.close(LIMIT_S)
        self.assertEqual((bridge.got, worker.thread.is_alive()), ([], False))
        self.assertIn("not sent: HTTP 404", self.errors.getvalue())

    def test_other_errors_do_not_end_it(self):
        bridge = Slow([TypeError(SECRET)])
        worker = Sender(bridge)
        with worker.change:
            worker.waiting.extend(point(step=step) for step in range(sender.BATCH_MAX))
        worker.add([point(step=-1)])
        worker.close(LIMIT_S)
        self.assertEqual([p.step for p in bridge.got], [-1])
        self.assertEqual(self.errors.getvalue(), "colloc: slow: not sent: TypeError\n")

    def test_memory_is_bounded_and_the_end_too(self):
        bridge = Slow([OSError("down")] * 10**6)
        worker = Sender(bridge)
        worker.add([point(step=step) for step in range(3 * sender.KEPT_MAX)])
        self.assertLessEqual(len(worker.waiting), sender.KEPT_MAX)
        worker.close(0.2)


class Radt(TrackingCase):
    def names(self, server, **more):
        self.set_environment(MLFLOW_RUN_ID="run1", MLFLOW_TRACKING_URI=server.uri(), **more)
        os.environ.pop("COLLOC_TASK_ID", None)

    def test_values_go_to_the_run(self):
        server = self.server()
        self.names(server)
        with RADTBenchmark() as run:
            run.log_metric("loss", 2.5, 1)
            run.log_metrics({"loss": 2, "accuracy": 0.5}, epoch=2)
            run.log_param("lr", 0.1)  # of mlflow, which is not here
        self.assertEqual(server.values("loss"), [2.5, 2])
        self.assertEqual([m["step"] for m in server.metrics], [1, 2, 2])

    def test_a_bridge_that_fails_does_not_end_the_script(self):
        missing = os.path.join(self.folder, "none.pem")
        self.names(self.server(), MLFLOW_TRACKING_SERVER_CERT_PATH=missing)
        with RADTBenchmark() as run:
            run.log_metric("loss", 2.5, 1)
        self.assertIn("colloc: mlflow: FileNotFoundError", self.errors.getvalue())

    def test_limits_end_the_script(self):
        server = self.server()
        self.names(server, RADT_MAX_EPOCH="2", RADT_MAX_TIME="3600")
        out = io.StringIO()
        with contextlib.redirect_stdout(out), self.assertRaises(SystemExit) as caught:
            with RADTBenchmark() as run:
                for epoch in range(1, 10):
                    run.log_metric("loss", 1.0, epoch)
        self.assertIsNone(caught.exception.code)
        self.assertEqual(server.values("loss"), [1, 1])
        self.assertIn("Maximum epoch reached", out.getvalue())

    def test_a_script_by_itself(self):
        for name in ("MLFLOW_RUN_ID", "RADT_RUN_ID", "RADT_MAX_EPOCH", "RADT_MAX_TIME"):
            os.environ.pop(name, None)
        with RADTBenchmark() as run:
            for epoch in range(3):
                run.log_metric("loss", 1.0, epoch)
            self.assertIsNone(run.log_artifact("file"))
        self.assertEqual(self.errors.getvalue(), "")


if __name__ == "__main__":
    unittest.main()
