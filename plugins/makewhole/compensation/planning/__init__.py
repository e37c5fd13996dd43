"""Turn findings into ordered actions. Deadlines and readers ask Kafka; the rest is pure."""
