"""What SQLite and PostgreSQL do each in their own way, and the expression must not."""

import math
import random
import re
import sqlite3
from contextlib import closing
from typing import Any

import psycopg
import pytest

import sottovoce as sv
from sottovoce.device.policy.python_text import python_text
from sottovoce.device.policy.sql_text import sql_text
from sottovoce.shared.partition import Partition
from support.databases import cluster
from support.policies import HOSTILE, by_policy, experiment, identifier, query, released

HALVES = ("low", "high")


def halves(feature: Any, *, places: frozenset[int] | None = None) -> sv.Policy:
    """Everybody below the middle, or of other levels, gets one arm, and the others the other."""
    of = sv.Experiment(arms=HALVES, context=[feature], epsilon=1.0)
    levels = of.settings.levels_in_sets(of)
    sets = {} if places is None else {"": places}
    partition = Partition(of.dimension, {"": 0}, levels if any(levels) else (), sets)
    bins = (sv.BinPolicy("0", (0,), (1.0,)), sv.BinPolicy("1", (1,), (1.0,)))
    return sv.Policy(sv.Release(of, 1, partition, bins))


def sqlite(policy: sv.Policy, column: str, *values: Any) -> list[Any]:
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(f"CREATE TABLE people (row_number INT, {column})")
        database.executemany("INSERT INTO people VALUES (?, ?)", enumerate(values))
        return [arm for (arm,) in database.execute(query(policy))]


def postgresql(policy: sv.Policy, column: str, *values: Any) -> list[Any]:
    with psycopg.connect(cluster().url()) as connection:
        connection.execute(f"CREATE TEMPORARY TABLE people (row_number INT, {column})".encode())
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO people VALUES (%s, %s)", [*enumerate(values)])
        found = [arm for (arm,) in connection.execute(query(policy).encode())]
        connection.rollback()
        return found


def test_large_whole_numbers_are_rounded_as_a_device_rounds_them() -> None:
    policy = halves(sv.Numeric("n", 0, 2**60))
    near = [2**59 + each for each in range(-200, 200)]
    expected = [by_policy(policy, {"n": each}) for each in near]
    assert len(set(expected)) == 2
    assert expected.index("high") < 200  # some below the middle are rounded up to it
    assert sqlite(policy, '"n" INTEGER', *near) == expected
    assert postgresql(policy, '"n" BIGINT', *near) == expected


@pytest.mark.parametrize("kind", ["SMALLINT", "INTEGER", "BIGINT", "REAL", "NUMERIC", "FLOAT8"])
def test_every_kind_of_number_will_do(kind: str) -> None:
    policy = halves(sv.Numeric("n", 0, 100, optional=True))
    values = [49, 50, -5, 1000, None]
    expected = ["low", "high", "low", "high", "low"]
    assert postgresql(policy, f'"n" {kind}', *values) == expected
    assert sqlite(policy, f'"n" {kind}', *values) == expected


def test_nan_and_infinity_in_postgresql_are_as_on_a_device() -> None:
    optional, needed = (sv.Numeric("n", 0, 100, optional=each) for each in (True, False))
    values = [float("nan"), float("inf"), float("-inf")]
    for kind in ("DOUBLE PRECISION", "REAL", "NUMERIC"):
        assert postgresql(halves(optional), f'"n" {kind}', *values) == ["low", None, None]
        assert postgresql(halves(needed), f'"n" {kind}', *values) == [None, None, None]
    assert sqlite(halves(optional), '"n" DOUBLE', *values) == ["low", None, None]


@pytest.mark.parametrize("optional", [True, False])
@pytest.mark.parametrize("column", ['"n" DOUBLE', '"n"', '"n" TEXT'])
def test_text_in_place_of_a_number_fits_nobody_in_sqlite(column: str, optional: bool) -> None:
    policy = halves(sv.Numeric("n", 0, 100, optional=optional))
    assert sqlite(policy, column, "many", "", b"60") == [None, None, None]


def test_truth_values_will_do_as_each_database_has_them() -> None:
    policy = halves(sv.Boolean("b"))
    assert sqlite(policy, '"b" BOOLEAN', False, True, 2, None) == ["low", "high", None, None]
    assert postgresql(policy, '"b" BOOLEAN', False, True, None) == ["low", "high", None]


def test_levels_are_compared_letter_by_letter_whatever_the_column_says() -> None:
    policy = halves(sv.Categorical("c", ("Rome", "Oslo", "Lima")), places=frozenset({1, 2}))
    values = ["Rome", "Oslo", "rome", "Rome ", "Lima"]
    expected = ["low", "high", None, None, "high"]
    assert sqlite(policy, '"c" TEXT COLLATE NOCASE', *values) == expected
    assert sqlite(policy, '"c" TEXT COLLATE RTRIM', *values) == expected
    assert postgresql(policy, '"c" TEXT', *values) == expected
    assert postgresql(policy, '"c" VARCHAR(20)', *values) == expected


def test_a_column_that_is_not_there_is_an_error_in_both() -> None:
    policy = halves(sv.Categorical("c", ("Rome", "Oslo", "c"), other=True), places=frozenset({1}))
    with pytest.raises(sqlite3.OperationalError, match="no such column"):
        sqlite(policy, '"d" TEXT', "Rome")
    with pytest.raises(psycopg.errors.UndefinedColumn):
        postgresql(policy, '"d" TEXT', "Rome")


@pytest.mark.parametrize("name", HOSTILE)
def test_any_name_of_a_table_is_only_a_name(name: str) -> None:
    policy = halves(sv.Numeric("n", 0, 100))
    text = sql_text(policy, table=name)
    whole = f"SELECT {text} FROM people AS {identifier(name)}"  # noqa: S608
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute('CREATE TABLE people ("n" DOUBLE)')
        database.execute("INSERT INTO people VALUES (60)")
        assert database.execute(whole).fetchall() == [("high",)]


def test_every_number_in_the_expression_is_read_exactly_by_everybody() -> None:
    rng = random.Random(4)
    for _ in range(20):
        text = sql_text(sv.Policy(released(experiment(), rng)), table="person")
        bare = re.sub(r"/\*.*?\*/|--.*|'[^']*'", "", text)
        for number in re.findall(r">= (-?[\d.]+(?:e\S+)?)", bare):
            digits = number.strip("-").replace(".", "")
            numerator, denominator = float(number).as_integer_ratio()
            places = len(number.partition(".")[2])
            assert len(digits) <= 15
            assert numerator * 10**places == int(number.replace(".", "")) * denominator


def test_cuts_at_the_ends_of_the_doubles_are_read_exactly() -> None:
    for low, high in [(0.0, 5e-324), (1e-310, 3e-310), (0.0, 1.7e308), (-1e308, 0.5e308)]:
        policy = halves(sv.Numeric("n", low, high))
        (cut,) = map(float, re.findall(r" n < (\S+):", python_text(policy)))
        values = [cut, math.nextafter(cut, -math.inf), math.nextafter(cut, math.inf), low, high]
        expected = [by_policy(policy, {"n": each}) for each in values]
        assert expected[:2] == ["high", "low"]
        assert sqlite(policy, '"n" DOUBLE', *values) == expected
        assert postgresql(policy, '"n" DOUBLE PRECISION', *values) == expected
