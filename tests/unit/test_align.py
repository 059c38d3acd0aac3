"""Offsets of clocks from synthetic completions."""

import numpy as np
import pytest

from wirebound.align import estimate_offsets

SKEW_S = np.array([0.0, 0.25, -3.0])


def completions(noise_s: float = 0.0, drift: float = 0.0) -> np.ndarray:
    """A collective a second on three ranks, each noticed a little late."""
    rng = np.random.default_rng(1)
    true_s = np.arange(200.0)[:, None]
    late_s = rng.uniform(0, noise_s, (200, 3)) if noise_s else 0.0
    return true_s * (1 + drift * np.array([0.0, 1.0, -1.0])) + SKEW_S + late_s


def test_exact_completions_give_exact_offsets() -> None:
    """Without noise the offsets are the skews, without an error."""
    offsets = estimate_offsets(completions())
    assert offsets.offset_s == pytest.approx(SKEW_S, abs=1e-12)
    assert offsets.error_s == pytest.approx([0.0, 0.0, 0.0], abs=1e-12)


def test_the_error_covers_noise() -> None:
    """With noise the true skew is within the error that is claimed."""
    offsets = estimate_offsets(completions(noise_s=0.01))
    assert np.all(np.abs(offsets.offset_s - SKEW_S) <= offsets.error_s)
    assert np.all(offsets.error_s <= 0.01)


def test_the_error_covers_drift() -> None:
    """A clock that runs fast is off by up to the error for nine tenths of the time."""
    done = completions(drift=1e-4)
    offsets = estimate_offsets(done)
    beyond = np.abs(done - done[:, :1] - offsets.offset_s) > offsets.error_s + 1e-12
    assert offsets.error_s[1:] == pytest.approx([0.9 * 199e-4 / 2] * 2, rel=0.01)
    assert np.mean(beyond, axis=0).max() <= 0.1 + 1e-9


def test_one_late_completion_changes_little() -> None:
    """A process that slept through one completion does not move its clock."""
    done = completions(noise_s=1e-4)
    done[7, 1] += 5.0
    offsets = estimate_offsets(done)
    assert offsets.offset_s == pytest.approx(SKEW_S, abs=1e-4)
    assert np.all(offsets.error_s <= 1e-4)
