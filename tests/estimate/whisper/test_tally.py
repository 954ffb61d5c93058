"""Tallies: how the state gets what was added up, and what reports are worth."""

import pytest

from factories import unit_cube
from sottovoce.estimate.whisper import tally
from sottovoce.estimate.whisper.constants import constants
from sottovoce.estimate.whisper.decisions import people_paid
from sottovoce.estimate.whisper.state import initial_state


@pytest.mark.parametrize(
    ("arms", "public_arms", "logged", "worth"),
    [
        (2, False, False, 0.25),
        (2, False, True, 0.25),  # one cell for both arms
        (2, True, True, 0.25),
        (4, False, False, 0.25),
        (4, False, True, 0.03125),  # 2/4² of it: two of four arms, the noise of each
        (4, True, False, 0.25),
        (4, True, True, 0.0625),  # 4/4² of it: people have any arm, too
    ],
)
def test_a_noisier_report_is_worth_less_and_logged_ones_are_counted_apart(
    arms: int, public_arms: bool, logged: bool, worth: float
) -> None:
    known = constants(unit_cube(arms=arms, public_arms=public_arms))
    assert tally.worth(known, 2.0, 8.0, logged) == pytest.approx(worth)
    state = initial_state(known)
    tally.credit(state, known, 2.0, 8.0, logged, 10)
    paid = (state.totals[0].paid, state.totals[0].rows_paid)
    assert paid == pytest.approx((0, 10 * worth) if logged else (10 * worth, 0))


def test_a_logged_row_counts_for_half_of_what_it_would_be_worth_as_one_of_the_target_s_people() -> (
    None
):
    state = initial_state(constants(unit_cube()))
    state.totals[0].paid, state.totals[0].rows_paid = 30.0, 1000.0
    assert people_paid(state) == pytest.approx(30 + 1000 * 0.5)
