"""What the model does: clusters and their changes, the log joint, and how the kernels fare."""

from typing import Final

from .panels import Dashboard, Panel, Query, Row
from .queries import counter_rate, gauge, largest

__all__ = ["MODEL"]

_GAIN = counter_rate("weald_kernel_log_joint_gain_nats_total", "kernel")
_LOSS = counter_rate("weald_kernel_log_joint_loss_nats_total", "kernel")
_SECONDS = counter_rate("weald_kernel_seconds_total", "kernel")
_PROPOSED = counter_rate("weald_kernel_proposed_total", "kernel")
_ACCEPTED = counter_rate("weald_kernel_accepted_total", "kernel")

_CLUSTERS = Row(
    "Clusters",
    [
        Panel(
            "Clusters",
            "Published: what people see. Groups: clusters without a valley of density between "
            "them count once. Sampled: the chain's own, which moves all the time.",
            "short",
            [
                Query(largest("weald_clusters", "stream"), "published {{stream}}"),
                Query(largest("weald_groups", "stream"), "groups {{stream}}"),
                Query(largest("weald_chain_clusters", "stream"), "sampled {{stream}}"),
            ],
        ),
        Panel(
            "Certainty of what is shown",
            "Membership: how much of an observation's block lies in its cluster, averaged over "
            "the chain's recent draws. Stability: mean share of its cluster that it is with. A "
            "fall says that the chain is torn between partitions.",
            "percentunit",
            [
                Query(
                    largest("weald_membership_probability_ratio", "stream"), "membership {{stream}}"
                ),
                Query(largest("weald_stability_ratio", "stream"), "stability {{stream}}"),
            ],
        ),
        Panel(
            "Observations",
            "Observations in the model, and the atoms that it holds them as: fewer where some were "
            "compacted.",
            "short",
            [
                Query(largest("weald_observations", "stream"), "observations {{stream}}"),
                Query(largest("weald_atoms", "stream"), "atoms {{stream}}"),
            ],
        ),
        Panel(
            "Estimated disruption",
            "Total variation that compaction puts between the posterior and what is sampled: an "
            "estimate, no bound. 0 without a leaf budget.",
            "percentunit",
            [Query(largest("weald_estimated_disruption", "stream"), "{{stream}}")],
        ),
        Panel(
            "Early compactions",
            "Atoms saved before the rule would have it, because the leaf budget was reached.",
            "short",
            [Query(largest("weald_early_compactions", "stream"), "{{stream}}")],
        ),
        Panel(
            "Family and prior",
            "The likelihood of each stream's clusters, and the prior on partitions.",
            "none",
            [Query(gauge("weald_model_info", "stream, family, prior"), "")],
            kind="table",
        ),
        Panel(
            "Lineage events",
            "Births, splits, merges, moves and retirements per second. Many for long: the "
            "partition is not settled, or the data changes.",
            "cps",
            [Query(counter_rate("weald_lineage_events_total", "kind"), "{{kind}}")],
            stacked=True,
        ),
        Panel(
            "Publications",
            "How often the shown partition is replaced.",
            "cps",
            [Query(counter_rate("weald_publications_total", "stream"), "{{stream}}")],
        ),
        Panel(
            "Reassigned observations",
            "Observations that publications moved to another cluster, per second.",
            "cps",
            [Query(counter_rate("weald_reassigned_observations_total", "stream"), "{{stream}}")],
        ),
    ],
)

_FIT = Row(
    "Fit",
    [
        Panel(
            "Log joint",
            "Log joint of the chain, in nats. It falls as observations arrive; look at its slope.",
            "short",
            [Query(largest("weald_log_joint_nats", "stream"), "{{stream}}")],
        ),
        Panel(
            "Log joint per observation",
            "Comparable over time: level when the model fits, falling when new data does not.",
            "short",
            [
                Query(
                    f"{largest('weald_log_joint_nats', 'stream')} / "
                    f"({largest('weald_observations', 'stream')} > 0)",
                    "{{stream}}",
                )
            ],
        ),
        Panel(
            "R-hat of the recent past",
            "Of the older and the newer half of the last 64 refinements. Near 1: they look alike. "
            "Above 1.1 for long: the chain still climbs, or the data changes. One chain's halves "
            "prove no convergence.",
            "short",
            [Query(largest("weald_split_rhat_ratio", "stream, trace"), "{{stream}} {{trace}}")],
        ),
        Panel(
            "Hyperparameters",
            "Values in the chain, where they are learned.",
            "short",
            [Query(largest("weald_hyperparameter", "stream, name"), "{{stream}} {{name}}")],
        ),
    ],
)

_KERNELS = Row(
    "Kernels",
    [
        Panel(
            "Acceptance",
            "Share of a kernel's proposals that were made. Near zero: it has nothing to do, or its "
            "proposals are poor. Every draw of Gibbs sampling is made, so that it has 100%.",
            "percentunit",
            [Query(f"{_ACCEPTED} / ({_PROPOSED} > 0)", "{{kernel}}")],
        ),
        Panel(
            "Nats per second",
            "Change of the log joint per second that a kernel ran: what the time in it is worth. "
            "About zero once the chain has converged.",
            "short",
            [Query(f"({_GAIN} - {_LOSS}) / ({_SECONDS} > 0)", "{{kernel}}")],
        ),
        Panel(
            "Time in kernels",
            "Share of wall time spent in each kernel.",
            "percentunit",
            [Query(_SECONDS, "{{kernel}}")],
            stacked=True,
        ),
        Panel(
            "Proposals",
            "Moves proposed per second of wall time.",
            "cps",
            [Query(_PROPOSED, "{{kernel}}")],
        ),
        Panel(
            "Gain and loss",
            "Log joint gained and given up per second of wall time. An exact kernel does both.",
            "short",
            [Query(_GAIN, "gain {{kernel}}"), Query(_LOSS, "loss {{kernel}}")],
        ),
        Panel(
            "Rounds",
            "Rounds of refinement per second; they are scheduled by the number of records.",
            "cps",
            [Query(counter_rate("weald_refinement_rounds_total", "stream"), "{{stream}}")],
        ),
    ],
)

MODEL: Final = Dashboard(
    "weald-model",
    "Weald: model",
    "Clusters and their changes, the log joint, the kernels.",
    [_CLUSTERS, _FIT, _KERNELS],
)
