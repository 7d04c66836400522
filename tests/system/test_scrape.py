# SPDX-License-Identifier: Apache-2.0
"""The metrics over TCP: who may read them, hostile readers, and a real Prometheus."""

import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import unittest
import urllib.parse

from daemon_case import LIMIT_S, MIB, DaemonCase, until
from colloc_slurm.loopback import free_ports  # found by daemon_case

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
TOKEN = "6a1f0c9b7e5d4832"


class ScrapeCase(DaemonCase):
    gpus = "2xA100-40GB"
    settings = {"metrics-listen": "127.0.0.1:0"}

    def setUp(self):
        super().setUp()
        self.find_port()

    def find_port(self):
        line = next(line for line in reversed(self.log) if "metrics for Prometheus are at" in line)
        self.port = int(re.search(r":(\d+)/metrics", line)[1])

    def fetch(self, path="/metrics", method="GET", **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_S)
        self.addCleanup(connection.close)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, headers=named)
        reply = connection.getresponse()
        reply.text = reply.read().decode()
        return reply


class Readers(ScrapeCase):
    def test_both_formats(self):
        text = self.fetch()
        self.assertEqual(text.headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
        self.assertIn("\n# TYPE colloc_gpu_energy_joules_total counter\n", text.text)
        self.assertNotIn("# EOF", text.text)
        reply = self.fetch(Accept=OPENMETRICS)
        self.assertEqual(
            reply.headers["Content-Type"],
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
        )
        self.assertTrue(reply.text.endswith("\n# EOF\n"))
        family, kind = None, None
        for line in reply.text.splitlines()[:-1]:
            if line.startswith("# TYPE "):
                family, kind = line.split(" ")[2:]
                self.assertFalse(family.endswith(("_total", "_info")), family)
            elif not line.startswith("#"):
                suffix = {"counter": "_total", "info": "_info", "gauge": ""}[kind]
                self.assertEqual(re.match(r"[a-z0-9_]+", line)[0], family + suffix)
        # Over the Unix socket the same is answered.
        both = self.request("GET", "/v1/metrics", headers={"Accept": OPENMETRICS})
        self.assertTrue(both.data.endswith(b"\n# EOF\n"))

    def test_nothing_else_is_answered(self):
        for path in ("/", "/v1/tasks", "/v1/metrics", "/v1/info", "/login", "/metrics/"):
            self.assertEqual(self.fetch(path).status, 404, path)
        self.assertEqual(self.fetch(method="POST").status, 405)
        for host in ("evil.example", "", "localhost.evil.example"):
            self.assertEqual(self.fetch(Host=host).status, 403, host)
        self.assertEqual(self.fetch(Host="localhost:1").status, 200)

    def test_counts_of_what_ended_and_waits(self):
        self.wait(self.submit("exit 1"), "FAILED")
        self.submit(gpus=2, exclusive=True, script="sleep 1000")
        self.submit(gpus=2)
        pattern = r'(?m)^colloc_tasks_ended_total\{state="FAILED"\} 1$'
        until(lambda: re.search(pattern, self.fetch().text), "the count of an end")

        def longest_wait():
            found = re.search(r"(?m)^colloc_queue_longest_wait_seconds (\S+)$", self.fetch().text)
            return float(found[1])

        until(lambda: longest_wait() > 0, "a wait")
        self.assertRegex(self.fetch().text, r"colloc_event_log_writable 1\n")
        self.assertRegex(self.fetch().text, r"colloc_state_disk_available_bytes \d+")

    def test_silent_connections_give_up_their_places(self):
        for _ in range(600):
            silent = socket.create_connection(("127.0.0.1", self.port), LIMIT_S)
            self.addCleanup(silent.close)
        self.assertEqual(self.fetch().status, 200)

    def test_hostile_readers(self):
        task = self.submit("sleep 1000")
        self.wait_state(task, "RUNNING")
        held = []
        for text in (
            b"",
            b"GET /metrics HTTP/1.1\r\nHost: loc",
            b"GET " + b"a" * 60000,
            b"\0" * 999,
        ):
            for _ in range(15):
                one = socket.create_connection(("127.0.0.1", self.port), LIMIT_S)
                self.addCleanup(one.close)
                try:
                    one.sendall(text)
                except OSError:
                    pass  # refused already: all connections are taken
                held.append(one)
        reader = socket.create_connection(("127.0.0.1", self.port), LIMIT_S)
        self.addCleanup(reader.close)
        # The daemon does its work: the users' socket does not share these connections.
        self.assertEqual(self.task(task)["state"], "RUNNING")
        self.wait(self.submit("true"), "COMPLETED")
        for one in held:
            one.close()

        def scraped():
            try:
                return self.fetch().status == 200
            except (OSError, http.client.HTTPException):
                return False

        until(scraped, "an answer after the hostile readers")
        # Readers that do not read: their answers wait in the kernel, nothing else does.
        for _ in range(20):
            one = socket.create_connection(("127.0.0.1", self.port), LIMIT_S)
            self.addCleanup(one.close)
            one.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 200)
        self.wait(self.submit("true"), "COMPLETED")

    def write_token(self, text, mode=0o600):
        path = os.path.join(self.folder, f"token-{len(os.listdir(self.folder))}")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def test_a_token(self):
        self.restart(metrics_token_file=self.write_token(TOKEN + "\n"), metrics_listen="0.0.0.0:0")
        self.find_port()
        for wrong in (
            {},
            {"Authorization": TOKEN},
            {"Authorization": "Bearer "},
            {"Authorization": f"Bearer {TOKEN[:-1]}"},
            {"Authorization": f"Bearer {TOKEN}0"},
            {"Authorization": f"Bearer {TOKEN * 100}"},
            {"Authorization": f"Basic {TOKEN}"},
        ):
            self.assertEqual(self.fetch(**wrong).status, 401, wrong)
        right = {"Authorization": f"Bearer {TOKEN}", "Host": "gpu-server.example:9100"}
        self.assertEqual(self.fetch(**right).status, 200)
        self.assertNotIn(TOKEN, "\n".join(self.log))
        self.assertNotIn(TOKEN, json.dumps(self.get("/v1/info")))
        self.stop()
        for settings, message in (
            ({"metrics_listen": "0.0.0.0:0"}, "set metrics-token-file"),
            ({"metrics_token_file": "/nonexistent/token"}, "No such file"),
            ({"metrics_token_file": "/dev/null"}, "chmod 600"),
            ({"metrics_token_file": self.write_token(TOKEN, 0o644)}, "chmod 600"),
            ({"metrics_token_file": self.write_token("short")}, "16 to 255"),
            ({"metrics_token_file": self.write_token("with a space in its middle")}, "16 to 255"),
            ({"metrics_token_file": self.write_token("a" * 300)}, "token"),
            ({"metrics_listen": "nowhere"}, "an address with a port"),
        ):
            status, text = self.run_daemon(**settings)
            self.assertNotEqual(status, 0, settings)
            self.assertIn(message, text)
            self.assertNotIn("with a space", text)


