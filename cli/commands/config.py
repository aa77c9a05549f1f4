"""``weald config``: which settings are in force, and where each was set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from weald.answers.numbers import number
from weald.cli.terminal.opened import open_settings
from weald.cli.terminal.options import Config, Output, Set, example
from weald.cli.terminal.output import Column, Form, note, write_rows

if TYPE_CHECKING:
    from weald.cli.config.settings import Loaded

__all__ = ["add_to", "setting_rows"]

HIDDEN = "***"

group = typer.Typer(rich_markup_mode=None, no_args_is_help=True)


def add_to(app: typer.Typer) -> None:
    """Register the commands of this module."""
    app.add_typer(
        group, name="config", help="Look at the configuration.", epilog=example("weald config show")
    )


@group.callback()
def root() -> None:
    """Look at the configuration."""


@group.command(
    epilog=example(
        "weald config show",
        "weald config show --defaults",
        "WEALD__MODEL__SEED=7 weald config show --output json",
    )
)
def show(
    *,
    defaults: Annotated[
        bool, typer.Option("--defaults", help="Show the defaults alone, whatever is configured.")
    ] = False,
    config: Config = None,
    set_: Set = None,
    output: Output = Form.table,
) -> None:
    """Show every setting with its value and where it was set. Secrets are hidden.

    Flags win over the environment (WEALD__SECTION__KEY), which wins over weald.toml. A secret can
    also be read from a file: kafka.sasl_password_file is the name of one that holds
    kafka.sasl_password.
    """
    from weald.cli.config.settings import FILE_NAME, default_settings

    loaded = default_settings() if defaults else open_settings(config, set_)
    if not defaults:
        note(f"read {loaded.file}" if loaded.file else f"no {FILE_NAME} found")
    columns = [
        Column("key", "setting"),
        Column("value", "value", show=_text),
        Column("origin", "set by"),
    ]
    write_rows(setting_rows(loaded), columns, output)


def setting_rows(loaded: Loaded) -> list[dict[str, Any]]:
    """Return one row per setting: ``key``, ``value`` (secrets hidden) and ``origin``."""
    import msgspec

    from weald.cli.config.settings import SECTIONS

    rows = []
    for section, kind in SECTIONS.items():
        part = getattr(loaded.settings, section)
        for field in msgspec.structs.fields(kind):
            key = f"{section}.{field.name}"
            value = _redacted(getattr(part, field.name), field.type)
            origin = loaded.origins.get(key, "default")
            rows.append({"key": key, "value": msgspec.to_builtins(value), "origin": origin})
    return rows


def _text(value: Any) -> str:
    import msgspec

    # Lists and tables as the environment takes them.
    return msgspec.json.encode(value).decode() if isinstance(value, list | dict) else number(value)


def _redacted(value: Any, kind: Any) -> Any:
    from weald.cli.config.secrets import is_secret
    from weald.storage.settings import redacted

    if value is not None and is_secret(kind):
        return HIDDEN
    return redacted(value) if isinstance(value, str) and "://" in value else value
