"""Order the actions of a plan with their payloads: what moves rows aside comes before all records that are sent."""

from collections.abc import Iterator, Sequence

from makewhole.compensation.freezing.chunks import PlannedPayload
from makewhole.compensation.planning.action_draft import ActionDraft
from makewhole.lake.local_files import BatchFile
from makewhole.model.actions import Payload
from makewhole.model.closing import ClosingContext


class ItemsInOrder(ClosingContext):
    """The actions of a plan, given some at a time: those of which a part goes first come before all others. Close it
    after use."""

    def __init__(self) -> None:
        self._held = BatchFile[PlannedPayload]()

    def close(self) -> None:
        """Delete the file of what was held back."""
        self._held.close()

    def add(self, items: Sequence[tuple[ActionDraft, Payload]], *, more_may_go_first: bool) -> Iterator[PlannedPayload]:
        """Yield what comes next, and hold the rest back while later ones may go first."""
        yield from ((draft.action, payload) for draft, payload in items if draft.goes_first)
        others = [(draft.action, payload) for draft, payload in items if not draft.goes_first]
        if more_may_go_first:
            self._held.add(others)
            return
        yield from self.rest()
        yield from others

    def rest(self) -> Iterator[PlannedPayload]:
        """Yield what was held back, once."""
        for batch in self._held:
            yield from batch
        self._held.close()
        self._held = BatchFile()
