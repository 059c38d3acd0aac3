"""What a second of a training step can be spent on, and billed to.

Every operation has a cost in units of these resources; a scenario sets their
prices; every second of the critical path is billed to exactly one of them.
"""

from enum import StrEnum


class Resource(StrEnum):
    """One line of the bill."""

    COMPUTE = "compute"
    """Forward, backward and optimizer, as measured on one worker."""
    INPUT = "input"
    """Waiting for the data pipeline."""
    HOST = "host"
    """Gaps in which the host keeps the device idle."""
    LINK_INTER = "link_inter"
    """Bytes through the busiest link between nodes."""
    LINK_INTRA = "link_intra"
    """Bytes through the busiest link inside a node."""
    LATENCY_INTER = "latency_inter"
    """Serialized messages between nodes."""
    LATENCY_INTRA = "latency_intra"
    """Serialized messages inside a node."""
    REDUCTION = "reduction"
    """Adding up what arrived."""
    CODEC = "codec"
    """Compressing and decompressing gradients."""
    CONTENTION = "contention"
    """Compute slowed down by communication that runs beside it."""
    WAIT = "wait"
    """Waiting for the slowest worker."""


LINKS = (Resource.LINK_INTER, Resource.LINK_INTRA)
LATENCIES = (Resource.LATENCY_INTER, Resource.LATENCY_INTRA)
NETWORK = LINKS + LATENCIES
"""What a free network would cost nothing of."""
