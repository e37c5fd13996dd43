"""The life of a window apart from its repair: open, observe, certify, chain. Knows neither Airflow nor Spark."""
