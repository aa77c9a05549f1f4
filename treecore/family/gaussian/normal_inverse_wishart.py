"""Gaussian clusters with full covariance: the normal-inverse-Wishart family.

Mean given precision N(mean, (kappa Lambda)^-1), precision Lambda ~ Wishart(psi^-1, nu).
Row: [count, weight, s (d), Q (lower triangle by rows, d(d+1)/2)] with s and Q the first and second
moments of ``x - origin``: the model-wide shift keeps the subtraction in the scatter matrix harmless
(Lee and Choi 2015, equation 13). Rows stay as they are when the mean is learned: the prior is worth
kappa observations at ``mean - origin``, so that with g = kappa (mean - origin) a block's scale is
``psi + g g' / kappa + Q - (s + g)(s + g)' / (kappa + weight)``.
"""

from collections.abc import Mapping, Sequence
from math import lgamma, log1p, sqrt
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.treecore.compiled.compile import compiled, implements, inner
from weald.treecore.errors import ParameterError
from weald.treecore.family.interface.base import (
    FAMILIES,
    FamilySpec,
    FeatureSummary,
    extend_predictive,
    extends_cheaply,
    fill_predictive,
    log_marginal,
    log_marginal_sums,
    log_predictive,
    log_predictive_of_member,
    nearer_centre,
    observe,
    predictive_width,
    statistics_width,
    weigh,
    workspace,
)
from weald.treecore.family.interface.batched_predictive import BatchedPredictives, weigh_students
from weald.treecore.family.interface.checks import (
    feature_fault,
    first_true,
    numbers,
    per_feature,
    positive,
    refuse_unknown,
    shape_fault,
)
from weald.treecore.family.interface.defaults import register_batched, register_dense
from weald.treecore.statistics.rows import Rows, copy_row, is_single

from .default_scale import sample_covariance, whitened, within_share
from .moments import centres_and_spreads, lower_triangle, moments_of
from .nearer_mean import nearer
from .packed_cholesky import (
    extend_inverse,
    factor_scatter,
    invert_factor,
    log_determinants,
    squared_distance,
)
from .robust_spread import without_extremes
from .wishart_counts import count_growth, count_term, log_counts

__all__ = ["NormalInverseWishart", "normal_inverse_wishart", "packed_scale"]

_TABLE = 4096
# Degrees of freedom beyond the number of features: the best of 2, 3, 4 and 6 (which Lee and Choi
# take) by the agreement of IBHC alone with the labels of ten data sets.
_FREEDOM = 3
_MOST_FEATURES = 256
# Beyond this many standard deviations from the mean, float64 moments lose the scatter matrix.
_FARTHEST = 1e6
# A member that is most of what its block's scatter has along some direction is not told by the
# table of the whole: a tenth of a digit 1 - share would lose for it, or more.
_MOST_SHARE = 0.9


class NormalInverseWishart(NamedTuple):
    """Hyperparameters and what is computed from them once.

    Attributes
    ----------
    mean, kappa, nu, psi:
        Prior mean (d), its weight in observations, degrees of freedom (> d - 1), scale matrix
        (d x d, positive definite).
    origin, pull:
        What rows are relative to (d), and ``kappa (mean - origin)`` (d).
    psi_packed:
        Lower triangle of ``psi + pull pull' / kappa`` by rows.
    precision:
        Inverse of psi's diagonal (d), by which distances between centres count.
    log_count:
        The part of the log marginal that depends on the weight alone, for weights 0, 1, 2, ...
    empty:
        Predictive table (1, m) of a block without observations.
    """

    mean: NDArray[np.float64]
    kappa: float
    nu: float
    psi: NDArray[np.float64]
    origin: NDArray[np.float64]
    pull: NDArray[np.float64]
    psi_packed: NDArray[np.float64]
    precision: NDArray[np.float64]
    log_count: NDArray[np.float64]
    empty: NDArray[np.float64]


