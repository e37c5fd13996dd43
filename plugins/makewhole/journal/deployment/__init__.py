"""Find the journal, know its schema, and keep which deployment of Airflow judges which pipeline."""
