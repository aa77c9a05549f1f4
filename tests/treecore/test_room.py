"""Arrays that grow where they are."""

import subprocess
import sys

import numpy as np
import pytest

from weald.treecore.statistics.room import has_room, longer, next_length

LARGE = 2**17  # float64 numbers, or more, have room behind them


def test_what_was_there_is_kept_and_zeros_follow() -> None:
    array = np.arange(6.0).reshape(3, 2)
    grown = longer(array, 5)
    np.testing.assert_array_equal(grown, [[0, 1], [2, 3], [4, 5], [0, 0], [0, 0]])
    assert grown.dtype == array.dtype


def test_a_large_array_is_copied_once_and_then_grows_where_it_is() -> None:
    array = np.arange(LARGE)
    grown = longer(array, LARGE + 1)
    assert not np.shares_memory(array, grown)
    assert has_room(grown, 2 * LARGE)
    further = longer(grown, 2 * LARGE)
    assert np.shares_memory(grown, further)
    np.testing.assert_array_equal(further[:LARGE], array)
    assert not further[LARGE:].any()
    further[-1] = 7
    # Who holds the shorter one still reads what is there.
    np.testing.assert_array_equal(grown[:LARGE], array)


def test_where_room_has_ended_it_is_copied_again() -> None:
    grown = longer(np.ones((1, LARGE)), 2)
    end = 2 * 64
    assert has_room(grown, end)
    assert not has_room(grown, end + 1)
    last = longer(grown, end)
    last[-1] = 3.0
    beyond = longer(last, end + 1)
    assert not np.shares_memory(last, beyond)
    np.testing.assert_array_equal(beyond[: end - 1], last[:-1])
    np.testing.assert_array_equal(beyond[[end - 1, end], 0], [3.0, 0.0])


@pytest.mark.parametrize("n", [4, LARGE])
def test_of_rows_that_do_not_count_nothing_is_copied(n: int) -> None:
    grown = longer(np.ones(n), n + 1, np.array([0, 2]))
    np.testing.assert_array_equal(grown[:4], [1, 0, 1, 0])


def test_a_part_of_an_array_with_room_has_none() -> None:
    grown = longer(np.ones(LARGE), LARGE + 1)
    assert not has_room(grown[3:], LARGE)


LIMITED = """
import resource
import numpy as np
from weald.treecore.statistics.room import has_room, longer

pages = int(open("/proc/self/statm").read().split()[0])
held = pages * resource.getpagesize() + 2**25
resource.setrlimit(resource.RLIMIT_AS, (held, held))
grown = longer(np.ones(2**17), 2**17 + 1)
further = longer(grown, 2**17 + 2)
print(has_room(grown, 2**17 + 2), further[2**17 - 1 :].tolist())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit on addresses is Linux's")
def test_without_addresses_to_set_aside_it_is_copied_each_time() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED], check=False, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("False [1.0, 0.0, 0.0]\n", "")


def test_the_next_length_is_a_quarter_more_or_what_is_needed() -> None:
    assert [next_length(100, 101), next_length(100, 400), next_length(0, 1)] == [125, 400, 1]
