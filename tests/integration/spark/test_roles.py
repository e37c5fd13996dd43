"""Test that windows, plans, repairs and certificates need the rights of docs/rights.md, and no more.

A broker with an authorizer, and a window from the first step to the certificate: some ten seconds.
"""

import json
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg2
import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.journal.database import connect
from makewhole.kafka.replay import MARKER_TOPIC
from makewhole.model.errors import ConfigurationError, MakewholeError, PermanentError
from makewhole.model.window import WindowState
from makewhole.sql import load_queries, sql_root
from makewhole.stack.environment import connection_postgres
from makewhole.stack.kafka_server import KafkaServer
from makewhole.stack.ports import free_ports
from makewhole.stack.postgres_server import server_binaries
from makewhole.window.readiness.mistakes import Readiness, Weight
from makewhole.window.readiness.points import look_at_points
from tests.conftest import AnyPostgres
from tests.integration.spark.conftest import NewShop
from tests.integration.spark.test_erase import erased
from tests.world.environment import set_connection
from tests.world.orders import orders
from tests.world.sql import run_sql
from tests.world.topics import commit_group, make_topic
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

PASSWORD = "correct-horse"
GRANTS = sql_root() / "grants"
ACL_LINE = re.compile(r"^kafka-acls\.sh --bootstrap-server HOST:PORT --add (.*)$", re.MULTILINE)
PAGE = (Path(__file__).parents[3] / "docs" / "rights.md").read_text(encoding="utf-8")
Role = Callable[..., str]


@pytest.fixture(scope="module")
def sasl_port() -> int:
    return free_ports(1)[0]


