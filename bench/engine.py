"""The engine beside a plain Python loop and beside the published simulator, in one run.

    python bench/engine.py [--data DIR] [--most N]

Every line states what it compares; times are of this run on this machine, and only the
ratios travel. Nothing here decides a test.
"""

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from wirebound.network import network_for_link
from wirebound.simulate import paper
from wirebound.simulate.curve import Curve
from wirebound.simulate.grid import chunk_rows, keep_freed_memory
from wirebound.simulate.program import Columns, Program
from wirebound.simulate.scenario import Scenario
from wirebound.units import format_time
from wirebound.workload.bucketing import PerTensor
from wirebound.workload.modelled import scaled
from wirebound.workload.record import Gradient, Kind, Workload, data_parallel
from wirebound.workload.schedule import Schedule
from wirebound.workload.zoo import load

PUBLISHED_STRETCH = 10
"""The published simulator waits ten times as long as it simulates."""


def best_s(action: Callable[[], object], repeats: int = 5) -> float:
    """The shortest of several runs [s]."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def row(what: str, seconds: float, note: str = "") -> None:
    """Print one line of the table."""
    print(f"  {what:<58} {format_time(seconds):>8}  {note}", flush=True)


def job(buckets: int) -> tuple[Workload, Program]:
    """A step of a number of different buckets and its program on 64 workers."""
    gradients = [
        Gradient(f"g{k}", 4_000_000 + 1000 * k, 0.1 * (k + 1) / buckets) for k in range(buckets)
    ]
    workload = data_parallel("bench", gradients, forward_s=0.05, backward_s=0.1, optimizer_s=0.005)
    scenario = Scenario(workers=64, schedule=Schedule(bucketing=PerTensor()))
    return workload, Program(workload, network_for_link(1e10), scenario)


def columns(size: int, seed: int = 0) -> Columns:
    """Random link, latency, compression and compute speed."""
    random = np.random.default_rng(seed)
    return {
        "link_bps": random.uniform(1e9, 1e11, size),
        "latency_s": random.uniform(0, 1e-5, size),
        "compression_ratio": random.uniform(1, 10, size),
        "compute_speed": random.uniform(0.5, 2, size),
    }


def stream(program: Program, size: int) -> float:
    """Step times of `size` random scenarios, chunk by chunk; returns their sum."""
    total = 0.0
    rows = chunk_rows(program)
    for start in range(0, size, rows):
        total += float(program.step_s(columns(min(rows, size - start), start)).sum())
    return total


def plain_loop(workload: Workload, program: Program, at: Columns) -> list[float]:
    """The same answer by the loop that everybody writes first: one scenario, one bucket a turn."""
    ranks, alpha = 64, program.network.inter
    steps = []
    for rate, latency, ratio, speed in zip(*(at[name].tolist() for name in at), strict=True):
        per_byte = 8 / rate / alpha.best_efficiency / ratio
        forward = 0.05 / speed
        end = forward
        for gradient in workload.gradients:
            ready = forward + gradient.ready_s / speed
            wire = 2 * (ranks - 1) / ranks * gradient.nbytes * per_byte
            end = max(end, ready) + wire + 2 * (ranks - 1) * latency
        steps.append(max(end, forward + 0.1 / speed) + 0.005 / speed)
    return steps


def sweeps() -> None:
    """Array sweeps against the plain loop."""
    print("\nSweeps: step times of random scenarios (link, latency, compression, compute speed)")
    keep_freed_memory()
    for size, buckets, loop_size in ((10**6, 20, 10**4), (10**4, 300, 10**3)):
        workload, program = job(buckets)
        sample = columns(loop_size)
        slow = plain_loop(workload, program, sample)
        np.testing.assert_allclose(program.step_s(sample), slow, rtol=1e-12)
        rows = chunk_rows(program)
        chunks = [columns(min(rows, size - start), start) for start in range(0, size, rows)]
        ours = best_s(lambda p=program, c=chunks: [p.step_s(one) for one in c], 3)
        loop = best_s(lambda w=workload, p=program, s=sample: plain_loop(w, p, s), 3)
        loop *= size / loop_size
        row(f"{size:,} scenarios x {buckets} buckets, arrays", ours)
        row(f"  plain loop (from {loop_size:,} scenarios)", loop, f"{loop / ours:.0f}x")


def linear() -> None:
    """Cost against operations and scenarios."""
    print("\nCost a scenario and bucket: constant if linear")
    for size, buckets in ((10**4, 20), (10**5, 20), (10**6, 20), (10**5, 80), (10**5, 320)):
        _, program = job(buckets)
        seconds = best_s(lambda p=program, s=size: stream(p, s), 2)
        row(
            f"{size:>9,} scenarios x {buckets:>3} buckets",
            seconds,
            f"{seconds / size / buckets * 1e9:.1f} ns each",
        )


def memory(most: int) -> None:
    """Peak memory as the number of scenarios grows."""
    print("\nMemory: peak of this process while streaming")
    _, program = job(20)
    size = 10**6
    while size <= most:
        start = time.perf_counter()
        stream(program, size)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        row(f"{size:,} scenarios x 20 buckets", time.perf_counter() - start, f"{peak:.0f} MiB")
        size *= 10


def what_if() -> None:
    """One question about a 161-gradient step, by number of workers."""
    print("\nOne what-if: ResNet-50, 161 gradients, true overlap, with its bill, from nothing")
    workload = scaled(load("resnet50"), 0.128, 32)
    network = network_for_link(1e10)

    def ask(workers: int) -> object:
        window = Program(workload, network, Scenario(workers=workers)).window()
        return window.step_s, window.bill()

    for workers in (8, 64, 256, 65_536):
        row(f"{workers:,} workers", best_s(lambda n=workers: ask(n), 50))
    curve = Curve(workload, network, Scenario(workers=64), "link_bps")
    row("envelope over the link rate, 64 workers", best_s(curve.envelope))
    found = curve.envelope()
    points = np.random.default_rng(0).uniform(found.low, 10, 10**6)
    row("10^6 look-ups in it", best_s(lambda: found.at(points)), f"{len(found.slopes)} lines")


def original(data: Path | None) -> None:
    """The paper's grid against the waits of the published algorithm."""
    print(
        "\nThe paper's grid: 3 models x 3 worker counts x 5 rates x 6 ratios = 270 configurations"
    )
    study = paper.study(data)
    print("  inputs:", "published logs" if study.is_published else "model zoo (no --data)")
    base = paper.scenario(max(paper.WORKERS))

    def grid() -> list[np.ndarray]:
        return [
            paper.scaling_factors(w, study.network, base, paper.WORKERS, paper.RATIOS)
            for w in study.workloads.values()
        ]

    ours = best_s(grid)
    waits = sum(
        float((paper.STEP_S[name] / factors - paper.STEP_S[name] + w.span_s(Kind.BACKWARD)).sum())
        for (name, w), factors in zip(study.workloads.items(), grid(), strict=True)
    )
    row("all 270, exact", ours)
    row(
        "  sum of the published algorithm's stretched waits",
        waits * PUBLISHED_STRETCH,
        f"{waits * PUBLISHED_STRETCH / ours:.0f}x",
    )


