"""Command lines, variables and processors of workers."""

import sys
from pathlib import Path

import pytest

from wirebound.errors import LabError
from wirebound.lab import launch, privilege, tools
from wirebound.lab.launch import alone, check, enclosed, environment, share_cores, torchrun
from wirebound.lab.outcome import RankOutcome, RunOutcome, program_status
from wirebound.lab.watch import lost_device
from wirebound.lab.wiring import Host, hosts

CLUSTER = hosts("wb-1-2-0", [(0,), (1,)])


def test_torchrun_of_the_second_host() -> None:
    """Every agent knows its place, the master and its own address."""
    assert torchrun(CLUSTER[1], CLUSTER, ["train.py", "--lr", "1"]) == [
        *(sys.executable, "-m", "torch.distributed.run"),
        *("--nnodes", "2", "--node-rank", "1", "--nproc-per-node", "1"),
        *("--master-addr", "10.77.0.1", "--master-port", "29500", "--local-addr", "10.77.0.2"),
        *("train.py", "--lr", "1"),
    ]


def test_alone_knows_no_other_host() -> None:
    """Each host is the master of a job of one."""
    words = alone(CLUSTER[1], CLUSTER, ["train.py"])
    assert words[words.index("--nnodes") + 1] == "1"
    assert words[words.index("--node-rank") + 1] == "0"
    assert words[words.index("--master-addr") + 1] == "10.77.0.2"


def test_enclosure(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program dies with the lab, sees its own network and processes, and keeps to its cores."""
    monkeypatch.setattr(launch, "find", str)
    host = Host(0, "wb-1-2-0-h0", "10.77.0.1", "eth0", (2, 3))
    assert enclosed(host, ["true"]) == [
        *("setpriv", "--pdeathsig", "KILL"),
        *("ip", "netns", "exec", "wb-1-2-0-h0"),
        *("unshare", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"),
        *("taskset", "--cpu-list", "2,3", "true"),
    ]


def test_environment() -> None:
    """Collectives use the shaped interface, and as many threads as cores; the rest is passed on."""
    host = Host(0, "wb-1-2-0-h0", "10.77.0.1", "eth0", (2, 3))
    assert environment(host, {"A": "b", "OMP_NUM_THREADS": "64"}) == {
        "A": "b",
        "GLOO_SOCKET_IFNAME": "eth0",
        "NCCL_SOCKET_IFNAME": "eth0",
        "OMP_NUM_THREADS": "2",
    }


def test_cores_are_shared_only_where_they_must() -> None:
    """Each worker has its own, in turn when there are too few."""
    assert share_cores([4, 5, 6], 2, 1) == ([(4,), (5,)], False)
    assert share_cores([0, 1], 3, 1) == ([(0,), (1,), (0,)], True)
    assert share_cores([0, 1, 2, 3], 2, 2) == ([(0, 1), (2, 3)], False)
    with pytest.raises(LabError, match="3 cores a worker, but this process may use 2"):
        share_cores([0, 1], 1, 3)


@pytest.mark.parametrize(
    ("program", "sentence"),
    [
        ([], "nothing to run"),
        (["-m"], "names no module"),
        (["--standalone", "x.py"], "--standalone: not a script"),
        (["missing.py"], "missing.py: no such file, expected a Python script"),
        (["/"], "/: a directory, expected a Python script"),
    ],
)
def test_programs_that_cannot_run(program: list[str], sentence: str) -> None:
    """They are refused before anything is built."""
    pytest.importorskip("torch", reason="the lab needs torchrun")
    with pytest.raises(LabError, match=sentence):
        check(program)


def test_torch_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence names what to install."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(LabError, match=r"torch is not installed.*wirebound\[record\]"):
        check(["train.py"])


def test_a_missing_tool_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine without iproute2."""
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    with pytest.raises(LabError, match=r"ip: not found.*\(install the package iproute2\)"):
        tools.call("ip", "link")


def test_a_failing_tool_is_quoted() -> None:
    """The command line and the first line of its complaint."""
    with pytest.raises(LabError, match=r"`ls /nowhere/at/all` failed: .*No such file"):
        tools.call("ls", "/nowhere/at/all")


def test_without_privilege(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user whom the kernel gives no namespace hears both reasons in one line."""
    monkeypatch.setattr(privilege, "is_privileged", lambda: False)
    with pytest.raises(LabError, match="takes CAP_NET_ADMIN and CAP_SYS_ADMIN"):
        privilege.require()
    monkeypatch.setattr(privilege, "INTO_USER_NAMESPACE", ("--no-such-option",))
    with pytest.raises(LabError, match=r"allows neither: `unshare .*` failed") as caught:
        privilege.restart_in_user_namespace(["lab"])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "device"),
    [
        ("Deleted 2: eth0@if3: <BROADCAST,MULTICAST> mtu 1500 state DOWN group default", "eth0"),
        ("2: eth0@if2: <NO-CARRIER,UP> mtu 1500 qdisc tbf state LOWERLAYERDOWN group x", "eth0"),
        ("2: eth0@if2: <BROADCAST,UP,LOWER_UP> mtu 1500 qdisc tbf state UP group default", None),
        ("", None),
    ],
)
def test_lost_devices(text: str, device: str | None) -> None:
    """What `ip monitor link` says of a device that is gone, cut off, or well."""
    assert lost_device(text) == device


@pytest.mark.parametrize(
    ("agent_status", "report", "status"),
    [
        (0, "", 0),
        (3, "", 3),
        (1, "", 1),
        (1, "  exitcode  : 1 (pid: 9)\nRoot\n  exitcode  : 3 (pid: 8) \n", 3),
        (1, "  exitcode  : -9 (pid: 8) (SIGKILL)\n", -9),
        (-9, "  exitcode  : 3 (pid: 8)\n", -9),
    ],
)
def test_status_of_the_program(tmp_path: Path, agent_status: int, report: str, status: int) -> None:
    """Torchrun ends with 1 and tells the program's own status in its report."""
    path = tmp_path / "stderr"
    path.write_text(report, encoding="utf-8")
    assert program_status(agent_status, path) == status


@pytest.mark.parametrize(
    ("ranks", "failure", "status"),
    [
        ([(0, False), (0, False)], None, 0),
        ([(1, False), (3, False)], None, 3),
        ([(1, False), (1, False)], None, 1),
        ([(-15, True), (1, False)], None, 1),
        ([(-9, False), (1, False)], None, 137),
        ([(-15, True), (-15, True)], "too late", 1),
    ],
)
def test_status_of_the_whole(
    ranks: list[tuple[int, bool]], failure: str | None, status: int
) -> None:
    """It is that of the rank the program failed on, not of those that followed."""
    files = Path("out"), Path("err")
    outcomes = tuple(RankOutcome(k, one, stopped, *files) for k, (one, stopped) in enumerate(ranks))
    assert RunOutcome(outcomes, 1.0, failure).status == status
