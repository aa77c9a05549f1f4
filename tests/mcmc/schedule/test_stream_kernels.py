"""Which kernels a stream may have, and what a refusal says."""

import numpy as np
import pytest

from weald.mcmc.chain.chain import MixtureChain
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
from weald.treecore.prior import PRIORS, build_prior


def test_auto_is_tree_guided_and_gibbs() -> None:
    assert [each.name for each in stream_kernels("auto")] == ["tgmcmc", "gibbs"]
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
