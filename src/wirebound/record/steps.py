"""What hooks note while a step runs: tuples and marks, nothing else.

A step ends where the next one begins: at the first input, forward or backward after an
optimizer step that followed a backward pass. What lies between (logging, clearing
gradients) is the end of the step that caused it. Several optimizers in a row are one
step.
"""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from wirebound.record.clock import Clock, HostClock, Mark

if TYPE_CHECKING:
    from wirebound.record.models import Slot

MAX_NOTES = 1_000_000
"""Gradients and collectives of a step, some 100 MB; a script that never steps stops there."""


class Span:
    """A timed piece of a step on the compute lane."""

    __slots__ = ("end", "kind", "micro", "start")

    def __init__(self, kind: str, start: Mark, end: Mark, micro: int) -> None:
        self.kind, self.start, self.end, self.micro = kind, start, end, micro


class Backward:
    """A backward pass and where its notes are in the lists of its step.

    Attributes:
        start: When it began.
        end: When `backward()` returned.
        gradients: First and last gradient, as a range.
        communicated: Whether it put a collective on its way.
    """

    __slots__ = ("communicated", "end", "gradients", "start")

    def __init__(self, start: Mark, end: Mark, gradients: range, *, communicated: bool) -> None:
        self.start, self.end = start, end
        self.gradients, self.communicated = gradients, communicated


class Collective:
    """One collective, as it was called.

    Attributes:
        kind: `all_reduce` and so on.
        nbytes: What nccl-tests calls its size [bytes].
        numel: Elements of it.
        dtype: Of its elements.
        group: Name of its process group.
        micro: The micro-step that called it.
        hint: In a backward pass, the model whose gradient came before.
        model: The DDP model whose bucket it carries, once known.
        bucket: Number of that bucket, once known.
        enqueued: When it was called.
        done: When it was done; None until then.
    """

    __slots__ = (
        "bucket", "done", "dtype", "enqueued", "group", "hint", "kind", "micro", "model",
        "nbytes", "numel",
    )  # fmt: skip

    def __init__(  # noqa: PLR0913, PLR0917 - what a call has
        self,
        kind: str,
        nbytes: int,
        numel: int,
        dtype: str,
        group: str,
        micro: int,
        hint: int | None,
        enqueued: Mark,
    ) -> None:
        self.kind, self.nbytes, self.numel, self.dtype, self.group = (
            kind, nbytes, numel, dtype, group,
        )  # fmt: skip
        self.micro, self.hint, self.enqueued = micro, hint, enqueued
        self.model: int | None = None
        self.bucket: int | None = None
        self.done: Mark | None = None


class Launch:
    """A bucket that DDP handed to a user's communication hook."""

    __slots__ = ("bucket", "micro", "model", "numel")

    def __init__(self, model: int, bucket: int, numel: int, micro: int) -> None:
        self.model, self.bucket, self.numel, self.micro = model, bucket, numel, micro


class Step:
    """The notes of one step."""

    __slots__ = (
        "backwards", "collectives", "end", "gradients", "index", "launches", "spans", "start",
    )  # fmt: skip

    def __init__(self, index: int, start: Mark) -> None:
        self.index = index
        self.start = start
        self.end: Mark | None = None
        self.spans: list[Span] = []
        self.backwards: list[Backward] = []
        self.gradients: list[tuple[Slot, Mark]] = []
        self.collectives: list[Collective] = []
        self.launches: list[Launch] = []


class StepLog:
    """Takes the notes of the hooks and hands over each complete step.

    Only the thread that made it takes part: hooks compare `thread` before they note.

    Args:
        deliver: Gets each complete step, at a moment when the script is between two.
    """

    def __init__(self, deliver: Callable[[Step], None]) -> None:
        self.clock: Clock = HostClock()
        self.thread = threading.get_ident()
        self.is_inside = False
        """Whether an input, forward or backward runs: what runs inside of it is a part of it."""
        self.in_backward = False
        self.bucket: tuple[int, int] | None = None
        """Model and bucket whose communication hook runs."""
        self.step: Step | None = None
        self.gradients: list[tuple[Slot, Mark]] = []
        self.waited_for: dict[object, Collective] = {}
        """Collectives of this step that are done when somebody has waited for their work."""
        self.lost = 0
        """Steps given up because they would not end."""
        self._deliver = deliver
        self._index = 0
        self._is_partial = False
        self._optimized: Mark | None = None
        self._optimizer_start: Mark | None = None

    @property
    def micro(self) -> int:
        """The micro-step that runs."""
        return 0 if self.step is None else len(self.step.backwards)

    def begin(self) -> Mark:
        """Something of a step begins; what came before may have been a complete one.

        Returns:
            When it begins.
        """
        now = self.clock.mark()
        if self._optimized is not None:
            self._close(now)
            now = self.clock.mark()
        if self.step is None:
            self.step = Step(self._index, now)
        return now

    def note(self, kind: str, start: Mark) -> None:
        """Something ends that began at a mark."""
        if self.step is not None:
            self.step.spans.append(Span(kind, start, self.clock.mark(), self.micro))

    def forget_input(self) -> None:
        """A forward pass without gradients begins: the input before it was not for training."""
        if self.step is not None and self.step.spans and self.step.spans[-1].kind == "input":
            self.step.spans.pop()

    def backward_ends(self, start: Mark, gradients: int, collectives: int) -> None:
        """A backward pass ends.

        Args:
            start: When it began.
            gradients: How many gradients the step had then.
            collectives: How many collectives it had then.
        """
        step = self.step
        if step is None:
            return
        end = self.clock.mark()
        step.backwards.append(
            Backward(
                start,
                end,
                range(gradients, len(self.gradients)),
                communicated=len(step.collectives) > collectives,
            )
        )
        if self._optimizer_start is not None:
            self._optimizer_start = end  # a closure: the optimizer begins anew behind it
        if len(self.gradients) + len(step.collectives) > MAX_NOTES:
            self.give_up()

    def optimizer_begins(self) -> None:
        """An optimizer's step begins."""
        if self.step is not None:
            self._optimizer_start = self.clock.mark()

    def optimizer_ends(self) -> None:
        """An optimizer's step ends, and with it the step, unless another optimizer follows."""
        start, self._optimizer_start = self._optimizer_start, None
        if self.step is None or start is None:
            return
        end = self.clock.mark()
        last = max(0, self.micro - 1)
        self.step.spans.append(Span("optimizer", start, end, last))
        if self.step.backwards:
            self._optimized = end

    def finish(self) -> None:
        """The script ends; so does a step whose optimizer is done."""
        if self._optimized is not None:
            self._close(self._optimized)

    def give_up(self) -> None:
        """Drop a step that does not end."""
        self.lost += 1
        self._is_partial = True
        self.step = None
        self.gradients.clear()

    def _close(self, end: Mark) -> None:
        self._optimized = None
        step, self.step = self.step, None
        if step is None:
            return
        step.end = end
        step.gradients = self.gradients.copy()
        self.waited_for.clear()
        self.gradients.clear()  # the hooks hold this very list
        if self._is_partial:
            self._is_partial = False
            return
        self._index += 1
        self._deliver(step)
