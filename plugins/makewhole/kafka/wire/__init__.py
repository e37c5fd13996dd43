"""Requests to brokers: connections, security, leaders, and the messages that aiokafka does not carry."""
