"""Hosts and the links between them: namespaces, virtual cables, a switch.

Devices are made inside the namespaces that use them, so that the machine's own never change
and removing the namespaces removes everything.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from wirebound.errors import LabError
from wirebound.lab.shaping import Shaping, is_held, limit
from wirebound.lab.tools import add_namespace, call

INTERFACE, LOOPBACK = "eth0", "lo"
BRIDGE = "switch"
NETWORK, PREFIX_LENGTH = "10.77.0", 24
MOST_WORKERS = 254
"""Addresses of the network; labs share it, since no lab can see another."""

PAIR = 2
"""Hosts that one cable joins; more need a switch."""


class Host(msgspec.Struct, frozen=True):
    """One machine of the cluster, which runs one worker.

    Attributes:
        rank: Its worker's.
        namespace: Name of its network namespace.
        address: Its IPv4 address.
        interface: The device that has it.
        cores: Processors that its worker may use.
    """

    rank: int
    namespace: str
    address: str
    interface: str
    cores: tuple[int, ...]


class Egress(msgspec.Struct, frozen=True):
    """A device that sends into a link.

    Attributes:
        namespace: Where it is.
        device: Its name there.
        owner: What a person calls it.
    """

    namespace: str
    device: str
    owner: str


def hosts(lab: str, cores: Sequence[tuple[int, ...]]) -> tuple[Host, ...]:
    """The hosts of a lab, not yet made.

    Args:
        lab: Its name.
        cores: Processors of each worker.
    """
    if len(cores) == 1:
        return (Host(0, f"{lab}-h0", "127.0.0.1", LOOPBACK, cores[0]),)
    return tuple(
        Host(rank, f"{lab}-h{rank}", f"{NETWORK}.{rank + 1}", INTERFACE, own)
        for rank, own in enumerate(cores)
    )


def wire(lab: str, cluster: Sequence[Host], shape: Shaping | None) -> tuple[Egress, ...]:
    """Make the hosts and join them.

    Returns:
        Every device that sends into a link.
    """
    for host in cluster:
        add_namespace(host.namespace)
    if len(cluster) == 1:
        return ()
    if len(cluster) == PAIR:
        _cable(cluster[0].namespace, INTERFACE, cluster[1].namespace, INTERFACE)
        ports: list[Egress] = []
    else:
        ports = _switch(f"{lab}-switch", cluster)
    for host in cluster:
        address = f"{host.address}/{PREFIX_LENGTH}"
        call("ip", "-netns", host.namespace, "address", "add", address, "dev", INTERFACE)
        _up(host.namespace, INTERFACE)
    # A port of a switch receives no faster than it sends.
    sending = *(_egress(host) for host in cluster), *ports
    if shape is not None:
        for egress in sending:
            limit(egress.namespace, egress.device, shape)
    return sending


def lost(sending: Sequence[Egress], shape: Shaping | None) -> str | None:
    """What is wrong with the links, in a sentence, or None where all are as they were made."""
    for egress in sending:
        try:
            call("ip", "-netns", egress.namespace, "link", "show", "dev", egress.device)
            if shape is not None and not is_held(egress.namespace, egress.device, shape):
                return f"the limit on {egress.owner} was changed while the program ran"
        except LabError:
            return f"{egress.owner} vanished while the program ran"
    return None


def _egress(host: Host) -> Egress:
    return Egress(host.namespace, host.interface, f"interface {host.interface} of host {host.rank}")


def _switch(name: str, cluster: Sequence[Host]) -> list[Egress]:
    add_namespace(name)
    call("ip", "-netns", name, "link", "add", BRIDGE, "type", "bridge")
    _up(name, BRIDGE)
    ports = []
    for host in cluster:
        port = f"port{host.rank}"
        _cable(host.namespace, INTERFACE, name, port)
        call("ip", "-netns", name, "link", "set", port, "master", BRIDGE)
        _up(name, port)
        ports.append(Egress(name, port, f"{port} of the switch"))
    return ports


def _cable(namespace: str, device: str, other: str, other_device: str) -> None:
    plug = "type", "veth", "peer", "name", other_device, "netns", other
    call("ip", "-netns", namespace, "link", "add", device, *plug)


def _up(namespace: str, device: str) -> None:
    if Path("/proc/sys/net/ipv6").exists():
        # Without an address of its own choice, gloo can only take the one given here.
        call("ip", "-netns", namespace, "link", "set", device, "addrgenmode", "none")
    call("ip", "-netns", namespace, "link", "set", device, "up")
