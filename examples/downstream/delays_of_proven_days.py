"""Define a DAG of Airflow that computes from proven data alone: delays by day, of the pipeline `flights`.

It runs when a window is certified, and when a certificate is revoked. It goes on to where every window is certified,
does again what was revoked and certified since, and is red, and computes nothing, while what it computed is not proven.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from airflow.providers.postgres.hooks.postgres import PostgresHook
from airflow.sdk import Asset, dag, task
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

CERTIFIED = Asset(name="makewhole_flights", uri="makewhole://certified/flights")
REVOKED = Asset(name="makewhole_revoked_flights", uri="makewhole://revoked/flights")
DELAYS = Asset(name="delays_of_proven_days", uri="postgres://warehouse/airline/dw/delays_by_day")

MAKE_TABLE = "create table if not exists dw.delays_by_day (day date primary key, flights bigint, delay numeric)"
EMPTY = "delete from dw.delays_by_day where %(start)s::timestamptz is null or day >= %(start)s::timestamptz::date"
FILL = """
insert into dw.delays_by_day (day, flights, delay)
select departed_at::date, count(*), avg(dep_delay)
from dw.departures
where departed_at < %(until)s
  and (%(start)s::timestamptz is null or departed_at::date >= %(start)s::timestamptz::date)
group by departed_at::date
"""

Extra = Mapping[str, Any]


def interval_to_compute(certified: Extra | None, revoked: Sequence[Extra], computed: Extra | None) -> dict[str, Any]:
    """Return what is to be computed: `start` (None: from the beginning), `until`, and `head`, the entry of the chain
    that this rests on. Given are the newest event of certificates, those of revocations, newest first, and the last one
    of what was computed.

    Raises:
        AirflowFailException: what was computed is not proven any more, or nothing is proven yet.
        AirflowSkipException: what is proven is computed already.
    """
    proof = max([event for event in (certified, *revoked) if event is not None], key=lambda event: int(event["head"]))
    until, done = _moment(proof["verified_until"]), _moment(computed["until"]) if computed else None
    if until is None:
        raise AirflowFailException("the first window of flights is not certified: no data is proven")
    if done is not None and until < done:
        raise AirflowFailException(f"delays are computed until {done}, and flights is proven until {until} alone")
    again = [event["since"] for event in revoked if computed is None or event["head"] > computed["head"]]
    if done is not None and done == until and not again:
        raise AirflowSkipException(f"delays are computed until {until}")
    starts = [done, *(_moment(since) for since in again)]
    start = None if None in starts else min(moment for moment in starts if moment is not None)
    return {"start": None if start is None else start.isoformat(), "until": until.isoformat(), "head": proof["head"]}


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _extras(events: Any, limit: int) -> list[Extra]:
    """Return what the newest events of an asset say, newest first."""
    newest: Iterable[Any] = events.ascending(False).limit(limit)
    return [event.extra for event in newest]


@dag(schedule=CERTIFIED | REVOKED, start_date=datetime(2013, 1, 1), catchup=False, max_active_runs=1, tags=["example"])
def delays_of_proven_days() -> None:
    """Wire the two tasks."""

    @task(inlets=[CERTIFIED, REVOKED, DELAYS])
    def choose(*, inlet_events: Any = None) -> dict[str, Any]:
        """Choose the interval that is proven, and not computed yet or not as it is now."""
        certified, computed = _extras(inlet_events[CERTIFIED], 1), _extras(inlet_events[DELAYS], 1)
        revoked = _extras(inlet_events[REVOKED], 100)
        return interval_to_compute(next(iter(certified), None), revoked, next(iter(computed), None))

    @task(outlets=[DELAYS])
    def compute(interval: Any, *, outlet_events: Any = None) -> None:
        """Compute the interval in one transaction, and note how far that is."""
        PostgresHook("local_postgres").run([MAKE_TABLE, EMPTY, FILL], parameters=interval, autocommit=False)
        outlet_events[DELAYS].extra = interval

    compute(choose())


delays_of_proven_days()
