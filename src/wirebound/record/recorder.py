"""Recording a training that runs in this process.

`with wirebound.Recorder("run/"): train()`
"""

import contextlib
import functools
import logging
import os
import socket
import sys
import time
import weakref
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from wirebound.errors import MeasureError
from wirebound.record import environment
from wirebound.record.buckets import assign
from wirebound.record.clock import HostClock
from wirebound.record.collectives import watch_collectives
from wirebound.record.events import NS_PER_US, Event, header, metadata
from wirebound.record.exchange import Clockwork, Offset
from wirebound.record.hooks import watch_phases
from wirebound.record.layout import layout
from wirebound.record.monitor import INTERVAL_MS, Monitor
from wirebound.record.overhead import hook_us_per_gradient
from wirebound.record.patches import Patches
from wirebound.record.registry import Registry, watch_ddp
from wirebound.record.rendering import is_settled, render
from wirebound.record.steps import Step, StepLog
from wirebound.record.writer import TraceFile, claim

if TYPE_CHECKING:
    import torch

STEPS = 1000
"""Enough for any median; a recording of a week would fill a disk."""

MAX_PENDING = 8
"""Complete steps that wait for a device or a collective before the first is written as it is."""

PATIENCE_S = 1.0
"""For what is still open when the script ends [s]."""

Say = Callable[[str], None]
"""Gets one line for the person at the terminal."""


