"""Settings: typed, and silent about passwords."""

import msgspec
import pytest

from weald.storage.settings import RedisSettings, StorageSettings, redacted


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (
            "postgresql+psycopg://weald:s%40cret@db:5432/x",
            "postgresql+psycopg://weald:***@db:5432/x",
        ),
        ("redis://:secret@cache/0", "redis://:***@cache/0"),
        ("postgresql://weald@db/x", "postgresql://weald@db/x"),
        ("sqlite:////var/lib/weald.db", "sqlite:////var/lib/weald.db"),
        ("nonsense", "nonsense"),
        ("postgresql://weald:a/b#c@db/x", "postgresql://weald:***@db/x"),
        ("postgresql://weald:a@b@db/x", "postgresql://weald:***@db/x"),
        ("postgresql://db/x?user=a&password=b&x=1", "postgresql://db/x?user=a&password=***&x=1"),
        ("postgresql://db/x?sslpassword=b", "postgresql://db/x?sslpassword=***"),
        ("redis://h:6379/0?password=b", "redis://h:6379/0?password=***"),
    ],
)
def test_a_password_never_shows(url: str, shown: str) -> None:
    assert redacted(url) == shown
    assert shown in repr(StorageSettings(url=url))
    assert shown in repr(RedisSettings(url=url))


@pytest.mark.parametrize(
    "wrong",
    [{"url": 7}, {"snapshots_kept": 1}, {"busy_timeout_seconds": 0}, {"ulr": "sqlite:///x"}],
)
def test_wrong_settings_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(wrong, StorageSettings)


def test_defaults_need_nothing_installed() -> None:
    assert msgspec.convert({}, StorageSettings).url == "sqlite:///weald.db"
    assert msgspec.convert({}, RedisSettings).enabled
