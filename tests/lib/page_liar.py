# SPDX-License-Identifier: Apache-2.0
"""Writes lies into the page that a process shares with the daemon (src/preload/page.h), as the
process itself could at any time. The library writes its fields again and again, so lies are
written all the time, too:

    with page_liar.tells(pid, lambda: [(pd.CARRY_BYTES, struct.pack("=Q", 1 << 62))]):
        ...
"""
import contextlib
import re
import threading

NAME = "memfd:colloc-preload"


def find_page(pid):
    """The address of the newest daemon's page in the process."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as file:
        found = re.findall(rf"^([0-9a-f]+)-\S+ rw-s .*{NAME}", file.read(), re.M)
    assert found, f"process {pid} has no page"
    return [int(at, 16) for at in found]


@contextlib.contextmanager
def tells(pid, lies):
    """`lies` returns what is written each time, as offsets and bytes."""
    pages, is_over = find_page(pid), threading.Event()

    def tell():
        with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
            while not is_over.is_set():
                for at, data in lies():
                    for page in pages:
                        memory.seek(page + at)
                        memory.write(data)
                is_over.wait(0.0001)

    def tell_while_it_lives():
        with contextlib.suppress(OSError):
            tell()

    thread = threading.Thread(target=tell_while_it_lives)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
