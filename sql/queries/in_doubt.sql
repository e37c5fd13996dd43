-- transactions_in_doubt --
-- The prepared transactions of this database that hold locks of a writer of rows (or of who only locks rows) on a table:
-- on it, on those that it is partitioned or inherited into, and on those that a view reads. While one is being prepared,
-- its locks are still those of its session: both hold the lock on its own id. `tables`: all that it has written to.
with recursive relations (id) as (
    select to_regclass(%(table)s)::oid
    union
    select read.id
    from relations
    cross join lateral (
        select i.inhrelid as id from pg_inherits as i where i.inhparent = relations.id
        union all
        select d.refobjid
        from pg_rewrite as w
        join pg_depend as d on d.classid = 'pg_rewrite'::regclass and d.objid = w.oid
        where w.ev_class = relations.id and d.refclassid = 'pg_class'::regclass
    ) as read
),
locks as materialized (
    select l.locktype, l.database, l.relation, l.transactionid, l.virtualtransaction, l.mode
    from pg_locks as l where l.granted
)
select
    p.gid, coalesce(p.owner::text, '?') as owner, p.prepared,
    coalesce(
        array_agg(distinct t.name order by t.name) filter (where held.is_writing and t.name is not null), '{}'
    ) as tables,
    bool_or(held.is_writing and held.relation in (select r.id from relations as r)) as is_writing
from pg_prepared_xacts as p
join locks as own on own.locktype = 'transactionid' and own.transactionid = p.transaction and own.mode = 'ExclusiveLock'
join lateral (
    select l.relation, l.mode in ('RowExclusiveLock', 'AccessExclusiveLock') as is_writing
    from locks as l
    join pg_database as d on d.oid = l.database and d.datname = current_database()
    where l.virtualtransaction = own.virtualtransaction and l.locktype = 'relation'
        and l.mode in ('RowShareLock', 'RowExclusiveLock', 'AccessExclusiveLock')
) as held on true
left join lateral (
    select format('%%I.%%I', n.nspname, c.relname) as name
    from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
    where c.oid = held.relation and c.relkind in ('r', 'p')
) as t on true
where p.database = current_database()
group by p.gid, p.owner, p.prepared
having bool_or(held.relation in (select r.id from relations as r))
order by p.prepared, p.gid

-- hides_prepared --
-- Whether the server is a standby that may follow a primary with prepared transactions: it shows none of them, and its
-- own setting is never less than that of the primary.
select pg_is_in_recovery() and current_setting('max_prepared_transactions')::integer > 0 as may_hide

-- in_progress --
-- The number of the oldest transaction in progress, and that of the next one to begin.
select
    pg_snapshot_xmin(snapshot)::text::bigint as oldest, pg_snapshot_xmax(snapshot)::text::bigint as following
from pg_current_snapshot() as snapshot
