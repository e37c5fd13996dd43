"""Schedule the mistakes: drawn from the seed, bounded in number, spread over the days."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from examples.flights.settings import day_after

MOST_FAULTY_DAYS = 24
BATCH = 4  # records per batch of a producer that is going to be killed
TRANSACTION = 10  # records per transaction in the evening
LOAD = 6  # records per batch of a loader that is going to be killed

MORNING_ENDS = timedelta(hours=10)  # after the airline's day began
AFTERNOON_ENDS = timedelta(hours=15)


@dataclass(frozen=True, kw_only=True)
class FaultyDay:
    """The mistakes of one day. Moments are shares, 0..1, of what the run in question has to do."""

    day: date
    morning_crash: float
    afternoon_crash: float
    evening_abort: float
    skipped: int
    losing_crash: float
    doubling_crash: float


def faulty_days(first: date, days: int, seed: int) -> list[FaultyDay]:
    """Return up to `MOST_FAULTY_DAYS` days, evenly spread; the same for the same arguments."""
    chance = random.Random(f"{seed}/{first}/{days}")
    count = min(days, MOST_FAULTY_DAYS)
    places = sorted({place * days // count for place in range(count)})
    return [
        FaultyDay(
            day=day_after(first, place),
            morning_crash=chance.uniform(0.1, 0.9),
            afternoon_crash=chance.uniform(0.1, 0.9),
            evening_abort=chance.uniform(0.1, 0.9),
            skipped=chance.randint(4, 7),
            losing_crash=chance.uniform(0.1, 0.9),
            doubling_crash=chance.uniform(0.1, 0.9),
        )
        for place in places
    ]


def quiet_stretches(first: date, days: int, faulty: Sequence[FaultyDay]) -> list[tuple[date, date]]:
    """Return the days without a mistake as half-open stretches `[start, end)`."""
    stretches = []
    start = first
    for day in [*(fault.day for fault in faulty), day_after(first, days)]:
        if start < day:
            stretches.append((start, day))
        start = day_after(day)
    return stretches
