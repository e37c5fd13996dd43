"""Define what the scenarios start from: the time, the orders and their mistakes, the pipeline files.

A scenario uses the service as people do, on a shop of its own, and keeps what was seen for the tests. Scenarios run
side by side, since a run mostly waits. Nothing is asserted in them but that a run ends as it should.
"""

from datetime import UTC, datetime, timedelta

from tests.e2e.cable import far_database
from tests.e2e.shop import Mistakes, shop_file
from tests.e2e.stage import utc

ORDERS = 120
STARTED = datetime.now(UTC).replace(second=0, microsecond=0)
"""The minute in which the tests began: its daily schedule has an interval that has just ended."""
DAY = timedelta(days=1)
FIRST_DAY = datetime(2025, 3, 1, tzinfo=UTC)
MISTAKES = Mistakes(never_sent=(7, 80), sent_twice=(33,), never_loaded=(11, 12, 90), loaded_twice=(55, 56))
ACTIONS = {"produce": 2, "redeliver": 3, "quarantine": 2}

GROUPS = "{groups: {watch: [oncall], others: [viewer, admin]}, roles: [Op, Admin]}"

TO_PEOPLE = (
    "{through: {hook: {notifier: airflow.providers.http.notifications.HttpNotifier, arguments: {http_conn_id: people, "
    "json: {pipeline: '{{ makewhole.pipeline }}', subject: '{{ makewhole.subject }}', text: '{{ makewhole.text }}'}}}}}"
)
"""What waits is posted to the address of the connection `people`."""

FILES = {
    "scheduled": shop_file("scheduled", publish="{}", schedule=f"{STARTED.minute} {STARTED.hour} * * *"),
    "outlasted": shop_file("outlasted", database=far_database("outlasted")),
    "backfilled": shop_file("backfilled", schedule="0 0 * * *", until=utc(FIRST_DAY + 2 * DAY)),
    "answered": shop_file("answered", approval="above_actions: 0, by: [group:watch]", notify=TO_PEOPLE),
    "planned": shop_file("planned", approval="above_actions: 0, by: [group:watch]"),
    "ignored": shop_file("ignored", approval="above_actions: 0, expires: 2s"),
    "broken": shop_file("broken"),
    "undone": shop_file("undone", approval="by: [oncall]", access="{run: [Op, Admin], approve: [Op]}"),
    "healed": shop_file("healed", time_limits="{snapshot: 1m}", database=far_database("healed")),
    "observed": shop_file("observed", is_observing=True),
    "accepted": shop_file("accepted", approval="above_actions: 0, by: [oncall, admin]", is_observing=True),
    "joined": shop_file("joined"),
    "killed": shop_file("killed"),
    "nightly": shop_file("nightly"),
    "self_checked": (
        "{version: 2, pipeline: self_checked, self_check: {kafka: local_kafka, postgres: local_postgres, records: 100}}"
    ),
}
