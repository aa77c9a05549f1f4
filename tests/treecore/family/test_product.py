"""Mixed records: a product is the sum of its parts, however they are nested and ordered."""

from typing import Any

import numpy as np
import pytest

from tests.treecore.family.examples import (
    PARAMETERS,
    Array,
    evaluate,
    example,
    observations,
    row_of,
)
from weald.treecore.errors import ParameterError
from weald.treecore.family import FAMILIES
from weald.treecore.family.totals import log_marginals

MIXED = FAMILIES["mixed"]
PARTS: list[dict[str, Any]] = PARAMETERS["mixed"]["parts"]


def part_families(family: Any) -> list[tuple[Any, list[int]]]:
    """Each part rebuilt on its own, with its columns."""
    parts = MIXED.parameters(family)["parts"]
    return [
        (
            FAMILIES[part["family"]].build(part["params"], np.empty((0, len(part["columns"])))),
            part["columns"],
        )
        for part in parts
    ]


def summed_marginal(family: Any, values: Array) -> float:
    """Log marginal likelihood from the sum of the rows: what production compiles for any family."""
    return float(log_marginals(family, row_of(family, values)[None])[0])


def test_a_product_is_the_sum_of_its_parts() -> None:
    family, values = example("mixed"), observations("mixed", 15, 1)
    parts = part_families(family)
    assert [columns for _, columns in parts] == [part["columns"] for part in PARTS]
    whole = evaluate(family, values)
    apart = [evaluate(part, values[:, columns]) for part, columns in parts]
    marginal = np.sum([found.marginal for found in apart], axis=0)
    predictive = np.sum([found.predictive for found in apart], axis=0)
    np.testing.assert_allclose(whole.marginal, marginal, rtol=1e-12)
    np.testing.assert_allclose(whole.predictive, predictive, rtol=1e-12)


def test_a_gaussian_part_keeps_its_covariance() -> None:
    values = np.random.default_rng(2).normal(size=(20, 3))
    parts = [{"family": "gaussian", "columns": [2, 0]}, {"family": "diagonal", "columns": [1]}]
    family = MIXED.build({"parts": parts}, values)
    alone = sum(summed_marginal(part, values[:, c]) for part, c in part_families(family))
    assert summed_marginal(family, values) == pytest.approx(alone, rel=1e-12)
    values[4, 0] = np.nan
    assert MIXED.validate(family, values) == (
        4,
        "feature 0 is nan: the gaussian family takes no missing values",
    )


def test_without_parts_they_are_guessed_from_the_sample() -> None:
    rng = np.random.default_rng(3)
    flags = rng.integers(0, 2, (30, 1)).astype(np.float64)
    counts = rng.integers(0, 9, (30, 2)).astype(np.float64)
    sample = np.column_stack([counts[:, :1], flags, rng.normal(size=(30, 1)), counts[:, 1:]])
    parts = MIXED.parameters(MIXED.build({}, sample))["parts"]
    guessed = [(part["family"], part["columns"]) for part in parts]
    assert guessed == [("poisson", [0, 3]), ("bernoulli", [1]), ("diagonal", [2])]
    alike = MIXED.parameters(MIXED.build({}, counts))["parts"]
    assert [part["columns"] for part in alike] == [[0], [1]]


def test_faults_name_the_column_of_the_record() -> None:
    family, values = example("mixed"), observations("mixed", 9, 4)
    values[5, 3], values[6, 2] = 9.0, 0.5
    reason = "feature 3 is 9: its levels are the codes 0 to 3"
    assert MIXED.validate(family, values) == (5, reason)
    values[2, 0] = -1.0
    fault = MIXED.validate(family, values)
    assert fault is not None
    assert fault[0] == 2
    assert fault[1].startswith("feature 0 is -1")


def test_descriptions_and_draws_keep_the_columns_in_place() -> None:
    family, values = example("mixed"), observations("mixed", 40, 5)
    row = row_of(family, values)
    kinds = [summary.kind for summary in MIXED.describe(family, row, list("abcde"))]
    assert kinds == ["count", "number", "count", "category", "number"]
    drawn = MIXED.draw(family, row, np.random.default_rng(0), 100)
    assert MIXED.validate(family, drawn) is None
    assert (drawn[:, 1] != np.floor(drawn[:, 1])).any()


def parts(*columns: list[int]) -> dict[str, Any]:
    return {"parts": [{"family": "diagonal", "columns": part} for part in columns]}


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        (parts([0, 1, 2]), "at least two parts"),
        (parts([0], [1]), "have 2 columns, the data 3"),
        (parts([0, 1], [1, 2]), "each once"),
        (parts([0], [2]), "each once"),
        (parts([0], [1, 3]), "are not in the data"),
        (parts([0, 1, 2], []), "are not in the data"),
        ({"parts": [{"family": "diagonal"}]}, "needs family and columns"),
        ({"parts": ["diagonal"]}, "needs family and columns"),
        ({"parts": [{"family": "mixed", "columns": [0]}]}, "cannot be of family 'mixed'"),
        ({"parts": [{"family": "odd", "columns": [0]}]}, "cannot be of family 'odd'"),
        (
            {"parts": [{"family": "diagonal", "columns": [0], "kappa": 1.0}]},
            "a part of mixed has no parameter 'kappa'",
        ),
    ],
)
def test_parts_that_make_no_record_are_refused(parameters: dict[str, Any], reason: str) -> None:
    sample: Array = np.zeros((4, 3))
    with pytest.raises(ParameterError, match=reason):
        MIXED.build(parameters, sample)
