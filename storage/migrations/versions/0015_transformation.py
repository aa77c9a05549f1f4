"""How a stream's family sees its observations, as its first ones taught."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from alembic.util import CommandError

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add what was learned, and the words for it; an earlier stream has neither."""
    op.add_column("streams", sa.Column("transformation", sa.LargeBinary(), nullable=True))
    op.add_column("streams", sa.Column("seen_as", sa.Text(), nullable=True))


def downgrade() -> None:
    """Undo it, unless a stream cannot go on without."""
    query = sa.text("SELECT name FROM streams WHERE transformation IS NOT NULL ORDER BY name")
    names = [row.name for row in op.get_bind().execute(query)]
    if names:
        raise CommandError(
            f"stream {names[0]!r} sees its observations through a transformation, which an earlier "
            "version does not know: nothing was changed. Keep this version, or go back to a backup"
        )
    op.drop_column("streams", "seen_as")
    op.drop_column("streams", "transformation")
