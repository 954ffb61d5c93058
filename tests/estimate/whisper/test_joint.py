"""All bins at once: the tree is solved as a dense system of equations would be."""

from typing import Any

import numpy as np
import pytest

from sottovoce.estimate.whisper.joint import Branches, Evidence, solve, with_functional
from sottovoce.estimate.whisper.state import Floats

CHILD, DEPTH = np.array([1, 3, 2, 3, 5, 5, 6]), np.array([0, 1, 1, 2, 2, 3, 3])
NODES, SIZE, INNER = 7, 2, (0, 1, 4)


def spread(rng: np.random.Generator, count: int) -> Floats:
    """Positive definite matrices."""
    roots = rng.normal(size=(count, SIZE, SIZE))
    return np.asarray(roots @ roots.transpose(0, 2, 1))


def problem(seed: int) -> tuple[Branches, Evidence, Floats, Floats]:
    rng = np.random.default_rng(seed)
    branches = Branches(CHILD, DEPTH, rng.random(NODES) + 0.5, rng.normal(size=NODES))
    own, loose = spread(rng, NODES), 0.1 * spread(rng, NODES)
    own[2], loose[1] = 0.0, 0.0  # a bin of which nobody has told; parts that follow exactly
    evidence = Evidence(
        own,
        rng.normal(size=(NODES, SIZE, 1)),
        spread(rng, NODES) + 0.3 * np.eye(SIZE),
        rng.normal(size=(NODES, SIZE, 1)),
        loose,
    )
    return branches, evidence, spread(rng, 1)[0], rng.normal(size=(SIZE, 1))


def dense(
    branches: Branches, evidence: Evidence, prior: Floats, sides: Floats
) -> tuple[list[Any], Any, Any]:
    """The same with one large matrix: the x of each node in the unknowns, covariance and mean."""
    places = {("x", 0): 0}
    for node in INNER:
        places |= {("s", node): len(places), ("e", node): len(places) + 1}
    unit = np.eye(len(places))
    of: dict[int, Floats] = {0: unit[0]}
    for node in INNER:
        centre = of[node] + unit[places["e", node]]
        for part in (CHILD[node], CHILD[node] + 1):
            split = branches.shift[part] * unit[places["s", node]]
            of[int(part)] = branches.kept[part] * centre + split
    maps = [np.kron(of[node][None], np.eye(SIZE)) for node in range(NODES)]
    matrix = np.zeros((len(places) * SIZE,) * 2)
    vector = np.zeros((len(matrix), 1))
    for node, each in enumerate(maps):
        matrix += each.T @ evidence.own[node] @ each
        vector += each.T @ evidence.sides[node]

    def add(place: int, precision: Floats, side: Floats) -> None:
        at = slice(place * SIZE, (place + 1) * SIZE)
        matrix[at, at] += precision
        vector[at] += side

    add(0, prior, sides)
    for node in INNER:
        add(places["s", node], evidence.split[node], evidence.split_sides[node])
        error = np.linalg.inv(evidence.loose[node] + 1e-12 * np.eye(SIZE))
        add(places["e", node], error, np.zeros((SIZE, 1)))
    covariance = np.linalg.inv(matrix)
    return maps, covariance, covariance @ vector


@pytest.mark.parametrize("seed", range(4))
def test_means_and_covariances_are_those_of_the_dense_system(seed: int) -> None:
    branches, evidence, prior, sides = problem(seed)
    found = solve(branches, evidence, prior, sides)
    maps, covariance, mean = dense(branches, evidence, prior, sides)
    for node, each in enumerate(maps):
        assert found.sides[node] == pytest.approx(each @ mean, rel=1e-4, abs=1e-5)
        expected = each @ covariance @ each.T
        assert found.covariance[node] == pytest.approx(expected, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_the_column_of_a_functional_is_the_covariance_with_it(seed: int) -> None:
    branches, evidence, prior, sides = problem(seed)
    weights = np.random.default_rng(9).normal(size=(NODES, SIZE))
    weights[list(INNER)] = 0.0
    sides_of_both = np.concatenate([sides, np.zeros_like(sides)], axis=1)
    found = solve(branches, with_functional(evidence, weights), prior, sides_of_both)
    maps, covariance, mean = dense(branches, evidence, prior, sides)
    functional = sum(weight @ each for weight, each in zip(weights, maps, strict=True))
    for node, each in enumerate(maps):
        assert found.sides[node, :, :1] == pytest.approx(each @ mean, rel=1e-4, abs=1e-5)
        expected = each @ covariance @ np.asarray(functional)
        assert found.sides[node, :, 1] == pytest.approx(expected, rel=1e-4, abs=1e-5)
