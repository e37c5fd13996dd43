"""Describe to Airflow what an installed makewhole adds: connections of the type `kafka`, which keep their type
then, and the links of its tasks.

Every process of Airflow loads this module.
"""

from collections.abc import Mapping
from typing import Any

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
    "extra-links": [
        f"makewhole.orchestration.ui.links.{name}"
        for name in ("FindingsLink", "PlanLink", "CertificateLink", "RunbookLink")
    ],
}


def provider_info() -> Mapping[str, Any]:
    """Return what the entry point `apache_airflow_provider` has to say."""
    return _INFO
