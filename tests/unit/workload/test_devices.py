"""Devices are complete, plausible and say where their numbers come from."""

import pytest

from wirebound.errors import WorkloadError
from wirebound.workload import devices
from wirebound.workload.devices import device


def test_names() -> None:
    """The devices that can be asked for."""
    assert devices.names() == ("V100", "A100", "H100", "H200", "B200", "MI300X", "L4")


@pytest.mark.parametrize("name", devices.names())
def test_every_number_has_a_source(name: str) -> None:
    """Each type a device computes in has a fraction and a source for both kinds of arithmetic."""
    found = device(name)
    assert found.peak_source
    assert found.memory_source
    assert set(found.achieved) == {"convolution", "matmul"}
    for by_type in found.achieved.values():
        assert set(by_type) == set(found.peak_flops)
        for achieved in by_type.values():
            assert 0 < achieved.fraction < 1
            assert 0.1 <= achieved.uncertainty <= 0.5
            assert achieved.source


@pytest.mark.parametrize("name", devices.names())
def test_assumed_fractions_are_uncertain(name: str) -> None:
    """A fraction without a measurement is never given as a good one."""
    for by_type in device(name).achieved.values():
        for achieved in by_type.values():
            if "assumed" in achieved.source or "no measurement" in achieved.source:
                assert achieved.uncertainty >= 0.25


@pytest.mark.parametrize("name", devices.names())
def test_smaller_types_are_faster(name: str) -> None:
    """Peaks and achieved rates grow from fp32 over tf32 to bf16."""
    found = device(name)
    types = [dtype for dtype in ("fp32", "tf32", "bf16") if dtype in found.peak_flops]
    peaks = [found.peak_flops[dtype] for dtype in types]
    assert peaks == sorted(peaks)


def test_units_of_a_known_device() -> None:
    """V100 SXM2: 15.7 TFLOP/s, 900 GB/s, of which the published log streams 827."""
    v100 = device("v100")
    assert v100.name == "V100"
    assert v100.achieved_flops("convolution", "fp32") == pytest.approx(0.61 * 15.7e12)
    assert v100.streaming_Bps == pytest.approx(3 * 671_088_640 / 2.43368e-3, rel=0.005)


def test_missing_type_is_named() -> None:
    """V100 has no tf32."""
    with pytest.raises(WorkloadError, match=r"V100 has no tf32.*fp32, bf16"):
        device("V100").achieved_for("matmul", "tf32")


def test_unknown_name_gets_the_nearest() -> None:
    """The error says what was probably meant."""
    with pytest.raises(WorkloadError, match=r"'H10'.*did you mean 'H100'\?"):
        device("H10")
