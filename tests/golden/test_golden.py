"""Whole outputs, as a person sees them.

A change of wording or numbers shows up here as a difference of text. If it is meant, write
the files anew with `pytest tests/golden --update-golden` and read the difference.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMANDS = {
    "demo": "demo",
    "whatif": "whatif bert-large --device A100 --network p4d.24xlarge --workers 256 "
    "--algorithm hierarchical --target 99%",
    "grid": "whatif resnet50 --step 128ms --workers 64 --link 10Gbps,25Gbps,100Gbps "
    "--algorithm ring,tree --gpus-per-node 8 --intra nvlink2 --compression 1.5",
    "paper": "paper",
    "zoo": "zoo",
}

SCREENS = {
    "60": {"COLUMNS": "60"},
    "80": {"COLUMNS": "80"},
    "200": {"COLUMNS": "200"},
    "80-ascii": {"COLUMNS": "80", "PYTHONIOENCODING": "ascii"},
}


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("command", COMMANDS)
def test_output(request: pytest.FixtureRequest, command: str, screen: str) -> None:
    """The output is the kept one, character by character."""
    kept = Path(__file__).parent / f"{command}-{screen}.txt"
    done = subprocess.run(
        [sys.executable, "-m", "wirebound", *COMMANDS[command].split()],
        capture_output=True,
        timeout=60,
        check=True,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **SCREENS[screen]},
    )
    if request.config.getoption("--update-golden", default=False):
        kept.write_bytes(done.stdout)
    assert done.stdout.decode() == kept.read_text(encoding="utf-8")
    assert done.stderr == b""
