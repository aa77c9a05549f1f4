"""Settings of the stream room: the stream itself, its Kafka connection, its schema."""

from typing import Annotated, Literal

import msgspec

__all__ = [
    "FieldSettings",
    "KafkaSettings",
    "MemorySettings",
    "SchemaSettings",
    "StreamSettings",
]

Positive = Annotated[int, msgspec.Meta(ge=1)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]
Secret = Annotated[str | None, msgspec.Meta(extra={"secret": True})]
Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]


class FieldSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One declared field: one feature, or several.

    Parameters
    ----------
    name : str
        Name of the feature; the field is looked up by it unless `path` is given.
    path : str, optional
        Where the value is inside the record, dotted: ``"reading.celsius"``, ``"x.0"``.
    kind : {"number", "count", "flag", "category", "text", "time", "vertex", "weight"}
        What it holds. A text becomes hashed counts, a time the sines and cosines of its place in
        each of `periods`, a category the number of its level. Two vertices make a record an edge
        of a network, from the first to the second, and a weight (1 where it is missing) may say
        how much of one.
    size : int, optional
        Length of an array of numbers (a single one when absent), buckets of a text (256), or
        levels into which the values of a category are hashed (32).
    scale : {"linear", "log"}
        Of numbers; "log" takes log(1 + x), for what spreads over orders of magnitude.
    center, spread : float
        Of numbers: what is subtracted and then divided by, after `scale`.
    values : tuple of str
        The values of a category, each a level; all others share one more.
    tokens : {"line", "words"}
        Of texts: lines as programs log them, or passages as bags of words.
    periods : tuple of {"hour", "day", "week", "year"}
        Of times, in UTC.
    """

    name: Annotated[str, msgspec.Meta(min_length=1)]
    path: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    size: Positive | None = None
    kind: Literal["number", "count", "flag", "category", "text", "time", "vertex", "weight"] = (
        "number"
    )
    scale: Literal["linear", "log"] = "linear"
    center: float = 0.0
    spread: Annotated[float, msgspec.Meta(gt=0)] = 1.0
    values: Annotated[tuple[str, ...], msgspec.Meta(max_length=10_000)] = ()
    tokens: Literal["line", "words"] = "line"
    periods: Annotated[
        tuple[Literal["hour", "day", "week", "year"], ...], msgspec.Meta(min_length=1)
    ] = ("day", "week")


class SchemaSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The ``[schema]`` section: what a record looks like.

    Parameters
    ----------
    fields : tuple of FieldSettings
        The numbers that make an observation, in order.
    key : str, optional
        Path of the record's own key, text or integer; the message's key when absent.
    time : str, optional
        Path of the record's own time: seconds or milliseconds since the epoch, or ISO 8601
        (taken as UTC when it names no zone). The broker's time when absent or null.
    forbid_unknown : bool
        Set aside records with fields beyond the declared ones; otherwise they are ignored.
    max_bytes : int
        Longest accepted record.
    max_depth : int
        Deepest accepted nesting.
    """

    fields: Annotated[tuple[FieldSettings, ...], msgspec.Meta(max_length=10_000)] = ()
    key: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    time: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    forbid_unknown: bool = False
    max_bytes: Positive = 1_048_576
    max_depth: Annotated[int, msgspec.Meta(ge=1, le=200)] = 32


class StreamSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The ``[stream]`` section.

    Parameters
    ----------
    name : str
        Name of the stream: of its rows in SQL, its keys in Redis, its consumer group.
    source : {"kafka", "file", "stdin"}
    path : str, optional
        The file of a file source; text may be plain or ``.gz``.
    format : {"auto", "jsonl", "csv", "lines", "parquet", "arrow", "avro", "packed"}
        Of the records; "auto" goes by the file's name, else JSONL. Lines are plain text, packed
        records the numbers themselves, float64 little-endian.
    avro_schema : str, optional
        File with the schema that Avro messages of a topic were written with.
    latency_ms : int
        A backlog is taken in batches that are read, clustered and committed in about so many
        milliseconds each, of 2,000 records at least: the larger they are, the less a record costs.
    batch_records : int, optional
        Most records of one SQL transaction, whatever it takes.
    poll_seconds : float
        Longest wait for records before the loop comes round again.
    snapshot_records : int
        A snapshot is committed after this many observations, or after a quarter of all of them
        where that is more, so that its cost per observation does not grow with the stream; after
        three quarters of them while records come before refinement, as a replay makes up for
        nothing either.
    dead_letter_share : float
        The service stops when more than this share of recent records was bad.
    dead_letter_window : int
        How many recent records the share is taken over.
    dead_letter_topic : bool
        Whether dead letters also go to the topic ``<topic>.dlq`` (Kafka only).
    duplicate_keys : {"allow", "keep-first", "update"}
        What a record with a key that has come before is: an observation like any other; a
        duplicate, which is counted and left out; or an observation that replaces the one before,
        which leaves the model and stays in SQL. Records without a key are never duplicates. Goes
        back as far as the rows that ``[retention]`` keeps.
    diverged : {"adopt", "stop"}
        What to do when replay after an unclean stop does not arrive at the partition that SQL
        shows, as under another version of a numerical library: keep what SQL shows and go on, or
        stop with an error.
    shards : int
        In how many parts the stream is written, each by one `weald run` at a time: a part has the
        partitions of the topic whose numbers leave the same remainder. Fixed when the stream is
        made. For streams that one process cannot keep up with.
    takeover_seconds : float
        How long the consumer group must insist that this process owns the stream although SQL
        knows a later generation, before it is believed: a new broker counts from the start.
    """

    name: Name = "weald"
    source: Literal["kafka", "file", "stdin"] = "kafka"
    path: str | None = None
    format: Literal["auto", "jsonl", "csv", "lines", "parquet", "arrow", "avro", "packed"] = "auto"
    avro_schema: str | None = None
    latency_ms: Annotated[int, msgspec.Meta(ge=1, le=60_000)] = 500
    batch_records: Positive | None = None
    poll_seconds: Annotated[float, msgspec.Meta(gt=0, le=60)] = 0.5
    snapshot_records: Positive = 20_000
    dead_letter_share: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.5
    dead_letter_window: Annotated[int, msgspec.Meta(ge=20)] = 1_000
    dead_letter_topic: bool = True
    duplicate_keys: Literal["allow", "keep-first", "update"] = "allow"
    diverged: Literal["adopt", "stop"] = "adopt"
    shards: Annotated[int, msgspec.Meta(ge=1, le=16)] = 1
    takeover_seconds: Seconds = 60.0

    @property
    def most_polled(self) -> int:
        """Most records that are asked for at once."""
        return self.batch_records or 2_000


class MemorySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The ``[memory]`` section: what the model keeps of an endless stream.

    By default all of it, until the service's share of the machine's memory is full, and from then
    on a uniform sample.

    Everything happens at refinements, which come after fixed numbers of observations, and by the
    records' own times: never by the wall clock.

    Parameters
    ----------
    window_records : int, optional
        Keep this many of the newest observations in the model.
    window_seconds : float, optional
        Keep observations whose time is at most so long before the stream's clock.
    half_life_records : float, optional
        Half of what came leaves the model while so many others come, chosen evenly; as does half
        of what is left while as many more come. An edge of a network weighs half as much.
    half_life_seconds : float, optional
        The same after so long by the stream's clock.
    leaf_budget : int, optional
        Forget nothing, and hold at most this many atoms. Not beside a window or a half-life, which
        bound memory themselves. At least four times ``refinement.every_records``.
    policy : {"sample", "bundles"}
        How to stay within the budget: the model holds a uniform sample of the stream, and all
        others are shown in their most probable cluster; or observations that surely belong together
        become one atom.
    """

    window_records: Positive | None = None
    window_seconds: Annotated[float, msgspec.Meta(gt=0)] | None = None
    half_life_records: Annotated[float, msgspec.Meta(gt=0)] | None = None
    half_life_seconds: Annotated[float, msgspec.Meta(gt=0)] | None = None
    leaf_budget: Positive | None = None
    policy: Literal["sample", "bundles"] = "sample"

    def __post_init__(self) -> None:
        if self.policy == "bundles" and self.leaf_budget is None:
            raise ValueError('policy = "bundles" needs leaf_budget, how many there may be')
        if self.half_life_records is not None and self.half_life_seconds is not None:
            raise ValueError("give half_life_records or half_life_seconds, not both")
        if self.leaf_budget is not None and self.forgets:
            # An observation that is to leave must not have become part of something that stays.
            raise ValueError("leaf_budget cannot be combined with a window or a half-life")

    @property
    def samples(self) -> bool:
        """Whether the model holds a sample once the budget is full."""
        return self.leaf_budget is not None and self.policy == "sample"

    @property
    def bundle_budget(self) -> int | None:
        """Most atoms, where observations become one to stay below; None where they do not."""
        return self.leaf_budget if self.policy == "bundles" else None

    @property
    def says_nothing(self) -> bool:
        """Whether all that comes is to be kept, as far as these settings go."""
        return self.leaf_budget is None and not self.forgets

    @property
    def fades(self) -> bool:
        """Whether half of what is there goes with time."""
        return self.half_life_records is not None or self.half_life_seconds is not None

    @property
    def forgets(self) -> bool:
        """Whether anything leaves the model by itself."""
        return self.fades or self.window_records is not None or self.window_seconds is not None


class KafkaSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The ``[kafka]`` section.

    Parameters
    ----------
    bootstrap_servers : str
        ``host:port``, comma-separated.
    topic : str
    client : {"kafka-python", "librdkafka"}
        Who reads. librdkafka, of the extra ``weald[confluent]``, takes a fifth of the processor
        time, and knows no ``batch_max_bytes``.
    group : str, optional
        Consumer group; ``weald-<stream>`` when absent.
    api_version : str, optional
        ``"2.3"`` for brokers that cannot negotiate, such as the embedded one.
    auto_offset_reset : {"earliest", "latest"}
        Where a partition that SQL has never seen begins; also where it goes on when the broker
        has expired the offset that SQL asks for.
    isolation_level : {"read_uncommitted", "read_committed"}
    session_timeout_ms, heartbeat_interval_ms : int
        After how long a silent member loses its partitions, and how often it speaks.
    max_poll_interval_ms : int
        Longest pause between two polls, which refinement and replay must stay under.
    connect_timeout_seconds : float
        How long to wait for the first answer of any broker.
    metadata_max_age_ms : int
        How often to ask whether the topic has new partitions.
    fetch_max_bytes, max_partition_fetch_bytes : int
        Most bytes that one answer of a broker, and one partition in it, may have: the memory that
        unread records take. A single record that is longer still comes, alone.
    batch_max_bytes : int
        Most bytes to which one compressed batch may grow; the service stops at one that is larger.
    security_protocol : {"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"}
        Whether the connection is encrypted (SSL) and whether this client names itself (SASL).
    sasl_mechanism : {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}, optional
    sasl_username, sasl_password : str, optional
        The password is a secret: give it as ``WEALD__KAFKA__SASL_PASSWORD``, or as
        ``sasl_password_file``.
    ssl_cafile : str, optional
        Certificate authority of the brokers; the system's when absent.
    ssl_certfile, ssl_keyfile, ssl_password : str, optional
        Certificate and key by which this client proves who it is, and the key's passphrase.
    """

    bootstrap_servers: str = "127.0.0.1:9092"
    topic: Annotated[str, msgspec.Meta(min_length=1, max_length=249)] = "events"
    client: Literal["kafka-python", "librdkafka"] = "kafka-python"
    group: str | None = None
    api_version: Annotated[str, msgspec.Meta(pattern=r"^\d+\.\d+$")] | None = None
    auto_offset_reset: Literal["earliest", "latest"] = "earliest"
    isolation_level: Literal["read_uncommitted", "read_committed"] = "read_committed"
    session_timeout_ms: Positive = 45_000
    heartbeat_interval_ms: Positive = 3_000
    max_poll_interval_ms: Positive = 300_000
    metadata_max_age_ms: Positive = 60_000
    connect_timeout_seconds: Annotated[float, msgspec.Meta(gt=0)] = 15.0
    fetch_max_bytes: Positive = 16_777_216
    max_partition_fetch_bytes: Positive = 1_048_576
    batch_max_bytes: Positive = 268_435_456
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = None
    sasl_username: str | None = None
    sasl_password: Secret = None
    ssl_cafile: str | None = None
    ssl_certfile: str | None = None
    ssl_keyfile: str | None = None
    ssl_password: Secret = None

    def __post_init__(self) -> None:
        if 3 * self.heartbeat_interval_ms > self.session_timeout_ms:
            raise ValueError("session_timeout_ms must be at least 3 times heartbeat_interval_ms")
        if self.session_timeout_ms > self.max_poll_interval_ms:
            raise ValueError("session_timeout_ms must be at most max_poll_interval_ms")
        self._check_identity()
        self._check_encryption()

    def _check_identity(self) -> None:
        given = (self.sasl_mechanism, self.sasl_username, self.sasl_password)
        if self.security_protocol.startswith("SASL_"):
            if None in given:
                raise ValueError(
                    f"security_protocol {self.security_protocol} needs sasl_mechanism, "
                    "sasl_username and sasl_password (or sasl_password_file)"
                )
        elif any(given):
            raise ValueError("sasl_... needs security_protocol SASL_SSL (or SASL_PLAINTEXT)")

    def _check_encryption(self) -> None:
        if (self.ssl_certfile is None) != (self.ssl_keyfile is None):
            raise ValueError("ssl_certfile and ssl_keyfile go together")
        files = (self.ssl_cafile, self.ssl_certfile, self.ssl_keyfile, self.ssl_password)
        if any(files) and not self.security_protocol.endswith("SSL"):
            raise ValueError("ssl_... needs security_protocol SSL or SASL_SSL")

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{name}={'***' if name in {'sasl_password', 'ssl_password'} and value else value!r}"
            for name, value in msgspec.structs.asdict(self).items()
        )
        return f"KafkaSettings({shown})"
