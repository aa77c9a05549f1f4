"""Whom a lease was meant for, and what its kernels did."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

_TYPES: dict[str, type[sa.types.TypeEngine[object]]] = {
    "role": sa.Text,
    "proposed": sa.BigInteger,
    "accepted": sa.BigInteger,
    "squared_jump": sa.Double,
    "processor_seconds": sa.Double,
}


def upgrade() -> None:
    """Add what leases from now on have."""
    for name, kind in _TYPES.items():
        op.add_column("leases", sa.Column(name, kind(), nullable=True))


def downgrade() -> None:
    """Undo it."""
    for name in reversed(_TYPES):
        op.drop_column("leases", name)
