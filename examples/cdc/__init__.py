"""Orders of a shop, through an outbox, Debezium, Kafka and a JDBC sink, to a warehouse: nothing of it is our code."""
