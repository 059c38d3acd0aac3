"""Waiting for programs, and for what may go wrong meanwhile.

The lab sleeps while they run, because they need the processors: the kernel wakes it when a
program ends or a link changes.
"""

import os
import re
import selectors
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Literal

from wirebound.lab.agents import Agent
from wirebound.lab.tools import find
from wirebound.lab.wiring import LOOPBACK, Host
from wirebound.units import format_time

Echo = Callable[[Literal["stdout", "stderr"], bytes], None]
"""Takes what rank 0 writes, as it comes."""

ECHO_S = 0.1
"""Between two looks at what rank 0 wrote."""

FOLLOW_S = 5.0
"""What the other ranks get to end by themselves after one has failed."""

CHUNK_BYTES = 2**16

_LOST = re.compile(
    r"^(?:Deleted \d+: ([\w-]+)|\d+: ([\w-]+)[@:].* state (?:DOWN|LOWERLAYERDOWN)\b)",
    re.MULTILINE,
)


class Watch:
    """Waits until all agents have ended, or something forbids to wait longer.

    Args:
        agents: What runs.
        timeout_s: How long they may, or None for any time [s].
    """

    def __init__(self, agents: Sequence[Agent], timeout_s: float | None) -> None:
        self._agents = agents
        self._timeout_s = timeout_s
        self._deadline = None if timeout_s is None else time.monotonic() + timeout_s
        self._has_failed = False
        self._failure: str | None = None

    def wait(self, echo: Echo | None) -> str | None:
        """Wait.

        Args:
            echo: Takes what rank 0 writes.

        Returns:
            What went wrong with the lab or the time, in a sentence, or None.
        """
        with ExitStack() as stack:
            selector = stack.enter_context(selectors.DefaultSelector())
            show = stack.enter_context(_followed(self._agents[0], echo))
            for agent in self._agents:
                selector.register(stack.enter_context(_ended(agent)), selectors.EVENT_READ, agent)
                if agent.host.interface != LOOPBACK:
                    links = stack.enter_context(_link_changes(agent.host))
                    selector.register(links, selectors.EVENT_READ, agent.host)
            running = len(self._agents)
            while running and not self._is_over():
                for key, _ in selector.select(self._patience_s(echo)):
                    if isinstance(key.data, Agent):
                        selector.unregister(key.fd)
                        running -= 1
                        self._note_end(key.data)
                    else:
                        self._note_links(selector, key)
                show()
        return self._failure

    def _is_over(self) -> bool:
        """Whether there is no point in waiting longer."""
        if self._failure is not None:
            return True
        if self._deadline is None or time.monotonic() < self._deadline:
            return False
        if not self._has_failed and self._timeout_s is not None:
            self._failure = f"the program did not end within {format_time(self._timeout_s)}"
        return True

    def _patience_s(self, echo: Echo | None) -> float | None:
        limits = [] if echo is None else [ECHO_S]
        if self._deadline is not None:
            limits.append(max(0.0, self._deadline - time.monotonic()))
        return min(limits, default=None)

    def _note_end(self, agent: Agent) -> None:
        if agent.process.wait() == 0 or self._has_failed:
            return
        self._has_failed = True
        follow = time.monotonic() + FOLLOW_S
        self._deadline = follow if self._deadline is None else min(self._deadline, follow)

    def _note_links(self, selector: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
        text = os.read(key.fd, CHUNK_BYTES).decode(errors="replace")
        if not text:
            selector.unregister(key.fd)  # the monitor has ended; the links are checked at the end
        device = lost_device(text)
        if device is not None:
            self._failure = (
                f"interface {device} of host {key.data.rank} went down or vanished "
                "while the program ran"
            )


def lost_device(text: str) -> str | None:
    """The device that `ip monitor link` reports as gone or down, or None."""
    match = _LOST.search(text)
    return None if match is None else match[1] or match[2]


@contextmanager
def _ended(agent: Agent) -> Iterator[int]:
    """A descriptor that can be read once a process has ended."""
    fd = os.pidfd_open(agent.process.pid)
    try:
        yield fd
    finally:
        os.close(fd)


@contextmanager
def _link_changes(host: Host) -> Iterator[int]:
    """A descriptor from which the changes of a host's links can be read."""
    reading, writing = os.pipe()
    try:
        with open(writing, "wb") as pipe:  # noqa: PTH123 - a descriptor
            monitor = subprocess.Popen(  # noqa: S603 - an argument list
                [
                    *(find("setpriv"), "--pdeathsig", "KILL"),
                    *(find("ip"), "-oneline", "-netns", host.namespace, "monitor", "link"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=pipe,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        with monitor:
            try:
                yield reading
            finally:
                monitor.kill()
    finally:
        os.close(reading)


@contextmanager
def _followed(agent: Agent, echo: Echo | None) -> Iterator[Callable[[], None]]:
    """A function that passes on what an agent wrote since the last time."""
    if echo is None:
        yield lambda: None
        return
    with agent.stdout.open("rb") as out, agent.stderr.open("rb") as err:

        def show() -> None:
            while chunk := out.read(CHUNK_BYTES):
                echo("stdout", chunk)
            while chunk := err.read(CHUNK_BYTES):
                echo("stderr", chunk)

        yield show
        show()
