"""Look again, right before records are sent, whether their keys have arrived by themselves meanwhile."""
