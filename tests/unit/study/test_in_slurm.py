"""Studies in Slurm: what is needed of an allocation."""

import shutil

import pytest

from wirebound.errors import StudyError
from wirebound.study.in_slurm import first_node, opener

ALLOCATION = {
    "SLURM_JOB_ID": "7",
    "SLURM_JOB_NUM_NODES": "2",
    "SLURM_JOB_NODELIST": "node[01-02]",
}


@pytest.fixture(autouse=True)
def _srun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")


@pytest.mark.parametrize(
    ("nodes", "first"),
    [
        ("node[01-04,7],gpu2", "node01"),
        ("node7", "node7"),
        ("a-1,b-2", "a-1"),
        ("rack[3]-x,other", "rack3-x"),
    ],
)
def test_first_node(nodes: str, first: str) -> None:
    """Where the ranks meet."""
    assert first_node(nodes) == first


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"SLURM_JOB_ID": None}, "SLURM_JOB_ID is not set"),
        ({"SLURM_JOB_NUM_NODES": "1"}, "has 1 nodes, and the study needs 2"),
        ({"SLURM_JOB_NUM_NODES": None}, "has no known number of nodes"),
        ({"SLURM_JOB_NODELIST": ""}, "SLURM_JOB_NODELIST is ''"),
    ],
)
def test_what_is_no_allocation_is_one_sentence(change: dict[str, str | None], message: str) -> None:
    """Before anything is run."""
    changed = ALLOCATION | change
    environment = {name: value for name, value in changed.items() if value is not None}
    with pytest.raises(StudyError) as caught:
        opener(2, environment)
    assert message in caught.value.message


def test_srun_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """It starts the ranks."""
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(StudyError, match="srun: not found"):
        opener(2, ALLOCATION)
