"""Where a round of leases began, for snapshots that are made while it is out."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_PLACE = ("begun_seq", "begun_publication")


def upgrade() -> None:
    """Add the place, which leases from now on have."""
    for name in _PLACE:
        op.add_column("leases", sa.Column(name, sa.BigInteger(), nullable=True))


def downgrade() -> None:
    """Undo it."""
    for name in reversed(_PLACE):
        op.drop_column("leases", name)
