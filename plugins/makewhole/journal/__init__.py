"""Read and write the journal in PostgreSQL: windows, snapshots, findings, plans, receipts, leases, certificates."""
