"""Provide the file of a pipeline whose connections nothing configures."""

ORDERS_FILE = """\
version: 2
pipeline: orders
start: earliest
points:
  outbox: {kind: ledger, connection: shop, table: outbox, key: order_id, time: created_at}
  orders: {kind: topic, connection: kafka_main, topic: orders, key: "$.order_id"}
hops:
  - {from: outbox, to: orders}
"""
