"""A page to explore, of rows whose clusters and groups are known."""

import numpy as np
from numpy.typing import NDArray

from tests.cli.lives import SIZES, events, publications
from weald.answers.description.sentences import explain
from weald.answers.diagnostics.trust import Trust
from weald.answers.exploration import Exploration, Part
from weald.answers.projection import Plane
from weald.answers.report_data import Birth, Chains, Sampled
from weald.answers.timeline import timeline_of
from weald.cli.report.page import render
from weald.stream.record.fields.originals import Original

N = 400
# Clusters 1 to 4, of which 1 and 2 make group 1; where they lie, and their share.
CENTRES = np.array([[0.0, 0.0], [4.0, 0.0], [30.0, -20.0], [-25.0, 40.0]])
SHARES = (0.4, 0.3, 0.2, 0.1)
GROUP = {1: 1, 2: 1, 3: 2, 4: 3}


def exploration(
    rng: np.random.Generator, n: int = N, axes: tuple[str, str] = ("x", "y")
) -> Exploration:
    """Rows of four clusters in three groups, with a gap now and then."""
    clusters = np.sort(rng.choice(4, n, p=SHARES)) + 1
    points = CENTRES[clusters - 1] + rng.normal(size=(n, 2))
    price = np.where(rng.random(n) < 0.1, np.nan, np.round(20.0 * clusters + rng.normal(size=n), 2))
    country = np.array(["Norway", "Chile", "<b>Japan</b>", "Peru"], dtype=object)[clusters - 1]
    country[rng.random(n) < 0.05] = None
    hour = (5.0 * clusters + rng.random(n)) * 3600.0
    columns = [
        Original("price", "number", price),
        Original("country", "category", country),
        Original("ordered", "day", hour),
    ]
    groups = np.array([GROUP[each] for each in clusters.tolist()])
    born = {1: 0, 2: 2, 3: 4, 4: 0}, {1: 1, 2: 3, 3: 1}

    def part(of: NDArray[np.int64], each: int, group: int | None) -> Part:
        inside = of == each
        size = int(inside.sum())
        said = explain(columns, inside)
        publication = born[group is None][each]
        since = Birth(publication, 1.8e9 + 3600.0 * publication)
        return Part(each, size, size / n, 0.98, sentences=said, group=group, since=since)

    return Exploration(
        plane=Plane(points, axes, "As planted."),
        keys=[f"row {at + 1}" for at in range(n)],
        clusters=clusters,
        density=-((points - CENTRES[clusters - 1]) ** 2).sum(1),
        columns=columns,
        texts=(),
        parts=[part(clusters, each, GROUP[each]) for each in range(1, 5)],
        groups=[part(groups, each, None) for each in range(1, 4)],
        n_all=n,
        timeline=timeline_of(publications(), events(), SIZES),
    )


def page_of(found: Exploration) -> str:
    """The page, with headlines that these tests do not look at."""
    subject = Sampled(
        title="Planted",
        subtitle="a look at nothing",
        facts={"rows": str(found.n_all)},
        keys=found.keys,
        clusters=found.clusters,
        draws=np.empty((0, 0), dtype=np.int64),
        chains=Chains("iteration", {}, burnt=0, stationary=True),
    )
    return render(subject, [], [], found, Trust(["<few>"], "no: nobody looked"))