def normal_inverse_wishart(
    mean: NDArray[np.float64],
    kappa: float,
    nu: float,
    psi: NDArray[np.float64],
    origin: NDArray[np.float64] | None = None,
) -> NormalInverseWishart:
    """Check the hyperparameters and make the family; raises ParameterError.

    Statistics are relative to ``origin`` (d), by default the mean.
    """
    mean = np.ascontiguousarray(mean, dtype=np.float64)
    origin = mean if origin is None else np.ascontiguousarray(origin, dtype=np.float64)
    psi = np.ascontiguousarray(psi, dtype=np.float64)
    d = mean.shape[0]
    if psi.shape != (d, d):
        raise ParameterError(f"psi must be {d} x {d} to match mean, got shape {psi.shape}")
    if origin.shape != mean.shape or not np.isfinite(origin).all():
        raise ParameterError(f"origin must be {d} finite numbers to match mean")
    if not (np.isfinite(mean).all() and np.isfinite(psi).all()):
        raise ParameterError("mean and psi must be finite")
    if not kappa > 0.0:
        raise ParameterError(f"kappa must be positive, got {kappa}")
    if not nu > d - 1:
        raise ParameterError(f"nu must exceed d - 1 = {d - 1}, got {nu}")
    try:
        factor = np.linalg.cholesky(psi)
    except np.linalg.LinAlgError:
        raise ParameterError("psi must be positive definite") from None
    log_det_psi = 2.0 * float(np.log(np.diag(factor)).sum())
    constant = 0.5 * nu * log_det_psi - sum(lgamma((nu - i) / 2) for i in range(d))
    log_count = log_counts(_TABLE, d, kappa, nu) + constant
    log_count[0] = 0.5 * nu * log_det_psi
    below = lower_triangle(d)
    inverse = np.linalg.inv(factor) * sqrt(kappa / (kappa + 1.0))
    pull = kappa * (mean - origin)
    empty = np.concatenate(
        [
            [log_count[1] - log_count[0] - 0.5 * log_det_psi, 0.5 * (nu + 1.0)],
            mean - origin,
            inverse[below],
        ]
    )
    precision = 1.0 / np.diag(psi)
    return NormalInverseWishart(
        mean=mean,
        kappa=float(kappa),
        nu=float(nu),
        psi=psi,
        origin=origin,
        pull=pull,
        psi_packed=packed_scale(psi, pull, kappa),
        precision=precision,
        log_count=log_count,
        empty=empty[None, :],
    )


def packed_scale(
    psi: NDArray[np.float64], pull: NDArray[np.float64], kappa: float
) -> NDArray[np.float64]:
    """The ``psi_packed`` of a family with these parameters."""
    scale = psi + np.outer(pull, pull) / kappa
    return np.ascontiguousarray(scale[lower_triangle(psi.shape[0])])


@implements(statistics_width, NormalInverseWishart)
def _statistics_width(family: NormalInverseWishart) -> int:
    d = family.mean.shape[0]
    return 2 + d + d * (d + 1) // 2


@implements(predictive_width, NormalInverseWishart)
def _predictive_width(family: NormalInverseWishart) -> int:
    d = family.mean.shape[0]
    return 2 + d + d * (d + 1) // 2


@implements(workspace, NormalInverseWishart)
def _workspace(family: NormalInverseWishart) -> Rows:
    d = family.mean.shape[0]
    width = 2 + d + d * (d + 1) // 2
    # Behind the first two rows, a column each for matrices that are factored side by side.
    return np.zeros((2 + width, width))


@implements(observe, NormalInverseWishart)
def _observe(
    family: NormalInverseWishart, values: NDArray[np.float64], r: int, rows: Rows, i: int
) -> None:
    d = family.mean.shape[0]
    for c in range(d):
        rows[i, 2 + c] = values[r, c] - family.origin[c]
    _follow(rows, i, d)


@inner
def _follow(rows: Rows, i: int, d: int) -> None:
    """What follows from the sums in the row of a single observation of weight one."""
    rows[i, 0] = 1.0
    rows[i, 1] = 1.0
    at = 2 + d
    for a in range(d):
        for b in range(a + 1):
            rows[i, at] = rows[i, 2 + a] * rows[i, 2 + b]
            at += 1


