"""A transfer of plain TCP between two hosts, to see what a link really carries.

Run as a file inside each host's namespace, with nothing but the standard library, so that it
starts in a few hundredths of a second:

    probe.py receive ADDRESS WARM_S WINDOW_S
    probe.py send ADDRESS
"""

import socket
import sys
import time

PORT = 29400
PATIENCE_S = 10.0
CHUNK = bytes(2**18)


def receive(address: str, warm_s: float, window_s: float) -> tuple[int, float]:
    """Take what one sender sends, and leave when enough is known.

    Args:
        address: To listen at.
        warm_s: How long to look away: the burst, and TCP finding its rate [s].
        window_s: How long to count, at least [s].

    Returns:
        Payload [bytes], and the time that it took [s].
    """
    buffer = bytearray(len(CHUNK))
    with socket.create_server((address, PORT)) as server:
        server.settimeout(PATIENCE_S)
        connection, _ = server.accept()
    with connection:
        connection.settimeout(PATIENCE_S)
        _count(connection, buffer, warm_s)
        return _count(connection, buffer, window_s)


def send(address: str) -> None:
    """Send to a receiver until it leaves."""
    with _connect(address) as connection:
        try:
            while True:
                connection.sendall(CHUNK)
        except ConnectionError:
            return


def _count(connection: socket.socket, buffer: bytearray, seconds: float) -> tuple[int, float]:
    start = now = time.monotonic()
    nbytes = 0
    while now < start + seconds:
        got = connection.recv_into(buffer)
        if got == 0:
            raise ConnectionError("the sender left early")
        nbytes += got
        now = time.monotonic()
    return nbytes, now - start


def _connect(address: str) -> socket.socket:
    """A connection, once the receiver listens."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return socket.create_connection((address, PORT), timeout=PATIENCE_S)
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.005)


def main(words: list[str]) -> None:
    """Take one side of the transfer."""
    if words[0] == "send":
        send(words[1])
        return
    nbytes, seconds = receive(words[1], float(words[2]), float(words[3]))
    sys.stdout.write(f"{nbytes} {seconds}\n")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except OSError as error:
        sys.exit(f"{type(error).__name__}: {error}")
