"""Many scenarios: their order, their blocks, and that a chunk says what each alone would."""

import itertools

import msgspec
import numpy as np
import pytest

from wirebound.errors import ScenarioError
from wirebound.network.record import Network, Tier
from wirebound.simulate.grid import CHUNK, Grid, sweep
from wirebound.simulate.keys import apply
from wirebound.simulate.program import Program
from wirebound.simulate.scenario import Jitter, Scenario
from wirebound.workload.bucketing import DDP, OneBucket
from wirebound.workload.horovod import Horovod
from wirebound.workload.record import Gradient, data_parallel
from wirebound.workload.schedule import Schedule

NETWORK = Network("n", Tier("t", bandwidth_bps=8e9, alpha_s=1e-5, efficiency=0.5))
WORKLOAD = data_parallel(
    "w",
    [Gradient("a", 40_000_000, 0.05), Gradient("b", 20_000_000, 0.2)],
    forward_s=0.1,
    backward_s=0.2,
    optimizer_s=0.01,
)


def rows(grid: Grid) -> list[tuple[float, ...]]:
    """Values of the numeric axes, scenario by scenario, in the order of the sweep."""
    found: list[tuple[float, ...]] = []
    for chunk in sweep(WORKLOAD, NETWORK, grid):
        found += zip(*(values.tolist() for values in chunk.columns.values()), strict=True)
    return found


def test_the_last_axis_runs_fastest() -> None:
    """As in nested loops in the order written."""
    grid = Grid(Scenario(), {"workers": [2, 4, 8], "link": [1e9, 1e10]})
    assert grid.size == 6
    assert rows(grid) == [(float(workers), rate) for workers in (2, 4, 8) for rate in (1e9, 1e10)]


def test_what_decides_which_operations_exist_runs_slowest() -> None:
    """One block for each combination; inside it only numbers vary."""
    grid = Grid(
        Scenario(),
        {
            "link": [1e9, 1e10],
            "bucketing": [DDP(), OneBucket()],
            "accumulation": [1, 4],
            "workers": [2, 4, 8],
        },
    )
    blocks = list(grid.blocks())
    assert grid.size == 24
    assert [block.size for block in blocks] == [6, 6, 6, 6]
    assert [(DDP(), 1), (DDP(), 4), (OneBucket(), 1), (OneBucket(), 4)] == [
        (block.scenario.schedule.bucketing, block.scenario.schedule.accumulation)
        for block in blocks
    ]
    assert list(blocks[0].axes) == ["link_bps", "workers"]


def test_a_policy_that_looks_at_the_clock_splits_blocks() -> None:
    """Ranks and speed change what Horovod launches, the link does not."""
    grid = Grid(
        Scenario(schedule=Schedule(bucketing=Horovod())),
        {"workers": [2, 4], "link": [1e9, 1e10, 1e11], "compute_speed": [1.0, 2.0]},
    )
    blocks = list(grid.blocks())
    assert [block.size for block in blocks] == [3, 3, 3, 3]
    assert [(block.scenario.workers, block.scenario.compute_speed) for block in blocks] == [
        (2, 1.0),
        (2, 2.0),
        (4, 1.0),
        (4, 2.0),
    ]


def test_a_value_that_is_no_number_makes_its_axis_discrete() -> None:
    """`measured` beside shares."""
    grid = Grid(Scenario(), {"efficiency": [None, 0.5, 1.0], "link": [1e9, 1e10]})
    assert [block.size for block in grid.blocks()] == [2, 2, 2]


def test_a_grid_without_axes_is_its_base() -> None:
    """One scenario, without columns."""
    (chunk,) = sweep(WORKLOAD, NETWORK, Grid(Scenario(), {}))
    assert dict(chunk.columns) == {}
    assert chunk.outcome.step_s.shape == (1,)


AXES: dict[str, list[object]] = {
    "workers": [1, 2, 8],
    "bucketing": [DDP(), Horovod(cycle_time_s=0.01)],
    "encode": [0.0, 1e-10],
    "compression": [1.0, 4.0],
    "link": [1e9, 1e11],
    "compute_speed": [0.5, 2.0],
}


