"""The last step of an ordinary user into a user namespace, run as a module.

`ip` keeps its namespaces under /run, which must be writable: the new namespace gets a /run of
its own, and then the command line goes on. Nothing imports this module.
"""

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from wirebound.errors import LabError
from wirebound.lab.tools import call


def main(arguments: Sequence[str]) -> NoReturn:
    """Go on as the command line."""
    try:
        call("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run")
    except LabError as error:
        sys.stderr.write(f"wirebound: a user namespace without a /run of its own: {error}\n")
        sys.exit(error.exit_code)
    words = [sys.executable, "-m", "wirebound", *arguments]
    os.execv(sys.executable, words)  # noqa: S606 - an argument list


if __name__ == "__main__":
    main(sys.argv[1:])
