"""One clock for all ranks, from what they see at the same instant.

All ranks leave an all-reduce at nearly the same instant, so that the difference between the
completions that two ranks note is the difference of their clocks, apart from how late each
of them noticed.
"""

import msgspec
import numpy as np
from numpy.typing import NDArray

CENTRAL = (5.0, 95.0)
"""Percentiles between which completions count for the error: a process that was not
scheduled when its collective was done notes an arbitrarily late instant."""


class Offsets(msgspec.Struct, frozen=True, eq=False):
    """How clocks differ from the first one.

    Attributes:
        offset_s: How far each clock is ahead of the first [s], shape [R].
        error_s: Half the width of the central 90 % of the differences [s], shape [R]; drift
            of the clocks during the recording is part of it.
    """

    offset_s: NDArray[np.float64]
    error_s: NDArray[np.float64]


def estimate_offsets(done_s_KR: NDArray[np.float64]) -> Offsets:
    """Offsets of clocks from the completions of collectives.

    `offset[r] = median over k of done[k, r] - done[k, 0]`

    Args:
        done_s_KR: When each of K collectives was done by the clock of each of R ranks [s];
            at least one collective.
    """
    ahead_KR = done_s_KR - done_s_KR[:, :1]
    low_R, high_R = np.percentile(ahead_KR, CENTRAL, axis=0)
    return Offsets(np.median(ahead_KR, axis=0), (high_R - low_R) / 2)
