"""The folder that a demo leaves behind, from which the commands answer afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from weald.cli.commands.init import Choices, configuration
from weald.cli.config.settings import FILE_NAME
from weald.cli.errors import ConflictError
from weald.stream.record.inference.proposal import SchemaProposal

from .streams import BundledStream

__all__ = ["Home"]

MARK = "# Written by `weald demo`, which replaces this folder's contents when it runs again.\n"


@dataclass(frozen=True)
class Home:
    """Where a demo keeps its configuration, its database and its pictures."""

    folder: Path

    @property
    def configuration(self) -> Path:
        """The file that the commands find afterwards."""
        return self.folder / FILE_NAME

    @property
    def database(self) -> Path:
        """SQLite file with everything that the demo found."""
        return self.folder / "weald.db"

    @property
    def picture(self) -> Path:
        """The clusters as PNG."""
        return self.folder / "clusters.png"

    @property
    def page(self) -> Path:
        """The same with tables, as one HTML file."""
        return self.folder / "clusters.html"

    def prepare(self, stream: BundledStream) -> None:
        """Make the folder, clear what an earlier demo left in it, and write ``weald.toml``.

        Raises
        ------
        ConflictError
            If the folder holds somebody's own configuration or database.
        """
        self._clear()
        self.folder.mkdir(parents=True, exist_ok=True)
        schema = SchemaProposal([feature.name for feature in stream.features], "id", "time")
        choices = Choices(
            schema,
            stream={"name": stream.name, "source": "kafka", **stream.stream},
            kafka={"bootstrap_servers": "127.0.0.1:9092", "topic": stream.name},
            model=stream.model,
            # What a demo shows is the same on every machine, however slow: nothing goes by a clock.
            refinement={
                "pace": "counted",
                "quiet_seconds": 0,
                "publish_every_seconds": 0,
                **stream.refinement,
            },
            # The demo's own server ends with it.
            redis=False,
        )
        self.configuration.write_text(MARK + configuration(choices), encoding="utf-8")

    def _clear(self) -> None:
        ours = self.configuration.is_file() and self.configuration.read_text(
            encoding="utf-8"
        ).startswith(MARK)
        names = [self.database.name, self.picture.name, self.page.name]
        mine = [self.folder / name for name in (*names, "weald.db-wal", "weald.db-shm")]
        found = [path for path in (self.configuration, *mine) if path.exists()]
        if found and not ours:
            raise ConflictError(
                f"{found[0]} is not a demo's: it would be replaced",
                next_step="weald demo --home DIR    with a folder of its own",
            )
        for path in found:
            path.unlink()
