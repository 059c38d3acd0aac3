"""What recording costs: the same training with and without it, in pairs.

Run from the root of the repository: `python bench/recorder.py`. Each pair runs an example
twice, one after the other and in turn first, and compares its median steps; what differs is
only whether the recorder is there. The last lines are the median of the ratios and their
spread, the cost of the hook of a gradient, and the bytes recorded a step.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
TIMED = ROOT / "bench" / "timed_steps.py"


def main() -> None:
    """Run the pairs and print what they say."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--example", default="convnet.py")
    parser.add_argument("--batch", default="80", help="samples a step; 80 make some 100 ms")
    parser.add_argument("--steps", default="40")
    parser.add_argument("--no-monitor", action="store_true")
    options = parser.parse_args()
    ratios, plain_s = [], []
    hook_us = per_step = 0.0
    for number in range(options.pairs):
        taken = {}
        with tempfile.TemporaryDirectory() as folder:
            for is_recorded in (number % 2 == 0, number % 2 == 1):
                taken[is_recorded] = run(options, Path(folder) if is_recorded else None)
            hook_us, per_step = cost(Path(folder))
        ratios.append(taken[True] / taken[False])
        plain_s.append(taken[False])
        print(f"pair {number + 1}: {taken[False] * 1e3:.2f} ms, recorded {ratios[-1]:.4f} of it")
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(f"step without recorder: {statistics.median(plain_s) * 1e3:.1f} ms")
    print(f"recorded over not: median {middle:.4f}, middle half {low:.4f} to {high:.4f}")
    print(f"hook: {hook_us:.1f} us a gradient; recorded: {per_step:.0f} bytes a step and rank")


def run(options: argparse.Namespace, folder: Path | None) -> float:
    """Median step of one training, pinned to one core [s]."""
    script = ROOT / "examples" / options.example
    words = [str(script), "--steps", options.steps, "--batch", options.batch]
    if folder is not None:
        flags = ["--no-monitor"] if options.no_monitor else []
        words = ["-m", "wirebound.record", "-o", str(folder / "run"), *flags, str(TIMED), *words]
    else:
        words = [str(TIMED), *words]
    done = subprocess.run(
        ["/usr/bin/env", "taskset", "-c", "0", sys.executable, *words],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout.split()[-1])


def cost(folder: Path) -> tuple[float, float]:
    """Cost of a gradient's hook [us], and bytes recorded a step."""
    path = folder / "run" / "rank0.trace.json"
    events = json.loads(path.read_text(encoding="utf-8"))
    [facts] = [one["args"] for one in events if one["name"] == "wirebound_overhead"]
    steps = sum(one.get("cat") == "step" for one in events)
    return float(facts["hook_us_per_gradient"]), path.stat().st_size / steps


if __name__ == "__main__":
    main()
