"""How deep the valley of density between two clusters is: 1 where there is one hump, 0 at a gap.

The members of both are put on a line, each half of them on the one that the other half makes, so
that nothing is judged by a direction that it has made itself. With f the density of the
projections, half the weight to each cluster, the valley is the least f between the two medians over
the lesser f at them. The line is Fisher's discriminant, under a covariance shrunk towards that
within all clusters; counts are on it by their roots. (``answers.md``, section 2; ridgelines and
dips are kin: Hennig 2010, Advances in Data Analysis and Classification 4.)

Categories, flags and words have no way between them on which density could be low. There two
clusters overlap by rho, the integral of sqrt(p_a p_b) (Bhattacharyya 1943): overlaps of independent
parts multiply, and two bells of one shape that overlap by rho have the valley 2 rho / (1 + rho^4).
Through that, deepened, the valley of the numbers and the overlap of what else a record has make one
valley.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from weald.treecore.compiled.compile import compiled, inner
from weald.treecore.family import spec_of
from weald.treecore.family.discrete.gamma_poisson import GammaPoisson
from weald.treecore.family.gridded.negative_binomial import NegativeBinomial
from weald.treecore.family.interface.base import Family
from weald.treecore.family.product import Product
from weald.treecore.family.totals import add_rows, empty_totals, log_predictives

__all__ = ["means_of", "members_of", "points_of", "valleys", "within_clusters"]

Values = NDArray[np.float64]
Labels = NDArray[np.int64]
# Where on the line of two clusters their members are: of one cluster, and each of some others.
Projections = Callable[[int, Labels], Iterator[tuple[Values, Values]]]

_STEPS = 41
# Valleys are looked for between a cluster and so many nearest others: those beyond are apart.
_NEAREST = 30
# A pair's covariance is shrunk as if that within all clusters had been seen so often a feature.
_SHRINKAGE = 3.0
_TINY = float(np.finfo(float).tiny)
_SPHERICAL = 0.1
# Observations that have been seen at the least density as at the lesser median, before any are.
_SEEN = 2.0
# Counts are spread over the unit that each stands for, evenly by this share of one.
_GOLDEN = 0.5 * (5.0**0.5 - 1.0)
# A kind of numbers is rarely a bell, and becomes clusters with valleys between them; shares of
# categories fit any kind. So what these part is a valley as deep as that of bells to this power.
_DEEPENED = 1.5
# Rounds in which an overlap is found from its valley, each of which leaves a third of the error.
_ROUNDS = 40
# Nats beyond which a hyperbolic cosine would be no number.
_MOST_NATS = 600.0


def members_of(labels: Labels, clusters: Labels, most: int) -> tuple[Labels, Labels]:
    """Rows of each cluster, ``most`` of them, evenly chosen, and its place (q) in ``clusters``."""
    few = labels.min(initial=0) >= 0 and labels.max(initial=0) < 2**16
    # Numbers of 16 bits are sorted by their digits: of many rows in a quarter of the time.
    order = np.argsort(labels.astype(np.uint16) if few else labels, kind="stable")
    bounds = np.searchsorted(labels[order], np.stack([clusters, clusters + 1]))
    chosen = []
    for start, stop in bounds.T.tolist():
        count = min(stop - start, most)
        chosen.append(order[np.linspace(start, stop - 1, count).astype(np.int64)])
    owner = np.repeat(np.arange(clusters.size), [each.size for each in chosen])
    return np.concatenate(chosen), owner


def points_of(family: Family, rows: Values) -> Values | None:
    """Where observations with these statistics (n, m) are, in units of clusters, or None.

    None is for families without distances, or with a part that has none.
    """
    found = []
    for _, _, places in _parts(family, rows):
        if places is None:
            return None
        found.append(places)
    return np.concatenate(found, axis=1)


def _parts(family: Family, rows: Values) -> Iterator[tuple[Family, Values, Values | None]]:
    """The families of which one is the product, with their part of the rows and its places."""
    while isinstance(family, Product):
        split = family.row_split
        head, rows = (np.ascontiguousarray(each) for each in (rows[:, :split], rows[:, split:]))
        yield family.head, head, _places(family.head, head)
        family = family.tail
    yield family, rows, _places(family, rows)


def _places(family: Family, rows: Values) -> Values | None:
    if isinstance(family, GammaPoisson | NegativeBinomial):
        return _roots(family, rows)
    find = spec_of(family).centres
    return None if find is None else find(family, rows)


def _roots(family: GammaPoisson | NegativeBinomial, rows: Values) -> Values:
    """Twice the roots of counts; a gap is at the prior's. Poisson ones vary by 1 at any rate."""
    features = rows[:, 3:].reshape(rows.shape[0], family.shape.size, -1)
    weight, total = features[:, :, 0], features[:, :, 1]
    n, d = weight.shape
    off = (np.arange(1, n * d + 1) * _GOLDEN % 1.0).reshape(n, d) - 0.5
    spread = total / np.maximum(weight, _TINY) + off
    count = np.where(weight > 0.0, spread, family.shape / family.rate)
    return np.asarray(2.0 * np.sqrt(np.maximum(count, 0.0)))


