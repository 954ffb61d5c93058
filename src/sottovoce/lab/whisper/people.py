"""The people who come: which bin they are in, which arm they get, what they answer.

Everybody answers one by one, with the law of a device's report; the answers are then added up
and handed to the learner's rules at each release.
"""

import numpy as np

from sottovoce.estimate.whisper import answers as plain_answers
from sottovoce.estimate.whisper import audit as plain_audit
from sottovoce.estimate.whisper import kin as plain_kin
from sottovoce.estimate.whisper import rules as plain_rules
from sottovoce.estimate.whisper.answers import CONTRAST, COUNT, LEVEL, MASS, OUTCOME, RANKED, TONE
from sottovoce.estimate.whisper.board import Board
from sottovoce.estimate.whisper.constants import Constants
from sottovoce.estimate.whisper.places import ASKED, CONTESTED, NODES, REPORTS, SERVED, WORTH
from sottovoce.lab.compiled import compile_rules, compiled, inlined
from sottovoce.lab.driver import compile_loop
from sottovoce.lab.environments import People, Rows
from sottovoce.lab.whisper.draws import answer
from sottovoce.lab.whisper.tables import (
    CELLS,
    ELSEWHERE,
    HALVES,
    INSIDE,
    NOISE,
    SIGNAL,
    VARIANCE,
    Answers,
    Counts,
    Crowd,
    Fixed,
    Floats,
)
from sottovoce.shared.shares import (
    COUNT_SHARE,
    COUNT_SHARE_UNKNOWN,
    FEATURE_SHARE,
    LEVEL_SHARE,
    LOGGED_FEATURE_SHARE,
    MASS_SHARE,
    SHARES,
    TONE_SHARE,
)

_rules = compile_rules(plain_answers, plain_audit, plain_kin, plain_rules, inline=False)
fold, vote, credit = (
    _rules[rule] for rule in (plain_answers.fold, plain_rules.vote, plain_answers.credit)
)
audit, decide = _rules[plain_audit.audit], _rules[plain_rules.step]


@inlined
def home(board: Board, point: Floats) -> int:
    """Return the leaf that holds a point."""
    node = 0
    while board.child[node] != node:
        node = board.child[node] + (point[board.axis[node]] >= board.middle[node])
    return node


@inlined
def draw_kind(
    usual: int, rare: int, share: int, other: int, other_share: int, rng: np.random.Generator
) -> int:
    """Draw what is asked, as a device does: of some people ``rare``, of some ``other``."""
    coin = int(rng.random() * SHARES)
    if coin < share:
        return rare
    return other if coin < share + other_share else usual


@inlined
def draw_place(features: int, d: int, rng: np.random.Generator) -> int:
    """Draw 0, or 1 + the feature that is asked about, as ``features`` of SHARES are."""
    return 1 + int(rng.random() * d) if int(rng.random() * SHARES) < features else 0


@inlined
def sign_of(people: People | Rows, i: int, arm: int, rng: np.random.Generator) -> float:
    """Draw the outcome of a person's arm, rounded at random to a sign."""
    good = people.outcomes[i, arm] if len(people.outcomes) > 0 else people.means[i, arm]
    return 1.0 if rng.random() < good else -1.0


@inlined
def locate(
    board: Board, node: int, point: Floats, cell: int, value: float, place: int, halves: bool
) -> tuple[int, float]:
    """Turn a whole cell into its half, or the sign of the value, where a feature is asked about."""
    if place == 0 or cell < 0:
        return cell, value
    low, high = board.edges[node, place - 1, 0], board.edges[node, place - 1, 1]
    upper = point[place - 1] >= (low + high) / 2.0
    if halves:
        return 2 * cell + upper, value
    return cell, value if upper else -value


@compiled
def lay_out(board: Board, answers: Answers) -> tuple[int, int]:
    """Give every contested node its cells; return how many whole ones there are, and by arm."""
    bins, pairs = 0, 0
    for position in range(board.totals[CONTESTED]):
        node = board.contested[position]
        answers.first[node, 0], answers.first[node, 1] = bins, pairs
        bins += 1
        pairs += board.live[node].sum()
    return bins, pairs


@inlined
def is_by_arm(kind: int, constants: Constants) -> bool:
    """Say whether each arm of a bin has a cell of its own, as ``shared.questions`` does."""
    return kind == COUNT or (kind == OUTCOME and constants.arms > 2)


