"""Tallies: how the state gets what was added up, and what reports are worth."""

import pytest

from factories import unit_cube
from sottovoce.estimate.whisper import tally
from sottovoce.estimate.whisper.constants import constants


@pytest.mark.parametrize(
    ("arms", "public_arms", "logged", "worth", "credit"),
    [
        (2, False, False, 0.25, 0.25),
        (2, False, True, 0.25, 0.125),  # one cell for both arms
        (2, True, True, 0.25, 0.125),
        (4, False, False, 0.25, 0.25),
        (4, False, True, 0.03125, 0.015625),  # 2/4² of it: two of four arms, the noise of each
        (4, True, False, 0.25, 0.25),
        (4, True, True, 0.0625, 0.03125),  # 4/4² of it: people have any arm, too
    ],
)
def test_a_noisier_report_is_worth_less_and_a_logged_one_is_trusted_half(
    arms: int, public_arms: bool, logged: bool, worth: float, credit: float
) -> None:
    known = constants(unit_cube(arms=arms, public_arms=public_arms))
    assert tally.worth(known, 2.0, 8.0, logged) == pytest.approx(worth)
    assert tally.credit(known, 2.0, 8.0, logged) == pytest.approx(credit)
