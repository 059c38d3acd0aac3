"""The model zoo in the terminal."""

import io

import pytest

from wirebound.network import presets
from wirebound.report.console import console
from wirebound.report.zoo import show_zoo
from wirebound.workload import bundled, devices
from wirebound.workload.zoo import load, names


def shown(width: int) -> str:
    """What the terminal shows."""
    file = io.StringIO()
    show_zoo(
        console(file, width),
        [load(name) for name in names()],
        [bundled.load(name) for name in bundled.names()],
        [devices.device(name) for name in devices.names()],
        presets(),
    )
    return file.getvalue()


def test_one_scale_a_column() -> None:
    """Three digits in the unit of the header, from the smallest to the largest model."""
    table, _, _ = shown(100).partition("\n\n")
    rows = {row.split()[0]: row.split()[1:5] for row in table.splitlines()[2:]}
    assert set(rows) == set(names())
    assert rows["resnet50"] == ["25.6", "161", "102", "8.18"]
    assert rows["dlrm"] == ["2.37", "16", "9.48", "0.00492"]
    assert rows["llama-70b"] == ["70,600", "723", "282,000", "1,310,000"]


@pytest.mark.parametrize("width", [60, 80, 200])
def test_names_stay_whole(width: int) -> None:
    """No name and no number is broken at a usual width."""
    rows = shown(width).splitlines()
    assert max(len(row) for row in rows) <= width
    assert {name for name in names() if any(row.startswith(f"{name} ") for row in rows)} == set(
        names()
    )


def test_devices_and_networks_are_listed() -> None:
    """Every name that a workload, --device and --network take is there to be read."""
    text = shown(200)
    assert all(f"\n{name} " in text for name in bundled.names())
    assert all(name in text for name in devices.names())
    assert all(f"\n{preset.name} " in text for preset in presets())
