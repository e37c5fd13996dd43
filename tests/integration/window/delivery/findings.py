"""Ask what is found of a claimed delivery."""

from makewhole.model.delivery.weaknesses import Severity
from makewhole.window.context import connections_of
from makewhole.window.delivery.examine import Examination, examine
from tests.world.windows import ReconciledShop

Broken = tuple[Severity, str]
BROKEN, RISK, UNKNOWN = Severity.BROKEN, Severity.RISK, Severity.UNKNOWN
RIGHT = {"min.insync.replicas": "2"}
"""The settings of a topic on which a claim can rest."""


def examined(shop: ReconciledShop) -> Examination:
    return examine(shop.pipeline, connections_of(shop.pipeline))


def found(shop: ReconciledShop) -> list[Broken]:
    """Return severity and setting of what is found; everything could be asked."""
    answer = examined(shop)
    assert answer.problems == ()
    return [(weakness.severity, weakness.setting) for weakness in answer.weaknesses]


def claim(shop: ReconciledShop, delivery: str, **hop: str) -> None:
    """Have all hops of the pipeline claim a delivery."""
    group = {"consumer_group": shop.topic}
    shop.describe(hop=group | {"delivery": delivery} | hop, ledger_hop={"delivery": delivery})
