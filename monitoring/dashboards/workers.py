"""Refinement by workers: who is there, what became of leases, how stale they are, each role's."""

from typing import Final

from .panels import Dashboard, Panel, Query, Row
from .queries import counter_rate, largest, time_share

__all__ = ["WORKERS"]

_REFINING = "refine|lend|adopt"

_LEASES = Row(
    "Workers",
    [
        Panel(
            "Workers",
            "Workers of each role heard of lately, where refinement.mode is workers.",
            "short",
            [Query(largest("weald_workers", "stream, role"), "{{stream}} {{role}}")],
        ),
        Panel(
            "Cores at work",
            "Cores that each takes: the writer's steps from decoding to the commit, its steps that "
            "give leases out and take them back or refine inline, and the kernels, in workers or "
            "inline. Refinement should take what ingestion leaves.",
            "short",
            [
                Query(
                    time_share("weald_step_seconds", "", f'step!~"poll|{_REFINING}"'), "ingestion"
                ),
                Query(
                    time_share("weald_step_seconds", "", f'step=~"{_REFINING}"'),
                    "refinement: writer",
                ),
                Query(counter_rate("weald_kernel_seconds_total"), "refinement: kernels"),
            ],
        ),
        Panel(
            "Leases",
            "Leases closed per second. Expired: no worker was there. Parked: one that ended its "
            "workers again and again. Abandoned: its writer was.",
            "cps",
            [Query(counter_rate("weald_leases_total", "outcome"), "{{outcome}}")],
            stacked=True,
        ),
        Panel(
            "Late returns",
            "Returns dropped as late or repeated, per second; none of them changed anything.",
            "cps",
            [Query(counter_rate("weald_late_returns_total", "stream"), "{{stream}}")],
        ),
        Panel(
            "Sent to workers",
            "Bytes into Redis each second: what is dealt out, and rows that changed.",
            "bytes",
            [Query(counter_rate("weald_lease_bytes_total", "stream"), "{{stream}}")],
        ),
        Panel(
            "Staleness",
            "How long the last round of leases was out.",
            "s",
            [Query(largest("weald_lease_round_seconds", "stream"), "{{stream}}")],
        ),
        Panel(
            "Arrivals meanwhile",
            "Observations that came while the last round was out, and were inserted again.",
            "short",
            [Query(largest("weald_lease_round_arrivals", "stream"), "{{stream}}")],
        ),
    ],
)

_SECONDS = counter_rate("weald_role_processor_seconds_total", "role")
_PROPOSED = counter_rate("weald_role_proposed_total", "role")
_ROLES = Row(
    "Roles",
    [
        Panel(
            "Cores by role",
            "Cores that the kernels of each role's leases take.",
            "short",
            [Query(_SECONDS, "{{role}}")],
            stacked=True,
        ),
        Panel(
            "Mixing by role",
            "Squared changes of the sum of the clusters' squared shares, lease by lease, per "
            "processor second: the more, the better a role mixes what is slow for its time.",
            "short",
            [
                Query(
                    f"{counter_rate('weald_role_squared_jump_total', 'role')} / ({_SECONDS} > 0)",
                    "{{role}}",
                )
            ],
        ),
        Panel(
            "Acceptance by role",
            "Share of a role's proposals that were accepted. Draws of Gibbs sampling always are.",
            "percentunit",
            [
                Query(
                    f"{counter_rate('weald_role_accepted_total', 'role')} / ({_PROPOSED} > 0)",
                    "{{role}}",
                )
            ],
        ),
        Panel(
            "Leases by role",
            "Leases of each role taken back per second.",
            "cps",
            [Query(counter_rate("weald_role_leases_total", "role"), "{{role}}")],
            stacked=True,
        ),
    ],
)

WORKERS: Final = Dashboard(
    "weald-workers",
    "Weald: workers",
    "Workers, their leases, and what came too late to count.",
    [_LEASES, _ROLES],
)
