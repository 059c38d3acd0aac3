"""What all tests share: how Hypothesis searches, and where published data lies."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("local", deadline=None, max_examples=60)
settings.register_profile("ci", deadline=None, max_examples=60, derandomize=True)
settings.register_profile("thorough", deadline=None, max_examples=1000)
settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Published measurements, kept beside the repository and not in it."""
    folder = Path(__file__).parents[1].parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("published measurements are not beside the repository")
    return folder


@pytest.fixture(scope="session")
def paper_logs(shared_data: Path) -> Path:
    """The backward logs and the vector-add table published with Zhang et al. (NetAI 2020)."""
    folder = shared_data / "training-bottleneck"
    if not folder.is_dir():
        pytest.skip("the logs of Zhang et al. are not beside the repository")
    return folder
