"""Whatever bytes a file holds, a reader gives a record or one clear error."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirebound.errors import WireboundError
from wirebound.network import dumps as network_dumps
from wirebound.network import network
from wirebound.network.record import read as read_network
from wirebound.readers.monitor import read_monitor
from wirebound.simulate.keys import read_scenario
from wirebound.simulate.paper import read_add_table
from wirebound.study.archive import RUNS, STUDY, read_runs, read_study
from wirebound.study.record import Config, Run, Study
from wirebound.study.spec import read_spec
from wirebound.workload.files import dumps, read_workload
from wirebound.workload.record import Gradient, data_parallel

WORKLOAD = dumps(
    data_parallel(
        "job", [Gradient("a", 8, 0.1), Gradient("b", 4, 0.2, 0.0)], backward_s=0.2, forward_s=0.1
    )
)
NETWORK = network_dumps(network("p4d.24xlarge")).encode()
LOG = b"comment\n1\n2\n10.5,4000\n0.0,64\n"
TABLE = b"40,1e-05\n80,1.1e-05\n"
SCENARIO = b'workers = [8, 64]\nlink = "10Gbps"\njitter = "normal:5%"\n'

SPEC = b"""name = "small"
[[script]]
name = "net"
program = ["train.py", "{batch}"]
[[grid]]
link = ["1Gbps"]
workers = [2]
"""
MONITOR = b"""[
{"ph":"M","name":"wirebound_monitor","args":{"schema_version":1,"rank":0}},
{"ph":"C","name":"net eth0","ts":1.5,"args":{"rx_Bps":1.0,"tx_Bps":2.0}},
{"ph":"i","name":"step 0","ts":2.5}
]
"""
STUDY_JSON = msgspec.json.encode(Study("small", SPEC.decode(), "lab", {"cpu": "any"}))
RUN = msgspec.json.encode(Run("r0", Config("net", 2, "joined", 1e9, 8, 32, 1, 0), 1.0, 2.0))


def in_folder(name: str, read: Callable[[Path], object]) -> Callable[[Path], object]:
    """A reader of folders as one of files: the file moves into a folder of its name."""

    def read_file(path: Path) -> object:
        content = path.read_bytes()
        path.unlink()
        path.mkdir()
        (path / name).write_bytes(content)
        return read(path)

    return read_file


READERS: dict[str, tuple[Callable[[Path], object], bytes]] = {
    "workload": (read_workload, WORKLOAD),
    "log": (read_workload, LOG),
    "network": (read_network, NETWORK),
    "scenario": (read_scenario, SCENARIO),
    "table": (read_add_table, TABLE),
    "monitor": (read_monitor, MONITOR),
    "study": (read_spec, SPEC),
    "study.json": (in_folder(STUDY, read_study), STUDY_JSON),
    "runs": (in_folder(RUNS, read_runs), RUN + b"\n" + RUN + b"\n"),
}

TOKENS = [
    b"-1",
    b"1e400",
    b"NaN",
    b"Infinity",
    b"null",
    b"[",
    b"{",
    b'"',
    b"0",
    b"\x00",
    b"\xff",
    b"9" * 400,
]
"""What breaks numbers, nesting, strings and text."""


@st.composite
def damaged(draw: st.DrawFn, sample: bytes) -> bytes:
    """A good file cut, doubled, or with a stretch of it replaced."""
    start = draw(st.integers(0, len(sample)))
    stop = draw(st.integers(start, min(len(sample), start + 40)))
    middle = draw(st.one_of(st.sampled_from(TOKENS), st.binary(max_size=8)))
    tail = draw(st.sampled_from([sample[stop:], b"", sample]))
    return sample[:start] + middle + tail


def check(read: Callable[[Path], object], content: bytes) -> None:
    """A record, or an error of one line that names the file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "input"
        path.write_bytes(content)
        complaint = str(path)
        try:
            read(path)
        except WireboundError as error:
            complaint = str(error)
        assert "\n" not in complaint
        assert str(path) in complaint


@pytest.mark.parametrize("name", READERS)
@given(data=st.data())
def test_damaged_files(name: str, data: st.DataObject) -> None:
    """A file that was good once never ends in anything but an answer or a sentence."""
    read, sample = READERS[name]
    check(read, data.draw(damaged(sample)))


@pytest.mark.parametrize("name", READERS)
@given(content=st.binary(max_size=200))
def test_any_bytes(name: str, content: bytes) -> None:
    """Nor do bytes that were never a file of ours."""
    read, _ = READERS[name]
    check(read, content)
