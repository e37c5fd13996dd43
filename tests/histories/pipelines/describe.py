"""Write the pipeline file of a history of one pipeline."""

from collections.abc import Iterable

from tests.histories.pipelines.events import History
from tests.histories.pipelines.orders import carried_by
from tests.histories.pipelines.stores import Place, format_of
from tests.histories.shapes.changes import TYPES
from tests.histories.shapes.verdicts import REPAIRS, REPORTS
from tests.world.pipeline_file import Settings, flow, topic
from tests.world.windows import ReconciledShop


def describe(shop: ReconciledShop, history: History, place: Place) -> None:
    """Write the pipeline file, and the schemas beside it."""
    made = format_of(history)
    for name, content in made.files.items():
        (shop.file.parent / name).write_bytes(content)
    written = [name for name in carried_by(history.record_format) if name not in history.store_columns]
    write = {} if history.store == "topic" else {"write": _typed([*_id_where_it_is_no_key(history), *written])}
    where = {} if history.where is None else {"where": f'"{history.where}"'}
    own = {} if history.of_store_hop is None else {"compare": _typed(history.of_store_hop)}
    shop.describe(
        has_ledger=history.has_ledger,
        allow_empty=True,
        compare=_typed(history.compared),
        compensation={"limits": "{share: 1.0, records_per_second: 100000}"},
        ledger_hop={"compensation": flow({**REPORTS, **({"missing": "produce"} if history.produces else {})})},
        hop={"compensation": flow(_remedies(history)), **place.hop, **write, **where, **own},
        more_points={
            "orders": topic(
                "log", shop.topic, **{**made.settings, "key": made.key if history.key == "id" else history.key}
            ),
            "warehouse": place.settings,
        },
        is_observing=True,
    )


def _remedies(history: History) -> Settings:
    if not history.is_repairing:
        return REPORTS
    return {**REPORTS, "missing": "redeliver"} if history.store == "topic" else REPAIRS


def _id_where_it_is_no_key(history: History) -> list[str]:
    return [] if history.key == "id" else ["id"]


def _typed(names: Iterable[str]) -> str:
    return flow({name: f'"{TYPES.get(name, "string")}"' for name in names})
