"""What a study is to do: the TOML file that a person writes."""

import re
import tomllib
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import msgspec

from wirebound.errors import LabError, QuantityError, ReadError, StudyError
from wirebound.inputs import read_text
from wirebound.lab.shaping import shaping
from wirebound.samples import Measured
from wirebound.units import parse_rate, parse_size, parse_time
from wirebound.workload.reduce import DEFAULT_WARMUP

NO_LIMIT = "none"

MOST, MOST_REPEATS, LARGEST_BYTES = 1_000_000, 1000, 1e12
"""Far beyond what anybody waits for."""

PLACEHOLDERS = ("bucket_cap_mb", "bucket_cap", "batch", "accumulation")
"""What the words of a program may have filled in."""

_PLACEHOLDER = re.compile(r"\{(\w*)\}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.]*")
_TYPE_ERROR = re.compile(r"(?P<what>.*?)(?: - at `\$\.?(?P<place>.*)`)?", re.DOTALL)


class Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A program to train with.

    Attributes:
        name: What it is called in ids.
        program: A script, by its path from the TOML file, and its arguments.
    """

    name: str
    program: tuple[str, ...]


class Grid(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Every combination of some values.

    Attributes:
        scripts: Names; empty for all.
        workers: Numbers of ranks, one a host.
        link: Rates of every host's link, `none` for no limit.
        bucket_cap: Caps of DDP's buckets.
        batch: Samples a worker and micro-step.
        accumulation: Micro-steps an optimizer step.
    """

    scripts: tuple[str, ...] = ()
    workers: tuple[int, ...] = (2,)
    link: tuple[str, ...] = (NO_LIMIT,)
    bucket_cap: tuple[str, ...] = ("25MiB",)
    batch: tuple[int, ...] = (32,)
    accumulation: tuple[int, ...] = (1,)


