"""Many scenarios at once: axes, their product, and a sweep that streams."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from wirebound.network.record import Network
from wirebound.simulate.keys import KEYS, apply
from wirebound.simulate.program import Columns, Outcome, Program, structural_fields
from wirebound.simulate.scenario import NUMERIC, Scenario
from wirebound.units import MIB
from wirebound.workload.record import Workload

CELLS = 2**21
"""Operations times scenarios evaluated together at most: some tens of MB of intermediate times."""

CHUNK = 8192
"""Scenarios evaluated together at most: arrays below the allocator's threshold for large ones."""

ALLOCATION_BYTES = 31 * MIB


class Grid(msgspec.Struct, frozen=True):
    """A base scenario and the values some keys take.

    Attributes:
        base: What does not vary.
        axes: Key -> its parsed values, in the order given.
    """

    base: Scenario
    axes: Mapping[str, Sequence[Any]]

    @property
    def size(self) -> int:
        """Number of scenarios."""
        return math.prod(len(values) for values in self.axes.values())

    def blocks(self) -> Iterator["Block"]:
        """Split into blocks of one program each; what varies inside a block is numeric.

        Keys that decide which operations exist vary slowest.
        """
        discrete = [key for key, values in self.axes.items() if not _is_numeric(key, values)]
        rest = [key for key in self.axes if key not in discrete]
        for choice in itertools.product(*(self.axes[key] for key in discrete)):
            scenario = apply(self.base, dict(zip(discrete, choice, strict=True)))
            fields = structural_fields(scenario)
            split = [key for key in rest if KEYS[key].field in fields]
            columns = [key for key in rest if key not in split]
            for values in itertools.product(*(self.axes[key] for key in split)):
                chosen = apply(scenario, dict(zip(split, values, strict=True)))
                axes = {
                    KEYS[key].field: np.asarray(self.axes[key], dtype=np.float64) for key in columns
                }
                yield Block(_representative(chosen, axes), axes)


class Block(msgspec.Struct, frozen=True):
    """Scenarios that share their operations.

    Attributes:
        scenario: With one value of each numeric axis in place.
        axes: Numeric field -> its values.
    """

    scenario: Scenario
    axes: Mapping[str, NDArray[np.float64]]

    @property
    def size(self) -> int:
        """Number of scenarios."""
        return math.prod(len(values) for values in self.axes.values())

    def columns(self, start: int, stop: int) -> Columns:
        """Scenarios `start` to `stop` of the product as columns; the last axis runs fastest."""
        shape = tuple(len(values) for values in self.axes.values())
        if not shape:
            return {}
        places = np.unravel_index(np.arange(start, stop), shape)
        return {
            field: values[place]
            for (field, values), place in zip(self.axes.items(), places, strict=True)
        }


class Chunk(msgspec.Struct, frozen=True):
    """A stretch of a sweep.

    Attributes:
        program: What was evaluated.
        columns: Numeric fields that vary (S,).
        outcome: Step times (S,).
    """

    program: Program
    columns: Columns
    outcome: Outcome


def sweep(
    workload: Workload, network: Network, grid: Grid, *, with_bill: bool = False
) -> Iterator[Chunk]:
    """Evaluate a grid in bounded memory, a chunk at a time.

    Args:
        workload: What a step needs.
        network: What moving bytes costs.
        grid: Any number of scenarios.
        with_bill: Whether to walk the critical paths too.
    """
    keep_freed_memory()
    for block in grid.blocks():
        program = Program(workload, network, block.scenario)
        rows = chunk_rows(program)
        for start in range(0, block.size, rows):
            columns = block.columns(start, min(start + rows, block.size))
            yield Chunk(program, columns, program.evaluate(columns, with_bill=with_bill))


def chunk_rows(program: Program) -> int:
    """How many scenarios of a program to evaluate together."""
    jitter = program.scenario.jitter
    draws = 1 if jitter is None else jitter.draws
    return max(1, min(CHUNK, CELLS // len(program.graph.operations)) // draws)


def keep_freed_memory() -> None:
    """Let the C library keep freed memory for the next array.

    glibc raises its threshold for returning memory when the first large block is freed;
    without that, every array of a sweep faults its pages in again, at three to four
    times the cost of the arithmetic.
    """
    del_me = np.empty(ALLOCATION_BYTES, dtype=np.uint8)
    del del_me


def _is_numeric(key: str, values: Sequence[Any]) -> bool:
    return KEYS[key].field in NUMERIC and all(value is not None for value in values)


def _representative(scenario: Scenario, axes: Mapping[str, NDArray[np.float64]]) -> Scenario:
    """The scenario with one value of each axis, costs rather than free where there are both.

    Operations that cost nothing in some scenarios must exist for the others.
    """
    for field, values in axes.items():
        whole = field in ("workers", "gpus_per_node")
        # Both ends, so that a record checks the range; the larger stays.
        for end in (values.min(), values.max()):
            chosen = int(end) if whole else float(end)
            scenario = msgspec.structs.replace(scenario, **{field: chosen})
    return scenario
