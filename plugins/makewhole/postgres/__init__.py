"""PostgreSQL points: consistent reading, guarded writing, quarantine. The only place that talks to people's tables."""
