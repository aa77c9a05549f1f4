"""What the HTTP answers hold. The OpenAPI document is made from these types."""

from typing import Annotated, Any

import msgspec

__all__ = [
    "Assignment",
    "Assignments",
    "Cluster",
    "Clusters",
    "Event",
    "Events",
    "Explored",
    "Feature",
    "Group",
    "Groups",
    "Point",
    "Points",
    "Prediction",
    "Predictions",
    "Problem",
    "Question",
    "Refusal",
    "Stream",
]

# Rows of one question; more belong into several.
MOST_RECORDS = 1000


class Feature(msgspec.Struct):
    """A feature of a cluster in the data's own units; no spread where it has none."""

    kind: str
    centre: float | str | None
    spread: float | None
    n: int


class Cluster(msgspec.Struct):
    """A cluster; its id is stable, and never used again."""

    cluster: int
    group: int | None
    size: int
    share: float
    probability: float | None
    stability: float | None
    features: dict[str, Feature]
    log_marginal: float | None
    version: int
    born_publication: int
    retired_publication: int | None


class Clusters(msgspec.Struct):
    """A page of clusters, largest first; ``next`` is the cursor of the following page."""

    epoch: int
    items: list[Cluster]
    next: str | None


class Group(msgspec.Struct):
    """Clusters without a valley of density between them; its id is stable, as a cluster's is.

    It was born with the publication that first told of it or of one of its clusters, and is new
    where that is the newest; None is of an earlier version of Weald, or longer ago than
    publications are kept.
    """

    group: int
    size: int
    share: float
    probability: float | None
    born_publication: int | None
    born: str | None
    is_new: bool
    clusters: list[int]
    features: dict[str, Feature]


class Groups(msgspec.Struct):
    """The groups of the newest publication, largest first."""

    epoch: int
    items: list[Group]


class Assignment(msgspec.Struct):
    """An observation with its cluster, now or as of a moment.

    ``left_seq`` is the number of the observation after which the model let it go.
    """

    key: str | None
    cluster: int
    group: int | None
    probability: float | None
    stability: float | None
    event_time: str | None
    topic: str
    partition: int
    offset: int
    seq: int
    left_seq: int | None
    values: dict[str, float | str | None]


class Assignments(msgspec.Struct):
    """The newest observations with a key."""

    epoch: int
    items: list[Assignment]


class Event(msgspec.Struct):
    """A birth, split, merge, move or end of a cluster."""

    time: str | None
    kind: str
    cluster: int
    parents: list[int]
    size: int
    n_moved: int
    publication: int
    seq: int


class Events(msgspec.Struct):
    """A page of lineage, oldest first; ``next`` is the cursor of the following page."""

    epoch: int
    items: list[Event]
    next: str | None


class Question(msgspec.Struct, forbid_unknown_fields=True):
    """Records as they would arrive; key and time may be left out."""

    records: Annotated[list[dict[str, Any]], msgspec.Meta(min_length=1, max_length=MOST_RECORDS)]


class Prediction(msgspec.Struct):
    """Where a record would go; no cluster where a new one is more probable than any."""

    row: int
    cluster: int | None
    probability: float
    new_probability: float
    log_density: float | None


class Refusal(msgspec.Struct):
    """A record that cannot become an observation, and why."""

    row: int
    reason: str
    detail: str


class Predictions(msgspec.Struct):
    """Answers by row of the question; every row is answered or refused."""

    epoch: int
    items: list[Prediction]
    refused: list[Refusal]


class Point(msgspec.Struct, array_like=True):
    """An observation in the plane of the picture: x, y, cluster, key."""

    x: float | None
    y: float | None
    cluster: int
    key: str | None


class Points(msgspec.Struct):
    """The newest observations in two dimensions."""

    epoch: int
    axes: tuple[str, str]
    how: str
    items: list[Point]


class Explored(msgspec.Struct):
    """What the live page shows: HTML and what its script draws, as of a publication.

    ``data`` is null before there is anything to see.
    """

    epoch: int
    publication: int
    tree: str
    remark: str
    timeline: str
    data: dict[str, Any] | None


class Stream(msgspec.Struct):
    """The stream at a glance. Times are seconds since 1970.

    ``seen_as`` says how the family sees the values, where not as they are; ``warnings`` are reasons
    not to believe the newest publication, ``base_measure`` what it has learned of how wide clusters
    are and how far apart, where it learns that.
    """

    name: str
    family: str
    seen_as: str | None
    prior: str
    features: list[str]
    epoch: int
    committed_at: float | None
    n_received: int
    n_inserted: int
    n_duplicate: int
    n_dead: int
    n_clusters: int
    n_groups: int
    n_clusters_retired: int
    publication: int
    published_at: float | None
    log_joint: float | None
    warnings: list[str] | None
    base_measure: dict[str, float] | None


class Problem(msgspec.Struct):
    """An error, as RFC 9457 has it."""

    type: str
    title: str
    status: int
    detail: str