class Baseline(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the runs of a grid are compared with.

    Attributes:
        alone: Whether one worker trains alone.
        apart: Whether as many workers as a run has train at once, each alone.
    """

    alone: bool = True
    apart: bool = True


class BenchSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The network bench that comes before the runs.

    Attributes:
        enabled: Whether there is one.
        largest: Its last size.
        budget: Time for the repeats of one size.
        kinds: Operations to measure; all where none is named.
    """

    enabled: bool = True
    largest: str = "64MiB"
    budget: str = "1s"
    kinds: tuple[Measured, ...] = ()


class Spec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A study as a person describes it.

    Attributes:
        name: What it is called.
        script: Programs.
        grid: What they are run with.
        where: `lab`, `hosts` or `slurm`.
        repeats: Of every run.
        timeout: Of a run.
        cores: A worker, in the lab.
        warmup: Complete steps left out first.
        baseline: What runs are compared with.
        bench: The network bench before the runs.
    """

    name: str
    script: tuple[Script, ...] = ()
    grid: tuple[Grid, ...] = ()
    where: Literal["lab", "hosts", "slurm"] = "lab"
    repeats: int = 1
    timeout: str = "10min"
    cores: int = 1
    warmup: int = DEFAULT_WARMUP
    baseline: Baseline = Baseline()
    bench: BenchSpec = BenchSpec()

    @property
    def timeout_s(self) -> float:
        """How long a run may take [s]."""
        return parse_time(self.timeout, "timeout")


def read_spec(path: Path) -> tuple[Spec, str]:
    """Read a study's description.

    Returns:
        It, and the text of its file.

    Raises:
        ReadError: A file that cannot be read, or that is not TOML.
        StudyError: An unknown key, or a value that no study can have, with its place.
    """
    text = read_text(path, "a study in TOML")
    try:
        return parse_spec(text), text
    except (LabError, StudyError, QuantityError, ReadError) as error:
        raise type(error)(f"{path}: {error.message}", error.hint) from None


def parse_spec(text: str) -> Spec:
    """A study from the text of its file.

    Raises:
        ReadError: Not TOML.
        StudyError: As for `read_spec`.
    """
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ReadError(f'{error}, expected TOML such as name = "study"') from None
    _check_keys(table, Spec, "")
    try:
        spec = msgspec.convert(table, Spec)
    except msgspec.ValidationError as error:
        raise StudyError(_sentence(str(error))) from None
    _check(spec)
    return spec


def _check_keys(value: Any, kind: Any, place: str) -> None:  # noqa: ANN401 - as TOML gives it
    """Refuse keys that a record does not have, wherever they stand."""
    if get_origin(kind) is tuple and isinstance(value, list):
        for number, one in enumerate(value, start=1):
            _check_keys(one, get_args(kind)[0], f"{place} {number}")
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return
    if not isinstance(value, dict):
        return
    known = {field.name: field.type for field in msgspec.structs.fields(kind)}
    for key, inner in value.items():
        if key not in known:
            where = f" in {place}" if place else ""
            raise StudyError(f"unknown key {key!r}{where}, expected one of {', '.join(known)}")
        _check_keys(inner, known[key], key)


def _sentence(message: str) -> str:
    """A complaint of msgspec with its place first, in words of TOML."""
    match = _TYPE_ERROR.fullmatch(message)
    assert match is not None  # noqa: S101 - the pattern fits any text
    place, what = match["place"], " ".join(match["what"].split())
    counted = re.sub(r"\[(\d+)\]", lambda found: f" {int(found[1]) + 1}", place or "")
    what = what.replace("Object missing required field", "missing key")
    what = what[:1].lower() + what[1:]
    return f"{counted}: {what}" if counted else what


def _check(spec: Spec) -> None:
    """Refuse what is of the right kind and still no study."""
    _check_name("name", spec.name)
    _check_number("repeats", spec.repeats, 1, MOST_REPEATS)
    _check_number("cores", spec.cores, 1)
    _check_number("warmup", spec.warmup, 0)
    if not spec.timeout_s:
        raise StudyError(f"timeout {spec.timeout}: expected a time > 0")
    parse_size(spec.bench.largest, "bench: largest")
    parse_time(spec.bench.budget, "bench: budget")
    if not spec.script or not spec.grid:
        missing = "grid" if spec.script else "script"
        raise StudyError(f"no {missing}, expected at least one [[{missing}]]")
    for script in spec.script:
        _check_script(script)
    names = [script.name for script in spec.script]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise StudyError(f"script {twice[0]}: named twice, expected a name of its own for each")
    for number, grid in enumerate(spec.grid, start=1):
        _check_grid(grid, f"grid {number}", names, spec.where)


def _check_name(what: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise StudyError(
            f"{what} {name!r}: expected letters, digits, _ and . alone, since files are named so"
        )


def _check_number(what: str, number: int, least: int, most: int = MOST) -> None:
    if not least <= number <= most:
        raise StudyError(f"{what} is {number}, expected {least} to {most}")


def _check_script(script: Script) -> None:
    _check_name("script", script.name)
    if not script.program or script.program[0].startswith("-"):
        raise StudyError(f"script {script.name}: program begins with no script, expected train.py")
    for word in script.program:
        for name in _PLACEHOLDER.findall(word):
            if name not in PLACEHOLDERS:
                known = ", ".join(f"{{{one}}}" for one in PLACEHOLDERS)
                raise StudyError(
                    f"script {script.name}: unknown placeholder {{{name}}}, expected one of {known}"
                )


def _check_grid(grid: Grid, place: str, scripts: list[str], where: str) -> None:
    for name in grid.scripts:
        if name not in scripts:
            raise StudyError(f"{place}: no script {name!r}, expected one of {', '.join(scripts)}")
    for axis in ("workers", "link", "bucket_cap", "batch", "accumulation"):
        if not getattr(grid, axis):
            raise StudyError(f"{place}: {axis} is an empty list, expected at least one value")
    for axis in ("workers", "batch", "accumulation"):
        for number in getattr(grid, axis):
            _check_number(f"{place}: {axis}", number, 1)
    for cap in grid.bucket_cap:
        if not 1 <= parse_size(cap, f"{place}: bucket_cap") <= LARGEST_BYTES:
            raise StudyError(f"{place}: bucket_cap {cap}: expected a size from 1 B to 1 TB")
    for link in grid.link:
        _check_link(link, f"{place}: link", where)


def _check_link(link: str, place: str, where: str) -> None:
    if link == NO_LIMIT:
        return
    if where == "lab":
        shaping(parse_rate(link, place))
        return
    raise StudyError(
        f"{place} {link}: cannot be set on {where}, expected none",
        'leave link out, or choose where = "lab"',
    )
