"""Which kernels a stream may have, and what a refusal says."""

import numpy as np
import pytest

from weald.mcmc.chain.chain import MixtureChain
from weald.mcmc.chain.position import Position
from weald.mcmc.estimate.agreement import adjusted_rand_index
from weald.mcmc.offline.base_from_sample import base_from_sample
from weald.mcmc.offline.start import atoms_of
from weald.mcmc.schedule.kernels import KERNELS, require_every_partition
from weald.mcmc.schedule.registry import ROLES
from weald.mcmc.schedule.stream_kernels import (
    kernels_of_networks,
    require_role,
    require_runnable,
    role_kernels,
    stream_kernels,
)
from weald.treecore.errors import ParameterError
from weald.treecore.family import FAMILIES
from weald.treecore.guide.guide import Guide
from weald.treecore.partition.partition import Model
from weald.treecore.prior import PRIORS, build_prior


def no_guide(_: Model) -> Guide:
    raise AssertionError("these kernels ask for no guide")


def test_auto_is_tree_guided_split_merge_and_gibbs() -> None:
    assert [each.name for each in stream_kernels("auto")] == ["tgmcmc", "sams", "gibbs"]
    assert [each.name for each in kernels_of_networks("auto")] == ["sdds", "rgsm", "gibbs"]


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        ("gibs", "there is no kernel 'gibs'"),
        ("gibbs,fsd", "fsd is approximate"),
        ("tgmcmc-published", "tgmcmc-published is approximate"),
        ("accord,gibbs", "accord takes its guides from other chains"),
        ("sdds-entities,gibbs", "sdds-entities draws the number of entities given all"),
        ("arm-history", "arm-history takes its guides from other chains"),
    ],
)
def test_what_no_stream_can_have_is_refused(names: str, reason: str) -> None:
    with pytest.raises(ParameterError, match=reason):
        stream_kernels(names)


def test_kernels_that_a_prior_cannot_have_are_refused() -> None:
    require_runnable("slice,gibbs", build_prior("dp", {}))
    require_runnable("sams,gibbs", build_prior("mfm", {}))
    with pytest.raises(ParameterError, match="slice needs a prior of product form"):
        require_runnable("slice,gibbs", build_prior("mfm", {}))


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("role", ROLES)
def test_every_role_reaches_every_partition_exactly(role: str, prior: str) -> None:
    require_role(role, "auto", build_prior(prior, {}))
    kernels = stream_kernels(role_kernels(role, "auto"))
    require_every_partition(kernels)
    assert {each.claim for each in kernels} == {"exact"}


def test_roles_that_no_worker_can_have_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ParameterError, match="no role 'sdd': choose among all, tgmcmc, sdds, subc"):
        require_role("sdd", "auto", build_prior("dp", {}))
    monkeypatch.setitem(ROLES, "sdds", ("slice", "gibbs"))
    with pytest.raises(ParameterError, match="role sdds: slice needs a prior of product form"):
        require_role("sdds", "auto", build_prior("mfm", {}))
    with pytest.raises(ParameterError, match="role all: fsd is approximate"):
        require_role("all", "fsd", build_prior("dp", {}))


@pytest.mark.parametrize("name", ["accord", "accord-history", "arm", "sarm", "bsm"])
def test_guided_kernels_alone_are_refused(name: str) -> None:
    with pytest.raises(ParameterError, match=f"{name} alone does not reach every partition"):
        require_every_partition(KERNELS.named(name))
    require_every_partition(KERNELS.named(f"{name},gibbs"))


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, each in KERNELS.items()
        if each.claim == "exact" and not each.guided and "entities" not in each.needs
    ],
)
def test_a_chain_is_refined_by_each(name: str) -> None:
    rng = np.random.default_rng(5)
    values = np.concatenate([rng.normal(-4.0, 1.0, (30, 2)), rng.normal(4.0, 1.0, (30, 2))])
    chain = MixtureChain.start(
        FAMILIES["gaussian"].build({}, values), build_prior("dp", {}), seed=1
    )
    chain.insert(values)
    done = chain.refine(2, kernels=f"{name},gibbs")
    assert {each.name for each in done.kernels} & set(KERNELS[name].parts)
    assert done.log_joint_after == pytest.approx(chain.log_joint())


@pytest.mark.parametrize("seed", [10, 12, 13])
def test_a_stream_finds_two_clusters_that_overlap_in_all_directions_but_one(seed: int) -> None:
    """Of the streams of the first eighteen seeds twelve do, all nine that do without sams."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, 2000)
    values = rng.normal(size=(2000, 12))
    values[:, 0] += np.where(truth, 2.0, -2.0)
    family, prior = FAMILIES["diagonal"].build({}, values[:200]), build_prior("dp", {})
    begun = base_from_sample(family, prior, values[:200])
    found = {}
    for kernels in ("tgmcmc,gibbs", "auto"):
        chain = MixtureChain.start(begun.family, prior, seed=1, learner=begun.learner)
        chain.insert(values)
        chain.refine(40, kernels=kernels)
        found[kernels] = adjusted_rand_index(chain.labels, truth)
    assert found["tgmcmc,gibbs"] < 0.1
    assert found["auto"] > 0.7


@pytest.mark.parametrize(("n", "proposals"), [(50, 20), (10_000, 10), (150_000, 1)])
def test_proposals_of_splits_are_fewer_of_more_atoms(n: int, proposals: int) -> None:
    values = np.zeros((n, 1))
    values[: n // 2] = 1.0
    family = FAMILIES["bernoulli"].build({}, values)
    labels = np.arange(n) * 2 // n
    position = Position(family, atoms_of(family, values), labels, build_prior("dp", {}), no_guide)
    sams = stream_kernels("sams")[0]
    assert sams.sweep(np.random.default_rng(0), position)[:, 0].sum() == proposals
