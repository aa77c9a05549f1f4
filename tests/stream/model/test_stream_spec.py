"""What a stored stream is, and what the settings make of it when it is started again."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.stream.scenario import plan_for
from weald.mcmc.settings import ModelSettings
from weald.stream.model.model import StreamConfig, spec_from_sample, spec_on_record


def mixed(**params_of_counts: Any) -> StreamConfig:
    """A plan whose settings list the parts of its family."""
    parts: list[dict[str, Any]] = [
        {"family": "diagonal", "columns": [0]},
        {"family": "poisson", "columns": [1]},
    ]
    if params_of_counts:
        parts[1]["params"] = params_of_counts
    return replace(plan_for(None), model=ModelSettings(family="mixed", params={"parts": parts}))


@pytest.mark.parametrize("given", [{}, {"shape": 2.0}])
def test_parts_that_settings_list_keep_what_the_sample_said_of_them(given: dict[str, Any]) -> None:
    plan = mixed(**given)
    sample = np.array([[0.5, 3.0], [7.0, 40.0], [-2.0, 11.0]])
    stored = spec_from_sample(plan, sample)
    assert spec_on_record(plan, stored) == stored


def test_parts_with_other_parameters_or_columns_are_another_family() -> None:
    sample = np.array([[0.5, 3.0], [7.0, 40.0], [2.0, 11.0]])
    stored = spec_from_sample(mixed(), sample)
    (numbers, counts) = stored.family_params["parts"]
    (same, other) = spec_on_record(mixed(shape=2.0), stored).family_params["parts"]
    assert same == numbers
    assert other["params"] == counts["params"] | {"shape": [2.0]}
    exchanged = [numbers | {"columns": [1]}, counts | {"columns": [0]}]
    plan = replace(mixed(), model=ModelSettings(family="mixed", params={"parts": exchanged}))
    assert spec_on_record(plan, stored).family_params["parts"] == exchanged
