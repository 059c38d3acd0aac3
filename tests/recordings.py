"""Recordings as the recorder writes them, made up: known times, and ways to be cut short."""

import json
from pathlib import Path
from typing import Any

STARTED_NS = 1_700_000_000_123_456_789
STEP_US = 100_000.0

PARAMETERS = (
    ("0.weight", 4000, "float32"),
    ("0.bias", 40, "float32"),
    ("1.weight", 8000, "float32"),
)
READY_US = {"1.weight": 5_000.0, "0.weight": 20_000.0, "0.bias": 30_000.0}
"""After the backward pass began."""
BUCKETS = {"1.weight": 0, "0.weight": 1, "0.bias": 1}


class Run:
    """One rank of a training: input 5 ms, forward 20, backward 30, wait 20, optimizer 10.

    The wait lies inside the backward span, which so lasts 50 ms; 15 ms of the 100 are gaps.
    """

    def __init__(  # noqa: PLR0913 - what tests vary
        self,
        rank: int = 0,
        world_size: int = 1,
        *,
        steps: int = 6,
        micro_steps: int = 1,
        is_ddp: bool = True,
        ahead_us: float = 0.0,
        clock: dict[str, float] | None = None,
        models: tuple[int | None, ...] = (None,),
        unused: tuple[tuple[str, int, str], ...] = (),
        host: str = "alpha",
        cap_bytes: float | None = 8000.0,
        stretch: dict[int, float] | None = None,
        **header: object,
    ) -> None:
        self.rank, self.ahead_us, self.is_ddp, self.models = rank, ahead_us, is_ddp, models
        self.lines: list[dict[str, Any]] = []
        self.metadata("process_name", name=f"rank {rank}")
        known = {
            "schema_version": 1, "rank": rank, "world_size": world_size, "local_rank": rank,
            "local_world_size": world_size, "node": 0, "host": host, "device": "cpu",
            "backend": "gloo" if is_ddp else None, "started_ns": STARTED_NS,
            "versions": {"torch": "2.13.0"}, "environment": {"OMP_NUM_THREADS": "1"},
            "interfaces": [{"name": "eth0", "speed_bps": 1e9}, {"name": "lo", "speed_bps": None}],
            "script": "train.py",
        }  # fmt: skip
        self.metadata("wirebound", **(known | header))
        for model in models:
            self.metadata(
                "wirebound_model",
                model=model,
                parameters=[*PARAMETERS, *unused],
                bucket_cap_bytes=cap_bytes if is_ddp else None,
                first_bucket_bytes=cap_bytes if is_ddp else None,
                find_unused_parameters=bool(unused),
                static_graph=False,
            )
        begin_us = 0.0
        for step in range(steps):
            begin_us = self.step(step, begin_us, micro_steps, (stretch or {}).get(step, 1.0))
        if clock is not None:
            self.metadata("wirebound_clock", **clock)
        self.metadata("wirebound_overhead", events=len(self.lines), bytes=1)

    def metadata(self, name: str, /, **args: object) -> None:
        """What is no operation."""
        self.lines.append({"ph": "M", "name": name, "pid": self.rank, "tid": 0, "args": args})

    def span(
        self, kind: str, start_us: float, duration_us: float, tid: str = "compute", **args: object
    ) -> None:
        """An operation with a duration."""
        name = args.pop("name", kind)
        self.lines.append(
            {"ph": "X", "cat": kind, "name": name, "pid": self.rank, "tid": tid,
             "ts": start_us + self.ahead_us, "dur": duration_us, "args": args}
        )  # fmt: skip

    def step(self, step: int, begin_us: float, micro_steps: int, stretch: float) -> float:
        """One step; returns when it is over."""
        now = begin_us
        for micro in range(micro_steps):
            self.micro_step(step, micro, now, stretch, is_last=micro == micro_steps - 1)
            now += 75_000.0 * stretch
        self.span("optimizer", now, 10_000.0, step=step, micro=micro_steps - 1)
        over = now + 25_000.0
        self.span("step", begin_us, over - begin_us, "steps", name=f"step {step}", step=step)
        return over

    def micro_step(
        self, step: int, micro: int, begin_us: float, stretch: float, *, is_last: bool
    ) -> None:
        """Input, forward, and a backward pass whose last micro-step synchronises."""
        at = {"step": step, "micro": micro}
        self.span("input", begin_us, 5_000.0 * stretch, **at)
        self.span("forward", begin_us + 5_000.0 * stretch, 20_000.0 * stretch, **at)
        backward_us = begin_us + 25_000.0 * stretch
        syncs = is_last and self.is_ddp
        for number, model in enumerate(self.models):
            for name, nbytes, _ in PARAMETERS:
                self.lines.append(
                    {"ph": "i", "s": "t", "cat": "gradient", "name": name, "pid": self.rank,
                     "tid": "compute", "ts": backward_us + READY_US[name] * stretch + self.ahead_us,
                     "args": {**at, "nbytes": nbytes, "model": model,
                              "bucket": BUCKETS[name] if syncs else None}}
                )  # fmt: skip
            if syncs:
                for bucket, nbytes, ready_us in ((0, 8000, 5_000.0), (1, 4040, 30_000.0)):
                    self.span(
                        "all_reduce", backward_us + ready_us * stretch, 20_000.0 * stretch, "comm",
                        name=f"bucket {bucket}", nbytes=nbytes, dtype="float32",
                        group=str(number), bucket=bucket, model=model,
                        started_us=backward_us + ready_us * stretch, **at,
                    )  # fmt: skip
        if syncs:
            self.span("exposed_wait", backward_us + 30_000.0 * stretch, 20_000.0 * stretch, **at)
        self.span("backward", backward_us, (50_000.0 if syncs else 30_000.0) * stretch, **at)

    def content(self) -> bytes:
        """The whole file."""
        return b"[\n" + b",\n".join(json.dumps(line).encode() for line in self.lines) + b"\n]\n"

    def killed(self, characters: int = 0) -> bytes:
        """The file without its end: of its last step the steps line is missing.

        Args:
            characters: Of the line of the last step that were still written.
        """
        last = max(number for number, line in enumerate(self.lines) if line.get("cat") == "step")
        whole = b"".join(json.dumps(line).encode() + b",\n" for line in self.lines[:last])
        return b"[\n" + whole + json.dumps(self.lines[last]).encode()[:characters]

    def write(self, folder: Path, content: bytes | None = None) -> Path:
        """Write the file of the rank; returns its path."""
        folder.mkdir(exist_ok=True)
        path = folder / f"rank{self.rank}.trace.json"
        path.write_bytes(self.content() if content is None else content)
        return path
