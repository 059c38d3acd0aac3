"""Accelerators: what they can do at best, and which part of it training gets.

Peaks are dense values of data sheets. The achieved fractions are fitted to published
training rates with the formulas of `modelled`, so that they stand for everything these
leave out; each carries its source, or says that it is assumed.
"""

import functools
from importlib import resources
from typing import Literal

import msgspec

from wirebound.errors import WorkloadError
from wirebound.workload.zoo import Arithmetic, nearest

Dtype = Literal["fp32", "tf32", "bf16"]


class Achieved(msgspec.Struct, frozen=True):
    """The part of the peak that training gets.

    Attributes:
        fraction: Achieved over peak rate (1).
        uncertainty: Relative half-width of the step time it leads to.
        source: What it is fitted to, or on what assumption it rests.
    """

    fraction: float
    uncertainty: float
    source: str


class Device(msgspec.Struct, frozen=True):
    """One accelerator.

    Attributes:
        name: Its name here.
        title: Product and form.
        peak_flops: Dense peak by type [FLOP/s]; `bf16` stands for the 16-bit types.
        memory_Bps: Peak memory bandwidth [bytes/s].
        memory_fraction: Part of it that a streaming kernel gets (1).
        achieved: By kind of arithmetic and by type.
        peak_source: Where the peaks and the memory bandwidth come from.
        memory_source: Where the memory fraction comes from.
    """

    name: str
    title: str
    peak_flops: dict[Dtype, float]
    memory_Bps: float
    memory_fraction: float
    achieved: dict[Arithmetic, dict[Dtype, Achieved]]
    peak_source: str
    memory_source: str

    @property
    def streaming_Bps(self) -> float:
        """Memory bandwidth that a streaming kernel gets [bytes/s]."""
        return self.memory_Bps * self.memory_fraction

    def achieved_for(self, arithmetic: Arithmetic, dtype: Dtype) -> Achieved:
        """The fraction for that kind of work, with its source.

        Raises:
            WorkloadError: The device does not compute in that type.
        """
        if dtype not in self.peak_flops:
            raise WorkloadError(
                f"device {self.name} has no {dtype}", f"it has {', '.join(self.peak_flops)}"
            )
        return self.achieved[arithmetic][dtype]

    def achieved_flops(self, arithmetic: Arithmetic, dtype: Dtype) -> float:
        """Rate that training gets [FLOP/s]: peak times fraction."""
        return self.peak_flops[dtype] * self.achieved_for(arithmetic, dtype).fraction


@functools.cache
def names() -> tuple[str, ...]:
    """Names of all devices, oldest first within a vendor."""
    return tuple(_stored())


@functools.cache
def device(name: str) -> Device:
    """The device of that name, upper or lower case.

    Raises:
        WorkloadError: There is none.
    """
    key = name.upper()
    if key not in _stored():
        raise WorkloadError(f"no device is named {name!r}", nearest(name, names()))
    return msgspec.convert({"name": key} | _stored()[key], type=Device)


@functools.cache
def _stored() -> dict[str, dict[str, object]]:
    path = resources.files("wirebound.workload").joinpath("devices.json")
    return msgspec.json.decode(path.read_bytes(), type=dict[str, dict[str, object]])
