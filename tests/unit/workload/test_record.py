"""Workloads: what they refuse, and what they say about themselves."""

import math

import msgspec
import pytest

from wirebound.errors import WorkloadError
from wirebound.workload.record import Gradient, Kind, Operation, Source, Workload, data_parallel

FORWARD = Operation("forward", Kind.FORWARD, seconds=0.1)
BACKWARD = Operation("backward", Kind.BACKWARD, seconds=0.2)


def test_data_parallel_lists_the_spans_that_take_time() -> None:
    """In the order they run; missing spans make no operations."""
    workload = data_parallel(
        "w", [Gradient("a", 4, 0.2)], backward_s=0.2, forward_s=0.1, optimizer_s=0.05
    )
    kinds = [op.kind for op in workload.operations]
    assert kinds == [Kind.FORWARD, Kind.BACKWARD, Kind.OPTIMIZER]
    assert pytest.approx(0.35) == workload.compute_s
    assert workload.gradient_bytes == 4
    assert workload.span_s(Kind.BACKWARD) == 0.2


def test_data_parallel_sorts_gradients_and_keeps_ties_in_order() -> None:
    """Ready order, whatever order they are given in."""
    given = [Gradient("c", 1, 0.2), Gradient("a", 1, 0.1), Gradient("b", 1, 0.1)]
    workload = data_parallel("w", given, backward_s=0.2)
    assert [gradient.name for gradient in workload.gradients] == ["a", "b", "c"]


def test_json_round_trip() -> None:
    """A workload is its JSON."""
    workload = data_parallel(
        "w", [Gradient("a", 4, 0.2, needed_s=0.0)], backward_s=0.2, source=Source("log"), batch=32
    )
    encoded = msgspec.json.encode(workload)
    assert workload == msgspec.json.decode(encoded, type=Workload)


@pytest.mark.parametrize("seconds", [-1e-9, math.nan, math.inf, 1e19])
def test_operations_refuse_impossible_amounts(seconds: float) -> None:
    """Negative, not a number, or beyond any machine."""
    with pytest.raises(WorkloadError, match=r"operation 'x': seconds is .*, expected a number"):
        Operation("x", Kind.FORWARD, seconds=seconds)
    with pytest.raises(WorkloadError, match=r"operation 'x': nbytes is .*, expected a number"):
        Operation("x", Kind.ALL_REDUCE, nbytes=seconds)


@pytest.mark.parametrize("nbytes", [0, -4, 10**19])
def test_gradients_refuse_impossible_sizes(nbytes: int) -> None:
    """A gradient without bytes is none."""
    with pytest.raises(WorkloadError, match=r"'x': nbytes is .*, expected a positive size"):
        Gradient("x", nbytes, 0.0)


@pytest.mark.parametrize("seconds", [-1.0, math.nan, math.inf])
def test_gradients_refuse_impossible_times(seconds: float) -> None:
    """Both when they are ready and when they are needed."""
    with pytest.raises(WorkloadError, match=r"ready_s"):
        Gradient("x", 4, seconds)
    with pytest.raises(WorkloadError, match=r"needed_s"):
        Gradient("x", 4, 0.0, needed_s=seconds)


def test_a_number_out_of_range_in_json_is_refused() -> None:
    """As the reader of the file will see it."""
    with pytest.raises(msgspec.ValidationError, match=r"out of range"):
        msgspec.json.decode(b'{"name":"x","kind":"host","seconds":1e400}', type=Operation)


@pytest.mark.parametrize(
    ("operations", "gradients", "message"),
    [
        ((), (), "has no operations"),
        ((FORWARD, FORWARD), (), "two operations are named 'forward'"),
        (
            (Operation("a", Kind.HOST, after=("b",)),),
            (),
            "operation 'a' comes after 'b', which does not exist",
        ),
        ((FORWARD,), (Gradient("g", 1, 0.0),), "0 operations of kind 'backward'"),
        (
            (BACKWARD, Operation("again", Kind.BACKWARD)),
            (Gradient("g", 1, 0.0),),
            "2 operations of kind 'backward'",
        ),
        ((BACKWARD,), (Gradient("g", 1, 0.3),), "'g' is ready at 0.3 s, after the backward pass"),
        (
            (BACKWARD,),
            (Gradient("g", 1, 0.1), Gradient("g", 1, 0.2)),
            "two gradients are named 'g'",
        ),
        (
            (BACKWARD,),
            (Gradient("g", 1, 0.2), Gradient("h", 1, 0.1)),
            "gradient 'h' is listed after 'g' and ready before it",
        ),
        (
            (Operation("backward", Kind.BACKWARD, lane="gpu", seconds=1.0),),
            (Gradient("g", 1, 0.1),),
            "on lane 'gpu', expected the backward pass on lane 'compute'",
        ),
    ],
)
def test_workloads_refuse_impossible_steps(
    operations: tuple[Operation, ...], gradients: tuple[Gradient, ...], message: str
) -> None:
    """With the workload's name and what was expected."""
    with pytest.raises(WorkloadError, match=r"workload 'w'") as caught:
        Workload("w", operations, gradients)
    assert message in str(caught.value)


def test_rounding_of_the_last_gradient_is_forgiven() -> None:
    """Sums of logged intervals differ in the last digits."""
    Workload("w", (BACKWARD,), (Gradient("g", 1, 0.2 * (1 + 1e-12)),))


def test_other_schema_versions_are_refused() -> None:
    """A file of a later program is not half understood."""
    with pytest.raises(WorkloadError, match=r"schema_version 2, this program reads 1"):
        Workload("w", (BACKWARD,), schema_version=2)


def test_a_batch_has_samples_and_an_uncertainty_a_size() -> None:
    """Numbers that only describe are checked too."""
    with pytest.raises(WorkloadError, match=r"batch is 0"):
        Workload("w", (BACKWARD,), batch=0)
    with pytest.raises(WorkloadError, match=r"uncertainty is nan"):
        Source(uncertainty=math.nan)