def missing():
    absent = [name for name in ("prometheus", "promtool") if not shutil.which(name)]
    return f"no {' and no '.join(absent)} here (Debian's package prometheus)" if absent else None


@unittest.skipIf(missing(), missing())
class Prometheus(ScrapeCase):
    def promtool(self, *arguments, text=None):
        done = subprocess.run(
            ["promtool", *arguments],
            input=text,
            text=True,
            capture_output=True,
            timeout=LIMIT_S,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def start_prometheus(self):
        config = os.path.join(self.folder, "prometheus.yml")
        rules = os.path.join(ROOT, "dist", "prometheus", "colloc-alerts.yml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(
                "global:\n  scrape_interval: 200ms\n  scrape_timeout: 200ms\n"
                "  evaluation_interval: 200ms\n"
                f"rule_files: [{os.path.realpath(rules)}]\n"
                "scrape_configs:\n  - job_name: colloc\n    static_configs:\n"
                f"      - targets: ['127.0.0.1:{self.port}']\n"
            )
        self.web = f"127.0.0.1:{free_ports(1)[0]}"
        log = open(os.path.join(self.folder, "prometheus.log"), "w", encoding="utf-8")
        self.addCleanup(log.close)
        process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={config}",
                f"--storage.tsdb.path={self.folder}/tsdb",
                f"--web.listen-address={self.web}",
            ],
            env=self.env,
            stdout=log,
            stderr=log,
        )
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

    def ask(self, path, **query):
        """The data of an answer of Prometheus; None while it does not answer."""
        connection = http.client.HTTPConnection(self.web, timeout=LIMIT_S)
        try:
            connection.request("GET", f"/api/v1/{path}?{urllib.parse.urlencode(query)}")
            reply = connection.getresponse()
            text = reply.read()
        except OSError:
            return None
        finally:
            connection.close()
        if reply.status == 503:  # it is starting
            return None
        self.assertEqual(reply.status, 200, text)
        return json.loads(text)["data"]

    def query(self, text):
        data = self.ask("query", query=text)
        return data["result"] if data else None

    def dashboard_queries(self):
        with open(os.path.join(ROOT, "dist", "grafana", "colloc.json"), encoding="utf-8") as file:
            dashboard = json.load(file)
        ids = [panel["id"] for panel in dashboard["panels"]]
        self.assertEqual(len(ids), len(set(ids)))
        for variable in dashboard["templating"]["list"]:
            if variable["type"] == "query":
                match = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["definition"])
                yield f"count by ({match[2]}) ({match[1]})"
        for panel in dashboard["panels"]:
            for target in panel["targets"]:
                yield target["expr"]

    def test_what_it_scrapes(self):
        self.promtool("check", "metrics", text=self.fetch().text)
        first = self.train(4000, 1e6, "--smact=0.5", name='a "b" \\ ü')
        self.wait_gpu(lambda gpu: gpu["tasks"] and (gpu["tasks"][0]["smact"] or 0) > 0.4)
        self.submit("sleep 1000", exclusive=True)
        self.submit("true", hold=True)
        self.promtool("check", "metrics", text=self.fetch().text)
        self.start_prometheus()
        until(lambda: self.query('up{job="colloc"} == 1'), "a scrape")
        used = until(lambda: self.query(f'colloc_task_memory_used_bytes{{task="{first}"}}'))[0]
        self.assertEqual(used["metric"]["name"], 'a "b" \\ ü')
        self.assertGreaterEqual(float(used["value"][1]), 4000 * MIB)
        # It has read OpenMetrics, where counters and infos have types of their own.
        types = until(lambda: self.ask("metadata"))
        self.assertEqual(types["colloc_gpu_energy_joules"][0]["type"], "counter")
        until(lambda: self.query("rate(colloc_gpu_energy_joules_total[1m])"), "two scrapes")

        # Each query of the dashboard is one, and finds something.
        for query in self.dashboard_queries():
            whole = query.replace("$server", ".*").replace("$gpu", ".*")
            whole = whole.replace("$__rate_interval", "1m")
            self.assertNotIn("$", whole)
            until(lambda: self.query(whole), f"an answer to {whole}")
        alerts = self.ask("rules")["groups"][0]["rules"]
        until(
            lambda: all(rule["health"] == "ok" for rule in self.ask("rules")["groups"][0]["rules"])
        )
        self.assertIn("CollocGpuLost", [rule["name"] for rule in alerts])
        # A condition of an alert becomes true on this daemon, too.
        self.emulator("set", "1", "lost=on")
        until(lambda: self.query('colloc_gpu_info{health="lost",gpu="1"}'), "the lost GPU")

    def test_the_alert_rules(self):
        self.promtool("check", "rules", os.path.join(ROOT, "dist/prometheus/colloc-alerts.yml"))
        self.promtool("test", "rules", os.path.join(ROOT, "tests/data/prometheus/alerts-test.yml"))


if __name__ == "__main__":
    unittest.main()
