"""Every kernel, a line each: its name, its claim, where it is, what it moves and what it needs.

`weald fit --kernel` and its help, what streams and workers may have, the enumeration suite, the
ledgers and the reference of kernels all read this list. It loads no kernel.
"""

from weald.mcmc.contract import Data, Entry

__all__ = [
    "ALL",
    "ENTITIES",
    "PAST",
    "REGISTRY",
    "ROLES",
    "SCHEDULES",
    "STREAM_SCHEDULES",
    "entries",
    "kernel_names",
]

# What a guided kernel's name ends with that takes its reference partitions from the past.
PAST = "-history"
# What a kernel's name ends with that moves entities, the empty ones too, and not their partition.
ENTITIES = "-entities"
_DATA: tuple[Data, ...] = ("mixture", "network")


def _guided(name: str, module: str) -> list[Entry]:
    """Guides from other chains, and from the past, for mixtures and for networks."""
    return [
        entry
        for data in _DATA
        for entry in (
            Entry(name, "exact", module, data, ("chains",)),
            Entry(name + PAST, "adaptive", module, data, ("past",)),
        )
    ]


def _with_entities(*names: str) -> list[Entry]:
    """Kernels of the entity/mention model."""
    module = "weald.mcmc.entities.kernel"
    return [Entry(name + ENTITIES, "exact", module, needs=("entities",)) for name in names]


REGISTRY: list[Entry] = [
    Entry("gibbs", "exact", "weald.mcmc.gibbs.kernel"),
    Entry("tgmcmc", "exact", "weald.mcmc.tree_guided.tgmcmc"),
    Entry("tgmcmc-published", "approximate", "weald.mcmc.tree_guided.tgmcmc_published"),
    Entry("rsm", "exact", "weald.mcmc.split_merge.rsm"),
    Entry("rgsm", "exact", "weald.mcmc.split_merge.rgsm"),
    Entry("sams", "exact", "weald.mcmc.split_merge.sams"),
    Entry("sams-near", "exact", "weald.mcmc.split_merge.sams_near"),
    Entry("dm", "exact", "weald.mcmc.split_merge.dm"),
    Entry("sdds", "exact", "weald.mcmc.split_merge.sdds"),
    Entry("ss", "exact", "weald.mcmc.split_merge.ss"),
    Entry("rm", "exact", "weald.mcmc.split_merge.rm"),
    Entry("slice", "exact", "weald.mcmc.conditional.slice", needs=("product",)),
    Entry("subc", "exact", "weald.mcmc.sub_cluster.subc"),
    Entry("subc-burnin", "approximate", "weald.mcmc.sub_cluster.subc_burnin"),
    Entry("subc-published", "approximate", "weald.mcmc.sub_cluster.subc_published"),
    Entry("fsd", "approximate", "weald.mcmc.conditional.fsd", needs=("product",)),
    Entry("gibbs-supc", "exact", "weald.mcmc.conditional.gibbs_supc", needs=("product",)),
    Entry("srm", "exact", "weald.mcmc.reconfiguration.srm"),
    *_with_entities("rgsm", "sdds", "ss", "rm"),
    Entry("gibbs", "exact", "weald.mcmc.gibbs.kernel", "network"),
    Entry("rsm", "exact", "weald.mcmc.split_merge.rsm", "network"),
    Entry("rgsm", "exact", "weald.mcmc.split_merge.rgsm", "network"),
    Entry("sams", "exact", "weald.mcmc.split_merge.sams", "network"),
    Entry("dm", "exact", "weald.mcmc.split_merge.dm", "network"),
    Entry("sdds", "exact", "weald.mcmc.split_merge.sdds", "network"),
    Entry("ss", "exact", "weald.mcmc.split_merge.ss", "network"),
    Entry("rm", "exact", "weald.mcmc.split_merge.rm", "network"),
    Entry("srm", "exact", "weald.mcmc.reconfiguration.srm", "network"),
    *_guided("accord", "weald.mcmc.reconfiguration.accord"),
    *_guided("arm", "weald.mcmc.reconfiguration.arm"),
    *_guided("sarm", "weald.mcmc.reconfiguration.sarm"),
    *_guided("bsm", "weald.mcmc.reconfiguration.bsm"),
]

# Several names at once; what `auto` stands for is exact throughout. Gibbs sampling has most of the
# time, and comes first: growing a guide takes longer than two scans, which may be enough. On
# networks guides out of the past mix far better than those of a population, and a fit stops
# collecting them before the draws that it reports.
SCHEDULES: dict[Data, dict[str, tuple[str, ...]]] = {
    "mixture": {"auto": ("gibbs", "sams", "gibbs", "tgmcmc", "sams")},
    "network": {"auto": ("accord-history", "arm-history", "gibbs")},
}
# What streams mean by `auto`. Two clusters that overlap in every direction but one are in no tree
# of arrivals, so that tree-guided moves and Gibbs sampling leave them one for ever; `sams` finds
# them. Of networks a stream keeps one chain, so that nothing can guide it.
STREAM_SCHEDULES: dict[Data, dict[str, tuple[str, ...]]] = {
    "mixture": {"auto": ("tgmcmc", "sams", "gibbs")},
    "network": {"auto": ("sdds", "rgsm", "gibbs")},
}

# What a worker of each role runs on every lease that it is given. Each reaches every partition by
# itself. The first has no list of its own but runs the stream's, `refinement.kernels`.
ALL = "all"
ROLES: dict[str, tuple[str, ...]] = {
    ALL: (),
    "tgmcmc": ("tgmcmc", "gibbs"),
    "sdds": ("sdds", "gibbs"),
    "subc": ("subc", "gibbs"),
}


def entries(data: Data) -> dict[str, Entry]:
    """Kernels of mixtures or of networks, by name, in the order of the registry."""
    return {entry.name: entry for entry in REGISTRY if entry.data == data}


def kernel_names() -> list[str]:
    """What may follow ``--kernel``: schedules, then kernels of mixtures, then those of networks."""
    names = [*SCHEDULES["mixture"], *entries("mixture"), *entries("network")]
    return list(dict.fromkeys(names))
