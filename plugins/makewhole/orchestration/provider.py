"""Describe to Airflow what an installed makewhole adds: connections of the type `kafka`, which keep their type
then, the section `[makewhole]` of its configuration, and the links of its tasks.

Every process of Airflow loads this module.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlunsplit

SECTION = "makewhole"


@dataclass(frozen=True, kw_only=True)
class Option:
    """An option of Airflow's configuration. `variable`: that of the environment, which goes before it, and by which all
    parts read it."""

    variable: str
    description: str
    example: str
    default: str = ""


OPTIONS = {
    "pipelines": Option(
        variable="MAKEWHOLE_PIPELINES",
        description="Folders with the pipeline files, divided by colons.",
        example="/etc/makewhole/pipelines",
    ),
    "groups": Option(
        variable="MAKEWHOLE_GROUPS",
        description="The file with the groups of people who approve, and the roles that pipeline files may name.",
        example="/etc/makewhole/groups.yaml",
    ),
    "journal_conn_id": Option(
        variable="MAKEWHOLE_JOURNAL_CONN_ID",
        description="The connection to the journal's PostgreSQL, where MAKEWHOLE_JOURNAL_DSN is not set.",
        example="makewhole_journal",
        default="makewhole_journal",
    ),
    "deployment": Option(
        variable="MAKEWHOLE_DEPLOYMENT",
        description="The name of this Airflow at a journal that others use, too. None: one that it chooses itself.",
        example="production",
    ),
    "storage": Option(
        variable="MAKEWHOLE_STORAGE",
        description="A folder that all workers see, or a URI (s3://…, hdfs://…): archives, findings, certificates.",
        example="s3://makewhole/journal",
    ),
    "signing_public_keys": Option(
        variable="MAKEWHOLE_SIGNING_PUBLIC_KEYS",
        description="Public keys of certificates beside that of the signing key: PEM, base64, or file:PATH.",
        example="file:/etc/makewhole/public.pem",
    ),
}

_ASSETS = ("certified", "revoked", "published", "self_check")
_PIPELINE = re.compile(r"/[a-z][a-z0-9_]*")
_INFO: Mapping[str, Any] = {
    "package-name": "makewhole",
    "name": "makewhole",
    "description": "Finds what a Kafka pipeline lost, repeated or changed, and makes its stores whole again.",
    "connection-types": [
        {
            "connection-type": "kafka",
            "hook-class-name": "makewhole.orchestration.kafka_hook.KafkaHook",
            "hook-name": "Apache Kafka",
        }
    ],
    "config": {
        SECTION: {
            "description": "Where makewhole has its pipelines, its journal and its storage.",
            "options": {
                name: {
                    "description": f"{option.description} The variable {option.variable} goes before.",
                    "version_added": "0.1.0",
                    "type": "string",
                    "example": option.example,
                    "default": option.default,
                }
                for name, option in OPTIONS.items()
            },
        }
    },
    "asset-uris": [{"schemes": ["makewhole"], "handler": "makewhole.orchestration.provider.check_asset_uri"}],
    "extra-links": [
        f"makewhole.orchestration.ui.links.{name}"
        for name in ("FindingsLink", "PlanLink", "CertificateLink", "RunbookLink")
    ],
}


def provider_info() -> Mapping[str, Any]:
    """Return what the entry point `apache_airflow_provider` has to say."""
    return _INFO


def check_asset_uri(uri: SplitResult) -> SplitResult:
    """Return the URI of an asset of ours as it is.

    Raises:
        ValueError: no asset of ours has such a URI: a DAG that waits for it would wait for ever.
    """
    if uri.netloc not in _ASSETS or not _PIPELINE.fullmatch(uri.path) or uri.query:
        known = ", ".join(f"makewhole://{kind}/PIPELINE" for kind in _ASSETS)
        raise ValueError(
            f"{urlunsplit(uri)} is no asset of makewhole, and would never have an event; there are {known}"
        )
    return uri
