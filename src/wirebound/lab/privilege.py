"""What a lab needs from the kernel, and a way for an ordinary user to have it.

In a user namespace every user may be root over what lies inside.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from wirebound.errors import LabError
from wirebound.lab.tools import call, find

NEEDED = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21}
"""Numbers of the capabilities, from linux/capability.h."""

INTO_USER_NAMESPACE = "--user", "--map-root-user", "--net", "--mount"


def is_privileged() -> bool:
    """Whether this process may make network namespaces and mount what they need."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        if name == "CapEff":
            effective = int(value, 16)
            return all(effective >> number & 1 for number in NEEDED.values())
    return False


def require() -> None:
    """Make sure of the privilege.

    Raises:
        LabError: It is missing.
    """
    if not is_privileged():
        raise LabError(
            f"a lab makes network namespaces, which takes {' and '.join(NEEDED)}",
            "run as root; `wirebound lab run` also tries a user namespace",
        )


def restart_in_user_namespace(arguments: Sequence[str]) -> NoReturn:
    """Become another run of the command line, in a user namespace.

    Args:
        arguments: Of the command line, without its name.

    Raises:
        LabError: The kernel does not allow it.
    """
    try:
        call("unshare", *INTO_USER_NAMESPACE, "--", "true")
    except LabError as error:
        raise LabError(
            "a lab takes root, or a user namespace, and this machine allows neither: "
            f"{error.message}",
            "run as root",
        ) from None
    unshare = find("unshare")
    module = "-m", "wirebound.lab.own_run"
    words = [unshare, *INTO_USER_NAMESPACE, "--", sys.executable, *module, *arguments]
    os.execv(unshare, words)  # noqa: S606 - an argument list
