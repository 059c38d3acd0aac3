"""A recorded run put together again from its own parts.

If spans, ready times and transfers of a run do not make its step when the engine puts them
on their lanes, something was missed when it was reduced.
"""

from collections.abc import Iterator
from itertools import cycle

import msgspec

from wirebound.resources import Resource
from wirebound.simulate import maxplus
from wirebound.simulate.graph import compile_graph
from wirebound.workload.expand import expand
from wirebound.workload.record import COLLECTIVES, Kind
from wirebound.workload.reduce import Reduced


def replayed_s(reduced: Reduced) -> float:
    """Step time of a recording, with its collectives taking what they took [s].

    What they took contains the wait for others, so none of them queues again.

    Args:
        reduced: The recording.
    """
    operations = [
        msgspec.structs.replace(op, lane=op.name) if op.kind in COLLECTIVES else op
        for op in expand(reduced.workload, reduced.schedule)
    ]
    graph = compile_graph(operations)
    taken = {kind: _taken_s(reduced, kind) for kind in COLLECTIVES}
    costs = [
        ({Resource.LINK_INTER: next(taken[op.kind], 0.0)},)
        if op.kind in COLLECTIVES
        else ({Resource.COMPUTE: op.seconds},)
        for op in graph.operations
    ]
    return float(maxplus.step_s(graph, costs))


def _taken_s(reduced: Reduced, kind: Kind) -> Iterator[float]:
    """From enqueued to done, in the order of enqueueing [s]; the same in each micro-step."""
    return cycle([one.seconds for one in reduced.recorded.collectives if one.kind == kind])
