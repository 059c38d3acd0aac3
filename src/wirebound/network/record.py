"""A network: what a byte, a message and an addition cost in each tier.

The formulas, their sources and limits are in `docs/model/network.md`.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from wirebound.errors import NetworkError, ReadError
from wirebound.inputs import read_text
from wirebound.network.collectives import Amount

SCHEMA_VERSION = 1

Points = tuple[tuple[float, float], ...]


def _check(holds: bool, what: str, value: float, expected: str) -> None:  # noqa: FBT001
    if not (holds and math.isfinite(value)):
        raise NetworkError(f"{what} is {value}, expected {expected}")


def _check_efficiency(efficiency: float, what: str) -> None:
    _check(0 < efficiency <= 1, f"{what}: efficiency", efficiency, "a ratio in (0, 1]")


def _check_ascending(points: Sequence[tuple[float, float]], what: str) -> None:
    sizes = [size for size, _ in points]
    for size in sizes:
        _check(size > 0, what, size, "sizes > 0")
    if not sizes or any(later <= size for size, later in pairwise(sizes)):
        raise NetworkError(f"{what}: expected at least one point, sizes ascending, got {sizes}")


class Tier(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One level of the network: the ports of a node, or of a GPU inside it.

    Attributes:
        name: What people call it.
        bandwidth_bps: Line rate of one port, one direction [bit/s].
        alpha_s: What each message costs beside its bytes [s].
        efficiency: Share of the line rate that payload gets, in (0, 1]; or points of
            (message size [bytes], efficiency), sizes ascending.
        nics: Ports of this kind a node (or GPU) uses together.
        oversubscription: Line rate offered by the ports over what the fabric behind
            them carries when all use it, at least 1.
    """

    name: str
    bandwidth_bps: float
    alpha_s: float
    efficiency: float | Points = 1.0
    nics: int = 1
    oversubscription: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what no link can be."""
        what = f"tier {self.name!r}"
        _check(self.bandwidth_bps > 0, f"{what}: bandwidth_bps", self.bandwidth_bps, "a rate > 0")
        _check(self.alpha_s >= 0, f"{what}: alpha_s", self.alpha_s, "a time >= 0")
        _check(self.nics >= 1, f"{what}: nics", self.nics, "at least 1")
        _check(
            self.oversubscription >= 1,
            f"{what}: oversubscription",
            self.oversubscription,
            "a ratio >= 1",
        )
        if not isinstance(self.efficiency, tuple):
            _check_efficiency(self.efficiency, what)
            return
        _check_ascending(self.efficiency, f"{what}: efficiency")
        for _, efficiency in self.efficiency:
            _check_efficiency(efficiency, what)
        _, times = self._curve()
        if np.any(np.diff(times) < 0):
            raise NetworkError(
                f"{what}: efficiency rises so fast with size that a larger message would take "
                "less time than a smaller one, expected size / efficiency to grow"
            )

    @property
    def node_bps(self) -> float:
        """Rate that all ports of a node have together behind the fabric [bit/s]."""
        return self.bandwidth_bps * self.nics / self.oversubscription

    @property
    def best_efficiency(self) -> float:
        """The largest share of the line rate, at whatever size."""
        if isinstance(self.efficiency, tuple):
            return max(share for _, share in self.efficiency)
        return self.efficiency

    def efficiency_at(self, message_bytes: Amount) -> Amount:
        """Share of the line rate for messages of a size.

        Between two points size / efficiency is linear in the size, so that times stay
        piecewise linear; outside the points the efficiency is that of the nearest.

        Args:
            message_bytes: Size of one message [bytes].
        """
        if not isinstance(self.efficiency, tuple):
            return self.efficiency
        sizes, times = self._curve()
        inside = np.clip(message_bytes, sizes[0], sizes[-1])
        occupied: Amount = np.interp(inside, sizes, times)
        return inside / occupied

    def occupancy_bytes(self, nbytes: Amount, message_bytes: Amount) -> Amount:
        """Bytes of line rate that a payload occupies, headers and pauses included.

        Args:
            nbytes: Payload [bytes].
            message_bytes: Size of the messages it travels in [bytes].
        """
        return nbytes / self.efficiency_at(message_bytes)

    def _curve(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return sizes, and sizes / efficiencies."""
        sizes, efficiencies = np.asarray(self.efficiency, dtype=np.float64).T
        return sizes, sizes / efficiencies


