"""Labs on this machine: real namespaces, real shapers, real torchrun."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from wirebound.errors import LabError
from wirebound.lab import Lab
from wirebound.lab.leftovers import remove_dead
from wirebound.lab.privilege import is_privileged
from wirebound.lab.tools import call, find, network_namespaces
from wirebound.lab.wiring import Host

ROOT = Path(__file__).parents[2]
SYSTEM_PYTHON = Path("/usr/bin/python3")
NOBODY = "65534"
PATIENCE_S = 40

Start = Callable[..., "subprocess.Popen[str]"]

ALL_REDUCE = """
import time, torch, torch.distributed as dist
dist.init_process_group("gloo")
gradients = torch.ones(1_250_000)
dist.barrier()
start = time.monotonic()
dist.all_reduce(gradients)
print(time.monotonic() - start)
dist.destroy_process_group()
"""


def _can_build() -> str | None:
    """Why no lab can be built here, or None."""
    if not is_privileged():
        return "a lab needs root, and these tests run without"
    try:
        for tool in ("ip", "tc", "setpriv", "unshare", "taskset"):
            find(tool)
        call("ip", "netns", "list")
        with Lab(workers=2, link_bps=100e6):
            pass
    except LabError as error:
        return f"no lab can be built here: {error}"
    return None


@pytest.fixture(autouse=True)
def _clean(can_build: str | None) -> Iterator[None]:
    """Skip where there is no root, and see that nothing is left."""
    if can_build is not None:
        pytest.skip(can_build)
    yield
    assert own_namespaces() == []


@pytest.fixture(scope="module")
def can_build() -> str | None:
    """Asked once."""
    return _can_build()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start the command in the background; what still runs at the end is killed."""
    processes = []

    def begin(*arguments: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-m", "wirebound", "lab", "run", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        )
        processes.append(process)
        return process

    yield begin
    for process in processes:
        with process:
            process.kill()


def own_namespaces() -> list[str]:
    """Namespaces of the labs of this process."""
    return [name for name in network_namespaces() if name.startswith(f"wb-{os.getpid()}-")]


def namespaces_of(process: "subprocess.Popen[str]") -> list[str]:
    """Namespaces of the labs of another process."""
    return [name for name in network_namespaces() if name.startswith(f"wb-{process.pid}-")]


def plain(host: Host, cluster: Sequence[Host], program: Sequence[str]) -> list[str]:
    """Start a program without torchrun, which takes seconds, with the variables that it sets."""
    variables = {
        "RANK": host.rank,
        "WORLD_SIZE": len(cluster),
        "MASTER_ADDR": cluster[0].address,
        "OWN_ADDR": host.address,
    }
    words = [f"{name}={value}" for name, value in variables.items()]
    return [find("env"), *words, sys.executable, "-I", "-S", *program]


def until(is_so: Callable[[], bool]) -> None:
    """Wait for something that must happen."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def write(folder: Path, text: str) -> str:
    """A script."""
    path = folder / "script.py"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_an_all_reduce_takes_what_its_bytes_need(start: Start, tmp_path: Path) -> None:
    """5 MB between two workers at 200 Mbit/s: each sends 5 MB, less the burst, so over 0.19 s."""
    pytest.importorskip("torch", reason="the lab starts torchrun")
    script = write(tmp_path, ALL_REDUCE)

    process = start("--workers", "2", "--link", "200Mbps", "-o", "run", "--", script)
    out, err = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 0, err
    burst_bytes = 25_000
    assert float(out) > (5_000_000 - 2 * burst_bytes) * 8 / 200e6
    assert "Lab: 2 hosts, links of 200 Mbit/s; the slowest carried" in err
    record = json.loads((tmp_path / "run" / "lab.json").read_text(encoding="utf-8"))
    assert [rank["status"] for rank in record["outcome"]["ranks"]] == [0, 0]
    assert [one["rate_bps"] for one in record["transfers"]] == pytest.approx([200e6] * 2, rel=0.05)
    assert (tmp_path / "run" / "rank1.stdout").stat().st_size > 0
    assert namespaces_of(process) == []


def test_the_status_is_the_programs(start: Start, tmp_path: Path) -> None:
    """A rank that leaves with 3 is named, and 3 is passed on through torchrun."""
    pytest.importorskip("torch", reason="the lab starts torchrun")
    script = write(tmp_path, "import os\nos._exit(3 if os.environ['RANK'] == '1' else 0)\n")

    process = start("--link", "none", "--", script)
    _, err = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 3, err
    assert "Rank 1 ended with status 3; -o DIR keeps the output of all ranks" in err


def test_three_workers_talk_over_the_switch(tmp_path: Path) -> None:
    """Every worker reaches the first one through its own shaped link."""
    script = write(
        tmp_path,
        "import os, socket\n"
        "master, own = os.environ['MASTER_ADDR'], os.environ['OWN_ADDR']\n"
        "if os.environ['RANK'] == '0':\n"
        "    server = socket.create_server((master, 5000))\n"
        "    print(sorted(server.accept()[1][0] for _ in range(2)))\n"
        "else:\n"
        "    while True:\n"
        "        try:\n"
        "            socket.create_connection((master, 5000)); break\n"
        "        except ConnectionRefusedError:\n"
        "            pass\n",
    )

    with Lab(workers=3, link_bps=500e6) as lab:
        outcome = lab.run([script], output=tmp_path / "out", launcher=plain, timeout_s=20)

    assert outcome.failure is None
    assert outcome.status == 0
    assert outcome.ranks[0].stdout.read_text() == "['10.77.0.2', '10.77.0.3']\n"
    assert [one.rate_bps for one in lab.transfers] == pytest.approx([500e6] * 3, rel=0.05)
    assert lab.is_oversubscribed is (len(os.sched_getaffinity(0)) < 3)


def test_a_script_that_raises(tmp_path: Path) -> None:
    """Its traceback is kept, and the status is Python's."""
    script = write(tmp_path, "raise RuntimeError('no data')\n")

    with Lab(workers=1, link_bps=1e9) as lab:
        outcome = lab.run([script], output=tmp_path / "out", launcher=plain)

    assert (outcome.status, outcome.failure, lab.verified_bps) == (1, None, None)
    assert outcome.ranks[0].stderr.read_text().endswith("RuntimeError: no data\n")


def test_a_script_that_never_ends(tmp_path: Path) -> None:
    """It is stopped with all it started, even what left its session."""
    script = write(
        tmp_path,
        "import os, subprocess, time\n"
        "subprocess.Popen(['sleep', '987.25'], start_new_session=True)\n"
        "print('started', flush=True)\n"
        "time.sleep(1000)\n",
    )

    with Lab(workers=1) as lab:
        outcome = lab.run([script], output=tmp_path / "out", launcher=plain, timeout_s=1)

    assert outcome.failure == "the program did not end within 1.00 s"
    assert outcome.ranks[0].is_stopped
    assert outcome.ranks[0].stdout.read_text() == "started\n"
    assert not _is_running("987.25")


def test_an_interface_that_vanishes(tmp_path: Path) -> None:
    """The run ends with a sentence, not with the timeout of TCP."""
    script = write(tmp_path, "import time\ntime.sleep(1000)\n")

    with Lab(workers=2, link_bps=1e9) as lab:
        remove = "ip", "-netns", lab.hosts[0].namespace, "link", "delete", "eth0"
        timer = threading.Timer(0.5, call, remove)
        timer.start()
        outcome = lab.run([script], output=tmp_path / "out", launcher=plain, timeout_s=30)
        timer.join()

    assert outcome.failure is not None
    assert outcome.failure.startswith("interface eth0 of host")
    assert "vanished while the program ran" in outcome.failure


def test_a_limit_that_is_lifted(tmp_path: Path) -> None:
    """A run on another rate than the one verified is no result."""
    script = write(tmp_path, "import time\ntime.sleep(0.5)\n")

    with Lab(workers=2, link_bps=1e9) as lab:
        where = lab.hosts[1].namespace
        timer = threading.Timer(
            0.1, call, ("tc", "-netns", where, "qdisc", "del", "dev", "eth0", "root")
        )
        timer.start()
        outcome = lab.run([script], output=tmp_path / "out", launcher=plain, timeout_s=30)
        timer.join()

    assert outcome.failure == (
        "the limit on interface eth0 of host 1 was changed while the program ran"
    )


def test_two_labs_at_once(tmp_path: Path) -> None:
    """They have the same addresses and do not meet."""
    script = write(
        tmp_path,
        "import os, socket\nsocket.create_server((os.environ['OWN_ADDR'], 5000))\n",
    )

    with Lab(workers=2, link_bps=1e9) as one, Lab(workers=2, link_bps=200e6) as other:
        for lab, rate_bps in ((one, 1e9), (other, 200e6)):
            outcome = lab.run([script], output=tmp_path / lab.name, launcher=plain)
            assert outcome.status == 0
            assert lab.verified_bps == pytest.approx(rate_bps, rel=0.05)
        assert len(own_namespaces()) == 4


def test_a_killed_lab_is_undone_by_the_next(start: Start, tmp_path: Path) -> None:
    """SIGKILL ends its programs at once; the next start removes the rest and nothing foreign."""
    pytest.importorskip("torch", reason="the lab starts torchrun")
    script = write(
        tmp_path,
        "import subprocess\nprint('on', flush=True)\nsubprocess.run(['sleep', '986.25'])\n",
    )
    foreign = f"wb-foreign-{os.getpid()}"
    call("ip", "netns", "add", foreign)
    try:
        process = start("--link", "none", "--", script)
        assert process.stdout is not None
        assert process.stdout.readline() == "on\n"
        process.kill()
        process.wait()
        until(lambda: not _is_running("986.25"))
        left = namespaces_of(process)
        assert len(left) == 2

        removed = remove_dead()

        assert set(left) < set(removed)
        assert [name for name in removed if "output" in name]
        assert namespaces_of(process) == []
        assert foreign in network_namespaces()
    finally:
        call("ip", "netns", "delete", foreign)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_nothing(start: Start, tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C and SIGTERM undo everything, and the status says so."""
    pytest.importorskip("torch", reason="the lab starts torchrun")
    seconds = f"985.{number:02}"
    process = start(
        *("--link", "none", "--"),
        write(tmp_path, f"import subprocess\nsubprocess.run(['sleep', '{seconds}'])\n"),
    )
    until(lambda: _is_running(seconds))

    process.send_signal(number)
    _, err = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 130
    assert "Traceback" not in err.partition("Lab:")[0]
    assert namespaces_of(process) == []
    assert not _is_running(seconds)


def test_outputs_that_cannot_be_kept(start: Start, tmp_path: Path) -> None:
    """A folder that is in use or not there is refused before anything is built."""
    pytest.importorskip("torch", reason="the lab starts torchrun")
    script = write(tmp_path, "")
    for output, problem in {
        ".": "not empty",
        "no/run": "No such file or directory",
        "/sys/run": "Operation not permitted",
    }.items():
        process = start("--link", "none", "-o", output, "--", script)
        _, err = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 2
        assert len(err.splitlines()) == 1
        assert problem in err


def test_a_rate_that_no_machine_carries() -> None:
    """A limit is believed only where a transfer reaches it."""
    with pytest.raises(LabError, match=r"carries .* less than the 900 Gbit/s"):
        Lab(workers=2, link_bps=900e9).__enter__()


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that every user may read; pytest's own are for one user only."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def test_an_ordinary_user(public_folder: Path) -> None:
    """Where the kernel gives users namespaces, they need no root; elsewhere one line says so."""
    pytest.importorskip("torch", reason="the lab starts torchrun")
    own_packages = [path for path in sys.path if "site-packages" in path]
    paths = os.pathsep.join([str(ROOT / "src"), *own_packages])
    # env starts the interpreter when the capabilities are gone, and not setpriv before that.
    become = [find("setpriv"), f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "env"]
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": paths, "HOME": "/"}
    for python in (sys.executable, str(SYSTEM_PYTHON)):
        words = [*become, python]
        probe = [*words, "-c", "import msgspec, numpy, wirebound"]
        if subprocess.run(probe, env=environment, capture_output=True, check=False).returncode == 0:
            break
    else:
        pytest.skip("no interpreter here that another user may run")
    script = public_folder / "script.py"
    script.write_text("print('ran')\n", encoding="utf-8")

    done = subprocess.run(
        [*words, "-m", "wirebound", "lab", "run", "--link", "200Mbps", "--", str(script)],
        env=environment,
        capture_output=True,
        text=True,
        cwd="/",
        timeout=PATIENCE_S,
        check=False,
    )

    if done.returncode == 2:
        assert "allows neither" in done.stderr
        assert len(done.stderr.splitlines()) == 1
        return
    assert (done.returncode, done.stdout) == (0, "ran\n"), done.stderr


def _is_running(argument: str) -> bool:
    """Whether any process was started with this argument."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if argument in path.read_bytes().decode(errors="replace").split("\0"):
                return True
        except OSError:
            continue
    return False