class Recorder:
    """Records the steps of a training, of this process, until it is closed.

    The training computes what it computes without: no tensor is changed, no device is
    waited for inside a step. Whatever goes wrong in the recorder after its start ends the
    recording, with one line, and never the training.

    Args:
        folder: Where the recording goes; made if it is not there.
        model: Hooked at once instead of at its first forward pass.
        steps: How many steps to record; the hooks are gone afterwards.
        force: Replace a recording that is there.
        monitor: Whether the first rank of each host samples its counters.
        interval_ms: Between two samples of the monitor [ms].
        script: What is recorded, for the reader of the recording.
        say: Gets the line when something goes wrong; the log `wirebound` by default.

    Raises:
        MeasureError: No torch, or a folder that cannot be written or holds a recording.
    """

    def __init__(  # noqa: PLR0913 - all but the folder have defaults
        self,
        folder: str | Path,
        model: "torch.nn.Module | None" = None,
        *,
        steps: int = STEPS,
        force: bool = False,
        monitor: bool = True,
        interval_ms: int = INTERVAL_MS,
        script: str | None = None,
        say: Say | None = None,
    ) -> None:
        self._layout = layout()
        self._folder = _attempt(Path(folder), self._layout.restart)
        self._model = model
        self._steps = steps
        self._force = force
        self._interval_ms = interval_ms if monitor and self._layout.local_rank == 0 else None
        self._script = script or Path(sys.argv[0]).name
        self._say = say or logging.getLogger("wirebound").warning
        self._patches = Patches()
        self._pending: deque[Step] = deque()
        self._told = 0
        self._written = 0
        self._offset: Offset | None = None
        self._monitor: Monitor | None = None
        self._is_started = False

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close(is_failed=kind is not None)

    def start(self) -> None:
        """Claim the folder and put the hooks in place.

        Raises:
            MeasureError: As for the class.
        """
        try:
            import torch.distributed as dist
        except ImportError:
            raise MeasureError(
                "torch is not installed, expected the torch that the script trains with",
                "install wirebound beside it: pip install 'wirebound[record]'",
            ) from None
        path = claim(self._folder, self._layout.rank, force=self._force)
        self._base_ns, started_ns = time.perf_counter_ns(), time.time_ns()
        self._file = TraceFile(path)
        self._started_ns = started_ns
        self._is_started = self._is_writing = True
        self._clockwork = Clockwork(self._base_ns)
        self._log = StepLog(self._take)
        self._registry = Registry(self._log)
        watch_phases(self._patches, self._log, self._registry)
        watch_ddp(self._patches, self._log, self._registry)
        watch_collectives(self._patches, self._log, self._fail)
        if dist.is_available():
            self._patches_of_group = Patches()
            self._patches_of_group.replace(dist, "init_process_group", self._after_init)
            self._patches_of_group.replace(dist, "destroy_process_group", self._before_destroy)
            if dist.is_initialized():
                self._align()
        leave = weakref.WeakMethod(self._leave)
        os.register_at_fork(after_in_child=functools.partial(_call, leave))
        if self._model is not None:
            self._registry.meet(self._model)
        self._start_monitor()

    def close(self, *, is_failed: bool = False) -> None:
        """Write what is left and take every hook out.

        Args:
            is_failed: The training raised: other ranks may be gone, so nobody waits for them.
        """
        if not self._is_started:
            return
        self._is_started = False
        with self._guarded():
            if self._is_writing:
                self._log.finish()
            if not is_failed:
                self._align()
        self._unhook()
        if hasattr(self, "_patches_of_group"):
            self._patches_of_group.undo()
        with self._guarded():
            self._end_file(is_failed=is_failed)
        self._file.close()

    def _end_file(self, *, is_failed: bool) -> None:
        if not self._is_writing:
            return
        for step in self._pending:
            # A device that failed would be waited for forever.
            if not is_failed:
                self._log.clock.wait(step.end)
            self._settle(step)
            if self._log.clock.passed(step.end):
                self._write(step)
        if not self._written:
            self._file.write(self._header())
            if not is_failed:
                self._say(
                    "no step was recorded: no torch.optim optimizer stepped after a backward "
                    "pass in this process; ranks that a script starts itself need torchrun, or "
                    "a Recorder inside"
                )
        cost_us = None if is_failed or not self._written else hook_us_per_gradient()
        facts = {
            "events": self._file.events,
            "bytes": self._file.nbytes,
            "hook_us_per_gradient": cost_us,
        }
        self._file.finish([metadata("wirebound_overhead", self._layout.rank, facts)])

    def _settle(self, step: Step) -> None:
        """Let a collective that is done say so: its note needs the interpreter for a moment."""
        deadline_s = time.monotonic() + PATIENCE_S
        while not is_settled(step, self._log.clock) and time.monotonic() < deadline_s:
            time.sleep(0.001)

    def _take(self, step: Step) -> None:
        """A step is complete: write it, and those before it, once their times are known."""
        with self._guarded():
            self._registry.learn()
            self._pending.append(step)
            clock = self._log.clock
            while self._pending and (
                is_settled(self._pending[0], clock)
                or (len(self._pending) > MAX_PENDING and clock.passed(self._pending[0].end))
            ):
                self._write(self._pending.popleft())
            if self._written >= self._steps:
                self._unhook()

    def _write(self, step: Step) -> None:
        models = self._registry.models
        rank = self._layout.rank
        events: list[Event] = [] if self._written else self._header()
        events += [
            metadata("wirebound_model", rank, model.record()) for model in models[self._told :]
        ]
        bucket_of = assign(step, models)
        events += render(step, bucket_of, self._log.clock, self._base_ns, rank)
        self._file.write(events)
        self._told = len(models)
        self._written += 1
        if self._monitor is not None:
            last = events[-1]
            self._monitor.step(step.index, (last.ts or 0.0) + (last.dur or 0.0))

    def _header(self) -> list[Event]:
        """Written with the first step, when the process group and the device are known."""
        import torch.distributed as dist

        is_grouped = dist.is_available() and dist.is_initialized()
        place = self._layout
        facts = {
            "world_size": dist.get_world_size() if is_grouped else place.world_size,
            "local_rank": place.local_rank,
            "local_world_size": place.local_world_size,
            "node": place.node,
            "host": socket.gethostname(),
            "device": "cpu" if isinstance(self._log.clock, HostClock) else "cuda",
            "backend": dist.get_backend() if is_grouped else None,
            "started_ns": self._started_ns,
            "versions": environment.versions(),
            "environment": environment.variables(),
            "interfaces": environment.interfaces(),
            "script": self._script,
        }
        return header(place.rank, facts)

    def _align(self) -> None:
        """Compare clocks with rank 0, and write what is known by now."""
        offset = self._clockwork.exchange()
        if offset is None or not self._is_writing:
            return
        self._offset = offset if self._offset is None else self._offset.with_later(offset)
        if self._written:
            facts = {
                "offset_us": self._offset.ahead_ns / NS_PER_US,
                "error_us": self._offset.error_ns / NS_PER_US,
            }
            self._file.write([metadata("wirebound_clock", self._layout.rank, facts)])

    def _after_init(self, original: Any) -> Any:  # noqa: ANN401 - the function as torch has it
        @functools.wraps(original)
        def init_process_group(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            result = original(*args, **kwargs)
            with self._guarded():
                self._align()
            return result

        return init_process_group

    def _before_destroy(self, original: Any) -> Any:  # noqa: ANN401
        @functools.wraps(original)
        def destroy_process_group(group: Any = None) -> Any:  # noqa: ANN401
            if group is None:
                with self._guarded():
                    self._log.finish()
                    self._align()
            return original(group)

        return destroy_process_group

    def _start_monitor(self) -> None:
        if self._interval_ms is None:
            return
        with self._guarded():
            rank = self._layout.rank
            self._monitor = Monitor(self._folder, rank, self._base_ns, self._interval_ms)

    def _guarded(self) -> "_Guard":
        return _Guard(self._fail)

    def _fail(self, error: Exception) -> None:
        """The recording ends here and says so; the training goes on."""
        if not self._is_writing:
            return
        self._is_writing = False
        reason = error.strerror if isinstance(error, OSError) else None
        problem = reason or f"{type(error).__name__}: {error}"
        self._say(
            f"{self._file.path}: recording stopped after {self._written} steps, training goes on: "
            f"{problem}"
        )
        self._unhook()

    def _unhook(self) -> None:
        self._patches.undo()
        self._registry.patches.undo()
        monitor, self._monitor = self._monitor, None
        if monitor is not None:
            monitor.stop()

    def _leave(self) -> None:
        """In a forked child, such as a loader's worker: everything belongs to the parent."""
        if not self._is_started:
            return
        self._is_started = self._is_writing = False
        self._log.thread = -1
        self._file.close()
        if self._monitor is not None:
            self._monitor.leave()


class _Guard(contextlib.AbstractContextManager[None]):
    """Turns an error of the recorder into the end of the recording."""

    def __init__(self, fail: Callable[[Exception], None]) -> None:
        self._fail = fail

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if isinstance(error, Exception):
            self._fail(error)
            return True
        return False


def _call(method: "weakref.WeakMethod[Callable[[], None]]") -> None:
    """Call a method of an object that may be gone."""
    alive = method()
    if alive is not None:
        alive()


def _attempt(folder: Path, restart: int) -> Path:
    """A job that torchrun starts again must not fail for what its first attempt wrote."""
    return folder / f"restart-{restart}" if restart else folder
