# SPDX-License-Identifier: Apache-2.0
"""An inference service: a ResNet that answers HTTP on $COLLOC_PORT. serve.py [MODEL]

Each GET classifies one image that stays on the GPU, and answers with its class. The main thread
owns the model, since cuDNN and cuBLAS prepare themselves anew, for a second, in each thread that
calls them. Requests that wait together are answered by one pass over a batch:

    requests      a   b c d        e
    model         [ a ] [ b c d+pad ] [ e ]

Batches have the sizes of BATCHES, each of which ran before the first request.
"""

import concurrent.futures
import http.server
import os
import queue
import sys
import threading

import torch
import torchvision
from torch_stage import DEVICE, HALF

BATCHES = (1, 2, 4, 8, 16)


class Classifier:
    """The model, and the requests that wait for it."""

    def __init__(self, name):
        self.model = torchvision.models.get_model(name, weights=None).to(DEVICE, HALF).eval()
        self.image = torch.randn(1, 3, 224, 224, device=DEVICE, dtype=HALF)
        self.requests = queue.SimpleQueue()

    def classify(self):
        answer = concurrent.futures.Future()
        self.requests.put(answer)
        return answer.result()

    @torch.inference_mode()
    def classes(self, count):
        size = next(size for size in BATCHES if size >= count)
        return self.model(self.image.expand(size, -1, -1, -1)).argmax(1)[:count].tolist()

    def warm_up(self):
        for size in BATCHES:
            for _ in range(10):
                self.classes(size)

    def work(self):
        while True:
            waiting = [self.requests.get()]
            while len(waiting) < BATCHES[-1] and not self.requests.empty():
                waiting.append(self.requests.get())
            for answer, found in zip(waiting, self.classes(len(waiting))):
                answer.set_result(found)


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
    classifier.warm_up()
    server = Server(("127.0.0.1", int(os.environ["COLLOC_PORT"])), Handler)
    server.classifier = classifier
    threading.Thread(target=server.serve_forever, daemon=True).start()
    classifier.work()


if __name__ == "__main__":
    main()
