"""Samples: files give back what was written, and nothing impossible gets in."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirebound.errors import ReadError
from wirebound.samples import MEASURED, Sample, Samples, dumps, read

samples = st.builds(
    Sample,
    kind=st.sampled_from(MEASURED),
    nbytes=st.integers(1, 2**40),
    seconds=st.floats(1e-9, 1e3),
    ranks=st.integers(8, 64),
    nodes=st.integers(1, 8),
    spread=st.none() | st.floats(0, 10),
)


@given(found=st.lists(samples, max_size=5), hosts=st.lists(st.text(max_size=9), max_size=3))
def test_files_give_back_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, found: list[Sample], hosts: list[str]
) -> None:
    """Writing and reading changes nothing."""
    written = Samples(tuple(found), "here", hosts=tuple(hosts), versions={"torch": "2"})
    path = tmp_path_factory.mktemp("samples") / "samples.json"
    path.write_bytes(dumps(written))

    assert read(path) == written


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not complete JSON"),
        ("[]", "holds no samples: Expected `object`"),
        ('{"samples": [], "source": "x", "colour": 1}', "unknown field `colour`"),
        ('{"samples": [], "source": "x", "schema_version": 9}', "schema_version 9"),
        (
            '{"samples": [{"kind": "copy", "nbytes": 0, "seconds": 1}], "source": "x"}',
            "nbytes is 0",
        ),
        (
            '{"samples": [{"kind": "copy", "nbytes": 1, "seconds": 0}], "source": "x"}',
            "seconds is 0.0",
        ),
        (
            '{"samples": [{"kind": "copy", "nbytes": 1, "seconds": 1, "nodes": 3}], "source": "x"}',
            "1 ranks on 3 nodes",
        ),
        ("[" * 100_000, "got `array`"),
    ],
)
def test_bad_files_are_one_clear_line(tmp_path: Path, text: str, message: str) -> None:
    """The error names the file and what is wrong."""
    path = tmp_path / "samples.json"
    path.write_text(text)

    with pytest.raises(ReadError) as caught:
        read(path)

    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)


def test_missing_file(tmp_path: Path) -> None:
    """A file that is not there is said so."""
    with pytest.raises(ReadError, match="No such file"):
        read(tmp_path / "none.json")
