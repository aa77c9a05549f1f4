"""What is shown with probability p is true in a share p, without knowing the base measure."""

import pytest

from benchmarks.calibration import Find, calibration_error, judged, offline, stream


@pytest.mark.parametrize(
    ("find", "of_pairs", "of_membership"), [(offline, 0.04, 0.03), (stream, 0.09, 0.055)]
)
def test_memberships_are_calibrated(find: Find, of_pairs: float, of_membership: float) -> None:
    """Twelve sets of 300 rows, whose errors go together: over a hundred they are half as large.

    A stream has the base measure of its first 200 records and five draws of all of them: what it
    says of pairs, which it does not show, is not confident enough.
    """
    found = judged(find, 12)
    assert calibration_error(found["pairs"]) < of_pairs
    assert calibration_error(found["membership"]) < of_membership
    assert found["membership"].said.size > 3000
