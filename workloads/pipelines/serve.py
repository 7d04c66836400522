# SPDX-License-Identifier: Apache-2.0
"""An inference service: a ResNet that answers HTTP on $COLLOC_PORT. serve.py [MODEL]

Each GET classifies one image that stays on the GPU, and answers with its class. Requests wait for
each other: the model works on one at a time.
"""

import http.server
import os
import sys
import threading

import torch
import torchvision
from torch_stage import DEVICE, HALF


class Classifier:
    """The model, for one request at a time."""

    def __init__(self, name):
        self.model = torchvision.models.get_model(name, weights=None).to(DEVICE, HALF).eval()
        self.image = torch.randn(1, 3, 224, 224, device=DEVICE, dtype=HALF)
        self.lock = threading.Lock()

    def classify(self):
        with self.lock, torch.inference_mode():
            return self.model(self.image).argmax().item()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        text = f"{self.server.classifier.classify()}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


def main():
    classifier = Classifier(sys.argv[1] if len(sys.argv) > 1 else "resnet50")
    for _ in range(10):
        classifier.classify()
    server = Server(("127.0.0.1", int(os.environ["COLLOC_PORT"])), Handler)
    server.classifier = classifier
    server.serve_forever()


if __name__ == "__main__":
    main()
