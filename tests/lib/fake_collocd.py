# SPDX-License-Identifier: Apache-2.0
"""A fake collocd: docs/protocol.md over a Unix socket, with tasks and GPUs that a test sets."""

import http.server
import json
import os
import socketserver
import threading
import urllib.parse

TASK = {
    "id": 1,
    "name": "task",
    "command": None,
    "user": "ada",
    "uid": 1000,
    "state": "PENDING",
    "reason": "Priority",
    "reason_text": "",
    "submitted_at": 1700000000,
    "started_at": None,
    "ended_at": None,
    "wait_s": 75.5,
    "exec_s": 0,
    "jct_s": 75.5,
    "gpus_requested": 1,
    "gpus": [],
    "gpu_uuids": [],
    "policy": "magm",
    "sharing": "mps",
    "exclusive": False,
    "time_limit_s": None,
    "need_mib": None,
    "estimator": "none",
    "estimate_mib": None,
    "predicted_mib": None,
    "p99_mib": None,
    "mem_used_mib": None,
    "mem_peak_mib": None,
    "attempt_count": 0,
    "attempts": [],
    "oom_count": 0,
    "exit_code": None,
    "signal": None,
    "failure": None,
    "evidence": None,
    "position": 1,
}

LIVE = ("PENDING", "RUNNING", "SUSPENDED", "PAUSED", "COMPLETING")


def make_task(task_id, **members):
    return {**TASK, "id": task_id, **members}


def error_body(message):
    return {"error": {"code": "refused", "message": message}}


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 64


class FakeDaemon:
    """The daemon. A test sets `tasks` and `gpus`.

    requests: (method, path, body) of each request that came
    connections: how many came
    """

    def __init__(self, socket_path):
        self.socket_path = socket_path
        self.tasks = []
        self.pages = []  # (status, body) of the next answers with a list, instead of the tasks
        self.elements = {}  # "12_7": id of that task of an array
        self.arrays = set()  # "12"
        self.many_refusal = None  # (status, message) of the requests with a list of ids
        self.gpus = []
        self.share = {"users": []}
        self.settings = {}
        self.first_submitted_at = None
        self.logs = {}  # (task id, stream): [attempt 1, attempt 2, ...]
        self.piece = 7  # bytes of a log in one answer
        self.merged = []  # ids of tasks whose streams go to one file, which is their "stdout"
        self.requests = []
        self.connections = 0
        self.submit_reply = (201, {"id": 12, "warnings": []})
        self.on_wait = lambda task: None
        self.on_log = lambda task: None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        daemon = self

        class Handler(RequestHandler):
            pass

        Handler.daemon = daemon
        self.server = Server(self.socket_path, Handler)
        threading.Thread(
            target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        ).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        if os.path.exists(self.socket_path):
            os.unlink(self.socket_path)

    def find(self, task_id):
        return next((task for task in self.tasks if task["id"] == task_id), None)


class RequestHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    daemon = None

    def setup(self):
        super().setup()
        self.daemon.connections += 1

    def log_message(self, *_):
        pass

    def answer(self, status, body, headers=()):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Colloc-Version", "0.1.0")
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        if data:
            self.wfile.write(data)

    def refuse(self, status, message):
        self.answer(status, error_body(message))

    def handle_any(self):
        """Answers a request, unless a callback of the test raises ConnectionAbortedError."""
        try:
            self.handle_request()
        except ConnectionAbortedError:
            self.close_connection = True

    def handle_request(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        size = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(size)) if size else None
        self.daemon.requests.append((self.command, self.path, body))
        words = url.path.strip("/").split("/")
        if words[:2] == ["v1", "tasks"]:
            self.answer_tasks(words[2:], query, body)
        elif words == ["v1", "gpus"]:
            self.answer(
                200, {"gpus": self.daemon.gpus, "sampled_at": 1, "policy": "magm", "sharing": "mps"}
            )
        elif words == ["v1", "share"]:
            self.answer(200, self.daemon.share)
        elif words == ["v1", "info"]:
            self.answer(
                200,
                {
                    "version": "0.1.0",
                    "api": 1,
                    "pid": 7,
                    "policy": "magm",
                    "settings": {"window_s": 90, "margin_mib": 512.0, **self.daemon.settings},
                    "log_loss": None,
                    "kinds_not_known": [],
                    "given_kinds": "",
                    "host": {"memory_available_mib": 24105.12891},
                    "first_submitted_at": self.daemon.first_submitted_at,
                },
            )
        else:
            self.refuse(404, f"{url.path}: no such path")

    do_GET = do_POST = handle_any

    def answer_tasks(self, words, query, body):
        if not words and self.command == "POST":
            self.answer(*self.daemon.submit_reply)
        elif not words:
            self.answer_list(query)
        elif words[0] in ("cancel", "hold", "release") and self.daemon.many_refusal:
            self.refuse(*self.daemon.many_refusal)
        elif words[0] in ("cancel", "hold", "release"):
            outcomes = (self.outcome(task, words) for task in body["tasks"])
            results = [{"status": status, **members} for status, members in outcomes]
            self.answer(200, {"results": results})
        elif words[1:] == ["log"] and self.daemon.find(int(words[0])):
            self.answer_log(self.daemon.find(int(words[0])), query)
        elif words[0] in self.daemon.arrays:
            self.answer(200, {"array": {"id": int(words[0]), "count": 3}, "changed": 2})
        else:
            self.answer(*self.outcome(words[0], words[1:]))

    def outcome(self, name, words):
        """The status and the body of the answer about one task: 12, or "12_7" of an array."""
        task_id = self.daemon.elements.get(name, name)
        task_id = int(task_id) if str(task_id).isdigit() else task_id
        task = self.daemon.find(task_id)
        if task is None:
            return 404, error_body(f"task {task_id}: no such task")
        if words == ["cancel"] and task["state"] not in LIVE:
            return 409, error_body(f"task {task_id} has ended: {task['state']}")
        if words == ["wait"]:
            self.daemon.on_wait(task)
        if words == ["cancel"]:
            task.update(state="CANCELLED", reason="Cancelled")
        has_room = task.get("reason") != "Resources"
        if words == ["suspend"] or (words == ["resume"] and has_room):
            task.update(state="SUSPENDED" if words == ["suspend"] else "RUNNING")
        return 200, {"task": task}

    def answer_list(self, query):
        if self.daemon.pages:
            self.answer(*self.daemon.pages.pop(0))
            return
        state = query.get("state", "live")
        tasks = [
            task
            for task in self.daemon.tasks
            if state == "all"
            or task["state"] == state.upper()
            or (state == "live" and task["state"] in LIVE)
            or (state == "ended" and task["state"] not in LIVE)
        ]
        self.answer(200, {"tasks": tasks})

    def answer_log(self, task, query):
        attempts = self.daemon.logs.get((task["id"], query["stream"]), [b""])
        attempt = int(query.get("attempt", len(attempts)))
        offset = (
            int(query["offset"])
            if "offset" in query
            else max(0, len(attempts[attempt - 1]) - int(query["tail"]))
        )
        text = attempts[attempt - 1][offset:][: self.daemon.piece]
        offset += len(text)
        ended = task["state"] not in LIVE and offset >= len(attempts[attempt - 1])
        self.answer(
            200,
            text,
            [
                ("Colloc-Next-Offset", str(offset)),
                ("Colloc-Ended", "true" if ended else "false"),
                ("Colloc-Attempt", str(attempt)),
                ("Colloc-Merged", "true" if task["id"] in self.daemon.merged else "false"),
            ],
        )
        self.daemon.on_log(task)