@compiled
def hand_over(
    board: Board, constants: Constants, answers: Answers, law: Floats, population: int, by_arm: bool
) -> None:
    """Fold one population's answers about whole bins, or by arm, into the board; forget them."""
    places = 1 + constants.dimension
    for question in range(len(answers.asked)):
        asked = answers.asked[question]
        kind, place = question // places, question % places
        if asked == 0 or is_by_arm(kind, constants) != by_arm:
            continue
        sums = answers.sums[question]
        for position in range(board.totals[CONTESTED]):
            node = board.contested[position]
            cell = answers.first[node, int(by_arm)]
            for k in range(constants.arms if by_arm else 1):
                if by_arm and not board.live[node, k]:
                    continue
                if law[HALVES] > 0.0:
                    whole = sums[2 * cell] + sums[2 * cell + 1]
                    difference = sums[2 * cell + 1] - sums[2 * cell]
                else:
                    whole = difference = sums[cell]
                first, second = board.pair[node, 0], board.pair[node, 1]
                if question == 0 and population == 0 and constants.certified:
                    vote(board, node, first, second, int(answers.named[cell]), int(whole))
                fold(
                    board,
                    constants,
                    node,
                    population,
                    kind,
                    place,
                    k if by_arm else first,
                    second,
                    float(asked),
                    whole,
                    difference,
                    law[SIGNAL],
                    law[NOISE],
                    law[INSIDE],
                    law[HALVES] > 0.0,
                )
                cell += 1
        sums[: int(law[CELLS])] = 0.0
        answers.asked[question] = 0
    answers.named[: int(law[CELLS])] = 0.0


@compiled
def probabilities(crowd: Crowd, fixed: Fixed, points: Floats, out: Floats) -> None:
    """Fill in the chance of each arm at each point, (P, K)."""
    board, constants = crowd.board, fixed.constants
    out[:] = 0.0
    for p in range(len(points)):
        node = home(board, points[p])
        if constants.public_arms:
            live = board.live[node].sum()
            for k in range(constants.arms):
                out[p, k] = board.live[node, k] / live
        else:
            out[p, board.pair[node, 0]] += 0.5
            out[p, board.pair[node, 1]] += 0.5


@compiled
def serve(
    crowd: Crowd,
    fixed: Fixed,
    people: People,
    start: int,
    stop: int,
    arms: Counts,
    rng: np.random.Generator,
) -> None:
    """Let target users come."""
    board, answers = crowd.board, crowd.answers
    constants, reward_law, ranking = fixed.constants, fixed.reward_law, fixed.ranking
    single = answers.single
    d = constants.dimension
    cells, _ = lay_out(board, answers)
    law = fixed.laws[cells]
    halves = law[HALVES] > 0.0
    features = SHARES if halves else FEATURE_SHARE
    for i in range(start, stop):
        node = home(board, people.contexts[i])
        cell = -1
        if board.pair[node, 0] != board.pair[node, 1]:
            cell = answers.first[node, 0]
        place = draw_place(features, d, rng)
        if constants.public_arms:
            kind = draw_kind(RANKED, MASS, MASS_SHARE, LEVEL, 0, rng)
            for k in range(constants.arms - 1, 0, -1):
                other = int(rng.random() * (k + 1))
                ranking[k], ranking[other] = ranking[other], ranking[k]
            arm = first_live(board, node, ranking)
        else:
            kind = draw_kind(CONTRAST, MASS, MASS_SHARE, LEVEL, LEVEL_SHARE, rng)
            arm = board.pair[node, int(rng.random() < 0.5)]
        arms[i] = arm
        if constants.audited and int(rng.random() * SHARES) < board.totals[ASKED]:
            value = sign_of(people, i, arm, rng)
            answers.told[0] += 1.0
            answer(reward_law, 0, value, answers.told[1:], answers.order, answers.picks, rng)
            continue
        if cells == 0:
            continue
        value = 1.0
        if cell >= 0 and kind != MASS:
            value = sign_of(people, i, arm, rng)
            if kind == CONTRAST and arm == board.pair[node, 1]:
                value = -value
        cell, value = locate(board, node, people.contexts[i], cell, value, place, halves)
        if kind == RANKED:
            single[: int(law[CELLS])] = 0.0
            answer(law, cell, value, single, answers.order, answers.picks, rng)
            fold_ranked(board, constants, answers, law, place, ranking, single)
            continue
        question = kind * (1 + d) + place
        answers.asked[question] += 1
        if question == 0 and constants.certified:
            single[:cells] = 0.0
            answer(law, cell, value, single, answers.order, answers.picks, rng)
            for each in range(cells):
                answers.sums[0, each] += single[each]
                answers.named[each] += abs(single[each])
        else:
            sums = answers.sums[question]
            answer(law, cell, value, sums, answers.order, answers.picks, rng)
    if cells > 0:
        hand_over(board, constants, answers, law, 0, False)
    if answers.told[0] > 0.0:
        audit(board, answers.told[0], answers.told[1] / reward_law[SIGNAL])
        answers.told[:] = 0.0
    board.experience[:] += stop - start
    board.totals[REPORTS] += stop - start
    board.totals[SERVED] += stop - start


