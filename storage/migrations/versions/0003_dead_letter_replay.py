"""Dead letters can be asked for again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_WAITING = sa.text("replay_at IS NOT NULL")


def upgrade() -> None:
    """Add the moment at which a replay was asked for, and an index over those that wait."""
    op.add_column("dead_letters", sa.Column("replay_at", sa.Double(), nullable=True))
    op.create_index(
        "ix_dead_letters_replay",
        "dead_letters",
        ["stream_id", "id"],
        sqlite_where=_WAITING,
        postgresql_where=_WAITING,
    )


def downgrade() -> None:
    """Undo it; what was asked for is forgotten."""
    op.drop_index("ix_dead_letters_replay", "dead_letters")
    op.drop_column("dead_letters", "replay_at")
