"""New York's green taxis, January to November 2022: card or cash.

In place of the paper's TAXI (Chicago), which is not public here. Two splits:

    vendor   trips recorded by the meters of vendor 2 (546937) and vendor 1 (80665): who comes
             differs, and how they pay hardly does
    street   hailed in the street (609691) and by dispatch (17909): how they pay differs too, so
             that auxiliary data can do harm

Trips are left out whose distance lies outside of 0.01 to 60 miles, duration outside of 30 seconds
to 3 hours, or fare outside of 2 to 200 dollars. Only what is known before payment is used: tips are
recorded for cards alone, and would give the label away.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from sottovoce.lab.data.columns import Columns, Levels, Numbers, Rows, strings, take
from sottovoce.lab.data.files import File, Wanted
from sottovoce.lab.data.prepare import Crowd

FILE = Wanted(
    ("nyc_green_taxi_2022/green_taxi_2022_01_11_card_cash.parquet",),
    "green_tripdata_2022-01 to -11 of the NYC Taxi & Limousine Commission as one table, card and "
    "cash payments only, 679926 rows",
)

SPLITS = {"vendor": ("vendor_id", 2, 1), "street": ("trip_type", 1, 2)}
# Columns that tell the two sides apart place nobody: nearly all dispatched trips have a negotiated
# fare (rate code 5) without the tax and extras of metered ones, and hardly any hailed trip has.
LEFT_OUT = {
    "vendor": ("vendor_id",),
    "street": ("trip_type", "ratecode_id", "mta_tax", "extra"),
}
NAMES = {"vendor": "vendor 1", "street": "dispatch"}

NUMBERS = (
    *("trip_seconds", "passenger_count", "trip_distance", "fare_amount", "extra", "tolls_amount"),
    *("congestion_surcharge", "mta_tax"),
)
CODES = ("ratecode_id", "trip_type", "vendor_id", "store_and_fwd_flag", "pu_borough", "do_borough")
PLACES = ("pu_location", "do_location")
PLAIN = ("pu_location", "do_location", "hour")


def green_taxi(file: File, *, split: Literal["vendor", "street"] = "vendor") -> Crowd:
    """Tell the rows apart."""
    names = (*NUMBERS, *CODES, *PLACES, "pickup", "payment_type")
    file.require(names, what="the columns of green-taxi")
    group, target, other = SPLITS[split]
    sides = file.numbers(group)
    kept = plausible(file) & np.isin(sides, [target, other])
    columns = take(covariates(file, without=LEFT_OUT[split]), kept)
    paid = file.column("payment_type").take(kept)
    return Crowd(
        columns=columns,
        label=Levels(strings(paid).codes, ("card", "cash")),
        target=sides[kept] == target,
        auxiliary={NAMES[split]: sides[kept] == other},
    )


def plausible(file: File) -> Rows:
    """Return the trips that are not left out."""
    bounds = {"trip_distance": (0.01, 60), "trip_seconds": (30, 3 * 3600), "fare_amount": (2, 200)}
    # Distances are kept in single precision, in which 0.01 is a little less than 0.01.
    inside = [
        (values >= np.float32(low)) & (values <= np.float32(high))
        for values, (low, high) in ((file.numbers(name), both) for name, both in bounds.items())
    ]
    return np.asarray(np.logical_and.reduce(inside))


def covariates(file: File, *, without: Sequence[str] = ()) -> Columns:
    """Return what is known of every trip before it is paid."""
    numbers = {name: file.column(name) for name in NUMBERS if name not in without}
    codes = {name: strings(file.column(name)) for name in (*CODES, *PLACES) if name not in without}
    hours = file.numbers("pickup") / 3600
    return {
        **numbers,
        **codes,
        "hour": Numbers(np.floor(hours) % 24),
        # The first of January 1970 was a Thursday; 0 is Monday.
        "weekday": strings(Numbers((np.floor(hours / 24) + 3) % 7)),
    }
