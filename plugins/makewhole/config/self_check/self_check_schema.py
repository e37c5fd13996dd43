"""Describe `self_check` of a pipeline file as a JSON Schema."""

from typing import Any

from makewhole.config.self_check.read_self_check import LEAST_RECORDS, MOST_FAULTS, MOST_RECORDS


def self_check_schema() -> dict[str, Any]:
    """Return the schema of the settings (draft 2020-12)."""
    connection = {"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_.-]*$"}
    known: dict[str, Any] = {
        "kafka": {**connection, "description": "The connection of the Kafka in which the scratch topic is made"},
        "postgres": {**connection, "description": "The connection of the PostgreSQL in which the tables are made"},
        "topic": {"type": "string", "description": "The scratch topic; makewhole-self-check without this line"},
        "schema": {"type": "string", "description": "The scratch schema; makewhole_self_check without this line"},
        "records": {"type": "integer", "minimum": LEAST_RECORDS, "maximum": MOST_RECORDS},
        "faults": {"type": "integer", "minimum": 1, "maximum": MOST_FAULTS, "description": "At most, of each kind"},
        "keep": {"type": "string", "description": "How long rows and records are kept (3d); 14d without this line"},
    }
    return {
        "type": "object",
        "properties": known,
        "additionalProperties": False,
        "required": ["kafka", "postgres"],
        "description": "Makes this pipeline a self-check: known faults are planted, found and repaired",
    }
