"""Settings of the monitoring room: where metrics and health are served, and to whom."""

from typing import Annotated

import msgspec

__all__ = ["MonitoringSettings"]


class MonitoringSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The ``[monitoring]`` section.

    Parameters
    ----------
    host : str
        Address to listen on; loopback unless somebody outside the machine scrapes it.
    port : int
        0 takes a free one.
    enabled : bool
        Whether to serve anything at all.
    token : str, optional
        When given, ``/metrics`` and the reasons in ``/readyz`` ask for it as a bearer token. A
        secret: give it as ``WEALD__MONITORING__TOKEN``, or as ``token_file``.
    stalled_after_seconds : float
        ``/livez`` fails when the engine's loop has not come round for so long. The default is
        that of ``kafka.max_poll_interval_ms``, after which the partitions are lost anyway; a first
        start that compiles its kernels stays below it.
    """

    host: str = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 9464
    enabled: bool = True
    token: Annotated[str | None, msgspec.Meta(extra={"secret": True})] = None
    stalled_after_seconds: Annotated[float, msgspec.Meta(gt=0)] = 300.0

    def __repr__(self) -> str:
        shown = "None" if self.token is None else "'***'"
        return (
            f"MonitoringSettings(host={self.host!r}, port={self.port}, enabled={self.enabled}, "
            f"token={shown}, stalled_after_seconds={self.stalled_after_seconds})"
        )
