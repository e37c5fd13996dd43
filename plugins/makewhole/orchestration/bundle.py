"""Give Airflow the DAG files that an installed makewhole brings along."""

from typing import Any

from airflow.dag_processing.bundles.local import LocalDagBundle

from makewhole.shipped import shipped


class MakewholeBundle(LocalDagBundle):
    """The bundle with the DAGs of all pipelines, for one item of `[dag_processor] dag_bundle_config_list`:

    {"name": "makewhole", "classpath": "makewhole.orchestration.bundle.MakewholeBundle", "kwargs": {}}
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(path=str(shipped("dags")), **kwargs)
