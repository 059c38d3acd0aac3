"""Programs on hosts: started in a group of processes of their own, and ended with all of it."""

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from wirebound.lab.outcome import RankOutcome, program_status
from wirebound.lab.wiring import Host

GRACE_S = 2.0
"""Between asking a program to end and killing it."""


class Agent:
    """What runs on one host, and its output files."""

    def __init__(
        self, host: Host, words: Sequence[str], folder: Path, environment: Mapping[str, str]
    ) -> None:
        self.host = host
        self.stdout = folder / f"rank{host.rank}.stdout"
        self.stderr = folder / f"rank{host.rank}.stderr"
        self.is_stopped = False
        with self.stdout.open("xb") as out, self.stderr.open("xb") as err:
            self.process = subprocess.Popen(  # noqa: S603 - an argument list
                words,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,  # Ctrl-C reaches the lab, which then ends the agents
            )

    def ask(self) -> None:
        """Ask all its processes to end."""
        if self.process.poll() is None:
            self.is_stopped = True
            os.killpg(self.process.pid, signal.SIGTERM)

    def kill(self) -> None:
        """End all its processes."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def outcome(self) -> RankOutcome:
        """How it ended."""
        status = program_status(self.process.returncode, self.stderr)
        return RankOutcome(self.host.rank, status, self.is_stopped, self.stdout, self.stderr)


def stop(agents: Sequence[Agent]) -> None:
    """End what still runs, gently at first."""
    for agent in agents:
        agent.ask()
    deadline = time.monotonic() + GRACE_S
    for agent in agents:
        with suppress(subprocess.TimeoutExpired):
            agent.process.wait(max(0.0, deadline - time.monotonic()))
    for agent in agents:
        agent.kill()
