"""A training step of a known architecture on a known device, without a measurement.

Every layer takes as long as its arithmetic or its memory traffic, whichever is slower.
Formulas, sources and limits: `docs/model/zoo.md`.
"""

import math
from collections.abc import Iterator
from itertools import accumulate

from wirebound.errors import WorkloadError
from wirebound.workload import devices
from wirebound.workload.devices import Device, Dtype
from wirebound.workload.record import Gradient, Source, Workload, data_parallel
from wirebound.workload.zoo import Architecture, Layer

BACKWARD_RATIO = 2.0
"""Backward over forward: one product for the inputs, one for the weights (Zhang et al.
2020, published backward logs over Fig. 2: 64.8 of 98, 106.4 of 159.5, 111.6 of 161 ms)."""

WINOGRAD_SPEEDUP = 36 / 16
"""Multiplications of a direct 3x3 convolution over those of F(2x2, 3x3) (Lavin and Gray 2015)."""

OPTIMIZER_STATES = {"convolution": 1, "matmul": 2}
"""Float32 values kept per parameter: momentum of SGD, or both moments of Adam."""

DTYPE_BYTES: dict[Dtype, int] = {"fp32": 4, "tf32": 4, "bf16": 2}
STORED_BYTES = 4
"""Element size that the zoo counts activations in, and that optimizers work in [bytes]."""

LAUNCH_S = 1e-5
"""Below this a layer's kernels take longer to launch than to run: the published vector-add
log is flat at 9.3 to 11.6 us for small sizes."""

SCALED_UNCERTAINTY = 0.1
"""Ready times on the V100 differ from the published logs of three networks by 1.6, 2.0 and
8.2 % of the backward pass on average (1.1, 1.6 and 1.2 % weighted by bytes)."""

REFERENCE: dict[Dtype, str] = {"fp32": "V100", "tf32": "A100", "bf16": "A100"}
"""The best documented device by type, which gives a scaled step its proportions."""


def modelled(
    architecture: Architecture,
    device: Device,
    batch: int,
    dtype: Dtype = "fp32",
    *,
    gradient_dtype_bytes: int | None = None,
) -> Workload:
    """A step from operation counts alone.

    Forward time of a layer is max(FLOP / achieved rate, bytes / achieved bandwidth), its
    backward time twice that. Its gradients are ready when its backward ends.

    Args:
        architecture: From the zoo.
        device: What it runs on.
        batch: Samples a worker and step.
        dtype: Type of the arithmetic and of the activations.
        gradient_dtype_bytes: Element size of the gradients [bytes]; by default that of
            `dtype`, give 4 for mixed precision with float32 parameters.

    Raises:
        WorkloadError: A batch below one, or a type that the device has not.
    """
    achieved = device.achieved_for(architecture.arithmetic, dtype)
    forward_s = _forward_s(architecture, device, batch, dtype)
    is_launch_bound = sum(forward_s) < LAUNCH_S * len(forward_s)
    source = Source(
        kind="modelled",
        detail=(
            f"{architecture.title} on {device.title}, {dtype}, batch {batch}: operation counts "
            f"at {achieved.fraction:.0%} of peak, not measured"
            + "; kernel launches, which are not modelled, would dominate"
            * is_launch_bound
        ),
        uncertainty=max(achieved.uncertainty, float(is_launch_bound)),
    )
    return data_parallel(
        f"{architecture.name} on {device.name}",
        _gradients(architecture, forward_s, gradient_dtype_bytes or DTYPE_BYTES[dtype]),
        forward_s=sum(forward_s),
        backward_s=BACKWARD_RATIO * sum(forward_s),
        optimizer_s=_optimizer_s(architecture, device),
        source=source,
        batch=batch,
    )


def scaled(
    architecture: Architecture,
    step_s: float,
    batch: int,
    dtype: Dtype = "fp32",
    *,
    gradient_dtype_bytes: int | None = None,
) -> Workload:
    """A step whose length is known and whose proportions are modelled.

    All times of the modelled step on a reference device are stretched by one factor, so
    that forward, backward and optimizer together take `step_s`. On one worker the step is
    exact; the uncertainty is that of when gradients become ready within it.

    Args:
        architecture: From the zoo.
        step_s: Step time of one worker alone [s].
        batch: Samples a worker and step.
        dtype: Type of the arithmetic and of the activations.
        gradient_dtype_bytes: Element size of the gradients [bytes], as for `modelled`.

    Raises:
        WorkloadError: A batch below one, or a step that takes no time.
    """
    if not (math.isfinite(step_s) and step_s > 0):
        raise WorkloadError(f"step_s is {step_s}, expected a finite number of seconds above 0")
    reference = devices.device(REFERENCE[dtype])
    modelled_s = _forward_s(architecture, reference, batch, dtype)
    compute_s = (1 + BACKWARD_RATIO) * sum(modelled_s) + _optimizer_s(architecture, reference)
    forward_s = [step_s / compute_s * seconds for seconds in modelled_s]
    backward_s = BACKWARD_RATIO * sum(forward_s)
    return data_parallel(
        architecture.name,
        _gradients(architecture, forward_s, gradient_dtype_bytes or DTYPE_BYTES[dtype]),
        forward_s=sum(forward_s),
        backward_s=backward_s,
        optimizer_s=max(0.0, step_s - sum(forward_s) - backward_s),
        source=Source(
            kind="scaled",
            detail=(
                f"{architecture.title}, {dtype}, batch {batch}: a given step of {step_s:g} s, "
                f"divided as modelled on {reference.title}"
            ),
            uncertainty=SCALED_UNCERTAINTY,
        ),
        batch=batch,
    )


def _forward_s(architecture: Architecture, device: Device, batch: int, dtype: Dtype) -> list[float]:
    """Forward time of every layer [s]."""
    if batch < 1:
        raise WorkloadError(f"batch is {batch}, expected at least one sample")
    flops = device.achieved_flops(architecture.arithmetic, dtype)
    winograd_flops = flops * (WINOGRAD_SPEEDUP if dtype == "fp32" else 1.0)

    def seconds(layer: Layer) -> float:
        elements = batch * layer.activation_bytes / STORED_BYTES + layer.num_parameters
        return max(
            batch * layer.flops_forward / (winograd_flops if layer.is_winograd else flops),
            elements * DTYPE_BYTES[dtype] / device.streaming_Bps,
        )

    return [seconds(layer) for layer in architecture.layers]


def _optimizer_s(architecture: Architecture, device: Device) -> float:
    # Reads parameter, gradient and states, writes parameter and states, all in float32.
    accesses = 3 + 2 * OPTIMIZER_STATES[architecture.arithmetic]
    return accesses * STORED_BYTES * architecture.num_parameters / device.streaming_Bps


def _gradients(
    architecture: Architecture, forward_s: list[float], dtype_bytes: int
) -> Iterator[Gradient]:
    """In the order they become ready: last layer first, last parameter of a layer first."""
    needed_s = list(accumulate(forward_s, initial=0.0))
    ready_s = 0.0
    for index in reversed(range(len(forward_s))):
        ready_s += BACKWARD_RATIO * forward_s[index]
        for name, shape in reversed(architecture.layers[index].parameters):
            yield Gradient(name, math.prod(shape) * dtype_bytes, ready_s, needed_s[index])