class Reduction(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What adding two buffers costs: a rate, or a measured table; free by default.

    Attributes:
        seconds_per_byte: Of one addend [s/byte].
        table: Points of (bytes of one addend, seconds), sizes ascending; linear between
            them and constant outside.
    """

    seconds_per_byte: float = 0.0
    table: Points = ()

    def __post_init__(self) -> None:
        """Refuse costs that no addition has."""
        per_byte = self.seconds_per_byte
        _check(per_byte >= 0, "reduction: seconds_per_byte", per_byte, "a cost >= 0")
        if not self.table:
            return
        if per_byte:
            raise NetworkError("reduction: has seconds_per_byte and a table, expected one of them")
        _check_ascending(self.table, "reduction: table")
        for _, seconds in self.table:
            _check(seconds >= 0, "reduction: table", seconds, "seconds >= 0")

    def seconds(self, nbytes: Amount) -> Amount:
        """Time of one addition [s].

        Args:
            nbytes: Size of one addend [bytes].
        """
        if not self.table:
            return nbytes * self.seconds_per_byte
        sizes, seconds = np.asarray(self.table, dtype=np.float64).T
        interpolated: Amount = np.interp(nbytes, sizes, seconds)
        return interpolated


class Contention(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a collective and the computation beside it cost each other on shared processors.

    Attributes:
        table: Points of (bytes of the collective, seconds that it takes longer while its rank
            computes, share of its pace that computation keeps meanwhile), sizes ascending.
            Linear between them; beyond the last the delay grows with the bytes.
    """

    table: tuple[tuple[float, float, float], ...]

    def __post_init__(self) -> None:
        """Refuse what no processor does."""
        _check_ascending([(size, delay) for size, delay, _ in self.table], "contention: table")
        for _, delay_s, share in self.table:
            _check(delay_s >= 0, "contention: delay", delay_s, "seconds >= 0")
            _check(0 < share <= 1, "contention: share", share, "a ratio in (0, 1]")

    def at(self, nbytes: float) -> tuple[float, float]:
        """Delay [s] and share for a collective of some bytes."""
        sizes, delays, shares = np.asarray(self.table, dtype=np.float64).T
        beyond = max(1.0, nbytes / float(sizes[-1]))
        delay_s = float(np.interp(nbytes, sizes, delays)) * beyond
        return delay_s, float(np.interp(nbytes, sizes, shares))


class Fit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a network was fitted, and how well it gives back what it was fitted to.

    Attributes:
        collective: That was measured.
        algorithm: Assumed of the all-reduce.
        ranks: World sizes of the samples.
        smallest_bytes: Smallest size measured [bytes].
        largest_bytes: Largest size measured [bytes].
        median_residual: Of |predicted / measured - 1| over the samples.
        worst_residual: Likewise.
        sources: Files of the samples.
    """

    collective: str
    algorithm: str
    ranks: tuple[int, ...]
    smallest_bytes: float
    largest_bytes: float
    median_residual: float
    worst_residual: float
    sources: str


class Network(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What moving bytes costs on one kind of cluster.

    Attributes:
        name: What people call it.
        inter: Between nodes.
        intra: Between the GPUs of a node; none when a node has one GPU.
        gpus_per_node: GPUs of a full node.
        reduction: Adding up what arrived.
        source: Where the numbers come from.
        assumptions: What is assumed rather than measured or published, for the verdict.
        fit: How it was fitted, if it was.
        contention: Where collectives and computation share processors, as with gloo, what
            that costs; None where they do not, or where nobody measured it.
        schema_version: Of the JSON form.
    """

    name: str
    inter: Tier
    intra: Tier | None = None
    gpus_per_node: int = 1
    reduction: Reduction = Reduction()
    source: str = "given"
    assumptions: tuple[str, ...] = ()
    fit: Fit | None = None
    contention: Contention | None = None
    schema_version: int = SCHEMA_VERSION

    def __post_init__(self) -> None:
        """Refuse nodes whose GPUs are not connected."""
        if self.schema_version != SCHEMA_VERSION:
            raise NetworkError(
                f"network {self.name!r}: schema_version {self.schema_version}, "
                f"this program reads {SCHEMA_VERSION}"
            )
        what = f"network {self.name!r}: gpus_per_node"
        _check(self.gpus_per_node >= 1, what, self.gpus_per_node, "at least 1")
        if self.gpus_per_node > 1 and self.intra is None:
            raise NetworkError(
                f"network {self.name!r} has {self.gpus_per_node} GPUs a node and no intra tier",
                "say what connects the GPUs of a node",
            )


def read(path: Path | str) -> Network:
    """Read a network from a JSON file.

    Raises:
        ReadError: The file is missing, or is no JSON of a network.
        NetworkError: It describes no possible machine.
    """
    path = Path(path)
    text = read_text(path, "a network in JSON")
    try:
        return msgspec.json.decode(text, type=Network)
    except msgspec.ValidationError as error:
        raise ReadError(f"{path}: is no network: {error}") from None
    except msgspec.DecodeError as error:
        raise ReadError(f"{path}: is no JSON: {error}") from None
    except RecursionError:
        raise ReadError(f"{path}: nested too deeply, expected a network") from None
    except NetworkError as error:
        raise NetworkError(f"{path}: {error.message}", error.hint) from None


def dumps(network: Network) -> str:
    """Return the JSON that `read` reads, indented, ending in a newline."""
    return msgspec.json.format(msgspec.json.encode(network), indent=2).decode() + "\n"
