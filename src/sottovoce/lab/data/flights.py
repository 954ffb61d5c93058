"""Flights out of New York in 2013: early, on time or late (K = 3).

Newark (EWR, 116487) is the target, Kennedy (JFK, 108539) and LaGuardia (LGA, 100776) are auxiliary.
Arrivals 10 minutes before schedule and more are early, those more than 15 minutes after it late.
Only what is known before departure is used: the schedule, and the weather at that hour. Flights
without an arrival (cancelled or diverted) or without weather are left out; other gaps of the
weather stay gaps.
"""

import numpy as np

from sottovoce.lab.data.columns import Levels, strings, take, with_gaps
from sottovoce.lab.data.files import File, Wanted
from sottovoce.lab.data.prepare import Crowd

FILE = Wanted(
    ("nycflights13/nycflights13_weather.parquet",),
    "the flights of nycflights13 with the hourly weather at their origin, 336776 rows",
)

EARLY, LATE = -10, 15
NUMBERS = (
    *("sched_dep_time", "sched_arr_time", "distance", "temp", "dewp", "humid", "wind_dir"),
    *("wind_speed", "precip", "pressure", "visib"),
)
CODES = ("month", "dow", "carrier", "dest")
PLAIN = ("sched_dep_time", "month", "carrier")


def flights(file: File) -> Crowd:
    """Tell the rows apart."""
    file.require((*NUMBERS, *CODES, "origin", "arr_delay"), what="the columns of flights")
    delay = file.numbers("arr_delay")
    kept = ~(np.isnan(delay) | file.column("temp").missing())
    columns = take(
        {
            **{name: file.column(name) for name in NUMBERS},
            **{name: strings(file.column(name)) for name in CODES},
        },
        kept,
    )
    late = np.searchsorted([EARLY, LATE], delay[kept], side="left")
    origin = strings(file.column("origin")).take(kept)
    return Crowd(
        columns=columns,
        label=Levels(late.astype(np.int64), ("early", "on time", "late")),
        target=origin.codes_in(("EWR",)) == 0,
        auxiliary={name: origin.codes_in((name,)) == 0 for name in ("JFK", "LGA")},
        dropped=int((~kept).sum()),
        optional=with_gaps(columns),
    )
