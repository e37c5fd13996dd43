"""Run a small real system: an outbox, a producer, a topic, a loader, a warehouse; with the mistakes people make.

It knows nothing of the tool that checks it. `python -m examples.flights --help` drives it.
"""
