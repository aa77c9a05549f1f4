"""Which names a server on this machine may be asked under.

A page from elsewhere can have its own name point to 127.0.0.1 and ask a server on loopback from the
browser of somebody who looks at it (DNS rebinding); the Host header then has that name.
"""

from ipaddress import ip_address

__all__ = ["is_loopback", "names_an_address"]


def names_an_address(host: str) -> bool:
    """Whether a Host header is empty, an IP address or ``localhost``, with or without a port.

    No page from elsewhere can have any of these.
    """
    name = _without_port(host)
    return name in {"", "localhost"} or _is_address(name)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what listens there."""
    return host == "localhost" or (_is_address(host) and ip_address(host).is_loopback)


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower().removesuffix(".")


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
