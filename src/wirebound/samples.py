"""Measured costs of moving and adding bytes: what a network is fitted to.

A sample is one operation at one size. `wirebound bench` and nccl-tests both make them.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

import msgspec

from wirebound.errors import ReadError
from wirebound.inputs import read_text

SCHEMA_VERSION = 1

Measured = Literal[
    "all_reduce",
    "reduce_scatter",
    "all_gather",
    "broadcast",
    "all_to_all",
    "send_recv",
    "send_recv_both_ways",
    "reduction",
    "copy",
]
"""Collectives by the names of the model, and what one rank does alone."""

MEASURED: tuple[Measured, ...] = get_args(Measured)


class Sample(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What one operation took at one size.

    Attributes:
        kind: A collective; `send_recv`, one way; `send_recv_both_ways`, where each port
            sends and receives at once; `reduction`, adding one buffer to another; `copy`.
        nbytes: Size as nccl-tests counts it, of one buffer for `reduction` and `copy` [bytes].
        seconds: Median of the repeats, mean of the ranks [s].
        ranks: Taking part.
        nodes: Holding them, filled evenly.
        spread: Interquartile range of the repeats over their median, where known.
        repeats: Measured, after the warm-up; 0 where unknown.
        algorithm: Of the all-reduce, where known.
        dtype: Element type, as nccl-tests names it.
        count: Elements, as nccl-tests counts them; 0 where unknown.
        after_s: The same for the last rank to join, when all have computed before, where
            that was measured [s].
        beside_s: The same while every rank computes on the processors that it communicates
            with, where that was measured [s].
        compute_share: Of its pace that this computation kept meanwhile, where measured.
    """

    kind: Measured
    nbytes: int
    seconds: float
    ranks: int = 1
    nodes: int = 1
    spread: float | None = None
    repeats: int = 0
    algorithm: str | None = None
    dtype: str = "float"
    count: int = 0
    after_s: float | None = None
    beside_s: float | None = None
    compute_share: float | None = None

    def __post_init__(self) -> None:
        """Refuse what nobody can have measured."""
        what = f"sample of {self.kind}"
        if self.nbytes < 1:
            raise ReadError(f"{what}: nbytes is {self.nbytes}, expected at least 1")
        if not (math.isfinite(self.seconds) and self.seconds > 0):
            raise ReadError(f"{what}: seconds is {self.seconds}, expected a time > 0")
        for name in ("after_s", "beside_s"):
            seconds = getattr(self, name)
            if seconds is not None and not (math.isfinite(seconds) and seconds > 0):
                raise ReadError(f"{what}: {name} is {seconds}, expected a time > 0")
        if self.compute_share is not None and not 0 <= self.compute_share <= 1:
            raise ReadError(f"{what}: compute_share is {self.compute_share}, expected 0 to 1")
        if not 1 <= self.nodes <= self.ranks:
            raise ReadError(
                f"{what}: {self.ranks} ranks on {self.nodes} nodes, "
                "expected at least one node and no more than ranks"
            )


class Samples(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one run of a benchmark measured, and where.

    Attributes:
        samples: In the order they were taken.
        source: Program or file they come from.
        backend: Library that moved the bytes: `gloo`, `nccl`.
        hosts: Names of the hosts, in the order of their first rank.
        versions: Of the software, by name.
        notes: What was left out and why, and what the run complained about.
        schema_version: Of the JSON form.
    """

    samples: tuple[Sample, ...]
    source: str
    backend: str = "unknown"
    hosts: tuple[str, ...] = ()
    versions: Mapping[str, str] = {}
    notes: tuple[str, ...] = ()
    schema_version: int = SCHEMA_VERSION

    def __post_init__(self) -> None:
        """Refuse files of another time."""
        if self.schema_version != SCHEMA_VERSION:
            raise ReadError(
                f"samples: schema_version {self.schema_version}, this program reads "
                f"{SCHEMA_VERSION}"
            )


def read(path: Path | str) -> Samples:
    """Read samples from a JSON file.

    Raises:
        ReadError: The file is missing, or holds no samples.
    """
    path = Path(path)
    text = read_text(path, "samples in JSON")
    try:
        return msgspec.json.decode(text, type=Samples)
    except ReadError as error:
        raise ReadError(f"{path}: {error.message}", error.hint) from None
    except msgspec.ValidationError as error:
        raise ReadError(f"{path}: holds no samples: {error}") from None
    except msgspec.DecodeError as error:
        raise ReadError(f"{path}: not complete JSON ({error}), expected samples") from None


def dumps(samples: Samples) -> bytes:
    """Samples as JSON, readable by people and by `read`."""
    return msgspec.json.format(msgspec.json.encode(samples), indent=1) + b"\n"
