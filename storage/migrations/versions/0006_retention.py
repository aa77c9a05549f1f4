"""History is forgotten by publication, which wants an index over its largest table."""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the index."""
    op.create_index(
        "ix_assignment_changes_publication", "assignment_changes", ["stream_id", "publication"]
    )


def downgrade() -> None:
    """Remove it."""
    op.drop_index("ix_assignment_changes_publication", "assignment_changes")
