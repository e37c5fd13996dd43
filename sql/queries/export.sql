-- plain_table --
-- The id of a table without partitions and heirs, all of whose rows lie in itself; no row for any other.
select oid from pg_class where oid = to_regclass(%(table)s) and relkind in ('r', 'm') and not relhassubclass

-- column_kinds --
-- The columns of a table: the type (of a domain, the one that it is made of) without its modifier and with it, the type
-- of an array's elements, and whether JSON has something else of it than its text, which no declared type reads.
with recursive named as (
    select a.attname, a.attnum, a.atttypid as id, a.atttypmod as modifier
    from pg_attribute as a
    where a.attrelid = to_regclass(%(table)s) and a.attnum > 0 and not a.attisdropped
    union all
    select named.attname, named.attnum, t.typbasetype, t.typtypmod
    from named join pg_type as t on t.oid = named.id and t.typtype = 'd'
)
select
    named.attname::text as name, format_type(t.oid, null) as type, format_type(t.oid, named.modifier) as full_type,
    case when t.typcategory = 'A' and t.typlen = -1 and t.typelem <> 0
        then format_type(coalesce(nullif(e.typbasetype, 0), e.oid), null)
    end as element,
    t.typtype in ('c', 'p') or coalesce(e.typtype in ('c', 'p') and t.typcategory = 'A', false)
        or t.oid not in ('json'::regtype, 'jsonb'::regtype) and exists (
            select from pg_cast as c where c.castsource = t.oid and c.casttarget = 'json'::regtype
        ) as is_opaque
from named
join pg_type as t on t.oid = named.id and t.typtype <> 'd'
left join pg_type as e on e.oid = t.typelem
order by named.attnum

-- relation_kind --
-- What a name is: a table (r), a partitioned one (p), a view (v), a materialized view (m), a foreign table (f).
select relkind::text from pg_class where oid = to_regclass(%(table)s)

-- replayed --
-- Whether the server is a standby; whether it has replayed all that its primary sent, and still is sent more; and when
-- the last transaction that it has replayed was committed there.
select
    pg_is_in_recovery() as is_standby,
    coalesce(pg_last_wal_replay_lsn() >= pg_last_wal_receive_lsn(), false)
        and exists (select from pg_stat_wal_receiver) as is_current,
    pg_last_xact_replay_timestamp() as moment

-- hides_rows --
-- Whether policies of row security apply to the user of this session in a table: rows may be hidden.
select coalesce(row_security_active(to_regclass(%(table)s)::oid), false)

-- equal_unlike_columns --
-- Those of some columns of a table whose collation takes different texts for one (a nondeterministic one), with its name.
select a.attname::text as name, format('%%I.%%I', n.nspname, c.collname) as collation
from pg_attribute as a
join pg_collation as c on c.oid = a.attcollation and not c.collisdeterministic
join pg_namespace as n on n.oid = c.collnamespace
where a.attrelid = to_regclass(%(table)s) and a.attname = any(%(columns)s)
order by a.attnum
