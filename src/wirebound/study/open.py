"""Opening a study's folder for its description, and refusing that of another one."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from wirebound.errors import StudyError
from wirebound.study.archive import Archive
from wirebound.study.plan import Group
from wirebound.study.provenance import differing, provenance
from wirebound.study.record import Study
from wirebound.study.spec import Spec, parse_spec

HINT = "choose another folder with -o DIR, or move this one away"


@contextmanager
def opened(folder: Path, spec: Spec, text: str, groups: Sequence[Group]) -> Iterator[Archive]:
    """The archive of a study, begun or gone on with.

    Args:
        folder: Of the archive.
        spec: The study.
        text: Of its file.
        groups: Its plan.

    Raises:
        StudyError: The folder holds another study, or one with other scripts.
    """
    here = provenance(groups, spec.where)
    with Archive(folder) as archive:
        if archive.study is None:
            archive.write(Study(spec.name, text, spec.where, here))
        else:
            _check_same(archive.study, spec, here, folder)
        yield archive


def _check_same(study: Study, spec: Spec, here: dict[str, str], folder: Path) -> None:
    there = parse_spec(study.spec)
    for field in Spec.__struct_fields__:
        if getattr(there, field) != getattr(spec, field):
            raise StudyError(
                f"{folder}: holds a study with another {field}: {_short(getattr(there, field))} "
                f"there, {_short(getattr(spec, field))} here",
                HINT,
            )
    name = differing(study.provenance, here, spec.where)
    if name is not None:
        values = (_short(place.get(name, "none")) for place in (study.provenance, here))
        there_is, here_is = values
        raise StudyError(
            f"{folder}: holds a study with another {name}: {there_is} there, {here_is} here", HINT
        )


def _short(value: object) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    most = 40
    return text if len(text) <= most else f"{text[: most - 1]}…"
