#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Starts Python scripts with their libraries already loaded, for short tasks.

    fork_server.py serve SOCKET [LIBRARY ...]
        imports the libraries and serves until it is ended; prints "ready"
    fork_server.py run SOCKET SCRIPT [ARGUMENT ...]
        runs the script in a fork of the server, as if this process ran it

Importing PyTorch and the libraries of models takes 5 to 9 s, often longer than a task of a
compressed trace. A fork of a process that has imported them needs no import. It gets the arguments,
the environment, the folder and the standard streams of `run`, and joins the cgroup of its task
(COLLOC_CGROUP), by which colloc knows whose it is. `run` passes signals on and ends as the script
ends. If `run` is killed, the script is killed.

The server must not touch CUDA: a fork could not use it. It serves its own user only (the socket
has mode 0600) and needs root for the cgroup.
"""
import contextlib
import gc
import json
import os
import runpy
import select
import signal
import socket
import struct
import sys
import traceback

SIZE = struct.Struct("!I")
REQUEST_MAX = 1 << 20
PASSED_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


# ---- the server ----


def receive_request(connection):
    """The client's request, with its standard streams; None if it is gone or broken."""
    head, streams, _, _ = socket.recv_fds(connection, SIZE.size, 3)
    if len(head) < SIZE.size or len(streams) != 3:
        return None
    (size,) = SIZE.unpack(head)
    text = b""
    while len(text) < size <= REQUEST_MAX:
        piece = connection.recv(size - len(text))
        if not piece:
            return None
        text += piece
    return {**json.loads(text), "streams": streams} if text else None


def join_cgroup(environment):
    folder = environment.get("COLLOC_CGROUP")
    if folder:
        with open(os.path.join(folder, "cgroup.procs"), "w", encoding="ascii") as file:
            file.write(str(os.getpid()))


def run_script(request):
    """Becomes the script. Does not return."""
    code = 1
    try:
        os.setpgid(0, 0)
        for number, stream in enumerate(request["streams"]):
            os.dup2(stream, number)
        os.environ.clear()
        os.environ.update(request["environment"])
        os.chdir(request["folder"])
        sys.argv = request["arguments"]
        sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
        runpy.run_path(sys.argv[0], run_name="__main__")
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # what Python itself would print
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code & 0xFF)


def watch_script(connection, script):
    """Passes signals on until the script has ended. Returns its wait status."""
    ended = os.pidfd_open(script)
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    poll.register(connection, select.POLLIN)
    while True:
        ready = {descriptor for descriptor, _ in poll.poll()}
        if ended in ready:
            return os.waitpid(script, 0)[1]
        number = connection.recv(1)
        os.kill(script, number[0] if number else signal.SIGKILL)
        if not number:
            poll.unregister(connection)


def serve_client(connection):
    """In a fork: runs the script in another fork and reports how it ended."""
    request = receive_request(connection)
    if not request:
        return
    join_cgroup(request["environment"])
    script = os.fork()
    if script == 0:
        connection.close()
        run_script(request)
    for stream in request["streams"]:
        os.close(stream)
    status = watch_script(connection, script)
    with contextlib.suppress(BrokenPipeError):  # `run` was killed
        connection.sendall(SIZE.pack(status))


def serve(path, libraries):
    for library in libraries:
        __import__(library)
    # The collector of a fork would write to each object's page of these libraries, and copy it.
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    os.chmod(path, 0o600)
    listener.listen(64)
    print("ready", flush=True)
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            try:
                serve_client(connection)
            except (OSError, ValueError, KeyError):
                traceback.print_exc()
            finally:
                os._exit(0)
        connection.close()


# ---- the client ----


def send_request(connection, arguments):
    text = json.dumps(
        {"arguments": arguments, "environment": dict(os.environ), "folder": os.getcwd()}
    ).encode()
    if len(text) > REQUEST_MAX:
        sys.exit(f"the arguments and the environment have {len(text)} bytes, {REQUEST_MAX} at most")
    socket.send_fds(connection, [SIZE.pack(len(text))], [0, 1, 2])
    connection.sendall(text)


def end_like(status):
    """Ends this process as the script ended."""
    if os.WIFSIGNALED(status):
        if os.WTERMSIG(status) != signal.SIGKILL:
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    sys.exit(os.WEXITSTATUS(status))


def run(path, arguments):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        for number in PASSED_SIGNALS:
            signal.signal(number, lambda number, frame: connection.send(bytes([number])))
        send_request(connection, arguments)
        answer = connection.recv(SIZE.size, socket.MSG_WAITALL)
    if len(answer) < SIZE.size:
        sys.exit("the fork server ended before the script")
    end_like(SIZE.unpack(answer)[0])


def main():
    if len(sys.argv) >= 3 and sys.argv[1] == "serve":
        serve(sys.argv[2], sys.argv[3:])
    elif len(sys.argv) >= 4 and sys.argv[1] == "run":
        run(sys.argv[2], sys.argv[3:])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
