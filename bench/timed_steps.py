"""Runs a script and prints, as its last word, the median time between its optimizer steps [s].

A step that the recorder writes between is part of the time, as a user would see it.
"""

import runpy
import statistics
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

WARMUP = 5

marks: list[float] = []
optimize = torch.optim.SGD.step


def timed(self: torch.optim.SGD, *args: Any, **kwargs: Any) -> Any:
    """The optimizer's step, and when it was over."""
    result = optimize(self, *args, **kwargs)
    marks.append(time.perf_counter())
    return result


torch.optim.SGD.step = timed  # type: ignore[method-assign]
script, *sys.argv[1:] = sys.argv[1:]
sys.argv[0] = script
sys.path.insert(0, str(Path(script).parent))
runpy.run_path(script, run_name="__main__")
kept = marks[WARMUP:]
print(statistics.median(after - before for before, after in pairwise(kept)))
