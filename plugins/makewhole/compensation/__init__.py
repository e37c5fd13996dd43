"""Makes whole what was found: plan, freeze, approve, replay exactly once. Each step reads what the one before froze."""
