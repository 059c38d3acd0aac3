"""Workloads that come with the program."""

import pytest

from wirebound.api import whatif
from wirebound.errors import WorkloadError
from wirebound.workload import bundled
from wirebound.workload.record import Kind

NAMES = (
    "recorded-convnet", "recorded-huge-layer", "recorded-many-layers", "recorded-transformer"
)  # fmt: skip


def test_every_example_is_there() -> None:
    """One recording an example, each a whole step that can be asked about."""
    assert bundled.names() == NAMES
    for name in NAMES:
        workload = bundled.load(name)
        assert workload.source.kind == "recorded"
        assert workload.span_s(Kind.BACKWARD) > workload.span_s(Kind.OPTIMIZER) > 0
        [verdict] = whatif(workload, workers=2, link="1Gbps")
        assert verdict.step_s > workload.compute_s


def test_shapes_are_those_that_the_examples_are_for() -> None:
    """One huge gradient among few; hundreds of small ones."""
    huge = bundled.load("recorded-huge-layer")
    assert max(g.nbytes for g in huge.gradients) > 0.6 * huge.gradient_bytes
    many = bundled.load("recorded-many-layers")
    assert len(many.gradients) > 200
    assert max(g.nbytes for g in many.gradients) < 0.02 * many.gradient_bytes


def test_unknown_name() -> None:
    """One line that lists the known ones."""
    with pytest.raises(WorkloadError, match=r"no workload named 'recorded-x' .*"):
        bundled.load("recorded-x")
