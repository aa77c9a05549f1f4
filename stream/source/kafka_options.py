"""Settings into the options that all clients share, of kafka-python and of librdkafka."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from weald.stream.settings import KafkaSettings

__all__ = ["Overheard", "client_options", "librdkafka_options", "overhearing"]


def client_options(settings: KafkaSettings, client_id: str) -> dict[str, Any]:
    """Return connection, encryption and identity, for a consumer or a producer.

    Parameters
    ----------
    settings : KafkaSettings
    client_id : str
        What the broker's logs call this client.
    """
    options: dict[str, Any] = {
        "bootstrap_servers": [part.strip() for part in settings.bootstrap_servers.split(",")],
        "client_id": client_id,
        "security_protocol": settings.security_protocol,
        # Nobody scrapes the client's own metrics, and they cost time on every record.
        "metrics_enabled": False,
        "bootstrap_timeout_ms": round(settings.connect_timeout_seconds * 1000),
    }
    if settings.api_version is not None:
        options["api_version"] = tuple(int(part) for part in settings.api_version.split("."))
    optional = {
        "sasl_mechanism": settings.sasl_mechanism,
        "sasl_plain_username": settings.sasl_username,
        "sasl_plain_password": settings.sasl_password,
        "ssl_cafile": settings.ssl_cafile,
        "ssl_certfile": settings.ssl_certfile,
        "ssl_keyfile": settings.ssl_keyfile,
        "ssl_password": settings.ssl_password,
    }
    options.update({name: value for name, value in optional.items() if value is not None})
    return options


def librdkafka_options(settings: KafkaSettings, client_id: str) -> dict[str, Any]:
    """Return the same for a client of librdkafka."""
    options = {
        "bootstrap.servers": settings.bootstrap_servers,
        "client.id": client_id,
        "security.protocol": settings.security_protocol,
        "topic.metadata.refresh.interval.ms": settings.metadata_max_age_ms,
        "sasl.mechanism": settings.sasl_mechanism,
        "sasl.username": settings.sasl_username,
        "sasl.password": settings.sasl_password,
        "ssl.ca.location": settings.ssl_cafile,
        "ssl.certificate.location": settings.ssl_certfile,
        "ssl.key.location": settings.ssl_keyfile,
        "ssl.key.password": settings.ssl_password,
    }
    return {name: value for name, value in options.items() if value is not None}


class Overheard(logging.Handler):
    """Why the client's connections failed, which it tells its log and nobody else."""

    # What an operator can act on outweighs the lost connections that follow from it. An attempt
    # that ran out of time says nothing, whatever it was about.
    _TELLING = ("Authentication", "certificate", "SSL", "Sasl")
    _SILENT = "timed out"

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._reason = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the most telling failure."""
        _, found, reason = record.getMessage().partition("Connection lost: ")
        telling = any(word in reason for word in self._TELLING) and self._SILENT not in reason
        if found and (telling or not self._reason):
            self._reason = reason

    def __str__(self) -> str:
        return f" ({self._reason})" if self._reason else ""


@contextmanager
def overhearing() -> Iterator[Overheard]:
    """Listen to the client while it connects."""
    overheard, log = Overheard(), logging.getLogger("kafka")
    log.addHandler(overheard)
    try:
        yield overheard
    finally:
        log.removeHandler(overheard)