@inlined
def first_live(board: Board, node: int, ranking: Counts) -> int:
    """Return the first live arm of a bin in a ranking."""
    place = 0
    while not board.live[node, ranking[place]]:
        place += 1
    arm: int = ranking[place]
    return arm


@compiled
def fold_ranked(
    board: Board,
    constants: Constants,
    answers: Answers,
    law: Floats,
    place: int,
    ranking: Counts,
    values: Floats,
) -> None:
    """Fold one answer of somebody whose arm is public: each bin learns of its own arm."""
    for position in range(board.totals[CONTESTED]):
        node = board.contested[position]
        cell = answers.first[node, 0]
        whole = difference = values[cell]
        if law[HALVES] > 0.0:
            whole = values[2 * cell] + values[2 * cell + 1]
            difference = values[2 * cell + 1] - values[2 * cell]
        fold(
            board,
            constants,
            node,
            0,
            RANKED,
            place,
            first_live(board, node, ranking),
            0,
            1.0,
            whole,
            difference,
            law[SIGNAL],
            law[NOISE],
            law[INSIDE],
            law[HALVES] > 0.0,
        )


@compiled
def contribute(
    crowd: Crowd,
    fixed: Fixed,
    rows: Rows,
    start: int,
    stop: int,
    population: int,
    rng: np.random.Generator,
) -> None:
    """Let the rows of a log come."""
    board, answers, constants = crowd.board, crowd.answers, fixed.constants
    counts = COUNT_SHARE if constants.known[population] else COUNT_SHARE_UNKNOWN
    tones = TONE_SHARE if constants.arms == 2 else 0
    d = constants.dimension
    board.totals[REPORTS] += stop - start
    cells, pairs = lay_out(board, answers)
    if cells == 0:
        return
    whole_law, arm_law = fixed.laws[cells], fixed.laws[pairs]
    for i in range(start, stop):
        node = home(board, rows.contexts[i])
        arm = rows.arms[i]
        kind = draw_kind(OUTCOME, COUNT, counts, TONE, tones, rng)
        by_arm = is_by_arm(kind, constants)
        law = arm_law if by_arm else whole_law
        halves = law[HALVES] > 0.0
        features = LOGGED_FEATURE_SHARE if law[ELSEWHERE] == 0.0 else FEATURE_SHARE
        place = draw_place(SHARES if halves else features, d, rng)
        cell, value = -1, 1.0
        if board.pair[node, 0] != board.pair[node, 1] and board.live[node, arm]:
            cell = answers.first[node, int(by_arm)]
            if by_arm:
                cell += board.live[node, :arm].sum()
            if kind != COUNT:
                value = sign_of(rows, i, arm, rng)
            if kind == OUTCOME and not by_arm and arm == 1:
                value = -value
        cell, value = locate(board, node, rows.contexts[i], cell, value, place, halves)
        question = kind * (1 + d) + place
        answers.asked[question] += 1
        answer(law, cell, value, answers.sums[question], answers.order, answers.picks, rng)
    hand_over(board, constants, answers, whole_law, population, False)
    hand_over(board, constants, answers, arm_law, population, True)
    own = arm_law if is_by_arm(OUTCOME, constants) else whole_law
    usual = fixed.target_laws[board.totals[CONTESTED], VARIANCE]
    unit = credit(constants, usual, own[VARIANCE], True)
    board.experience[WORTH] += unit * (stop - start)


@compiled
def step(crowd: Crowd, fixed: Fixed, rng: np.random.Generator) -> None:
    """Let the learner decide, by its own rules."""
    decide(crowd.board, fixed.constants)


@inlined
def has_room(crowd: Crowd) -> bool:
    """Say whether every contested bin can be cut."""
    totals = crowd.board.totals
    enough: bool = totals[NODES] + 2 * totals[CONTESTED] <= len(crowd.board.axis)
    return enough


LOOP = compile_loop(
    "whisper",
    serve=serve,
    probabilities=probabilities,
    contribute=contribute,
    step=step,
    has_room=has_room,
)
