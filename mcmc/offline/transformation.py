"""How a family sees observations: logarithms, unit length, standardised columns, components.

Learned from a sample and the same ever after, so that what comes later is seen in the same way. Of
more than 16 columns a cluster's covariance would have more numbers than its rows can tell, so
their rows are seen along principal components. Columns of like spread (pixels, scores of
components) keep their units there, as their spread says how much they matter; others are
standardised.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.settings import MOST_COLUMNS, FeatureSettings
from weald.treecore.family import FeatureSummary, spec_of
from weald.treecore.family.gaussian.moments import moments_of
from weald.treecore.family.gaussian.robust_spread import spread_of, without_extremes
from weald.treecore.family.interface.base import Family

from .preparation import Informative
from .resolution import Moves, unmoved_variance

__all__ = ["FULL", "NUMERIC", "Transformation", "wants_components"]

Values = NDArray[np.float64]
Arrays = dict[str, NDArray[Any]]

# Families of plain numbers, and the choice between them.
FULL, NUMERIC = "gaussian", ("gaussian", "diagonal", "auto")
# The axes hold so much of the variance, within bounds on their number. Held-out density would take
# all there are: it rises with every axis on each of the seven tables that this was set on.
_SHARE, _FEWEST, _MOST = 0.9, 8, 20
_ROWS_AN_AXIS = 10
# Rows from which axes are learned.
_MOST_ROWS = 20_000
# No column of like ones is spread so many times as widely as the middle one.
_LIKE = 2.0
# Where so many columns are no wider than the one before, they are scores of components.
_FALLING = 0.8
# A column that is left out is what was said of it within so large a share of the numbers that it is
# said from: one of one value, and one that others say as far as rounding lets them.
_EXACTLY, _NEARLY = 1e-9, 1e-4
# Rows that are turned at a time: what comes between them stays in the processor's cache.
_BLOCK = 1024


def wants_components(asked: FeatureSettings, family: str, n_columns: int) -> bool:
    """Whether rows of so many columns are seen along components by a family, or by "auto"."""
    if asked.components == "auto":
        return family in (FULL, "auto") and n_columns > MOST_COLUMNS
    return asked.components != "all"


class Transformation(NamedTuple):
    """From values (n, d) as they come in to those that a family sees (n, q), and back.

    Attributes
    ----------
    logs:
        Columns whose natural logarithm is taken first.
    length:
        Rows are then divided by their lengths, of which this is the middle one; 0 where not.
    kept:
        The columns (k) that say something: the others are not seen.
    mean, scale:
        What is taken from each of these (k), and what it is then divided by.
    axes:
        Orthonormal directions (k, q) along which that is seen, the one of most variance first;
        None where all k columns are.
    rest:
        Variance (k) that the divided columns have off the axes.
    share:
        Share of the variance along the axes.
    base, weights:
        The other columns, in order, are ``base`` (d - k) and so much (d - k, k) of those kept.
    """

    logs: NDArray[np.int64]
    length: float
    kept: NDArray[np.int64]
    mean: Values
    scale: Values
    axes: Values | None
    rest: Values
    share: float
    base: Values
    weights: Values

    @classmethod
    def learned(
        cls,
        values: Values,
        asked: FeatureSettings,
        family: str,
        logs: Sequence[int] = (),
        found: Informative | None = None,
    ) -> Transformation | None:
        """What a sample (n, d) teaches; None where the family sees the columns as they are.

        A few absurd rows do not turn the axes. Components of a sample with NaN are for the caller
        to refuse.

        Parameters
        ----------
        values : ndarray of float64, shape (n, d)
        asked : FeatureSettings
            Its ``log`` is in names: the columns are those of ``logs``.
        family : str
        logs : sequence of int
            Columns whose logarithm is taken; they have numbers above 0 only.
        found : Informative, optional
            Which columns of the sample, after logarithms, say something; all by default.
        """
        first = cls.plain(values.shape[1])._replace(logs=np.array(logs, dtype=np.int64))
        values = first.seen(values)
        if found is not None and found.kept.size < values.shape[1]:
            first = _without_others(first, values, found)
        k = first.kept.size
        many = wants_components(asked, family, k)
        leaves_out = k < values.shape[1]
        if not (many or logs or leaves_out or asked.unit_length or asked.standardise is True):
            return None
        if asked.unit_length:
            lengths = np.sqrt(_squares(values))
            first = first._replace(length=float(np.median(lengths)) or 1.0)
            values = values / np.where(lengths > 0.0, lengths, 1.0)[:, None]
        values = values[:, first.kept]
        if not many:
            if asked.standardise is not True:
                return first
            seen = without_extremes(values)
            return first._replace(mean=np.nanmean(seen, axis=0), scale=spread_of(seen))
        number = None if isinstance(asked.components, str) else asked.components
        return _turned(first, values, number, asked.standardise)

    @classmethod
    def plain(cls, n_columns: int) -> Transformation:
        """The one that changes nothing."""
        none, zeros, ones = np.empty(0), np.zeros(n_columns), np.ones(n_columns)
        logs, kept = np.empty(0, dtype=np.int64), np.arange(n_columns)
        weights = np.empty((0, n_columns))
        return cls(logs, 0.0, kept, zeros, ones, None, zeros, 1.0, none, weights)

    @property
    def n_columns(self) -> int:
        """Number d of columns that come in."""
        return self.kept.size + self.base.size

    @property
    def width(self) -> int:
        """Number q of columns that the family sees."""
        return self.kept.size if self.axes is None else int(self.axes.shape[1])

    def seen(self, values: Values) -> Values:
        """Observations (n, d) as the family sees them (n, q): each row by itself, to the last bit.

        A logarithm of what is not above 0 is NaN or infinite; a row of zeros has no length, and
        stays.
        """
        off = np.array(values, dtype=np.float64, order="C")
        if self.logs.size:
            with np.errstate(invalid="ignore", divide="ignore"):
                off[:, self.logs] = np.log(off[:, self.logs])
        if self.length > 0.0:
            lengths = np.sqrt(_squares(off))
            off /= np.where(lengths > 0.0, lengths, 1.0)[:, None]
        if self.base.size:
            off = np.ascontiguousarray(off[:, self.kept])
        off -= self.mean
        off /= self.scale
        return off if self.axes is None else _along(off, self.axes)

    @property
    def left_out(self) -> NDArray[np.int64]:
        """The columns (d - k) that are not seen, rising."""
        return np.setdiff1d(np.arange(self.n_columns), self.kept)

    def unlike(self, values: Values) -> NDArray[np.bool_]:
        """Where columns that are left out (n, d - k) are not what was said of them.

        Of observations (n, d), each by itself, to the last bit. What is missing is like it.
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            first = Transformation.plain(self.n_columns)._replace(logs=self.logs).seen(values)
            kept, others = first[:, self.kept], first[:, self.left_out]
            said = self.base + _along(kept, self.weights.T)
            scale = np.abs(self.base) + np.abs(others)
            scale += _along(np.abs(kept), np.abs(self.weights.T))
            within = np.where(self.weights.any(axis=1), _NEARLY, _EXACTLY)
            return np.asarray(np.abs(others - said) > within * scale)

    def unfit(self, values: Values) -> list[tuple[int, int]]:
        """Rows of values (n, d) that lack a logarithm, each with the first such column."""
        low = ~(values[:, self.logs] > 0.0)
        rows = np.flatnonzero(low.any(axis=1))
        return [(int(row), int(self.logs[np.argmax(low[row])])) for row in rows]

    def describe(
        self,
        family: Family,
        row: Values,
        names: Sequence[str],
        moves: Moves | None = None,
    ) -> list[FeatureSummary]:
        """What a statistics row of the family says of the d columns, in their own units.

        What lies off the axes is taken to be what it was in the sample. Rows that had unit length
        get the sample's middle length back. ``moves`` are those of the family's q values:
        their variance is taken away.
        """
        columns = [str(column) for column in range(self.width)]
        told = spec_of(family).describe(family, row, columns)
        centre = np.array([float(each.centre) for each in told])
        variance = np.diag([(each.spread or 0.0) ** 2 for each in told])
        if spec_of(family).name == FULL and row[1] > 0.0:
            variance = _covariance(row, self.width)
        if moves is not None:
            np.fill_diagonal(variance, unmoved_variance(np.diag(variance), moves))
        kept, own = centre, np.diag(variance)
        if self.axes is not None:
            kept = self.axes @ centre
            own = _along_both(self.axes, variance) + self.rest
        middle, square = np.empty(self.n_columns), np.empty(self.n_columns)
        middle[self.kept] = kept * self.scale + self.mean
        square[self.kept] = own * self.scale**2
        others = self.left_out
        middle[others] = self.base + self.weights @ middle[self.kept]
        weights = self.weights * self.scale
        through = weights if self.axes is None else weights @ self.axes
        square[others] = _along_both(through, variance) + weights**2 @ self.rest
        length = self.length if self.length > 0.0 else 1.0
        middle, spread = middle * length, np.sqrt(np.maximum(square, 0.0)) * length
        low, high = middle - spread, middle + spread
        for ends in (middle, low, high):
            ends[self.logs] = np.exp(ends[self.logs])
        known = told[0].spread is not None
        return [
            FeatureSummary(name, "number", float(at), float(wide) if known else None, told[0].n)
            for name, at, wide in zip(names, middle, (high - low) / 2.0, strict=True)
        ]

    def in_words(self) -> str:
        """What was learned, as people read it: "12 components of 64 columns, 91 % of ..."."""
        parts = []
        if self.logs.size:
            many = self.logs.size > 1
            parts.append(
                f"logarithms of {self.logs.size} columns" if many else "the logarithm of 1 column"
            )
        if self.length > 0.0:
            parts.append("rows of unit length")
        d, k = self.n_columns, self.kept.size
        of = f"{d} columns" if k == d else f"{k} of {d} columns"
        if self.axes is not None:
            share = f"{self.share:.0%}".replace("%", " %")
            parts.append(f"{self.width} components of {of}, {share} of the variance")
        elif (self.scale != 1.0).any():
            parts.append(f"{of} standardised")
        elif k < d:
            parts.append(of)
        return "; ".join(parts)

    def arrays(self) -> Arrays:
        """Named arrays of which `of_arrays` makes it again, bit for bit."""
        told: Arrays = {name: np.asarray(part) for name, part in self._asdict().items()}
        if self.axes is None:
            del told["axes"]
        return told

    @classmethod
    def of_arrays(cls, saved: Arrays) -> Transformation:
        """Undo `arrays`."""
        parts: dict[str, Any] = {name: saved.get(name) for name in cls._fields}
        return cls(**parts)._replace(length=float(saved["length"]), share=float(saved["share"]))


