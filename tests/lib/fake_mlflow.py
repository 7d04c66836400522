# SPDX-License-Identifier: Apache-2.0
"""A tracking server: what MLflow's REST interface documents of POST runs/log-batch, and no more."""

import http.server
import json
import threading

BATCH_MAX = 1000  # metrics of a request
KEY_MAX = 250  # bytes of a metric's name, which all backends take
NOT_FINITE = ("NaN", "Infinity", "-Infinity")  # texts, in the JSON of protobuf


def wrong_metric(metric):
    """Why the metric breaks the rules of MLflow; None: it does not."""
    if set(metric) != {"key", "value", "timestamp", "step"}:
        return f"fields {sorted(metric)}"
    if not isinstance(metric["key"], str) or not 0 < len(metric["key"]) <= KEY_MAX:
        return "key"
    if any(not (c.isalnum() or c in "_-. /:") for c in metric["key"]):
        return f"key {metric['key']!r}"
    if not isinstance(metric["value"], (int, float)) and metric["value"] not in NOT_FINITE:
        return "value"
    if not all(isinstance(metric[name], int) for name in ("timestamp", "step")):
        return "timestamp and step must be int64"
    return None


def no_constant(text):
    """For NaN and the like without quotes, which Python's reader would take."""
    raise ValueError(f"{text} is no JSON")


class FakeMlflow(http.server.ThreadingHTTPServer):
    """`metrics`: of the run, in order; `failures`: statuses that the next requests get instead."""

    daemon_threads = True

    def __init__(self, run="run1", authorization=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.run, self.authorization = run, authorization
        self.metrics, self.requests, self.failures = [], [], []
        self.news = threading.Condition()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def uri(self):
        return f"http://127.0.0.1:{self.server_port}"

    def names(self):
        with self.news:
            return {metric["key"] for metric in self.metrics}

    def values(self, name):
        with self.news:
            return [metric["value"] for metric in self.metrics if metric["key"] == name]

    def close(self):
        self.shutdown()
        self.server_close()

    def answer(self, path, header, body):
        """A status and an error code."""
        with self.news:
            self.requests.append((path, body))
            if self.failures:
                return self.failures.pop(0), "INTERNAL_ERROR"
            if self.authorization and header != self.authorization:
                return 401, "UNAUTHENTICATED"
            if path != "/api/2.0/mlflow/runs/log-batch":
                return 404, "ENDPOINT_NOT_FOUND"
            if body.get("run_id") != self.run:
                return 404, "RESOURCE_DOES_NOT_EXIST"
            metrics = body.get("metrics", [])
            if len(metrics) > BATCH_MAX or any(wrong_metric(metric) for metric in metrics):
                return 400, "INVALID_PARAMETER_VALUE"
            self.metrics += metrics
            self.news.notify_all()
            return 200, ""


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        data = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            body = json.loads(data, parse_constant=no_constant)
            status, code = self.server.answer(self.path, self.headers.get("Authorization"), body)
        except ValueError:
            status, code = 400, "BAD_REQUEST"
        self.send_response(status)
        if status in (301, 302, 307, 308):
            self.send_header("Location", self.server.uri() + "/elsewhere")
        self.end_headers()
        self.wfile.write(json.dumps({"error_code": code} if code else {}).encode())

    def log_message(self, *_):
        pass