def commands() -> None:
    """Whole processes, start included."""
    print("\nWhole commands, start included")
    thousand = ["whatif", "resnet50", "--step", "128ms"]
    thousand += ["--workers", ",".join(str(n) for n in range(2, 12))]
    thousand += ["--link", ",".join(f"{n}Gbps" for n in range(1, 11))]
    thousand += ["--compression", ",".join(str(n) for n in range(1, 11))]
    for what, arguments in (
        ("python -c pass", ["-c", "pass"]),
        ("python -c 'import wirebound'", ["-c", "import wirebound"]),
        ("wirebound --help", ["-m", "wirebound", "--help"]),
        ("wirebound demo", ["-m", "wirebound", "demo"]),
        ("wirebound whatif, 1,000 scenarios", ["-m", "wirebound", *thousand]),
        ("wirebound whatif --json, 1,000 scenarios", ["-m", "wirebound", *thousand, "--json"]),
    ):
        command = [sys.executable, *arguments]
        row(
            what, best_s(lambda c=command: subprocess.run(c, stdout=subprocess.DEVNULL, check=True))
        )


def main() -> None:
    """Run everything."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with the paper's published logs")
    parser.add_argument("--most", type=int, default=10**8, help="largest sweep for memory")
    options = parser.parse_args()
    original(options.data)
    what_if()
    sweeps()
    linear()
    memory(options.most)
    commands()


if __name__ == "__main__":
    main()
