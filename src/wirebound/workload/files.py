"""Workloads as files: our own JSON, and the backward logs published with the paper."""

import math
from pathlib import Path

import msgspec

from wirebound.errors import ReadError, WorkloadError
from wirebound.inputs import read_text
from wirebound.workload.record import Gradient, Source, Workload, data_parallel

EXPECTED = "a workload in JSON"

MICROSECOND_S = 1e-6


def read_workload(path: Path) -> Workload:
    """Read a workload; which kind of file it is, is seen from its content.

    Args:
        path: JSON as `dumps` writes it, or a published backward log.

    Raises:
        ReadError: A file that is missing, too large, or neither of the two, with the place.
        WorkloadError: A file that reads well and describes no possible step.
    """
    text = read_text(path, EXPECTED)
    if not text.lstrip().startswith("{"):
        return _backward_log(path, text)
    try:
        return msgspec.json.decode(text, type=Workload)
    except WorkloadError as error:
        raise WorkloadError(f"{path}: {error.message}", error.hint) from None
    except msgspec.ValidationError as error:
        raise ReadError(f"{path}: {error}") from None
    except msgspec.DecodeError as error:
        raise ReadError(f"{path}: not complete JSON ({error}), expected a workload") from None
    except RecursionError:
        raise ReadError(f"{path}: nested too deeply, expected a workload") from None


def dumps(workload: Workload) -> bytes:
    """A workload as JSON, readable by people and by `read_workload`."""
    return msgspec.json.format(msgspec.json.encode(workload), indent=1) + b"\n"


def read_backward_log(path: Path) -> Workload:
    """Read a per-layer backward log as published with Zhang et al. (NetAI 2020).

    A comment, the number of batches, the number of gradients, then a line
    `microseconds since the gradient before,bytes` for each in backward order.

    Returns:
        A workload of the backward pass alone; the rest of the step is not in the log.

    Raises:
        ReadError: A line that is not what its place asks for, or a log cut short.
    """
    return _backward_log(path, read_text(path, EXPECTED))


def _backward_log(path: Path, text: str) -> Workload:
    lines = text.splitlines()
    header = 3
    count = _whole(path, lines, 2)
    rows = [line for line in lines[header:] if line.strip()]
    if len(rows) != count:
        raise ReadError(
            f"{path}: line 3 announces {count} gradients, {len(rows)} follow: "
            "the log is cut short or not a backward log"
        )
    gradients: list[Gradient] = []
    ready_s = 0.0
    for number, row in enumerate(rows):
        gap, nbytes = _row(path, header + number + 1, row)
        ready_s += gap * MICROSECOND_S
        gradients.append(Gradient(f"gradient[{number}]", nbytes, ready_s))
    return data_parallel(
        path.name.removesuffix(".bk.log"),
        gradients,
        backward_s=ready_s,
        source=Source("log", "per-layer backward intervals of one worker"),
    )


def _row(path: Path, line: int, row: str) -> tuple[float, int]:
    fields = row.split(",")
    try:
        gap, nbytes = (float(field) for field in fields)
    except ValueError:
        gap, nbytes = math.nan, math.nan
    if not (math.isfinite(gap) and gap >= 0 and nbytes > 0 and nbytes.is_integer()):
        raise ReadError(
            f"{path}: line {line} is {row[:40]!r}, expected microseconds,bytes such as 552.6,4000"
        )
    return gap, int(nbytes)


def _whole(path: Path, lines: list[str], index: int) -> int:
    try:
        return int(lines[index])
    except (ValueError, IndexError):
        raise ReadError(
            f"{path}: neither a workload in JSON nor a backward log "
            f"(line {index + 1} is not a number of gradients)"
        ) from None
