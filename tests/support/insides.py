"""What only tests look at: the sums inside of learners and crowds."""

import sottovoce as sv
from sottovoce.estimate.ldpmab import method
from sottovoce.estimate.ldpmab.book import LdpmabBook
from sottovoce.estimate.whisper.board import Board
from sottovoce.estimate.whisper.book import WhisperBook
from sottovoce.lab.ldpmab.policy import LdpmabPolicy
from sottovoce.lab.ldpmab.state import Crowd
from sottovoce.lab.simulate import Result
from sottovoce.lab.whisper.policy import WhisperPolicy


def state_of(learner: sv.Learner) -> method.State:
    assert isinstance(learner._book, LdpmabBook)
    return learner._book.state


def crowd_of(result: Result) -> Crowd:
    assert isinstance(result.policy, LdpmabPolicy)
    return result.policy.state


def board_of(whose: sv.Learner | Result) -> Board:
    holder = whose._book if isinstance(whose, sv.Learner) else whose.policy
    assert isinstance(holder, WhisperBook | WhisperPolicy)
    return holder.board


def copy_of(board: Board) -> Board:
    """A board that can go on without the other."""
    return Board._make(array.copy() for array in board)
