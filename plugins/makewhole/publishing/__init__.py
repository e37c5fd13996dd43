"""Publish the records of topics once for everyone: which windows are due, where, as what, and into a topic."""
