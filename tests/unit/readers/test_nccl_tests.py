"""The reader of nccl-tests: every version's table, every launcher, every failure."""

import gzip
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wirebound.errors import ReadError
from wirebound.network.measured import bandwidths
from wirebound.readers.nccl_tests import read
from wirebound.samples import Sample, Samples

START = "# nThread 1 nGpus 1 minBytes 8 maxBytes 16 step: 2(factor) warmup iters: 5 iters: 20\n"
DEVICES = """# Using devices
#  Rank  0 Group  0 Pid  61241 on host-a device  0 [0x07] NVIDIA A100-SXM4-40GB
#  Rank  1 Group  0 Pid  61242 on host-b device  1 [0x46] NVIDIA A100-SXM4-40GB
"""
HEADER = """#                                    out-of-place                       in-place
#  size  count  type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#   (B)  (elements)                      (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
"""
ROWS = """ 8  2  float  sum  -1  46.64  0.00  0.00  0  45.83  0.00  0.00  0
16  4  float  sum  -1  45.64  0.00  0.00  0  46.84  0.00  0.00  N/A
"""
TABLE = START + DEVICES + HEADER + ROWS

OLD = """# nThread 1 nGpus 2 minBytes 8 maxBytes 16 step: 2(factor) warmup iters: 5 iters: 20
#   Rank  0 Pid  12978 on    Orlando device  0 [0x02] GeForce GTX 1080
#   Rank  1 Pid  12978 on    Orlando device  1 [0x45] GeForce GTX 1080
#  size  count   type   redop     time   algbw   busbw  error     time   algbw   busbw  error
      8      2  float     sum    25.34    0.00    0.00  2e-07    25.23    0.00    0.00  2e-07
"""

ALCF = "alcf-nccl-tests"
CLUSTER = "nccl-tests-cluster"


def parsed(tmp_path: Path, text: str, name: str = "all_reduce.log") -> Samples:
    """What the reader makes of a text."""
    path = tmp_path / name
    path.write_text(text)
    return read(path)


def times(samples: Samples) -> list[tuple[str, int, float]]:
    """Kind, size and microseconds of each sample."""
    return [(one.kind, one.nbytes, round(one.seconds * 1e6, 3)) for one in samples.samples]


EXPECTED = [("all_reduce", 8, 46.64), ("all_reduce", 16, 45.64)]


def test_table_of_a_present_version(tmp_path: Path) -> None:
    """Rows become samples with layout, type and count; hosts are named once."""
    samples = parsed(tmp_path, TABLE)

    assert times(samples) == EXPECTED
    assert samples.samples[0] == Sample(
        "all_reduce", 8, samples.samples[0].seconds, ranks=2, nodes=2, count=2
    )
    assert samples.hosts == ("host-a", "host-b")


def test_table_before_the_column_root(tmp_path: Path) -> None:
    """Versions before 2.11 print an error instead of a count of wrong elements."""
    samples = parsed(tmp_path, OLD)

    assert times(samples) == [("all_reduce", 8, 25.34)]
    assert (samples.samples[0].ranks, samples.samples[0].nodes) == (2, 1)


@pytest.mark.parametrize("prefix", ["[1,0]<stdout>:", "0: ", "[rank0]: ", "node-7: ", "12:00 "])
def test_launcher_prefixes(tmp_path: Path, prefix: str) -> None:
    """What launchers put before each line does not matter."""
    text = "".join(f"{prefix}{line}\n" for line in TABLE.splitlines())

    assert times(parsed(tmp_path, text)) == EXPECTED


def test_gzip_is_transparent(tmp_path: Path) -> None:
    """A compressed file reads as the plain one."""
    path = tmp_path / "all_reduce.log.gz"
    path.write_bytes(gzip.compress(TABLE.encode()))

    assert times(read(path)) == EXPECTED


def test_several_runs_in_one_file(tmp_path: Path) -> None:
    """Each table has the collective that its run announces; unknown ones are noted."""
    text = "".join(
        f"# nccl-tests version 2.17.8 nccl-headers=22902 nccl-library=22902\n"
        f"# Collective test starting: {name}_perf\n{TABLE}"
        f"# Collective test concluded: {name}_perf\n"
        for name in ("all_gather", "sendrecv", "hypercube")
    )

    samples = parsed(tmp_path, text, "job.log")

    assert [kind for kind, _, _ in times(samples)] == ["all_gather"] * 2 + [
        "send_recv_both_ways"
    ] * 2
    assert samples.notes == ("hypercube_perf: not a collective of the model, left out",)
    assert samples.versions == {"nccl-tests": "2.17.8"}


def test_debug_lines_inside_a_table(tmp_path: Path) -> None:
    """Lines of NCCL_DEBUG between rows are ignored."""
    noise = "host-a:1:2 [0] NCCL INFO Launch mode Parallel\n"
    text = TABLE.replace("16  4", f"{noise}16  4")

    assert times(parsed(tmp_path, text)) == EXPECTED


def test_out_of_place_not_available(tmp_path: Path) -> None:
    """In-place stands in where out-of-place was not measured; sizes of 0 are left out."""
    text = (
        START
        + DEVICES
        + HEADER
        + (
            " 8  2  float  sum  -1  N/A  N/A  N/A  N/A  45.83  0.00  0.00  0\n"
            " 0  0  float  sum  -1  3.0  0.00  0.00  0  3.0  0.00  0.00  0\n"
        )
    )

    assert times(parsed(tmp_path, text)) == [("all_reduce", 8, 45.83)]


