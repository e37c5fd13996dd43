"""Find how far a standby has replayed what its primary committed. A primary lags behind nothing."""

from datetime import UTC, datetime

from makewhole.model.connection import PostgresConnection
from makewhole.postgres.connect import connect
from makewhole.sql import statements_of

_run = statements_of("export")


def lags_behind(connection: PostgresConnection, moment: datetime) -> str | None:
    """Return why rows that were committed before a moment may not be there yet; None: they are.

    A standby that has replayed all that it received, and is connected to its primary, is up to date but for what is on
    its way to it. Otherwise it is as of the last transaction that it replayed, by the primary's clock: one that is cut
    off from an idle primary cannot be distinguished from one that lags, and is held to lag.
    """
    with connect(connection, "asking how far it has replayed its primary") as session:
        (replayed,) = _run(session, "replayed")
    if not replayed.is_standby or replayed.is_current:
        return None
    if replayed.moment is not None and replayed.moment > moment:
        return None
    reached = "nothing since it started" if replayed.moment is None else f"no more than until {_text(replayed.moment)}"
    return (
        f"the PostgreSQL of connection {connection.id} is a standby that has replayed {reached}, and an absence counts "
        f"from {_text(moment)} on. It is asked again; name its primary in the connection if it stays behind "
        "(recovery_min_apply_delay), or is cut off"
    )


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
