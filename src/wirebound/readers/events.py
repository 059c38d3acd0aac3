"""The lines of a recording, as msgspec reads them: fields that are not named are skipped."""

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

# Far above any recording, and far below where sums of nanoseconds overflow.
Microseconds = Annotated[float, Meta(ge=-1e14, le=1e14)]
Duration = Annotated[float, Meta(ge=0, le=1e14)]
Number = Annotated[int, Meta(ge=0, lt=2**31)]
Size = Annotated[int, Meta(ge=0, lt=2**60)]
Instant = Annotated[int, Meta(ge=0, lt=2**62)]
Name = str | int | None


class Arguments(msgspec.Struct, frozen=True, gc=False):
    """What an operation says beside its time."""

    step: Number | None = None
    micro: Number | None = None
    nbytes: Size | None = None
    bucket: Number | None = None
    group: Name = None
    dtype: str | None = None
    model: Name = None
    started_us: Microseconds | None = None


_PLAIN = Arguments()


class Span(msgspec.Struct, frozen=True, gc=False, tag_field="ph", tag="X"):
    """An operation with a duration."""

    cat: str
    name: str
    ts: Microseconds
    dur: Duration
    tid: Name = None
    args: Arguments = _PLAIN


class Moment(msgspec.Struct, frozen=True, gc=False, tag_field="ph", tag="i"):
    """A moment."""

    cat: str
    name: str
    ts: Microseconds
    tid: Name = None
    args: Arguments = _PLAIN


class Metadata(msgspec.Struct, frozen=True, gc=False, tag_field="ph", tag="M"):
    """What is no operation."""

    name: str
    args: msgspec.Raw = msgspec.Raw(b"{}")


class NotedInterface(msgspec.Struct, frozen=True):
    """A network interface of the host."""

    name: str
    speed_bps: float | None = None


class Header(msgspec.Struct, frozen=True):
    """The process that wrote the file."""

    schema_version: int
    rank: Number
    world_size: Annotated[int, Meta(ge=1, le=2**20)]
    started_ns: Instant
    local_rank: Number | None = None
    local_world_size: Number | None = None
    node: Number | None = None
    host: str = ""
    device: str = "cpu"
    backend: str | None = None
    versions: Mapping[str, str | None] = {}
    environment: Mapping[str, str | None] = {}
    interfaces: tuple[NotedInterface, ...] = ()
    script: str | None = ""


class NotedModel(msgspec.Struct, frozen=True):
    """A model and how DDP was told to treat it."""

    parameters: tuple[tuple[str, Size, str | None], ...]
    model: Name = None
    bucket_cap_bytes: Annotated[float, Meta(gt=0)] | None = None
    first_bucket_bytes: Annotated[float, Meta(gt=0)] | None = None
    find_unused_parameters: bool | None = False
    static_graph: bool | None = False


class NotedClock(msgspec.Struct, frozen=True):
    """How far this clock was found to be ahead of the lowest rank's."""

    offset_us: Microseconds
    error_us: Duration


class NotedOverhead(msgspec.Struct, frozen=True):
    """What recording cost."""

    hook_us_per_gradient: Duration | None = None


Event = Span | Moment | Metadata
decode_event = msgspec.json.Decoder(Event).decode
