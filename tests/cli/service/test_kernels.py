"""What ``weald warmup`` compiles the kernels with."""

import pytest

from weald.cli.service.kernels import sample_for
from weald.treecore.family import FAMILIES


@pytest.mark.parametrize("family", FAMILIES)
def test_each_family_takes_its_sample(family: str) -> None:
    """It refused flags of 2, so that the kernels of all families were never compiled."""
    sample, spec = sample_for(family), FAMILIES[family]
    assert spec.validate(spec.build({}, sample), sample) is None
