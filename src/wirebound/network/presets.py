"""Networks that people have, by name: links, and machines with their NICs.

The numbers and where each comes from are in `presets.json`; `docs/model/network.md` says
how they were derived.
"""

import difflib
import math
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Literal

import msgspec

from wirebound.errors import NetworkError, QuantityError
from wirebound.network.record import Network, Tier, read
from wirebound.units import format_time

Place = Literal["inter", "intra", "machine"]


class Preset(msgspec.Struct, frozen=True):
    """What a list of presets shows.

    Attributes:
        name: Key for `network`, or for `tier` when it is a link.
        place: `inter`, a link between nodes; `intra`, a link inside one; `machine`.
        bandwidth_bps: Line rate of the link, or of all NICs of the machine [bit/s].
        source: Where the numbers come from.
        assumptions: What is assumed rather than measured or published.
    """

    name: str
    place: Place
    bandwidth_bps: float
    source: str
    assumptions: tuple[str, ...] = ()


class _Link(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    place: Literal["inter", "intra"]
    bandwidth_bps: float
    alpha_s: float
    efficiency: float
    source: str
    assumptions: tuple[str, ...] = ()


class _Machine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    inter: str
    nics: int
    intra: str
    gpus_per_node: int
    source: str
    assumptions: tuple[str, ...] = ()


class _Catalogue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    links: Mapping[str, _Link]
    machines: Mapping[str, _Machine]


@cache
def _catalogue() -> _Catalogue:
    data = resources.files(__package__).joinpath("presets.json").read_bytes()
    return msgspec.json.decode(data, type=_Catalogue)


def presets() -> tuple[Preset, ...]:
    """Return all presets: links first, then machines."""
    links = [
        Preset(name, link.place, link.bandwidth_bps, link.source, link.assumptions)
        for name, link in _catalogue().links.items()
    ]
    machines = [
        Preset(name, "machine", built.inter.node_bps, built.source, built.assumptions)
        for name in _catalogue().machines
        for built in [network(name)]
    ]
    return (*links, *machines)


def tier(name: str) -> Tier:
    """Return the link of a name as a tier with one port.

    Raises:
        NetworkError: No link has this name.
    """
    links = _catalogue().links
    key = _key(name, "link", links)
    link = links[key]
    return Tier(key, link.bandwidth_bps, link.alpha_s, link.efficiency)


def network(name: str) -> Network:
    """Return the network of a machine, or of a link between nodes with one GPU each.

    Raises:
        NetworkError: No machine and no link between nodes has this name.
    """
    catalogue = _catalogue()
    machines, links = catalogue.machines, catalogue.links
    key = _key(name, "network", [*(n for n in links if links[n].place == "inter"), *machines])
    if key in links:
        link = links[key]
        return Network(key, tier(key), source=link.source, assumptions=link.assumptions)
    machine = machines[key]
    inter, intra = links[machine.inter], links[machine.intra]
    return Network(
        name=key,
        inter=msgspec.structs.replace(tier(machine.inter), nics=machine.nics),
        intra=tier(machine.intra),
        gpus_per_node=machine.gpus_per_node,
        source=f"{machine.source}; {machine.inter}: {inter.source}; "
        f"{machine.intra}: {intra.source}",
        assumptions=(*machine.assumptions, *inter.assumptions, *intra.assumptions),
    )


def network_for_link(bandwidth_bps: float) -> Network:
    """Return a network of which only the line rate is known: Ethernet, TCP, one GPU a node.

    Args:
        bandwidth_bps: Line rate of a node's link [bit/s].

    Raises:
        QuantityError: The rate is not positive and finite.
    """
    if not (math.isfinite(bandwidth_bps) and bandwidth_bps > 0):
        raise QuantityError(f"link rate is {bandwidth_bps} bit/s, expected a finite rate > 0")
    like = network("10gbe")
    return Network(
        name="link",
        inter=msgspec.structs.replace(like.inter, name="link", bandwidth_bps=bandwidth_bps),
        source=f"rate as given, the rest as preset 10gbe: {like.source}",
        assumptions=(
            f"Ethernet with TCP at an MTU of 1500: payload gets {like.inter.efficiency:.0%}",
            f"{format_time(like.inter.alpha_s)} a message",
            "one link a node, no oversubscription",
            "additions are free",
        ),
    )


def load(path_or_name: Path | str) -> Network:
    """Return the network in a JSON file, or the preset of that name.

    A `Path`, a name that ends in `.json` and a name with a separator are files.

    Raises:
        ReadError: The file cannot be read as a network.
        NetworkError: The network is impossible, or no preset has this name.
    """
    text = str(path_or_name)
    path = Path(text)
    is_file = isinstance(path_or_name, Path) or path.suffix == ".json" or path.name != text
    return read(path) if is_file else network(text)


def _key(name: str, what: str, known: Iterable[str]) -> str:
    """Find a name whatever its case."""
    keys = {key.lower(): key for key in known}
    if name.lower() in keys:
        return keys[name.lower()]
    near = difflib.get_close_matches(name.lower(), keys, n=1, cutoff=0.0)
    raise NetworkError(
        f"no preset {what} is called {name!r}",
        f"the nearest is {near[0]!r}; a file needs a path that ends in .json",
    )
