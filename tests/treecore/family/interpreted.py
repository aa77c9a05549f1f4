"""Print, as JSON, what every family's functions find as plain Python: run without compilation."""

import json
import os
import sys

from tests.treecore.family.examples import NAMES, evaluate, example, observations


def found(name: str) -> dict[str, list[float]]:
    """Everything that an evaluation of twelve observations holds, flattened."""
    evaluation = evaluate(example(name), observations(name, 12, 8))
    return {
        "predictive": evaluation.predictive.tolist(),
        "union": evaluation.union.tolist(),
        "marginal": evaluation.marginal.tolist(),
        "remaining": evaluation.remaining.tolist(),
        "rows": evaluation.rows.ravel().tolist(),
    }


if __name__ == "__main__":
    assert os.environ["NUMBA_DISABLE_JIT"] == "1"
    json.dump({name: found(name) for name in NAMES}, sys.stdout)