@inner
def _factor(family: NormalInverseWishart, rows: Rows, i: int, work: Rows) -> float:
    """Cholesky factor of psi_n into ``work[1]`` (packed); returns log det psi_n."""
    shrink = 1.0 / (family.kappa + rows[i, 1])
    return factor_scatter(family.psi_packed, family.pull, rows, i, shrink, work)


@inner
def _log_marginal_of_single(family: NormalInverseWishart, rows: Rows, i: int) -> float:
    """By the empty block's table; minus infinity for squares beyond float64."""
    at, squares = 1, 0.0
    for c in range(family.mean.shape[0]):
        at += c + 1
        squares += rows[i, family.mean.shape[0] + at]
    found = log_predictive(family, family.empty, 0, rows, i)
    return found if np.isfinite(squares) else -np.inf


@implements(log_marginal, NormalInverseWishart)
def _log_marginal(family: NormalInverseWishart, rows: Rows, i: int, work: Rows) -> float:
    weight = rows[i, 1]
    if weight <= 0.0:
        return 0.0
    if is_single(rows, i):
        return _log_marginal_of_single(family, rows, i)
    log_det = _factor(family, rows, i, work)
    return count_term(family, weight) - 0.5 * (family.nu + weight) * log_det


@implements(fill_predictive, NormalInverseWishart)
def _fill_predictive(
    family: NormalInverseWishart, rows: Rows, i: int, table: Rows, k: int, work: Rows
) -> None:
    # Table row: [constant, exponent, location (d), scaled inverse factor (packed)], so that
    # log t = constant - exponent * log1p(|F (x - location)|^2).
    d = family.mean.shape[0]
    weight = rows[i, 1]
    if is_single(rows, i):
        copy_row(table, k, family.empty, 0)
        extend_predictive(family, rows, i, i, table, k, k, work)
        return
    log_det = _factor(family, rows, i, work)
    table[k, 0] = count_growth(family, weight) - 0.5 * log_det
    table[k, 1] = 0.5 * (family.nu + weight + 1.0)
    for c in range(d):
        table[k, 2 + c] = (rows[i, 2 + c] + family.pull[c]) / (family.kappa + weight)
    scale = sqrt((family.kappa + weight) / (family.kappa + weight + 1.0))
    invert_factor(work, table, k, d, scale)


@implements(log_predictive, NormalInverseWishart)
def _log_predictive(family: NormalInverseWishart, table: Rows, k: int, rows: Rows, i: int) -> float:
    distance = squared_distance(table, k, rows, i, family.mean.shape[0], np.inf)
    return table[k, 0] - table[k, 1] * log1p(distance)


register_dense(NormalInverseWishart)


@implements(log_predictive_of_member, NormalInverseWishart)
def _log_predictive_of_member(
    family: NormalInverseWishart, table: Rows, k: int, weight: float, rows: Rows, i: int
) -> float:
    # Psi without x is Psi - (kappa_n / kappa_n-1) (x - location)(x - location)', the determinant of
    # which is 1 - share times that of Psi; and 1 + the squared distance to the others is its
    # inverse (the matrix determinant lemma).
    kappa = family.kappa + weight
    share = squared_distance(table, k, rows, i, family.mean.shape[0], np.inf)
    share *= (kappa + 1.0) / (kappa - 1.0)
    if not share <= _MOST_SHARE:
        return np.nan
    constant = table[k, 0] - (count_growth(family, weight) - count_growth(family, weight - 1.0))
    return constant + 0.5 * (family.nu + weight - 1.0) * log1p(-share)


