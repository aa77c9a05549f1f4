"""What a service says on standard error: lines for people, or JSON for programs."""

from __future__ import annotations

import json
import logging
import sys
import time
from enum import StrEnum

from weald.cli.terminal.output import speak_through

__all__ = ["Less", "LogFormat", "log_to_standard_error"]

TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
SECONDS_A_LINE = 60.0


class LogFormat(StrEnum):
    """How a line of the log is written."""

    text = "text"
    json = "json"


def log_to_standard_error(form: LogFormat, level: int) -> None:
    """Log from `level` on; in JSON what is said to people is a line of the log, too."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if form is LogFormat.json else logging.Formatter(TEXT))
    handler.addFilter(Less("kafka"))
    logging.basicConfig(handlers=[handler])
    logging.getLogger("weald").setLevel(level)
    # The client retries and says so at every turn; what matters of it the engine tells itself.
    logging.getLogger("kafka").setLevel(logging.ERROR)
    if form is LogFormat.json:
        speak_through(logging.getLogger("weald.cli").info)


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": self.formatTime(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        if record.exc_text:
            line["error"] = record.exc_text
        return json.dumps(line, ensure_ascii=False)

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802 - the base's name
        seconds = time.strftime(datefmt or "%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        return f"{seconds}.{int(record.msecs):03d}Z"


class Less(logging.Filter):
    """Lets a message of one library through once a minute, with how many of it were left out.

    Parameters
    ----------
    library : str
        Name of its root logger.
    """

    def __init__(self, library: str) -> None:
        super().__init__()
        self._library = library
        self._told: dict[tuple[str, object], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Pass what was not said within the last minute."""
        if record.name.partition(".")[0] != self._library:
            return True
        what = record.name, record.msg
        told_at, left_out = self._told.get(what, (-SECONDS_A_LINE, 0))
        if record.created - told_at < SECONDS_A_LINE:
            self._told[what] = told_at, left_out + 1
            return False
        self._told[what] = record.created, 0
        if left_out:
            record.msg = f"{record.getMessage()} ({left_out} more like it were left out)"
            record.args = None
        return True
