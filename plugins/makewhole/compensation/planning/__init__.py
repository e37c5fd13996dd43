"""Plan: findings become ordered actions. Pure but for the deadlines, which ask Kafka."""
