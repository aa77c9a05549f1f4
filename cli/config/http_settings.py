"""Where ``weald serve`` listens, and to whom it answers."""

from typing import Annotated

import msgspec

__all__ = ["HttpSettings"]


class HttpSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The ``[http]`` section.

    Parameters
    ----------
    host : str
        Address to listen on; loopback unless somebody outside the machine asks, and then only
        with a token.
    port : int
        0 takes a free one.
    token : str, optional
        When given, everything under ``/v1`` asks for it as a bearer token. A secret: give it as
        ``WEALD__HTTP__TOKEN``, or as ``token_file``.
    allowed_hosts : tuple of str
        Names under which it may be asked, besides IP addresses, ``localhost`` and `host`: what a
        proxy in front of it passes on, say. ``*`` is any.
    poll_seconds : float
        Seconds between two looks at the database on behalf of ``/v1/events``.
    """

    host: str = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 8080
    token: Annotated[str | None, msgspec.Meta(extra={"secret": True})] = None
    allowed_hosts: tuple[str, ...] = ()
    poll_seconds: Annotated[float, msgspec.Meta(gt=0)] = 1.0

    def __repr__(self) -> str:
        shown = "None" if self.token is None else "'***'"
        return (
            f"HttpSettings(host={self.host!r}, port={self.port}, token={shown}, "
            f"allowed_hosts={self.allowed_hosts!r}, poll_seconds={self.poll_seconds})"
        )
