"""The system's programs that a lab is built with, called by argument lists."""

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from typing import Any

from wirebound.errors import LabError

PACKAGES = {
    "ip": "iproute2",
    "tc": "iproute2",
    "mount": "mount",
    "setpriv": "util-linux",
    "taskset": "util-linux",
    "unshare": "util-linux",
}

SYSTEM_PATH = "/usr/sbin:/sbin"
"""Where some distributions keep ip and tc, out of an ordinary user's search path."""

PATIENCE_S = 30
"""None of them takes longer than a fraction of a second."""


def find(tool: str) -> str:
    """Path of a program.

    Raises:
        LabError: It is not installed.
    """
    path = shutil.which(tool, path=f"{os.environ.get('PATH', os.defpath)}:{SYSTEM_PATH}")
    if path is None:
        raise LabError(
            f"{tool}: not found, and a lab is built with it",
            f"install the package {PACKAGES[tool]}",
        )
    return path


def call(*words: str) -> str:
    """Run a program to its end.

    Args:
        words: Its name and its arguments.

    Returns:
        What it printed.

    Raises:
        LabError: It is not installed, or failed.
    """
    try:
        done = subprocess.run(  # noqa: S603 - an argument list, found by name
            [find(words[0]), *words[1:]],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise LabError(f"`{' '.join(words)}` did not end within {PATIENCE_S} s") from None
    if done.returncode != 0:
        raise LabError(f"`{' '.join(words)}` failed: {said(done.stderr, done.returncode)}")
    return done.stdout


def said(stderr: str, status: int) -> str:
    """The first line of a program's complaint, or its exit status where it has none."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return lines[0] if lines else f"exit status {status}"


def network_namespaces() -> list[str]:
    """Names of the network namespaces of this machine."""
    return [entry["name"] for entry in parse_objects(call("ip", "-json", "netns", "list"))]


def parse_objects(text: str) -> list[dict[str, Any]]:
    """The objects that ip and tc print as JSON; where there are none, some versions print nothing.

    Raises:
        LabError: Something else, as versions without JSON print.
    """
    try:
        objects = json.loads(text or "[]")
    except ValueError:
        objects = None
    if not isinstance(objects, list) or not all(isinstance(one, dict) for one in objects):
        raise LabError(
            f"iproute2 printed {text[:60]!r}, expected JSON", "install iproute2 5.0 or newer"
        )
    # ip leaves an empty object where a device was filtered out.
    return [one for one in objects if one]


def add_namespace(name: str) -> None:
    """Make a network namespace with a loopback device that works."""
    call("ip", "netns", "add", name)
    call("ip", "-netns", name, "link", "set", "lo", "up")


def remove_namespaces(names: Sequence[str]) -> list[str]:
    """Remove network namespaces, and with each the devices and shapers inside.

    Returns:
        The names of those that this call removed; another lab may be faster.

    Raises:
        LabError: One is still there.
    """
    removed, failure = [], None
    for name in names:
        try:
            call("ip", "netns", "delete", name)
        except LabError as error:
            failure = failure or error
        else:
            removed.append(name)
    if failure is not None and not set(names).isdisjoint(network_namespaces()):
        raise failure
    return removed
