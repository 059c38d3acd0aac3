"""The runs of a study, in the order in which they are made.

Runs over the same hosts and links are made in one lab, one repeat after the other, so that
what changes in an hour does not fall on one repeat alone.
"""

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from wirebound.errors import StudyError
from wirebound.study.record import Config
from wirebound.study.spec import NO_LIMIT, Grid, Script, Spec
from wirebound.units import MIB, format_exact_rate, format_exact_size, parse_rate, parse_size


class Planned(msgspec.Struct, frozen=True):
    """A run that is to be made.

    Attributes:
        id: Unique in the study.
        config: What distinguishes it.
        program: Script and arguments, filled in.
    """

    id: str
    config: Config
    program: tuple[str, ...]


class Group(msgspec.Struct, frozen=True):
    """Runs that share hosts and links.

    Attributes:
        workers: Hosts, one worker each.
        link_bps: Rate of every host's link, None without a limit [bit/s].
        is_benched: Whether the network is measured before the runs.
        runs: In order.
    """

    workers: int
    link_bps: float | None
    is_benched: bool
    runs: tuple[Planned, ...]

    @property
    def id(self) -> str:
        """What its bench is called."""
        return f"bench-w{self.workers}-{_link(self.link_bps)}"


def plan(spec: Spec, folder: Path) -> tuple[Group, ...]:
    """All runs of a study; what several grids ask for is made once.

    Args:
        spec: The study.
        folder: Where the paths of its scripts begin.

    Raises:
        StudyError: A script that is not there.
    """
    programs = {script.name: _found(script, folder) for script in spec.script}
    chosen: dict[Config, None] = {}
    if spec.baseline.alone:
        chosen.update(dict.fromkeys(_alone(spec)))
    for config in _grids(spec):
        if spec.baseline.apart and config.workers > 1:
            chosen.setdefault(_apart(config, spec))
        chosen.setdefault(config)
    benched = {(config.workers, config.link_bps) for config in _grids(spec) if config.workers > 1}
    places = dict.fromkeys((config.workers, config.link_bps) for config in chosen)
    return tuple(
        Group(
            *place,
            is_benched=spec.bench.enabled and place in benched,
            runs=tuple(
                _planned(msgspec.structs.replace(config, repeat=repeat), programs[config.script])
                for repeat in range(spec.repeats)
                for config in chosen
                if (config.workers, config.link_bps) == place
            ),
        )
        for place in places
    )


def _found(script: Script, folder: Path) -> tuple[str, ...]:
    """A program with the full path of its script."""
    path = (folder / script.program[0]).resolve()
    if not path.is_file():
        raise StudyError(
            f"script {script.name}: {script.program[0]}: no such file",
            "its path begins at the folder of the TOML file",
        )
    return str(path), *script.program[1:]


def _scripts(grid: Grid, spec: Spec) -> tuple[str, ...]:
    return grid.scripts or tuple(script.name for script in spec.script)


def _grids(spec: Spec) -> Iterator[Config]:
    for grid in spec.grid:
        for workers, link, script, cap, batch, accumulation in itertools.product(
            grid.workers, grid.link, _scripts(grid, spec), grid.bucket_cap, grid.batch,
            grid.accumulation,
        ):  # fmt: skip
            is_limited = workers > 1 and link != NO_LIMIT
            yield Config(
                script=script,
                workers=workers,
                mode="joined",
                link_bps=parse_rate(link) if is_limited else None,
                bucket_cap_bytes=int(parse_size(cap)),
                batch=batch,
                accumulation=accumulation,
                repeat=0,
            )


def _alone(spec: Spec) -> Iterator[Config]:
    """One worker of each script and its settings; the bucket cap is the first one asked for."""
    chosen: dict[tuple[str, int, int], Config] = {}
    for config in _grids(spec):
        job = config.script, config.batch, config.accumulation
        alone = msgspec.structs.replace(config, workers=1, link_bps=None)
        chosen.setdefault(job, alone)
    yield from chosen.values()


def _apart(config: Config, spec: Spec) -> Config:
    """The baseline of a run: its workers, each alone, among the runs on the same link.

    It is made beside them because the machine of an hour ago is not the machine of now. The
    bucket cap, which does not matter, is the first one of the script.
    """
    cap = next(
        other.bucket_cap_bytes
        for other in _grids(spec)
        if (other.script, other.batch) == (config.script, config.batch)
    )
    return msgspec.structs.replace(config, mode="apart", bucket_cap_bytes=cap)


def _planned(config: Config, program: tuple[str, ...]) -> Planned:
    values = {
        "bucket_cap_mb": f"{config.bucket_cap_bytes / MIB:.12g}",
        "bucket_cap": str(config.bucket_cap_bytes),
        "batch": str(config.batch),
        "accumulation": str(config.accumulation),
    }
    script, *arguments = program
    filled = (re.sub(r"\{(\w*)\}", lambda found: values[found[1]], word) for word in arguments)
    return Planned(run_id(config), config, (script, *filled))


def run_id(config: Config) -> str:
    """The name of a run, made of what distinguishes it."""
    place = _link(config.link_bps) + ("-apart" if config.mode == "apart" else "")
    cap = format_exact_size(config.bucket_cap_bytes)
    return (
        f"{config.script}-w{config.workers}-{place}-cap{cap}"
        f"-b{config.batch}-a{config.accumulation}-r{config.repeat}"
    )


def _link(link_bps: float | None) -> str:
    return "unlimited" if link_bps is None else format_exact_rate(link_bps)
