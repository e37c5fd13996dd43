"""Find once for a hop what bears on all its keys: the baseline, the consumer group, since when keys wait."""
