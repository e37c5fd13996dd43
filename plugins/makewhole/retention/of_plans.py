"""Remove what an ended plan left: rows that it moved aside; its effects and receipts, and its payloads."""

from collections.abc import Collection, Mapping

from makewhole.compensation.execution.attempt import Attempt
from makewhole.journal import plans
from makewhole.journal.retention import removable, removals
from makewhole.journal.retention.removable import EndedPlan
from makewhole.journal.retention.removals import Amount
from makewhole.kinds import tables_of
from makewhole.lake.storage import StoredFile
from makewhole.model.errors import PermanentError, RefusedError
from makewhole.model.points import TablePoint, can_look_up
from makewhole.model.retention import Kept
from makewhole.retention.house import House, Outcome
from makewhole.tables.receipts import KeptAtTarget


def remove_of_plan(house: House, kind: Kept, plan: EndedPlan) -> Outcome:
    """Decide to remove a kind of a plan's, remove it at every target, and note that it is gone; return how much it was.
    What a target does not let go is named, and tried again by the next run."""
    try:
        return Outcome(kind=kind, window=plan.number, plan=plan.id, amount=_remove(house, kind, plan))
    except PermanentError as error:
        return Outcome(kind=kind, window=plan.number, plan=plan.id, stays=str(error))


def _remove(house: House, kind: Kept, plan: EndedPlan) -> Amount:
    known = _targets(house, plan)
    counted = {name: _kept(house, plan, name, point) for name, point in known.items()}
    kept = {name: of_target for name, of_target in counted.items() if of_target is not None}
    targets = {name: known[name] for name in kept}
    _require_returned(house, kind, plan, kept, known.keys() - kept.keys())
    files = _payloads(house, plan) if kind is Kept.EFFECTS else []
    amount = Amount(
        files=len(files),
        size_bytes=sum(file.size_bytes for file in files),
        rows=sum(of_target.aside if kind is Kept.QUARANTINE else of_target.effects for of_target in kept.values()),
    )
    if house.is_dry:
        return amount
    with Attempt(house.journal, plan.id, holder=f"housekeeping of {plan.id}") as attempt:
        with attempt.leased() as journal:
            plans.get_plan(journal, plan.id, is_locked=True)
            if not removals.decide_of_plan(journal, plan.id, kind, house.kept(kind), amount):
                raise RefusedError(f"an undo of plan {plan.id} waits or runs")
        for name, point in targets.items():
            tables = tables_of(house.connections[point.connection])
            with tables.writer(point, f"removing what plan {plan.id} left at {point.table}") as writer:
                writer.forget(plan.id, name, attempt.epoch, only_rows_aside=kind is Kept.QUARANTINE)
        for file in files:
            house.storage.remove(file.path)
        with attempt.leased() as journal:
            removals.done_of_plan(journal, plan.id, kind)
    return amount


def _targets(house: House, plan: EndedPlan) -> dict[str, TablePoint]:
    """Return the tables that have receipts of a plan, by name; records stay in their topics.

    Raises:
        RefusedError: the file has one of them no more.
    """
    points = {}
    for name in plan.targets:
        point = house.pipeline.points.get(name)
        if point is None or point.connection not in house.connections:
            raise RefusedError(
                f"{name} is no point of {house.pipeline.name} any more, or its connection is not known: what plan "
                f"{plan.id} left there stays until it is in the file again"
            )
        if can_look_up(point):
            points[name] = point
    return points


def _kept(house: House, plan: EndedPlan, name: str, point: TablePoint) -> KeptAtTarget | None:
    """Return what a target keeps of a plan; None: it is kept for good, as its system takes nothing back."""
    with tables_of(house.connections[point.connection]).writer(point, f"counting what {plan.id} left") as writer:
        return writer.kept(plan.id, name)


def _require_returned(
    house: House, kind: Kept, plan: EndedPlan, kept: Mapping[str, KeptAtTarget], for_good: Collection[str]
) -> None:
    """Keep the effects of a plan as long as rows that it moved aside: without them no row finds its way back.

    Raises:
        RefusedError: such rows are kept.
    """
    if kind is not Kept.EFFECTS:
        return
    with house.journal.transaction() as journal:
        waiting = sum(of_target.waiting for of_target in kept.values())
        waiting += removable.moved_aside(journal, plan.id, for_good)
        is_given_up = any(done.kind is Kept.QUARANTINE for done in removals.of_plan(journal, plan.id))
    if waiting and not is_given_up:
        raise RefusedError(
            f"plan {plan.id} moved {waiting} rows aside, which are kept: their way back needs its effects. Write "
            "`quarantine` in `keep` as well, or put them back"
        )


def _payloads(house: House, plan: EndedPlan) -> list[StoredFile]:
    """Return the file with the payloads of a plan, if it is there."""
    folder = f"{house.pipeline.name}/window={plan.number}/revision={plan.revision}"
    return [file for file in house.storage.files_below(folder) if house.storage.uri(file.path) == plan.payload_uri]