def means_of(points: Values, owner: Labels, k: int) -> Values:
    """Means (k, d) of the clusters of points (n, d); zero for one without any."""
    sums = np.stack([np.bincount(owner, column, k) for column in points.T], axis=1)
    counts = np.maximum(np.bincount(owner, minlength=k), 1)
    return np.asarray(sums / counts[:, None], dtype=np.float64)


def within_clusters(scatter: Values, degrees: float) -> Values:
    """Covariance (d, d) within clusters from their scatter, a tenth of it made spherical.

    What is asked of it does not depend on its scale; without any scatter it is the identity.
    """
    d = scatter.shape[0]
    covariance = scatter / max(degrees, 1.0)
    mean_variance = float(np.trace(covariance)) / d or 1.0
    return (1.0 - _SPHERICAL) * covariance + _SPHERICAL * mean_variance * np.eye(d)


def valleys(
    family: Family, rows: Values, owner: Labels, k: int, known: Values | None = None
) -> Values:
    """Valleys (k, k) between clusters of observations with statistics ``rows`` (n, m).

    ``owner`` (n) is each one's cluster, rising; each has two or more. ``known`` (k, k) has the
    valleys that need not be looked for again, and NaN for the others. Clusters with some thirty
    nearer ones between them are apart (0).
    """
    found = np.full((k, k), np.nan) if known is None else known.copy()
    np.fill_diagonal(found, 1.0)
    parts = list(_parts(family, rows))
    numbers = [each for each in parts if each[2] is not None]
    others = [each for each in parts if each[2] is None]
    overlap = _overlaps(others, owner, k)
    # Of bells that overlap so, the squared distance; what is along lines comes to it.
    far = -8.0 * np.log(overlap)
    project = None
    if numbers:
        points = np.concatenate([each[2] for each in numbers], axis=1)
        project, distance = _by_discriminant(points, owner, k)
        far += distance**2
    wanted = np.isnan(found)
    looked = wanted & _near(far)
    found[wanted], found[looked] = 0.0, 1.0
    if project is not None:
        for a in range(k):
            near = np.flatnonzero(looked[a, :a])
            for b, (low, high) in zip(near.tolist(), project(a, near), strict=True):
                found[a, b] = found[b, a] = _valley(np.sort(low), np.sort(high))
    if others:
        # Numbers on one hump overlap by what makes one, or by more where they are more alike.
        alike = np.where(found == 1.0, _overlaps(numbers, owner, k), 0.0)
        overlap *= np.maximum(_overlap_of(found), alike)
        found[looked] = _valley_of(overlap[looked])
    return found


def _overlaps(
    parts: Sequence[tuple[Family, Values, Values | None]], owner: Labels, k: int
) -> Values:
    """How far clusters overlap (k, k) in independent parts of their members; 1 without any part.

    The integral of sqrt(p q) is the mean of 1 / cosh(log(p / q) / 2), half of it over the members
    of each: each half of them by the densities that the other half makes. No more than 1 and above
    0, whatever the densities are.
    """
    half = np.arange(owner.size) % 2
    density = np.zeros((owner.size, k))
    for family, rows, _ in parts:
        for side in (0, 1):
            own, other = half == side, half != side
            totals = empty_totals(family, k)
            add_rows(rows[other], owner[other], totals)
            density[own] += log_predictives(family, rows[own], totals)
    found = np.empty((k, k))
    bounds = np.searchsorted(owner, np.arange(k + 1))
    for a, (start, stop) in enumerate(pairwise(bounds.tolist())):
        ratio = density[start:stop] - density[start:stop, a : a + 1]
        found[a] = (1.0 / np.cosh(0.5 * np.clip(ratio, -_MOST_NATS, _MOST_NATS))).mean(axis=0)
    return np.asarray(0.5 * (found + found.T))


def _valley_of(overlap: Values) -> Values:
    """The valley between two bells of one shape: midway, over what is at either; deepened."""
    return np.asarray(np.minimum(2.0 * overlap / (1.0 + overlap**4), 1.0) ** _DEEPENED)


def _overlap_of(valley: Values) -> Values:
    """The overlap of two bells with this valley between them; of one hump the least."""
    valley = valley ** (1.0 / _DEEPENED)
    found = 0.5 * valley
    for _ in range(_ROUNDS):
        found = 0.5 * valley * (1.0 + found**4)
    return np.asarray(found)


def _near(far: Values) -> NDArray[np.bool_]:
    """Which pairs (k, k) are worth a look: one is among the nearest of the other."""
    k = far.shape[0]
    if k <= _NEAREST + 1:
        return np.ones((k, k), dtype=np.bool_)
    rank = far.argsort(axis=1).argsort(axis=1)
    near = rank <= _NEAREST
    return near | near.T