def test_wrong_results_are_left_out(tmp_path: Path) -> None:
    """A row that nccl-tests found wrong is no measurement."""
    samples = parsed(tmp_path, TABLE.replace("0.00  0  46.84", "0.00  7  46.84"))

    assert times(samples) == EXPECTED[:1]
    assert "wrong" in samples.notes[0]


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("", "all_reduce.log", "no table of nccl-tests"),
        (START + DEVICES + HEADER, "all_reduce.log", "without rows"),
        (TABLE, "job.log", "which collective"),
        (TABLE[:-20], "all_reduce.log", "cut short"),
        (START + HEADER + ROWS, "all_reduce.log", "list of devices"),
        (ROWS, "all_reduce.log", "without the header"),
        (TABLE.replace("46.64", "soon"), "all_reduce.log", "the time is 'soon'"),
        (
            "launch failed on x: could not allocate a port for PMI to use\n",
            "all_reduce.log",
            "the run failed: 'launch failed on x: could not allocate a port for PMI to use'",
        ),
    ],
)
def test_what_cannot_be_read_says_why(tmp_path: Path, text: str, name: str, message: str) -> None:
    """The error names the file and what went wrong."""
    with pytest.raises(ReadError) as caught:
        parsed(tmp_path, text, name)

    assert str(caught.value).startswith(str(tmp_path))
    assert message in str(caught.value)


def test_collective_can_be_given(tmp_path: Path) -> None:
    """What neither the output nor the name says can be said."""
    path = tmp_path / "job.log"
    path.write_text(TABLE)

    assert {sample.kind for sample in read(path, "broadcast").samples} == {"broadcast"}


@given(content=st.binary(max_size=400) | st.text(max_size=400).map(str.encode))
@example(content=b"\x1f\x8b broken")
@example(content=gzip.compress(b"x" * 99)[:-3])
@example(content=(START + DEVICES + HEADER).encode() + b" 8 2 float sum -1 nan 0 0 " + b"9" * 5000)
def test_any_bytes_are_samples_or_a_read_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    """No content makes the reader fail in another way."""
    path = tmp_path_factory.mktemp("fuzz") / "all_reduce.log"
    for text in (content, TABLE.encode() + content, (START + DEVICES + HEADER).encode() + content):
        path.write_bytes(text)
        try:
            assert isinstance(read(path), Samples)
        except ReadError as error:
            assert str(path) in str(error)  # noqa: PT017 - either outcome is right


def test_every_published_file_gives_samples_or_a_reason(shared_data: Path) -> None:
    """Failed runs say what went wrong; all others give samples."""
    files = sorted((shared_data / ALCF).glob("results_*/**/*_output.dat*"))
    files += sorted((shared_data / CLUSTER).glob("**/*.log"))
    failed = []
    for path in files:
        try:
            assert read(path).samples
        except ReadError as error:
            failed.append(str(error))

    assert len(files) == 138
    assert len(failed) == 18
    assert all("the run failed: " in message for message in failed)


@pytest.mark.parametrize(
    ("run", "busbw", "latency_us"),
    [
        ("results_polaris/nccl_2_21/n2.*/*.1", [1.14, 3.06, 3.36, 3.10], 46.6),
        ("results_polaris/nccl_2_21/n2.*/*.4", [5.70, 34.27, 35.23, 36.03], 19.9),
        ("results_polaris/nccl_2_18/n2.*/*.1", [3.27, 8.02, 8.90, 9.45], 44.8),
        ("results_polaris/nccl_2_18/n2.*/*.4", [10.43, 34.95, 35.34, 36.08], 22.0),
        ("results_polaris/nccl_2_21/n8.*/*.1", [0.70, 2.85, 3.18, 3.30], 124),
        ("results_polaris/nccl_2_21/n8.*/*.4", [1.39, 24.66, 35.87, 36.08], 37.7),
        ("results_polaris/nccl_2_21/n256.*/*.4.gz", [2.77, 14.94, 24.16, 30.34], 100),
        ("results_polaris/nccl_2_21/n540.*/*.5.gz", [1.85, 12.50, 23.86, 29.11], 228),
        ("results_sophia/n2.g8/2024-10-15-11-21-15/*.2", [23.05, 136.6, 176.1, 178.2], 35.2),
    ],
)
def test_published_values_are_reproduced(
    shared_data: Path, run: str, busbw: list[float], latency_us: float
) -> None:
    """Bus bandwidth [GB/s] at 1 MiB, 32 MiB, 128 MiB and 1 GiB, and the time of 8 B [µs]."""
    folder, _, suffix = run.rpartition("/*")
    [path] = (shared_data / ALCF).glob(f"{folder}/all_reduce_output.dat{suffix}")

    by_size = {sample.nbytes: sample for sample in read(path).samples}

    sizes = [2**20, 2**25, 2**27, 2**30]
    # Times have four or five digits, the printed bandwidth two decimals.
    assert [bandwidths(by_size[size])[1] / 1e9 for size in sizes] == pytest.approx(busbw, abs=0.06)
    assert by_size[8].seconds * 1e6 == pytest.approx(latency_us, abs=0.5)
