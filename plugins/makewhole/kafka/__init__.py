"""Read Kafka's raw log from brokers and archives, its offsets and producer sequences; write replays."""
