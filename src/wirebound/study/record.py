"""What a study holds: how it was made, and what each of its runs measured.

A study is a folder: `study.json` (a `Study`) and `runs.jsonl` (a `Run` a line, in the order
in which they ended).
"""

from typing import Literal

import msgspec

from wirebound.samples import Samples
from wirebound.workload.reduce import Reduced

SCHEMA_VERSION = 1

Mode = Literal["joined", "apart"]
"""Whether the workers of a run train together, or each alone at the same time."""


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What distinguishes a run from the others.

    Attributes:
        script: Name of what was run.
        workers: Ranks.
        mode: `joined`, or `apart` for the baseline without communication.
        link_bps: Rate of every host's link [bit/s]; None without a limit. Workers apart send
            nothing over it, and are the baseline of the runs that do.
        bucket_cap_bytes: DDP's bucket cap [bytes].
        batch: Samples a worker and micro-step.
        accumulation: Micro-steps an optimizer step.
        repeat: Number of the repetition, from 0.
    """

    script: str
    workers: int
    mode: Mode
    link_bps: float | None
    bucket_cap_bytes: int
    batch: int
    accumulation: int
    repeat: int


class Traffic(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one interface of one host carried during the measured steps.

    Attributes:
        host: Whose.
        interface: Its name.
        is_carrying: Whether it is the one of the host that carried the job's bytes.
        rate_bps: The link's rate, where known [bit/s].
        sent_bytes: A step [bytes].
        received_bytes: A step [bytes].
        mean_sent_bps: Over whole steps [bit/s].
        mean_received_bps: Likewise.
        busy_sent_bps: While a collective was under way [bit/s].
        busy_received_bps: Likewise.
    """

    host: str
    interface: str
    is_carrying: bool
    rate_bps: float | None
    sent_bytes: float
    received_bytes: float
    mean_sent_bps: float
    mean_received_bps: float
    busy_sent_bps: float
    busy_received_bps: float


class Processors(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How busy the cores of one host were during the measured steps.

    Attributes:
        host: Whose.
        cores: Numbers of the cores that the host's workers may use.
        mean: Share of the time they were busy, over whole steps.
        communicating: The same while a collective was under way; None without any.
    """

    host: str
    cores: tuple[int, ...]
    mean: float
    communicating: float | None


class Run(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One run of a study, done or failed.

    Attributes:
        id: Unique in the study, and the name of its folder while it runs.
        config: What was asked for.
        started_s: When, since 1970 [s].
        elapsed_s: From the first start to the last end [s].
        failure: Why it failed, with the end of what it complained about; None if it did not.
        is_oversubscribed: Whether workers shared cores.
        verified_bps: What the slowest link carried when it was verified [bit/s].
        reduced: What was measured; None if it failed. Of ranks that ran apart, of the first.
        step_s: Time of each measured step, one tuple a rank [s].
        traffic: Of each interface.
        processors: Of each host.
        hook_us_per_gradient: What the recorder cost [µs]; None where unknown.
    """

    id: str
    config: Config
    started_s: float
    elapsed_s: float
    failure: str | None = None
    is_oversubscribed: bool = False
    verified_bps: float | None = None
    reduced: Reduced | None = None
    step_s: tuple[tuple[float, ...], ...] = ()
    traffic: tuple[Traffic, ...] = ()
    processors: tuple[Processors, ...] = ()
    hook_us_per_gradient: float | None = None


class Bench(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the network bench measured on one link of the study.

    Attributes:
        workers: Ranks.
        link_bps: Rate of every host's link, None without a limit [bit/s].
        samples: As `wirebound bench` took them; None if it failed.
        failure: Why it failed, or None.
    """

    workers: int
    link_bps: float | None
    samples: Samples | None = None
    failure: str | None = None


class Study(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a study was made.

    Attributes:
        name: What it is called.
        spec: Text of its TOML file.
        where: `lab`, `hosts` or `slurm`.
        provenance: Machine, system, software versions, and a digest of each script, by name.
        benches: Of each link and number of workers.
        schema_version: Of the files.
    """

    name: str
    spec: str
    where: str
    provenance: dict[str, str]
    benches: tuple[Bench, ...] = ()
    schema_version: int = SCHEMA_VERSION