@pytest.mark.parametrize(
    "base",
    [
        Scenario(),
        Scenario(jitter=Jitter(distribution="normal", spread=0.1, draws=3)),
        Scenario(streams=2, schedule=Schedule(partition_bytes=8e6)),
    ],
    ids=["plain", "jitter", "streams"],
)
def test_a_sweep_equals_scenarios_one_by_one(base: Scenario) -> None:
    """Whether a codec is there in some only, or ranks are structural in half of the grid."""
    grid = Grid(base, AXES)
    swept: dict[tuple[object, ...], float] = {}
    for chunk in sweep(WORKLOAD, NETWORK, grid):
        for index, step_s in enumerate(chunk.outcome.step_s):
            at = {name: values[index] for name, values in chunk.columns.items()}
            whole = chunk.program.scenario
            key = (
                int(at.get("workers", whole.workers)),
                whole.schedule.bucketing,
                *(
                    float(at.get(name, getattr(whole, name)))
                    for name in (
                        "encode_s_per_byte",
                        "compression_ratio",
                        "link_bps",
                        "compute_speed",
                    )
                ),
            )
            swept[key] = float(step_s)
    assert grid.size == len(swept)
    for values in itertools.product(*AXES.values()):
        scenario = apply(base, dict(zip(AXES, values, strict=True)))
        expected = Program(WORKLOAD, NETWORK, scenario).evaluate().step_s[0]
        assert expected == pytest.approx(swept[values], rel=1e-12)


def test_chunks_are_bounded_and_cover_the_grid() -> None:
    """No scenario is left out between two chunks, none comes twice."""
    ratios = np.linspace(1, 100, CHUNK + 10)
    grid = Grid(Scenario(), {"compression": ratios.tolist()})
    sizes, seen = [], []
    for chunk in sweep(WORKLOAD, NETWORK, grid):
        sizes.append(len(chunk.outcome.step_s))
        seen += chunk.columns["compression_ratio"].tolist()
    assert sizes == [CHUNK, 10]
    assert ratios.tolist() == seen


def test_chunks_with_jitter_hold_fewer_scenarios() -> None:
    """Each scenario is as many as it has draws."""
    base = Scenario(jitter=Jitter(distribution="normal", spread=0.1, draws=CHUNK))
    grid = Grid(base, {"link": [1e9, 1e10]})
    assert [len(chunk.outcome.step_s) for chunk in sweep(WORKLOAD, NETWORK, grid)] == [1, 1]


def test_bills_of_a_sweep_add_up() -> None:
    """In every chunk, where they are asked for."""
    grid = Grid(Scenario(), {"workers": [1, 2, 8], "link": [1e9, 1e11]})
    for chunk in sweep(WORKLOAD, NETWORK, grid, with_bill=True):
        total = np.sum(list(chunk.outcome.bill.values()), axis=0)
        assert chunk.outcome.step_s == pytest.approx(total, rel=1e-12)
    for chunk in sweep(WORKLOAD, NETWORK, grid):
        assert dict(chunk.outcome.bill) == {}


def test_ten_million_scenarios_stream() -> None:
    """The first chunks come without the rest; nothing of the size of the grid is built."""
    grid = Grid(
        Scenario(),
        {
            "workers": list(range(2, 102)),
            "link": np.geomspace(1e9, 1e12, 100).tolist(),
            "compression": np.linspace(1, 100, 100).tolist(),
            "latency": np.linspace(0, 1e-4, 10).tolist(),
        },
    )
    assert grid.size == 10**7
    chunks = list(itertools.islice(sweep(WORKLOAD, NETWORK, grid), 2))
    assert [len(chunk.outcome.step_s) for chunk in chunks] == [CHUNK, CHUNK]
    largest = max(values.nbytes for chunk in chunks for values in chunk.columns.values())
    assert largest == CHUNK * 8


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("compute_speed", [-1.0, 2.0]),
        ("batch_scale", [0.0, 1.0]),
        ("efficiency", [0.5, 1.5]),
        ("link", [1e9, float("nan")]),
        ("workers", [0, 4]),
    ],
)
def test_every_value_of_an_axis_is_checked(key: str, values: list[float]) -> None:
    """Not only the one that stands for the block."""
    with pytest.raises(ScenarioError, match=r" is .*, expected"):
        next(sweep(WORKLOAD, NETWORK, Grid(Scenario(), {key: values})))


def test_columns_can_start_anywhere() -> None:
    """A stretch of the product, not the product."""
    (block,) = Grid(Scenario(), {"workers": [2, 4, 8], "link": [1e9, 1e10]}).blocks()
    columns = block.columns(1, 4)
    assert columns["workers"].tolist() == [2, 4, 4]
    assert columns["link_bps"].tolist() == [1e10, 1e9, 1e10]
    assert msgspec.structs.replace(block.scenario, workers=8) == block.scenario