def _without_others(first: Transformation, values: Values, found: Informative) -> Transformation:
    """The same with only the columns (n, d) seen that say something, and what the others are."""
    kept, d = found.kept, values.shape[1]
    others = np.setdiff1d(np.arange(d), kept)
    weights = np.zeros((others.size, kept.size))
    mean = values.mean(axis=0)
    off = values - mean
    combined = list(found.combined)
    for column, of in found.repeated:
        if of in found.combined:
            combined.append(column)
            continue
        slope = off[:, column] @ off[:, of] / (off[:, of] @ off[:, of])
        weights[others == column, np.searchsorted(kept, of)] = slope
    if combined:
        solved = np.linalg.lstsq(off[:, kept], off[:, combined], rcond=None)[0]
        weights[np.searchsorted(others, combined)] = solved.T
    plain = Transformation.plain(kept.size)
    return plain._replace(
        logs=first.logs,
        kept=kept,
        base=mean[others] - weights @ mean[kept],
        weights=weights,
    )


def _turned(
    first: Transformation, values: Values, n_axes: int | None, standardise: bool | str
) -> Transformation:
    """The same along principal components, ``n_axes`` of them or by the rule."""
    n, d = values.shape
    rows = np.linspace(0, n - 1, min(n, _MOST_ROWS)).astype(np.int64)
    seen = without_extremes(values[rows])
    mean, spread = seen.mean(axis=0), seen.std(axis=0)
    spread[spread == 0.0] = 1.0
    scale = _scale(spread, standardise)
    off = (seen - mean) / scale
    if d <= rows.size:
        variance, axes = np.linalg.eigh(off.T @ off)
        variance, axes = variance[::-1], axes[:, ::-1]
    else:
        _, root, across = np.linalg.svd(off, full_matrices=False)
        variance, axes = root**2, across.T
    share = np.cumsum(variance) / max(variance.sum(), 1e-300)
    if n_axes is None:
        most = max(min(_MOST, n // _ROWS_AN_AXIS), 2)
        n_axes = min(max(int(np.searchsorted(share, _SHARE)) + 1, _FEWEST), most)
    n_axes = min(n_axes, axes.shape[1])
    axes = np.ascontiguousarray(axes[:, :n_axes])
    rest = np.maximum((off**2).mean(axis=0) - ((off @ axes) ** 2).mean(axis=0) @ axes.T**2, 0.0)
    told = float(share[n_axes - 1])
    return first._replace(mean=mean, scale=scale, axes=axes, rest=rest, share=told)


def _scale(spread: Values, standardise: bool | str) -> Values:
    """By what columns of such spreads (d) are divided: one number for all, or each its own."""
    middle = float(np.median(spread))
    falling = float(np.mean(np.diff(spread) <= 0.0)) if spread.size > 1 else 0.0
    like = spread.max() < _LIKE * middle or falling > _FALLING
    own = standardise if isinstance(standardise, bool) else not like
    return spread if own else np.full(spread.size, middle)


def _squares(values: Values) -> Values:
    """Squared lengths (n) of rows."""
    total = np.zeros(len(values))
    for column in values.T:
        total += column * column
    return total


def _along(off: Values, axes: Values) -> Values:
    """Return ``off @ axes``, column by column.

    The last bit of a product of matrices depends on how many rows there are, and a replay has its
    rows in other batches than they came in.
    """
    found = np.zeros((len(off), axes.shape[1]))
    for start in range(0, len(off), _BLOCK):
        total = found[start : start + _BLOCK]
        for column, axis in zip(off[start : start + _BLOCK].T, axes, strict=True):
            total += column[:, None] * axis
    return found


def _along_both(rows: Values, variance: Values) -> Values:
    """Variances (m) along rows (m, q) of weights, of what has a covariance (q, q)."""
    return np.asarray(((rows @ variance) * rows).sum(axis=1))


def _covariance(row: Values, q: int) -> Values:
    """Covariance (q, q) of the observations behind a statistics row of Gaussian clusters."""
    first, second = (each / row[1] for each in moments_of(row, q))
    return np.asarray(second - np.outer(first, first))
