"""What recording costs: the same training with and without it, in pairs.

Run from the root of the repository: `taskset -c 0 python bench/recorder.py`. One process trains
an example all the time, and records every other stretch of steps: between two processes, memory
alone makes more of a difference than recording. A pair compares the median steps of two
stretches that follow each other. The last lines are the median of the ratios and their spread,
the cost of the hook of a gradient, and the bytes recorded a step.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path

import torch
from torch import nn

import wirebound

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "examples"))

SETTLING = 3
"""Steps of a stretch that do not count."""


class Training:
    """The example, ready to go on at any time."""

    def __init__(self, batch: int) -> None:
        import convnet

        torch.manual_seed(0)
        torch.set_num_threads(1)
        self.model = convnet.build()
        self.inputs, self.labels = convnet.make(batch)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        self.loss_of = nn.CrossEntropyLoss()

    def stretch(self, steps: int) -> float:
        """Median time from step to step, whatever happens between them [s]."""
        marks = []
        for _ in range(steps + SETTLING + 1):
            self.optimizer.zero_grad()
            self.loss_of(self.model(self.inputs), self.labels).backward()
            self.optimizer.step()
            marks.append(time.perf_counter())
        return statistics.median(b - a for a, b in pairwise(marks[SETTLING:]))


def main() -> None:
    """Run the pairs and print what they say."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=80, help="80 make a step of some 100 ms")
    parser.add_argument("--steps", type=int, default=15, help="of a stretch")
    parser.add_argument("--no-monitor", action="store_true")
    options = parser.parse_args()
    training = Training(options.batch)
    training.stretch(options.steps)
    ratios, plain_s = [], []
    with tempfile.TemporaryDirectory() as name:
        for number in range(options.pairs):
            taken = {}
            for is_recorded in (number % 2 == 0, number % 2 == 1):
                folder = Path(name) / str(number)
                recorder = wirebound.Recorder(folder, monitor=not options.no_monitor)
                with recorder if is_recorded else nullcontext():
                    taken[is_recorded] = training.stretch(options.steps)
            ratios.append(taken[True] / taken[False])
            plain_s.append(taken[False])
        hook_us, per_step = cost(folder)
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(f"step without recorder: {statistics.median(plain_s) * 1e3:.1f} ms")
    print(f"recorded over not: median {middle:.4f}, middle half {low:.4f} to {high:.4f}")
    print(f"hook: {hook_us:.1f} us a gradient; recorded: {per_step:.0f} bytes a step and rank")


def cost(folder: Path) -> tuple[float, float]:
    """Cost of a gradient's hook [us], and bytes recorded a step."""
    path = folder / "rank0.trace.json"
    events = json.loads(path.read_text(encoding="utf-8"))
    [facts] = [one["args"] for one in events if one["name"] == "wirebound_overhead"]
    steps = sum(one.get("cat") == "step" for one in events)
    return float(facts["hook_us_per_gradient"]), path.stat().st_size / steps


if __name__ == "__main__":
    main()