@implements(log_marginal_sums, NormalInverseWishart)
def _log_marginal_sums(  # noqa: PLR0913 - three arrays and two places in them
    family: NormalInverseWishart,
    rows: Rows,
    places: NDArray[np.int64],
    other: Rows,
    j: int,
    out: NDArray[np.float64],
    work: Rows,
) -> None:
    d = family.mean.shape[0]
    scale, pull = family.psi_packed, family.pull
    log_determinants(scale, pull, family.kappa, rows, places, other, j, d, out, work)
    for at in range(places.shape[0]):
        weight = rows[places[at], 1] + other[j, 1]
        exponent = 0.5 * (family.nu + weight)
        out[at] = count_term(family, weight) - exponent * out[at] if weight > 0.0 else 0.0


@implements(extends_cheaply, NormalInverseWishart)
def _extends_cheaply(_family: NormalInverseWishart) -> bool:
    return True


@implements(nearer_centre, NormalInverseWishart)
def _nearer_centre(family: NormalInverseWishart, rows: Rows, a: int, b: int, x: int) -> bool:
    return nearer(rows, a, b, x, family.precision)


@implements(extend_predictive, NormalInverseWishart)
def _extend_predictive(  # noqa: PLR0913 - two arrays and five places in them
    family: NormalInverseWishart,
    rows: Rows,
    i: int,
    x: int,
    table: Rows,
    k: int,
    source: int,
    work: Rows,
) -> float:
    # The scatter matrix grows by (x - location)(x - location)', times the square of the scale that
    # is in the table's factor.
    d, weight = family.mean.shape[0], rows[i, 1]
    kappa = family.kappa + weight
    for c in range(d):
        work[1, c] = rows[x, 2 + c] - table[source, 2 + c]
        work[1, d + c] = 0.0
        table[k, 2 + c] = (rows[i, 2 + c] + family.pull[c]) / kappa
    rescale = kappa / sqrt((kappa + 1.0) * (family.kappa + (weight - 1.0)))
    distance = extend_inverse(table, k, source, d, rescale, work)
    constant, exponent, growth = table[source, 0], table[source, 1], log1p(distance)
    step = count_growth(family, weight) - count_growth(family, weight - 1.0)
    table[k, 0] = constant + step - 0.5 * growth
    table[k, 1] = exponent + 0.5
    return constant - exponent * growth


@implements(weigh, NormalInverseWishart)
def _weigh(  # noqa: PLR0913 - tables, a row, and where its weights go
    family: NormalInverseWishart,
    batched: BatchedPredictives,
    n: int,
    slots: NDArray[np.int64],
    rows: Rows,
    i: int,
    largest: float,
    weights: NDArray[np.float64],
) -> None:
    weigh_students(batched, n, slots, rows, i, family.mean.shape[0], largest, weights)


register_batched(NormalInverseWishart)


def _build(parameters: Mapping[str, object], sample: NDArray[np.float64]) -> NormalInverseWishart:
    """What is not given comes from the sample: nu is d + 3, and clusters are as wide as it says."""
    refuse_unknown("gaussian", parameters, ("mean", "kappa", "nu", "psi", "origin"))
    d = sample.shape[1]
    if d > _MOST_FEATURES:
        raise ParameterError(
            f"gaussian takes {_MOST_FEATURES} features at most, not {d}: a cluster's covariance "
            "would have more numbers than its observations can tell. Give fewer columns or "
            "components of them, or take family diagonal"
        )
    sample = sample[np.isfinite(sample).all(axis=1)]
    sample = without_extremes(sample)
    centre = sample.mean(axis=0) if sample.shape[0] else np.zeros(d)
    mean = per_feature("mean", parameters.get("mean", centre), d)
    nu = float(positive("nu", parameters.get("nu", d + _FREEDOM), 1)[0])
    if "kappa" in parameters and "psi" in parameters:
        share, covariance = 1.0, np.eye(d)
    else:
        covariance = sample_covariance(sample)
        share = within_share(whitened(sample, centre, covariance), nu - d + 1.0, diagonal=False)
    kappa = float(positive("kappa", parameters.get("kappa", share), 1)[0])
    if "psi" in parameters:
        psi = numbers("psi", parameters["psi"])
        psi = psi * np.eye(d) if psi.ndim == 0 else psi
    else:
        psi = (nu - d - 1 if nu > d + 1 else 1.0) * share * covariance
    origin = per_feature("origin", parameters["origin"], d) if "origin" in parameters else None
    return normal_inverse_wishart(mean, kappa, nu, psi, origin)


