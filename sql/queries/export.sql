-- plain_table --
-- The id of a table without partitions and heirs, all of whose rows lie in itself; no row for any other.
select oid from pg_class where oid = to_regclass(%(table)s) and relkind in ('r', 'm') and not relhassubclass
