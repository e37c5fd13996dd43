"""Acquire, renew and release leases: one runner at a time per resource, with an epoch that fences earlier runners."""

from dataclasses import dataclass

from makewhole.model.errors import LeaseLostError, TransientError
from makewhole.sql import PgConnection, statements_of

_run = statements_of("lease")


@dataclass(frozen=True, kw_only=True)
class Lease:
    """The lease of a runner on a resource. It expires by the journal's clock."""

    resource: str
    holder: str
    epoch: int
    seconds: float


def acquire(journal: PgConnection, resource: str, holder: str, seconds: float) -> Lease:
    """Take the lease. Under the same `holder` it is taken over at once: the epoch fences the old runner.

    Raises:
        TransientError: another runner holds it; the message says who and until when.
    """
    parameters = {"resource": resource, "holder": holder, "seconds": seconds}
    for (epoch,) in _run(journal, "acquire_lease", **parameters):
        return Lease(resource=resource, holder=holder, epoch=epoch, seconds=seconds)
    other = next(iter(_run(journal, "lease_of", **parameters)), None)
    who = f"{other.holder} until {other.expires_at:%H:%M:%S} UTC" if other else "another runner"
    raise TransientError(f"{resource} is being worked on by {who}; wait for it to end, or try again after that")


def renew(journal: PgConnection, lease: Lease) -> None:
    """Extend the lease; its row stays locked until the transaction ends, so what is written with it is fenced.

    Raises:
        LeaseLostError: another runner took over.
    """
    if not _run(journal, "renew_lease", **_parameters(lease)):
        raise LeaseLostError(f"{lease.resource}: another runner took over from {lease.holder}; this one stops")


def release(journal: PgConnection, lease: Lease) -> None:
    """Free the lease for the next runner at once. Harmless when the lease is lost already."""
    _run(journal, "release_lease", **_parameters(lease))


def _parameters(lease: Lease) -> dict[str, object]:
    return {"resource": lease.resource, "epoch": lease.epoch, "seconds": lease.seconds}
