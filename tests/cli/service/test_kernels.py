"""What compiles kernels before they are asked for, and what is shown meanwhile."""

import os
import re

import pytest

from weald.cli.demo.preparation import tell_first_clusters
from weald.cli.demo.streams import STREAMS
from weald.cli.service.kernels import compiling, sample_for
from weald.mcmc.settings import ModelSettings
from weald.treecore.family import FAMILIES


@pytest.mark.parametrize("family", FAMILIES)
def test_each_family_takes_its_sample(family: str) -> None:
    """It refused flags of 2, so that the kernels of all families were never compiled."""
    sample, spec = sample_for(family), FAMILIES[family]
    assert spec.validate(spec.build({}, sample), sample) is None


def test_other_processes_compile() -> None:
    """Nobody reads what they say: a module that they did not find was never missed."""
    with compiling("gaussian") as others:
        assert [other.wait() for other in others] == [0] * min(os.cpu_count() or 1, 2)


def test_first_clusters_are_told_while_others_compile(capsys: pytest.CaptureFixture[str]) -> None:
    bundled = STREAMS["earthquakes"]
    params = {name.removeprefix("params."): value for name, value in bundled.model.items()}
    tell_first_clusters(ModelSettings(), bundled, ("gaussian", params))
    told = re.match(r"first clusters: (\d+) of 400 records", capsys.readouterr().err)
    assert told
    assert 1 < int(told[1]) < 100