def _by_discriminant(points: Values, owner: Labels, k: int) -> tuple[Projections, Values]:
    """What projects a pair of clusters, and how far (k, k) clusters are from each other."""
    n, d = points.shape
    half = np.arange(n) % 2
    moments = [_moments(points[half == side], owner[half == side], k) for side in (0, 1)]
    total = moments[0][2].sum(axis=0) + moments[1][2].sum(axis=0)
    within, weight = within_clusters(total, n - 2.0 * k), _SHRINKAGE * d
    inside = [np.flatnonzero(owner == each) for each in range(k)]
    here = [[half[each] == side for side in (0, 1)] for each in inside]
    parts = [
        [points[each[chosen]] for chosen in sides] for each, sides in zip(inside, here, strict=True)
    ]

    def project(a: int, others: Labels) -> Iterator[tuple[Values, Values]]:
        lines = [_lines(each, a, others, weight * within, weight) for each in reversed(moments)]
        starts = [means[a] for _, means, _ in reversed(moments)]
        own = [part - start for part, start in zip(parts[a], starts, strict=True)]
        for place, b in enumerate(others.tolist()):
            low, high = np.empty(inside[a].size), np.empty(inside[b].size)
            for side in (0, 1):
                line = lines[side][place]
                low[here[a][side]] = own[side] @ line
                high[here[b][side]] = (parts[b][side] - starts[side]) @ line
            yield low, high

    means = np.linalg.solve(np.linalg.cholesky(within), means_of(points, owner, k).T).T
    return project, cdist(means, means)


def _lines(
    moments: tuple[Values, Values, Values], a: int, others: Labels, prior: Values, weight: float
) -> Values:
    """Fisher's discriminants (b, d) between cluster ``a`` and others (b), of length 1 from a to b.

    ``prior`` (d, d) is added to the scatter of both, as if seen ``weight`` times.
    """
    counts, means, scatter = moments
    seen = np.maximum(counts[a] + counts[others] - 2.0, 1.0) + weight
    covariances = (scatter[a] + scatter[others] + prior) / seen[:, None, None]
    steps = means[others] - means[a]
    lines = np.linalg.solve(covariances, steps[:, :, None])[:, :, 0]
    # Both halves are measured from one mean, by the distance to the other.
    lengths = [max(float(step @ line), _TINY) for step, line in zip(steps, lines, strict=True)]
    return np.asarray(lines / np.array(lengths).reshape(-1, 1), dtype=np.float64)


def _moments(points: Values, owner: Labels, k: int) -> tuple[Values, Values, Values]:
    """Counts (k), means (k, d) and scatter (k, d, d)."""
    counts = np.bincount(owner, minlength=k).astype(np.float64)
    means = means_of(points, owner, k)
    off = points - means[owner]
    scatter = np.stack([off[owner == each].T @ off[owner == each] for each in range(k)])
    return counts, means, scatter


@compiled
def _valley(low: Values, high: Values) -> float:
    """The least density between two medians over the lesser of the two at them, shrunk to 1.

    Both arrays rise.
    """
    begin, end = _middle(low), _middle(high)
    if begin >= end:
        return 1.0
    width = 0.5 * (low.std() * low.size**-0.2 + high.std() * high.size**-0.2)
    width = max(width, 1e-12 * (end - begin))
    step = (end - begin) / ((_STEPS - 1) * width)
    density = np.zeros(_STEPS)
    _add_kernels((low - begin) / width, step, density)
    _add_kernels((high - begin) / width, step, density)
    # A window of the kernel holds about so many observations for each unit of density.
    window = np.sqrt(2.0) * min(low.size, high.size)
    lesser = min(density[0], density[-1])
    return (density.min() * window + _SEEN) / (lesser * window + _SEEN)


@inner
def _middle(rising: Values) -> float:
    """Their median."""
    n = rising.size
    return 0.5 * (rising[(n - 1) // 2] + rising[n // 2])


@inner
def _add_kernels(values: Values, step: float, density: Values) -> None:
    """Adds the mean of bells at the values, each of width 1, at so many steps from 0.

    From the step that is nearest to a value its bell is followed both ways: from one step to the
    next it falls by a factor that itself falls by one factor, so that no step asks for an
    exponential.
    """
    last, factor = density.size - 1, np.exp(-step * step)
    for i in range(values.size):
        nearest = int(min(max(np.rint(values[i] / step), 0.0), float(last)))
        off = nearest * step - values[i]
        top = np.exp(-0.5 * off * off) / values.size
        density[nearest] += top
        for way in (1, -1):
            room = last - nearest if way == 1 else nearest
            # Beyond eight widths it has no weight that could be told.
            reach = int(min(float(room), max(8.0 - way * off, 0.0) / step))
            height, ratio = top, np.exp(-step * (way * off + 0.5 * step))
            for k in range(1, reach + 1):
                height *= ratio
                ratio *= factor
                density[nearest + way * k] += height
