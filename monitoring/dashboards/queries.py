"""PromQL over Weald's metrics, with the dashboards' variables as matchers.

Every function refuses a metric that `weald.monitoring.names` does not hold, so a renamed metric
stops the build of a dashboard instead of leaving a panel empty.
"""

from typing import Final

from weald.monitoring.names import METRICS

__all__ = [
    "age",
    "counter_rate",
    "gauge",
    "increase_in_view",
    "largest",
    "process",
    "quantile",
    "time_share",
]

MATCHERS: Final = 'job=~"$job", instance=~"$instance"'
_STREAM: Final = ', stream=~"$stream"'
_KINDS: Final = {metric.name: metric.kind for metric in METRICS}


def _series(metric: str, kind: str, where: str = "", suffix: str = "") -> str:
    if _KINDS.get(metric) != kind:
        raise ValueError(f"{metric} is no {kind} of weald.monitoring.names")
    extra = f", {where}" if where else ""
    return f"{metric}{suffix}{{{MATCHERS}{_STREAM}{extra}}}"


def _by(labels: str) -> str:
    return f"sum by ({labels})" if labels else "sum"


def counter_rate(metric: str, by: str = "", where: str = "") -> str:
    """Increase per second of a counter, summed over what `by` does not name."""
    return f"{_by(by)} (rate({_series(metric, 'counter', where)}[$__rate_interval]))"


def increase_in_view(metric: str, by: str = "", where: str = "") -> str:
    """Increase of a counter over the time that the dashboard shows."""
    return f"{_by(by)} (increase({_series(metric, 'counter', where)}[$__range]))"


def gauge(metric: str, by: str = "", where: str = "") -> str:
    """A gauge, summed over what `by` does not name."""
    return f"{_by(by)} ({_series(metric, 'gauge', where)})"


def largest(metric: str, by: str = "") -> str:
    """A gauge, the largest over what `by` does not name.

    For what a standby reports as zero, or not at all.
    """
    return f"max{f' by ({by})' if by else ''} ({_series(metric, 'gauge')})"


def age(metric: str) -> str:
    """Seconds since the newest of a gauge of times, by stream."""
    return f"time() - max by (stream) ({_series(metric, 'gauge')})"


def quantile(q: float, metric: str, by: str = "", where: str = "") -> str:
    """Quantile of a histogram over the rate interval."""
    labels = f"{by}, le" if by else "le"
    buckets = _series(metric, "histogram", where, "_bucket")
    return f"histogram_quantile({q}, sum by ({labels}) (rate({buckets}[$__rate_interval])))"


def time_share(metric: str, by: str = "", where: str = "") -> str:
    """Share of wall time that a histogram of durations accounts for."""
    sums = _series(metric, "histogram", where, "_sum")
    return f"{_by(by)} (rate({sums}[$__rate_interval]))"


def process(metric: str) -> str:
    """A gauge of the process itself, by instance; those know no stream."""
    return f"max by (instance) ({metric}{{{MATCHERS}}})"
