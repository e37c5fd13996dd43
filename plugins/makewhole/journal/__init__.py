"""Our memory in PostgreSQL: windows, snapshots, findings, plans, receipts, leases, certificates."""
