-- server --
-- The settings of the server on which it rests that what was committed stays, as a new session of this user gets them.
select
    (select s.reset_val from pg_settings as s where s.name = 'synchronous_commit') as synchronous_commit,
    current_setting('fsync') as fsync,
    current_setting('full_page_writes') as full_page_writes,
    current_setting('wal_level') as wal_level,
    pg_is_in_recovery() as is_standby,
    current_database()::text as database

-- overridden --
-- The roles for which this database, or any, commits without waiting for the disk. Empty: all roles of this database.
select coalesce(r.rolname::text, '') as role
from pg_db_role_setting as s
cross join lateral unnest(s.setconfig) as c (text)
left join pg_roles as r on r.oid = s.setrole
where c.text = 'synchronous_commit=off'
    and s.setdatabase in (0, (select d.oid from pg_database as d where d.datname = current_database()))
order by 1

-- relations --
-- The tables in which the rows of a table lie: itself, its partitions and children. `persistence`: p, u (unlogged), t.
with recursive parts (id) as (
    select to_regclass(%(table)s)::oid
    union
    select i.inhrelid from parts join pg_inherits as i on i.inhparent = parts.id
)
select
    format('%%I.%%I', n.nspname, c.relname) as name, c.relkind::text as kind, c.relpersistence::text as persistence,
    c.relreplident::text as replica_identity,
    exists (select from pg_index as i where i.indrelid = c.oid and i.indisprimary) as has_primary_key
from parts
join pg_class as c on c.oid = parts.id
join pg_namespace as n on n.oid = c.relnamespace
order by 1

-- triggers --
-- The triggers of rows that come before an insert or an update, or in its place. `may_return_null`: the text of the
-- function has it; null where the function's language has no text.
with recursive parts (id) as (
    select to_regclass(%(table)s)::oid
    union
    select i.inhrelid from parts join pg_inherits as i on i.inhparent = parts.id
)
select distinct
    t.tgname::text as name,
    case when l.lanname in ('c', 'internal') then null else p.prosrc ~* '\mreturn\s+null\M' end as may_return_null
from parts
join pg_trigger as t on t.tgrelid = parts.id
join pg_proc as p on p.oid = t.tgfoid
join pg_language as l on l.oid = p.prolang
where not t.tgisinternal and t.tgenabled <> 'D'
    and (t.tgtype & 1) = 1 and (t.tgtype & 66) <> 0 and (t.tgtype & 20) <> 0
order by 1

-- rules --
-- The rules that rewrite an insert, an update or a deletion of a table.
select r.rulename::text as name, r.is_instead
from (
    select w.rulename, w.is_instead, w.ev_type from pg_rewrite as w
    where w.ev_class = to_regclass(%(table)s)::oid and w.ev_enabled <> 'D'
) as r
where r.ev_type in ('2', '3', '4')
order by 1

-- publications --
-- The publications that have a table, with what they leave out.
select p.pubname::text as name, p.pubinsert and p.pubupdate and p.pubdelete as has_all,
    t.rowfilter is not null as is_filtered
from pg_publication_tables as t
join pg_publication as p on p.pubname = t.pubname
where format('%%I.%%I', t.schemaname, t.tablename)::regclass = to_regclass(%(table)s)
order by 1

-- slots --
-- The logical slots of this database, with how much log they hold back.
select
    s.slot_name::text as name, s.plugin::text as plugin, s.active as is_active, s.wal_status::text as status,
    case when pg_is_in_recovery() then null
        else pg_wal_lsn_diff(pg_current_wal_lsn(), s.confirmed_flush_lsn)::bigint end as behind_bytes
from pg_replication_slots as s
where s.slot_type = 'logical' and s.database = current_database()
order by 1

-- toasted --
-- Those of some columns whose values may be stored apart, so that a change event need not have them.
select a.attname::text as name
from pg_attribute as a
where a.attrelid = to_regclass(%(table)s)::oid and a.attname = any(%(columns)s) and a.attstorage in ('x', 'e')
    and not a.attisdropped
order by 1
