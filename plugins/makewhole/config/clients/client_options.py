"""Options of clients that a connection may set: an allow-list for each client.

Some options run code: librdkafka loads the files of `plugin.library.paths` and runs the text of
`sasl.kerberos.kinit.cmd`, pyiceberg imports the class that `py-io-impl` names, OpenSSL loads an engine that libpq's
`sslkey` names. Who may edit a connection must not thereby run code where makewhole runs, so that what is not listed is
refused.
"""

from collections.abc import Iterable, Mapping

LIBPQ_PARAMETERS = (
    "channel_binding",
    "connect_timeout",
    "gssdelegation",
    "gssencmode",
    "gsslib",
    "hostaddr",
    "keepalives",
    "keepalives_count",
    "keepalives_idle",
    "keepalives_interval",
    "krbsrvname",
    "load_balance_hosts",
    "options",
    "passfile",
    "require_auth",
    "requirepeer",
    "service",
    "ssl_max_protocol_version",
    "ssl_min_protocol_version",
    "sslcert",
    "sslcertmode",
    "sslcompression",
    "sslcrl",
    "sslcrldir",
    "sslkey",
    "sslmode",
    "sslnegotiation",
    "sslpassword",
    "sslrootcert",
    "sslsni",
    "target_session_attrs",
    "tcp_user_timeout",
)
"""The parameters that libpq takes and a connection may need. Others are Airflow's own (`iam`, `cursor`) and would be
ignored silently; those that makewhole sets itself (names, encodings, replication) are not here."""

KAFKA_OPTIONS = frozenset(
    {
        "api.version.request.timeout.ms",
        "bootstrap.servers",
        "broker.address.family",
        "broker.address.ttl",
        "client.dns.lookup",
        "client.id",
        "client.rack",
        "compression.codec",
        "compression.type",
        "connections.max.idle.ms",
        "enable.ssl.certificate.verification",
        "metadata.max.age.ms",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "sasl.mechanism",
        "sasl.mechanisms",
        "sasl.password",
        "sasl.username",
        "security.protocol",
        "socket.connection.setup.timeout.ms",
        "socket.keepalive.enable",
        "socket.max.fails",
        "socket.nagle.disable",
        "socket.receive.buffer.bytes",
        "socket.send.buffer.bytes",
        "socket.timeout.ms",
        "ssl.ca.location",
        "ssl.ca.pem",
        "ssl.certificate.location",
        "ssl.certificate.pem",
        "ssl.cipher.suites",
        "ssl.crl.location",
        "ssl.curves.list",
        "ssl.endpoint.identification.algorithm",
        "ssl.key.location",
        "ssl.key.password",
        "ssl.key.pem",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.sigalgs.list",
        "topic.metadata.refresh.interval.ms",
    }
)
"""Options that makewhole's readers take from a connection to Kafka, and those that it hands to librdkafka."""

UNUSED_KAFKA_OPTIONS = frozenset(
    {
        "acks",
        "auto.commit.interval.ms",
        "auto.offset.reset",
        "batch.num.messages",
        "batch.size",
        "check.crcs",
        "debug",
        "delivery.timeout.ms",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.idempotence",
        "fetch.max.bytes",
        "fetch.message.max.bytes",
        "fetch.min.bytes",
        "fetch.wait.max.ms",
        "group.id",
        "group.instance.id",
        "heartbeat.interval.ms",
        "isolation.level",
        "linger.ms",
        "log_level",
        "max.in.flight",
        "max.in.flight.requests.per.connection",
        "max.partition.fetch.bytes",
        "max.poll.interval.ms",
        "message.max.bytes",
        "message.timeout.ms",
        "partition.assignment.strategy",
        "queue.buffering.max.kbytes",
        "queue.buffering.max.messages",
        "queue.buffering.max.ms",
        "queued.max.messages.kbytes",
        "request.required.acks",
        "request.timeout.ms",
        "retries",
        "retry.backoff.ms",
        "session.timeout.ms",
        "statistics.interval.ms",
        "transaction.timeout.ms",
        "transactional.id",
    }
)
"""Options that other programs keep in the same connection (Airflow's own operators ask for `group.id`), and
makewhole decides by itself: accepted, and not handed on."""

_ICEBERG_OPTIONS = frozenset(
    {
        "audience",
        "credential",
        "echo",
        "init_catalog_tables",
        "namespace-separator",
        "oauth2-server-uri",
        "pool_pre_ping",
        "prefix",
        "resource",
        "rest-page-size",
        "rest.signing-name",
        "rest.signing-region",
        "rest.sigv4-enabled",
        "scope",
        "snapshot-loading-mode",
        "token",
        "type",
        "uri",
        "view-endpoints-supported",
        "warehouse",
    }
)
HADOOP_GROUPS = ("dfs.", "fs.", "hadoop.")
"""How properties of Hadoop's clients begin, which a catalogue takes for a warehouse on HDFS; they are read as data."""
_OF_SERVICES = ("adls.", "client.", "dynamodb.", "gcs.", "glue.", "header.", "hive.", "s3.", "ssl.")


def unlisted_kafka_options(names: Iterable[str]) -> list[str]:
    """Return the names that a connection to Kafka may not set, sorted."""
    return sorted(set(names) - KAFKA_OPTIONS - UNUSED_KAFKA_OPTIONS)


def names_engine(parameters: Mapping[str, object]) -> bool:
    """Return whether parameters of libpq name a key as `engine:key`: OpenSSL loads a library for it."""
    return ":" in str(parameters.get("sslkey", ""))


def unlisted_iceberg_options(names: Iterable[str]) -> list[str]:
    """Return the names that a connection to a catalogue may not set, sorted. Those of stores and services go by
    their group; a name that ends in `-impl` or `.impl` names a class to import, whatever its group."""
    return sorted(name for name in set(names) if name.endswith(("-impl", ".impl")) or not _is_listed_for_iceberg(name))


def _is_listed_for_iceberg(name: str) -> bool:
    return name in _ICEBERG_OPTIONS or name.startswith(_OF_SERVICES + HADOOP_GROUPS)
