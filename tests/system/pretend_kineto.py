# SPDX-License-Identifier: Apache-2.0
"""A pretend PyTorch process: it speaks to its profiler's daemon as libkineto does
(IpcFabricConfigClient.cpp, DaemonConfigLoader.cpp), and writes the configuration that it gets into
the file that the configuration names, with its process id before the ending. libkineto asks every
five seconds; this one does at once. It ends when the file STOP exists.

    python3 pretend_kineto.py STOP [PROCESSES]
"""
import os
import socket
import struct
import sys
import time
import uuid

ACTIVITIES, EVENTS = 2, 1


def message(kind, body):
    return struct.pack("=Q32s", len(body), kind) + body


def open_client():
    folder = os.environ["KINETO_IPC_SOCKET_DIR"]
    client = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    client.bind(f"{folder}/dynoconfigclient{uuid.uuid4()}")
    client.connect(f"{folder}/dynolog")
    client.settimeout(60)  # of a busy machine
    return client


def ask(client, kind, body):
    client.send(message(kind, body))
    answer = client.recv(65536)
    size, answered = struct.unpack("=Q32s", answer[:40])
    assert answered.rstrip(b"\0") == kind and size == len(answer) - 40, answer
    return answer[40:]


def record(config):
    values = dict(line.split("=", 1) for line in config.splitlines())
    path = values["ACTIVITIES_LOG_FILE"].replace(".json", f"_{os.getpid()}.json")
    with open(path + ".part", "w", encoding="utf-8") as file:
        file.write(config)
    os.rename(path + ".part", path)


def main(stop, processes="1"):
    for _ in range(int(processes) - 1):
        if os.fork() == 0:
            break
    client = open_client()
    (count,) = struct.unpack("=i", ask(client, b"ctxt", struct.pack("=iiq", 0, os.getpid(), 0)))
    assert count >= 1
    pids = struct.pack("=ii", os.getpid(), os.getppid())
    client.send(b"no message of the protocol")  # is not answered
    print("ready", flush=True)
    while not os.path.exists(stop):
        config = ask(client, b"req", struct.pack("=iiq", EVENTS | ACTIVITIES, 2, 0) + pids)
        if config:
            record(config.decode())
        time.sleep(0.02)


assert os.environ["KINETO_USE_DAEMON"] == "1"
main(*sys.argv[1:])
