"""Load a catalogue so that no request to one over HTTP waits for its answer for ever."""

from collections.abc import Mapping
from typing import Any

from pyiceberg.catalog import TYPE, URI, Catalog, CatalogType, load_catalog
from pyiceberg.utils.config import Config, merge_config


def load_patient_catalog(name: str, properties: Mapping[str, str]) -> Catalog:
    """Return a catalogue as pyiceberg loads it; the answers of one over HTTP are waited for so long at most."""
    if properties.get(TYPE, "").lower() != CatalogType.REST.value or URI not in properties:
        return load_catalog(name, **properties)
    from makewhole.datasets.iceberg.patient_rest import PatientRestCatalog  # its library takes long to load

    own: Any = merge_config(Config().get_catalog_config(name) or {}, dict(properties))
    return PatientRestCatalog(name, **own)
