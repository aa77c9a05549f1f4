"""Secrets: read from files where a setting says so, and kept out of whatever is shown.

Every setting that is marked as a secret, ``kafka.sasl_password`` say, may also be given as the
name of a file that holds it: ``kafka.sasl_password_file``. That is how container platforms hand
them over.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args
from urllib.parse import unquote

import msgspec

from weald.storage.settings import redacted

__all__ = ["FILE_SUFFIX", "Scrubbing", "is_secret", "read_secret", "secret_keys", "secrets_of"]

FILE_SUFFIX = "_file"
LONGEST = 65_536
# A shorter one would be found inside innocent words; it is hidden where settings are shown alone.
LEAST_SCRUBBED = 6


def is_secret(kind: Any) -> bool:
    """Whether the type of a setting is marked as a secret."""
    extras = [getattr(meta, "extra", None) or {} for meta in get_args(kind)[1:]]
    return any(extra.get("secret") for extra in extras)


def secret_keys(sections: Mapping[str, type[msgspec.Struct]]) -> set[str]:
    """Return ``section.key`` of every secret."""
    return {
        f"{section}.{field.name}"
        for section, kind in sections.items()
        for field in msgspec.structs.fields(kind)
        if is_secret(field.type)
    }


def read_secret(path: str) -> str:
    """Return what the file holds, without the line's end.

    Raises
    ------
    ValueError
        Saying what is wrong with the file, and never what is in it.
    """
    try:
        with Path(path).open("rb") as file:
            content = file.read(LONGEST + 1)
        text = content.decode()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text") from None
    if not text.strip() or len(content) > LONGEST:
        raise ValueError(f"{path} is {'empty' if not text.strip() else 'too long for a secret'}")
    return text.rstrip("\r\n")


def secrets_of(settings: msgspec.Struct) -> set[str]:
    """Return every secret of these settings, as written and as unquoted from a URL."""
    return {each for each in _found(settings) if len(each) >= LEAST_SCRUBBED}


def _found(settings: msgspec.Struct) -> Iterator[str]:
    for section in msgspec.structs.asdict(settings).values():
        for field in msgspec.structs.fields(section):
            value = getattr(section, field.name)
            if not isinstance(value, str):
                continue
            if is_secret(field.type):
                yield value
            elif redacted(value) != value:
                user_and_password = value.partition("://")[2].rpartition("@")[0]
                password = user_and_password.partition(":")[2]
                yield from {password, unquote(password)}


class Scrubbing(logging.Filter):
    """Keeps secrets out of log records: a driver may quote what it was given.

    Parameters
    ----------
    secrets : set of str
    """

    def __init__(self, secrets: set[str]) -> None:
        super().__init__()
        self._secrets = sorted(secrets, key=len, reverse=True)

    def scrubbed(self, text: str) -> str:
        """Return the text with every secret in it replaced."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text

    def filter(self, record: logging.LogRecord) -> bool:
        """Put the finished, scrubbed message in the place of its parts."""
        record.msg, record.args = self.scrubbed(record.getMessage()), None
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = self.scrubbed(record.exc_text)
        return True