def _parameters(family: NormalInverseWishart) -> dict[str, object]:
    found = {
        "mean": family.mean.tolist(),
        "kappa": family.kappa,
        "nu": family.nu,
        "psi": family.psi.tolist(),
    }
    # Named only where it differs: a person who gives parameters need not know of it.
    moved = not np.array_equal(family.origin, family.mean)
    return found | ({"origin": family.origin.tolist()} if moved else {})


def _validate(family: NormalInverseWishart, values: NDArray[np.float64]) -> tuple[int, str] | None:
    d = family.mean.shape[0]
    fault = shape_fault(values, d)
    if fault is not None:
        return fault
    spread = np.sqrt(np.diag(family.psi))
    with np.errstate(invalid="ignore"):
        at = first_true(~(np.abs(values - family.origin) <= _FARTHEST * spread))
    if at is None:
        return None
    if not np.isfinite(values[at]):
        return feature_fault(at, values, "the gaussian family takes no missing values")
    return feature_fault(at, values, f"over {_FARTHEST:g} scales away from the prior mean")


def _describe(
    family: NormalInverseWishart, row: NDArray[np.float64], names: Sequence[str]
) -> list[FeatureSummary]:
    d = family.mean.shape[0]
    n, weight = int(row[0]), row[1]
    if weight <= 0.0:
        means = zip(names, family.mean, strict=True)
        return [FeatureSummary(name, "number", float(mean), None, 0) for name, mean in means]
    first = row[2 : 2 + d] / weight
    diagonal = 2 + d + np.arange(d) * (np.arange(d) + 3) // 2
    centres, spreads = centres_and_spreads(family.origin, first, row[diagonal] / weight)
    return [
        FeatureSummary(name, "number", float(centre), float(sd), n)
        for name, centre, sd in zip(names, centres, spreads, strict=True)
    ]


def _draw(
    family: NormalInverseWishart, row: NDArray[np.float64], rng: Generator, size: int
) -> NDArray[np.float64]:
    d = family.mean.shape[0]
    kappa, freedom = family.kappa + row[1], family.nu + row[1] - d + 1
    first, scatter = moments_of(row, d)
    first = first + family.pull
    prior = np.outer(family.pull, family.pull) / family.kappa
    psi = family.psi + prior + scatter - np.outer(first, first) / kappa
    factor = np.linalg.cholesky(psi * (kappa + 1.0) / (kappa * freedom))
    normal = rng.standard_normal((size, d)) @ factor.T
    stretch = np.sqrt(freedom / rng.chisquare(freedom, size=(size, 1)))
    return np.asarray(family.origin + first / kappa + normal * stretch)


def _centres(family: NormalInverseWishart, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    d = family.mean.shape[0]
    return whitened(rows[:, 2 : 2 + d] / rows[:, 1:2], np.zeros(d), family.psi)


def _observations(family: NormalInverseWishart, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(family.origin + rows[:, 2 : 2 + family.mean.shape[0]])


def _rows_of_sums(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    d = sums.shape[1]
    rows = np.empty((len(sums), 2 + d + d * (d + 1) // 2))
    rows[:, 2 : 2 + d] = sums
    _follow_all(rows, d)
    return rows


@compiled
def _follow_all(rows: Rows, d: int) -> None:
    for i in range(rows.shape[0]):
        _follow(rows, i, d)


FAMILIES["gaussian"] = FamilySpec(
    name="gaussian",
    family=NormalInverseWishart,
    build=_build,
    parameters=_parameters,
    validate=_validate,
    describe=_describe,
    draw=_draw,
    scale=("psi",),
    centres=_centres,
    observations=_observations,
    rows_of_sums=_rows_of_sums,
)
