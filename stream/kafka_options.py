"""Settings into the options that kafka-python's clients share."""

from typing import Any

from .settings import KafkaSettings

__all__ = ["client_options"]


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
        "bootstrap_timeout_ms": 15_000,
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
    }
    options.update({name: value for name, value in optional.items() if value is not None})
    return options
