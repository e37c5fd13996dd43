"""Find what weakens the delivery into an Iceberg table in the table's own properties."""

from collections.abc import Iterator, Mapping

from makewhole.model.delivery.claims import TableClaim
from makewhole.model.delivery.weaknesses import Fault, Severity, Weakness
from makewhole.model.text import duration

_RETRIES, _LEAST_RETRIES = "commit.retry.num-retries", 4
_AGE, _DEFAULT_AGE_MS = "history.expire.max-snapshot-age-ms", 432_000_000


def weak_properties(name: str, properties: Mapping[str, str], claim: TableClaim) -> Iterator[Weakness]:
    """Yield the properties of a table that are too little for what is claimed of it. Iceberg's own defaults (4 tries,
    5 days) are taken where it has none."""
    if not claim.forbids_loss:
        return
    retries = _number(properties, _RETRIES, _LEAST_RETRIES)
    if retries < _LEAST_RETRIES:
        yield Weakness(
            severity=Severity.RISK,
            thing=f"table {name}",
            setting=_RETRIES,
            value=str(retries),
            expected=f"at least {_LEAST_RETRIES}",
            because="a commit that meets another one is given up, and its files are in no snapshot",
            remedy=f"alter table {name} set tblproperties ('{_RETRIES}' = '{_LEAST_RETRIES}')",
            fault=Fault.COMMITTED_FIRST,
        )
    age, least = _number(properties, _AGE, _DEFAULT_AGE_MS), int(claim.needed.total_seconds() * 1000)
    if age < least:
        yield Weakness(
            severity=Severity.BROKEN,
            thing=f"table {name}",
            setting=_AGE,
            value=duration(age),
            expected=f"at least {duration(least)}",
            because="how far its sink has come is in its snapshots, which are gone before their window is judged",
            remedy=f"alter table {name} set tblproperties ('{_AGE}' = '{least}')",
            fault=Fault.SNAPSHOTS_EXPIRED,
        )


def _number(properties: Mapping[str, str], name: str, default: int) -> int:
    """Return a property as a number. What is none counts as the default, as Iceberg's own readers refuse it."""
    try:
        return int(properties.get(name, default))
    except ValueError:
        return default
