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
-- Those of some columns of a table that take different texts for one: by a nondeterministic collation, which is named, or
-- by their type (of a domain, the one that it is made of).
with recursive named as (
    select a.attname, a.attnum, a.attcollation, a.atttypid as id
    from pg_attribute as a
    where a.attrelid = to_regclass(%(table)s) and a.attname = any(%(columns)s)
    union all
    select named.attname, named.attnum, named.attcollation, t.typbasetype
    from named join pg_type as t on t.oid = named.id and t.typtype = 'd'
)
select named.attname::text as name, format('%%I.%%I', n.nspname, c.collname) as collation, null as type
from named
join pg_type as t on t.oid = named.id and t.typtype <> 'd'
join pg_collation as c on c.oid = named.attcollation and not c.collisdeterministic
join pg_namespace as n on n.oid = c.collnamespace
union all
select named.attname::text, null, t.typname::text
from named
join pg_type as t on t.oid = named.id and (
    t.typname = 'citext'
    or t.typnamespace = 'pg_catalog'::regnamespace and t.typname in ('interval', 'box', 'circle', 'path', 'polygon', 'lseg')
)
order by name

-- mark --
-- What the rows of a table are made of besides themselves: the tables that they lie in with their files, the columns of
-- each with the transactions that defined them, the labels of enumerated types, the settings that texts follow, and
-- since when the server has statistics, which it loses in a crash; and what shows nothing of it: tables of other
-- servers, and columns that are computed as they are read, or of types that may be rendered otherwise some day.
with recursive place (relation) as (
    select to_regclass(%(table)s)::oid
    union
    select inhrelid from place join pg_inherits on inhparent = place.relation
),
attribute as (
    select a.*, a.xmin as defined_by, coalesce(nullif(t.typelem, 0), t.oid) as held
    from place join pg_attribute as a on a.attrelid = place.relation join pg_type as t on t.oid = a.atttypid
    where a.attnum > 0 and not a.attisdropped
)
select
    (
        select jsonb_agg(jsonb_build_array(c.oid::bigint, c.oid::regclass::text, pg_relation_filenode(c.oid)::bigint)
            order by c.oid)
        from place join pg_class as c on c.oid = place.relation
    ) as relations,
    (
        select md5(string_agg(concat_ws(',', attrelid, attnum, attname, atttypid, atttypmod, attcollation, defined_by), ';'
            order by attrelid, attnum))
        from attribute
    ) as columns,
    (
        select md5(string_agg(concat_ws(',', e.oid, e.enumlabel, e.xmin), ';' order by e.oid))
        from pg_enum as e where e.enumtypid in (select held from attribute)
    ) as labels,
    (
        select md5(string_agg(name || '=' || setting, ';' order by name)) from pg_settings
        where name in ('server_version_num', 'DateStyle', 'IntervalStyle', 'TimeZone', 'extra_float_digits',
            'bytea_output', 'lc_monetary', 'lc_numeric', 'server_encoding', 'client_encoding')
    ) as settings,
    (select stats_reset::text from pg_stat_bgwriter) as statistics,
    coalesce((select bool_or(c.relkind not in ('r', 'p', 'm')) from place join pg_class as c on c.oid = place.relation),
        true) as is_elsewhere,
    (
        select min(attname::text) from attribute join pg_type as t on t.oid = held
        where attname = any(%(columns)s) and not (
            attgenerated <> 'v' and (
                t.typtype = 'e'
                or t.typtype = 'b' and t.typnamespace = 'pg_catalog'::regnamespace and t.typname not like 'reg%%'
            )
        )
    ) as column_of_own_type
