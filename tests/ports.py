"""A port for another process, which binds it a moment later."""

import random
import socket

# Below the range from which a system gives ports to whoever binds 0 (32768 on Linux, 49152 elsewhere): what is free now is not handed to a
# server of another test before the process that it is meant for has started.
_FIRST, _LAST = 20_000, 32_000


def free_port() -> int:
    """A loopback port that nobody listens on."""
    for port in random.sample(range(_FIRST, _LAST), 200):
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            continue
    raise OSError(f"none of 200 ports from {_FIRST} to {_LAST} is free")
