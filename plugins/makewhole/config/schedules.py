"""Compute the ends of a schedule's intervals, as Airflow's cron timetables have them. Times are in UTC."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from croniter import croniter

_ALSO = {"@quarterly": "0 0 1 */3 *"}
"""Schedules that Airflow knows by a name, and croniter does not."""
_ANY_DAY = datetime(2024, 1, 1, tzinfo=UTC)
_INTERVALS = 60


def last_end(schedule: str, before: datetime) -> datetime:
    """Return the last end of an interval of a schedule that is not after a moment."""
    moment: datetime = croniter(
        _ALSO.get(schedule, schedule), before.astimezone(UTC) + timedelta(microseconds=1)
    ).get_prev(datetime)
    return moment


def longest_interval(schedule: str) -> timedelta:
    """Return the longest of some of a schedule's intervals in a row."""
    ends = croniter(_ALSO.get(schedule, schedule), _ANY_DAY)
    moments: list[datetime] = [ends.get_next(datetime) for _ in range(_INTERVALS)]
    return max(later - earlier for earlier, later in pairwise(moments))
