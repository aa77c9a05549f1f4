"""Log marginals that were worked out independently, to 17 digits."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.treecore.family.examples import marginal_of
from weald.treecore.family import FAMILIES

CASES = json.loads((Path(__file__).parents[1] / "data" / "oracles.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['name']}-{case['subset']}")
def test_log_marginal(case: dict[str, Any]) -> None:
    values = np.array(case["values"], dtype=np.float64)[case["subset"]]
    family = FAMILIES[case["family"]].build(case["parameters"], values)
    weights = np.array(case["weights"]) if "weights" in case else None
    assert marginal_of(family, values, weights) == pytest.approx(case["log_marginal"], abs=1e-10)
