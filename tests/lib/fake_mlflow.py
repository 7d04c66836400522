# SPDX-License-Identifier: Apache-2.0
"""A tracking server: what MLflow's REST interface documents of the requests that colloc makes, and
no more: runs/log-batch, runs/create, runs/update, runs/set-tag, experiments/get, get-by-name."""

import http.server
import json
import threading
import urllib.parse

BATCH_MAX = 1000  # metrics of a request
KEY_MAX = 250  # bytes of a metric's name, which all backends take
PARAMS_MAX, PARAM_MAX = 100, 6000  # of a request; characters of a value
STATUSES = ("RUNNING", "SCHEDULED", "FINISHED", "FAILED", "KILLED")
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
    """`metrics`: of all runs, in order; `failures`: statuses that the next requests get
    instead (None: an answer);
    `runs`: created, by id; `experiments`: names by id."""

    daemon_threads = True

    def __init__(self, run="run1", authorization=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.run, self.authorization = run, authorization
        self.metrics, self.requests, self.failures = [], [], []
        self.runs, self.experiments = {}, {"0": "Default", "12": "ours"}
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
            failure = self.failures.pop(0) if self.failures else None
            if failure:
                return failure, "INTERNAL_ERROR"
            if self.authorization and header != self.authorization:
                return 401, "UNAUTHENTICATED"
            parts = urllib.parse.urlsplit(path)
            name = parts.path.replace("/api/2.0/mlflow/", "", 1)
            answer = getattr(self, "answer_" + name.replace("/", "_").replace("-", "_"), None)
            if not answer:
                return 404, "ENDPOINT_NOT_FOUND"
            found = answer(body or dict(urllib.parse.parse_qsl(parts.query)))
            self.news.notify_all()
            return found

    def answer_runs_log_batch(self, body):
        run = self.runs.get(body.get("run_id"))
        if run is None and body.get("run_id") != self.run:
            return 404, "RESOURCE_DOES_NOT_EXIST"
        metrics, params = body.get("metrics", []), body.get("params", [])
        if len(metrics) > BATCH_MAX or any(wrong_metric(metric) for metric in metrics):
            return 400, "INVALID_PARAMETER_VALUE"
        if len(params) > PARAMS_MAX or any(len(param["value"]) > PARAM_MAX for param in params):
            return 400, "INVALID_PARAMETER_VALUE"
        self.metrics += metrics
        if run:
            run["metrics"] += metrics
            run["params"].update({param["key"]: param["value"] for param in params})
        return 200, ""

    def answer_runs_create(self, body):
        if body.get("experiment_id") not in self.experiments:
            return 404, "RESOURCE_DOES_NOT_EXIST"
        if not isinstance(body.get("start_time"), int):
            return 400, "INVALID_PARAMETER_VALUE"
        run_id = f"{len(self.runs):032x}"
        self.runs[run_id] = {
            "experiment": body["experiment_id"],
            "name": body.get("run_name"),
            "tags": {tag["key"]: tag["value"] for tag in body.get("tags", [])},
            "status": "RUNNING",
            "params": {},
            "metrics": [],
        }
        return 200, {"run": {"info": {"run_id": run_id}}}

    def answer_runs_update(self, body):
        run = self.runs.get(body.get("run_id"))
        if not run:
            return 404, "RESOURCE_DOES_NOT_EXIST"
        if body.get("status") not in STATUSES or not isinstance(body.get("end_time"), int):
            return 400, "INVALID_PARAMETER_VALUE"
        run.update(status=body["status"], end_time=body["end_time"])
        return 200, {"run_info": {"run_id": body["run_id"], "status": body["status"]}}

    def answer_runs_set_tag(self, body):
        if body.get("run_id") not in self.runs:
            return 404, "RESOURCE_DOES_NOT_EXIST"
        self.runs[body["run_id"]]["tags"][body["key"]] = body["value"]
        return 200, ""

    def answer_experiments_get(self, body):
        number = body.get("experiment_id")
        if number not in self.experiments:
            return 404, "RESOURCE_DOES_NOT_EXIST"
        return 200, {"experiment": {"experiment_id": number, "name": self.experiments[number]}}

    def answer_experiments_get_by_name(self, body):
        for number, name in self.experiments.items():
            if name == body.get("experiment_name"):
                return self.answer_experiments_get({"experiment_id": number})
        return 404, "RESOURCE_DOES_NOT_EXIST"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        data = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            self.answer(json.loads(data, parse_constant=no_constant))
        except ValueError:
            self.send(400, "BAD_REQUEST")

    def do_GET(self):
        self.answer({})

    def answer(self, body):
        status, found = self.server.answer(self.path, self.headers.get("Authorization"), body)
        self.send(status, found)

    def send(self, status, found):
        """`found`: an object, or an error's code; "": an empty object."""
        self.send_response(status)
        if status in (301, 302, 307, 308):
            self.send_header("Location", self.server.uri() + "/elsewhere")
        self.end_headers()
        answer = found if isinstance(found, dict) else {"error_code": found} if found else {}
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_):
        pass
