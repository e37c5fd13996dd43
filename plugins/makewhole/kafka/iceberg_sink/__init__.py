"""Read what Iceberg's Kafka Connect sink says of its own progress: its groups, and the events of its control topic."""
