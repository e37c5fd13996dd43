"""Turn findings into ordered actions. Only the deadlines ask Kafka; the rest is pure."""
