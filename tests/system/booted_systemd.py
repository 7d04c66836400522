# SPDX-License-Identifier: Apache-2.0
"""Runs a test program as a service of a systemd that is PID 1 of new namespaces.

Neither machines of developers nor containers have a systemd that a test may use: this one has its
own processes, mounts and cgroup v2 hierarchy, below a cgroup that is made for it, and no units but
those here. With units of the distribution it would clean /tmp and set the kernel's variables, which
are the machine's.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SYSTEMD = "/lib/systemd/systemd"
INSIDE = "COLLOC_TEST_INSIDE_SYSTEMD"
LIMIT_S = 1500

# $0: the cgroup, $1: the folder of the units
ENTER = """echo $$ >"$0/cgroup.procs" &&
exec unshare --cgroup --pid --fork --kill-child --mount --uts --ipc --mount-proc bash -ec "$2" "$1"
"""
BOOT = f"""mount --make-rprivate /
umount -R -l /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tmpfs tmpfs /run
mkdir -p /run/dbus /run/lock /run/systemd/system
export container=test SYSTEMD_UNIT_PATH="$0" SYSTEMD_GENERATOR_PATH=/nonexistent
export SYSTEMD_ENVIRONMENT_GENERATOR_PATH=/nonexistent
exec {SYSTEMD} --unit=boot.target --log-target=console --show-status=0
"""
UNITS = {
    "boot.target": "[Unit]\nRequires=dbus.service test.service\n",
    "dbus.socket": "[Unit]\nDefaultDependencies=no\n"
    "[Socket]\nListenStream=/run/dbus/system_bus_socket\n",
    "dbus.service": "[Unit]\nDefaultDependencies=no\nRequires=dbus.socket\n[Service]\nType=notify\n"
    "ExecStart=/usr/bin/dbus-daemon --system --address=systemd: --nofork --nopidfile"
    " --systemd-activation\n",
    "test.service": "[Unit]\nDefaultDependencies=no\nAfter=dbus.service\nRequires=dbus.service\n"
    "[Service]\nType=exec\nDelegate=yes\nStandardOutput=append:{folder}/output\n"
    "StandardError=append:{folder}/output\nExecStart=/bin/sh {folder}/run\n",
}


def why_not():
    """Why a test cannot run so here, or None."""
    programs = [SYSTEMD, "/usr/bin/dbus-daemon", "/usr/bin/systemctl", "/usr/bin/unshare"]
    missing = [path for path in programs if not os.path.exists(path)]
    if os.geteuid() != 0:
        return "needs root"
    if missing:
        return f"{missing[0]} is not here"
    return None if cgroup_mount() else "there is no cgroup v2 hierarchy"


def is_inside():
    return INSIDE in os.environ


def cgroup_mount():
    with open("/proc/self/mounts", encoding="ascii", errors="replace") as mounts:
        fields = [line.split() for line in mounts]
    return next((line[1] for line in fields if line[2] == "cgroup2"), None)


def run(words):
    """Runs the program with this environment, prints its output, and returns its exit code."""
    folder = tempfile.mkdtemp(prefix="colloc-systemd-")
    cgroup = os.path.join(cgroup_mount(), os.path.basename(folder))
    units = os.path.join(folder, "units")
    os.mkdir(units)
    for name, text in UNITS.items():
        with open(os.path.join(units, name), "w", encoding="utf-8") as file:
            file.write(text.replace("{folder}", folder))
    environment = " ".join(
        f"{name}={shlex.quote(value)}"
        for name, value in {**os.environ, INSIDE: "1"}.items()
        if name.isidentifier()
    )
    with open(os.path.join(folder, "run"), "w", encoding="utf-8") as file:
        file.write(f"cd {shlex.quote(os.getcwd())}\nexport {environment}\n{shlex.join(words)}\n")
        file.write(f"echo $? >{folder}/code.new; mv {folder}/code.new {folder}/code\n")
    os.mkdir(cgroup)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # a time limit of a test's runner
    with open(os.path.join(folder, "systemd"), "wb") as log:
        booted = subprocess.Popen(
            ["bash", "-c", ENTER, cgroup, units, BOOT],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        return await_code(folder, booted)
    finally:
        booted.kill()  # and with it PID 1, and with that all
        booted.wait()
        remove(cgroup)
        shutil.rmtree(folder, ignore_errors=True)


def await_code(folder, booted):
    end_s = time.monotonic() + LIMIT_S
    code = os.path.join(folder, "code")
    while not os.path.exists(code) and booted.poll() is None and time.monotonic() < end_s:
        time.sleep(0.1)
    for name in ("output", "systemd") if not os.path.exists(code) else ("output",):
        if os.path.exists(os.path.join(folder, name)):
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                sys.stdout.write(file.read())
    if not os.path.exists(code):
        return 1
    with open(code, encoding="ascii") as file:
        return int(file.read())


def remove(cgroup):
    """With all below it, once the killed processes have gone."""
    end_s = time.monotonic() + 10
    while os.path.exists(cgroup) and time.monotonic() < end_s:
        for folder, _, _ in os.walk(cgroup, topdown=False):
            try:
                os.rmdir(folder)
            except OSError:
                time.sleep(0.05)
