"""The models of a script: parameters in their order, and the buckets that DDP made of them."""

from typing import Any

import msgspec

Buckets = tuple[tuple[int, ...], ...]
"""Positions of parameters, a bucket each."""


class Slot(msgspec.Struct, frozen=True):
    """One parameter.

    Attributes:
        name: In its model.
        nbytes: Of its gradient [bytes].
        numel: Elements of it.
        dtype: Of its elements.
        model: Number of its model.
        position: In its model.
    """

    name: str
    nbytes: int
    numel: int
    dtype: str
    model: int
    position: int


class Model:
    """The parameters that one module brought, in order of registration.

    Args:
        index: Number of the model.
        slots: Its parameters that need a gradient.
        buckets: What DDP made of them at construction; None without DDP.
        facts: What else the recording says about it.
    """

    def __init__(
        self, index: int, slots: list[Slot], buckets: Buckets | None, facts: dict[str, Any]
    ) -> None:
        self.index = index
        self.slots = slots
        self.facts = facts
        self.initial = buckets
        self.rebuilt: Buckets | None = None

    def learn(self, logged: str) -> None:
        """Take the buckets that DDP made after its first backward pass.

        Args:
            logged: As DDP logs them: `3 2, 1 0`.
        """
        buckets = tuple(
            tuple(int(position) for position in bucket.split()) for bucket in logged.split(",")
        )
        if buckets and all(buckets) and max(map(max, buckets)) < len(self.slots):
            self.rebuilt = buckets

    def candidates(self) -> list[Buckets]:
        """The buckets that a step can have used, the likelier first."""
        return [buckets for buckets in (self.rebuilt, self.initial) if buckets is not None]

    def numels(self, buckets: Buckets) -> list[int]:
        """Elements of each bucket."""
        return [sum(self.slots[position].numel for position in bucket) for bucket in buckets]

    def record(self) -> dict[str, Any]:
        """What the recording says about it."""
        parameters = [[slot.name, slot.nbytes, slot.dtype] for slot in self.slots]
        return {"model": self.index, "parameters": parameters, **self.facts}
