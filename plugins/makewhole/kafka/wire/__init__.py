"""Send requests to brokers: connections, security, leaders, and the messages that aiokafka lacks."""
