# SPDX-License-Identifier: Apache-2.0
"""A run of MLflow, by the REST interface of its tracking server (mlflow.org/docs, REST API).

Other tracking addresses (a folder, a database) are written by the package mlflow, if this Python
has it.
"""

from __future__ import annotations

import base64
import http.client
import json
import math
import ssl
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple, Union

from colloc.tracking.bridge import Bridge, Point, Refused, shown_address

BATCH_MAX = 1000  # metrics in a request, as MLflow documents
TIMEOUT_S = 10.0  # chosen
LATER = (408, 425, 429)  # and 5xx: to be tried again


def authorization(environment: Mapping[str, str]) -> Optional[str]:
    """The header of MLFLOW_TRACKING_TOKEN, or _USERNAME and _PASSWORD."""
    token = environment.get("MLFLOW_TRACKING_TOKEN", "").strip()
    user = environment.get("MLFLOW_TRACKING_USERNAME")
    if user:
        text = f"{user}:{environment.get('MLFLOW_TRACKING_PASSWORD', '')}"
        return "Basic " + base64.b64encode(text.encode()).decode()
    return f"Bearer {token}" if token else None


def take_user(uri: str, environment: Mapping[str, str]) -> Tuple[str, Mapping[str, str]]:
    """The address without a user and password, and the environment with them if it names none."""
    parts = urllib.parse.urlsplit(uri)
    both, _, host = parts.netloc.rpartition("@")
    user, _, password = both.partition(":")
    address = urllib.parse.urlunsplit(parts._replace(netloc=host))
    if not user or environment.get("MLFLOW_TRACKING_USERNAME"):
        return address, environment
    named = {
        "MLFLOW_TRACKING_USERNAME": urllib.parse.unquote(user),
        "MLFLOW_TRACKING_PASSWORD": urllib.parse.unquote(password),
    }
    return address, {**environment, **named}


def tls_context(environment: Mapping[str, str]) -> ssl.SSLContext:
    """By MLFLOW_TRACKING_SERVER_CERT_PATH and MLFLOW_TRACKING_INSECURE_TLS."""
    context = ssl.create_default_context(
        cafile=environment.get("MLFLOW_TRACKING_SERVER_CERT_PATH") or None
    )
    if environment.get("MLFLOW_TRACKING_INSECURE_TLS", "").lower() == "true":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def json_number(value: float) -> Union[float, str]:
    """JSON has no such numbers: the JSON of protobuf, which MLflow reads, has texts for them."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirection would take the password elsewhere."""

    def redirect_request(self, *_args: Any, **_named: Any) -> None:
        return None


class RestServer:
    """A tracking server at http:// or https://."""

    def __init__(self, uri: str, environment: Mapping[str, str]):
        address, environment = take_user(uri, environment)
        self.uri = address.rstrip("/")
        self.header = authorization(environment)
        self.opener = urllib.request.build_opener(
            NoRedirect(), urllib.request.HTTPSHandler(context=tls_context(environment))
        )

    def request(self, path: str, body: Optional[Dict[str, Any]] = None) -> Dict[str, Any]:
        """One request, a GET without a body. Returns the answer's object. Raises Refused, OSError,
        or ValueError for an answer that is no JSON."""
        data = None if body is None else json.dumps(body, allow_nan=False).encode()
        request = urllib.request.Request(f"{self.uri}/api/2.0/mlflow/{path}", data)
        request.add_header("Content-Type", "application/json")
        if self.header:
            request.add_header("Authorization", self.header)
        return json.loads(self.read_answer(request) or b"{}")

    def read_answer(self, request: urllib.request.Request) -> bytes:
        """The body of the answer. Raises Refused or OSError."""
        try:
            with self.opener.open(request, timeout=TIMEOUT_S) as reply:
                return reply.read()
        except urllib.error.HTTPError as error:
            text = f"{shown_address(self.uri)}: HTTP {error.code} {error.reason}"
            error.close()
            if error.code >= 500 or error.code in LATER:
                raise OSError(text) from None
            raise Refused(text) from None
        except urllib.error.URLError as error:
            raise OSError(f"{shown_address(self.uri)}: {error.reason}") from None
        except http.client.HTTPException as error:
            name = type(error).__name__  # its text may hold a part of the address
            raise OSError(f"{shown_address(self.uri)}: {name}") from None


class RestRun(Bridge):
    """A run of such a server."""

    name = "mlflow"

    def __init__(self, uri: str, run: str, environment: Mapping[str, str]):
        self.server, self.run = RestServer(uri, environment), run

    def send(self, points: Sequence[Point]) -> None:
        for first in range(0, len(points), BATCH_MAX):
            metrics = [
                {
                    "key": p.name,
                    "value": json_number(p.value),
                    "timestamp": int(p.at_s * 1000),
                    "step": p.step,
                }
                for p in points[first : first + BATCH_MAX]
            ]
            self.server.request("runs/log-batch", {"run_id": self.run, "metrics": metrics})


class PackageRun(Bridge):
    """A run at an address that only the package mlflow knows, such as a folder or a database."""

    name = "mlflow"

    def __init__(self, uri: Optional[str], run: str):
        try:
            from mlflow.entities import Metric  # type: ignore
            from mlflow.tracking import MlflowClient  # type: ignore
        except ImportError:
            raise ValueError(
                f"MLFLOW_TRACKING_URI={shown_address(uri or '')}: colloc itself sends to http:// "
                "and https:// only; for other addresses python3 needs the package mlflow"
            ) from None
        self.client, self.metric, self.run = MlflowClient(tracking_uri=uri), Metric, run

    def send(self, points: Sequence[Point]) -> None:
        for first in range(0, len(points), BATCH_MAX):
            metrics = [
                self.metric(p.name, p.value, int(p.at_s * 1000), p.step)
                for p in points[first : first + BATCH_MAX]
            ]
            try:
                self.client.log_batch(self.run, metrics=metrics)
            except OSError:
                raise
            except Exception as error:  # of the package
                raise Refused(str(error)) from error


def open_mlflow(environment: Mapping[str, str]) -> Bridge:
    """The run that the environment names. Raises ValueError if it names none."""
    run, uri = environment.get("MLFLOW_RUN_ID"), environment.get("MLFLOW_TRACKING_URI")
    if not run:
        raise ValueError("the environment names no run: set MLFLOW_RUN_ID")
    if uri and uri.lower().startswith(("http://", "https://")):
        return RestRun(uri, run, environment)
    return PackageRun(uri, run)
