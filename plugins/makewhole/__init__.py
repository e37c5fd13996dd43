"""makewhole finds what a Kafka pipeline lost, repeated or changed, and makes the stores whole again."""