@pytest.fixture(scope="module")
def kafka(server_folder: Path, sasl_port: int) -> Iterator[KafkaServer]:
    """A broker that asks for the rights of those who have a name; without one all is permitted."""
    own = free_ports(2)
    listeners = f"PLAINTEXT://127.0.0.1:{own[0]},SASL://127.0.0.1:{sasl_port}"
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    users = " ".join(f'user_{name}="{PASSWORD}"' for name in ("detector", "replayer"))
    settings = {
        "listeners": f"{listeners},CONTROLLER://127.0.0.1:{own[1]}",
        "advertised.listeners": listeners,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl.plain.sasl.jaas.config": f"{module} required {users};",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with KafkaServer(server_folder / "kafka-roles", ports=own, settings=settings) as server:
        yield server


@pytest.fixture
def role(postgres: AnyPostgres) -> Iterator[Role]:
    """Make a role with a password, with what files of grants give it at a database; return the URI to connect as it."""
    made: list[tuple[str, str]] = []

    def make(name: str, dsn: str, *files: str, **variables: str) -> str:
        if name not in [known for known, _ in made]:
            run_sql(dsn, f"create role {name} login password '{PASSWORD}'")
        made.append((name, dsn))
        for file in files:
            psql(dsn, GRANTS / file, role=name, **variables)
        parts = urlsplit(dsn)
        host = parts.netloc.rpartition("@")[2]
        return urlunsplit(parts._replace(netloc=f"{name}:{PASSWORD}@{host}"))

    yield make
    for name, dsn in reversed(made):
        run_sql(dsn, f"drop owned by {name}")
    for name in {name for name, _ in made}:
        run_sql(postgres.dsn("postgres"), f"drop role {name}")


def psql(dsn: str, file: Path, **variables: str) -> None:
    """Run a file as its first lines say."""
    given = [f"-v{name}={value}" for name, value in variables.items()]
    command = [str(server_binaries() / "psql"), dsn, "-X", "-q", "-v", "ON_ERROR_STOP=1", *given, "-f", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def grant_acls(admin: AdminClient, user: str, names: Mapping[str, str]) -> None:
    """Carry out the lines of the page for a user, with other names of topics and groups."""
    rules = [rule for line in ACL_LINE.findall(PAGE) for rule in acls(shlex.split(line), names)]
    own = [rule for rule in rules if rule.principal == f"User:{user}"]
    assert own
    for made in admin.create_acls(own).values():
        made.result()


def acls(words: list[str], names: Mapping[str, str]) -> Iterator[AclBinding]:
    options: dict[str, list[str]] = {}
    for option, value in zip(words[::2], words[1::2], strict=True):
        options.setdefault(option, []).append(value)
    [kind] = {"--topic", "--group", "--transactional-id"} & options.keys()
    resource = {"--topic": ResourceType.TOPIC, "--group": ResourceType.GROUP}.get(kind, ResourceType.TRANSACTIONAL_ID)
    pattern = ResourcePatternType[options.get("--resource-pattern-type", ["literal"])[0].upper()]
    [name], [principal] = options[kind], options["--allow-principal"]
    for operation in options["--operation"]:
        right = AclOperation[re.sub(r"(?<=[a-z])(?=[A-Z])", "_", operation).upper()]
        yield AclBinding(resource, names.get(name, name), pattern, principal, "*", right, AclPermissionType.ALLOW)


def connect_as(user: str, monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    """Lead the connection of the topic to the listener that asks for rights."""
    properties = {
        "bootstrap.servers": f"127.0.0.1:{port}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": PASSWORD,
    }
    text = json.dumps({"conn_type": "kafka", "extra": properties})
    set_connection(monkeypatch, "log", text)


def lower_rights(shop: ReconciledShop, role: Role, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the service work as the application of the journal, the reader of the ledger and the writer of the store."""
    shop.file.write_text(
        shop.file.read_text().replace(
            "outbox: {kind: ledger, connection: db", "outbox: {kind: ledger, connection: ledger_db"
        )
    )
    assert "ledger_db" in shop.file.read_text()
    reader = role("mw_reader", shop.dsn, "store_reader.sql", schema="public", table="outbox")
    psql(shop.dsn, GRANTS / "store_schema.sql")
    writer = role("mw_writer", shop.dsn, "store_writer.sql", schema="public", table="warehouse")
    set_connection(monkeypatch, "ledger_db", connection_postgres(reader))
    set_connection(monkeypatch, "db", connection_postgres(writer))
    shop.journal = role("mw_app", shop.journal, "journal_application.sql")
    monkeypatch.setenv("MAKEWHOLE_JOURNAL_DSN", shop.journal)


def test_a_window_is_judged_repaired_and_certified_with_the_rights_of_the_page_alone(
    new_shop: NewShop, role: Role, sasl_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = new_shop()
    shop.describe(hop={"consumer_group": "dw-loader"})
    made = orders(range(10))
    shop.write("outbox", made)
    shop.send(made[2:])
    shop.write("warehouse", [*made[2:], made[3]])
    commit_group(shop.bootstrap, "dw-loader", shop.topic, 8)
    grant_acls(shop.admin, "replayer", {"orders": shop.topic})
    make_topic(shop.admin, MARKER_TOPIC)
    connect_as("replayer", monkeypatch, sasl_port)
    readiness = Readiness()
    look_at_points(readiness, shop.pipeline)
    assert not [problem for problem in readiness.of(Weight.REPAIRS) if "log" in problem.path]
    lower_rights(shop, role, monkeypatch)

    context = shop.judge_and_ask_the_gate()
    frozen = plan_window(context)
    assert frozen.plan is not None
    assert dict(frozen.plan.counts) == {"produce": 2, "quarantine": 1}
    assert compensate_window(context, lambda _: None)
    shop.write("warehouse", made[:2])  # the loader has come to what was sent
    commit_group(shop.bootstrap, "dw-loader", shop.topic, 11)
    verify_window(context, lambda *_: None, patience_seconds=0)
    closed = shop.certify(context)

    assert (closed.state, closed.reason) == (WindowState.CERTIFIED, None)
    assert {record.key for record in shop.records(shop.topic)} == {order["id"].encode() for order in made}
    assert shop.sql("select count(*) from warehouse") == [(10,)]

    with pytest.raises(PermanentError, match="grant select, insert, update, delete on quarantine"):
        erased(shop, made[3]["id"])
    psql(shop.dsn, GRANTS / "store_keeper.sql", role="mw_writer")
    assert shop.sql("select count(*) from makewhole.quarantine") == [(1,)]
    assert erased(shop, made[3]["id"]).rows_at_targets == 2
    assert shop.sql("select count(*) from makewhole.quarantine") == [(0,)]
    produced = erased(shop, made[0]["id"])
    assert produced.stays == (f"records that plan {frozen.plan.id} sent to orders stay in the topic",)


def test_the_detector_judges_a_topic_and_may_not_write_it(
    new_shop: NewShop, role: Role, sasl_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = new_shop()
    shop.describe(hop={"consumer_group": "dw-loader"})
    made = orders(range(4))
    shop.trade(made, unsent=made[:1])
    commit_group(shop.bootstrap, "dw-loader", shop.topic, 3)
    connect_as("detector", monkeypatch, sasl_port)
    with pytest.raises(MakewholeError, match="rights"):
        shop.open()  # nothing is granted yet: an error, and no loss
    grant_acls(shop.admin, "detector", {"orders": shop.topic})

    readiness = Readiness()
    look_at_points(readiness, shop.pipeline)
    repairs = [problem.found for problem in readiness.of(Weight.REPAIRS) if problem.file == "pipeline file"]
    assert [text for text in repairs if "topic" not in text] == [
        "connection log has no right to Write transactional ids replay-…; repairs write in transactions",
        "connection log has no right to Read groups replay-…; repairs write in transactions",
    ]
    assert any(f"topic {MARKER_TOPIC}" in text for text in repairs)
    context = shop.judge_and_ask_the_gate()
    assert shop.counts(context, "outbox→orders").missing == 1
    plan_window(context)
    with pytest.raises(PermanentError, match=r"grant Write on \w+ .*\(docs/rights.md\), then run the plan again"):
        compensate_window(context, lambda _: None)
    assert len(shop.records(shop.topic)) == 3


DENIED = {
    "app": (
        "delete from makewhole.certificate",
        "update makewhole.certificate set digest = ''",
        "update makewhole.approval set decision = 'approved'",
        "update makewhole.chunk set actions = 1",
        "update makewhole.snapshot set manifest = '{}'",
        "delete from makewhole.window",
        "delete from makewhole.plan",
        "insert into makewhole.migration (version, name, sha256) values (2, 'x', 'x')",
        "truncate makewhole.finding",
        "drop table makewhole.finding",
        "alter table makewhole.finding add column x integer",
        "create table makewhole.mine (n integer)",
    ),
    "reader": (
        "insert into makewhole.lease (resource, holder, epoch, expires_at) values ('a', 'b', 1, now())",
        "update makewhole.window set state = 'certified'",
        "delete from makewhole.finding",
        "create table makewhole.mine (n integer)",
    ),
    "store_reader": (
        "delete from orders",
        "update orders set n = 1",
        "insert into orders values (1)",
        "select * from other",
    ),
    "store_writer": (
        "update makewhole.receipt set actions = 1",
        "delete from makewhole.receipt",
        "update makewhole.effect set before = ''",
        "delete from makewhole.quarantine",
        "update makewhole.quarantine set row = '{}'",
        "truncate orders",
        "drop table orders",
        "select * from other",
    ),
}


@pytest.mark.parametrize("who", DENIED)
def test_what_lies_beyond_a_role_is_refused(journal: str, database: str, role: Role, who: str) -> None:
    run_sql(database, "create table orders (n integer); create table other (n integer)")
    psql(database, GRANTS / "store_schema.sql")
    dsn = {
        "app": lambda: role("mw_app", journal, "journal_application.sql"),
        "reader": lambda: role("mw_reader", journal, "journal_reader.sql"),
        "store_reader": lambda: role("mw_reader", database, "store_reader.sql", schema="public", table="orders"),
        "store_writer": lambda: role("mw_writer", database, "store_writer.sql", schema="public", table="orders"),
    }[who]()
    for statement in DENIED[who]:
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            run_sql(dsn, statement)


WRITES = re.compile(r"\b(insert into|update|delete from|copy) makewhole\.(\w+)\b(?! as known where)", re.IGNORECASE)
ALL_RIGHTS = ["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"]
ELSEWHERE = ("receipt", "quarantine", "effect", "fence")
NAMES = {"insert into": "INSERT", "copy": "INSERT", "update": "UPDATE", "delete from": "DELETE"}


def needed_rights() -> dict[str, set[str]]:
    """Return what the statements of the product do to each table of the journal."""
    needed: dict[str, set[str]] = {}
    for path in sorted((sql_root() / "queries").glob("*.sql")):
        for block in re.split(r"^-- [a-z_]+ --$", path.read_text(encoding="utf-8"), flags=re.MULTILINE):
            text = re.sub(r"^--.*$", "", block, flags=re.MULTILINE)
            for act, table in WRITES.findall(text):
                if act.lower() != "copy" or "from stdin" in text:
                    needed.setdefault(table, set()).add(NAMES[act.lower()])
            inserted = re.findall(r"insert into makewhole\.(\w+)", text)
            if inserted and re.search(r"\bdo update\b", text):
                needed[inserted[-1]].add("UPDATE")
            if re.search(r"\bfor update\b", text):
                for table in re.findall(r"\bfrom makewhole\.(\w+)", text):
                    needed.setdefault(table, set()).add("UPDATE")
    return {table: rights for table, rights in needed.items() if table not in ELSEWHERE}


def test_the_application_may_do_to_each_table_what_its_statements_do_and_no_more(journal: str, role: Role) -> None:
    """A new table or statement without its line in the file of grants fails here."""
    role("mw_app", journal, "journal_application.sql")
    role("mw_reader", journal, "journal_reader.sql")
    tables = [
        name
        for (name,) in run_sql(
            journal,
            "select relname from pg_class where relnamespace = 'makewhole'::regnamespace and relkind in ('r', 'v')",
        )
    ]
    granted: dict[str, dict[str, set[str]]] = {"mw_app": {}, "mw_reader": {}}
    for user, by_table in granted.items():
        for table in tables:
            rights = run_sql(
                journal,
                "select r from unnest(%s) as r where has_table_privilege(%s, 'makewhole.' || %s, r)",
                ALL_RIGHTS,
                user,
                table,
            )
            by_table[table] = {name for (name,) in rights}
    needed = needed_rights()
    assert granted["mw_app"] == {table: {"SELECT", *needed.get(table, ())} for table in tables}
    assert granted["mw_reader"] == {table: {"SELECT"} for table in tables} | {"erasure": set()}
    unseen = run_sql(
        journal,
        "select attname from pg_attribute where attrelid = 'makewhole.erasure'::regclass and attnum > 0 "
        "and not has_column_privilege('mw_reader', attrelid, attnum, 'SELECT')",
    )
    assert unseen == [("secret",)]


def test_the_schema_of_stores_is_the_one_that_a_connection_would_make_by_itself() -> None:
    statements = (GRANTS / "store_schema.sql").read_text(encoding="utf-8").partition("create schema")
    made = load_queries("target")["create_target_schema"].partition("create schema")
    assert statements[2].strip().removesuffix(";") == made[2].strip().removesuffix(";")


def test_a_missing_right_is_named_with_its_object_and_what_to_run(
    new_shop: NewShop, role: Role, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = new_shop()
    shop.trade(orders(range(3)))
    lower_rights(shop, role, monkeypatch)
    run_sql(shop.dsn, "revoke select on outbox from mw_reader")
    with pytest.raises(MakewholeError) as refused:
        shop.snapshot(shop.open())
    assert "Run as its owner: grant select on outbox to mw_reader (docs/rights.md lists" in str(refused.value)


def test_a_right_that_is_missing_at_the_journal_is_named_with_the_file(
    journal: str, role: Role, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = role("mw_reader", journal, "journal_reader.sql")
    with pytest.raises(ConfigurationError) as refused, connect(reader) as session, session.cursor() as cursor:
        cursor.execute("delete from makewhole.finding")
    assert str(refused.value) == (
        "journal: schema makewhole: permission denied for table finding. Run as the schema's owner what docs/rights.md "
        "lists for the journal's application: psql -v role=mw_reader -f sql/grants/journal_application.sql"
    )
