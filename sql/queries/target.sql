-- create_target_schema --
-- Our two tables beside the people's own: the receipts of chunks, and the rows that were moved aside.
create schema if not exists makewhole;
create table if not exists makewhole.receipt (
    plan text not null,
    target text not null,
    chunk integer not null,
    actions integer not null,
    plan_sha256 text not null,
    lease_epoch bigint not null,
    refused jsonb not null default '{}',
    applied_at timestamptz not null default clock_timestamp(),
    primary key (plan, target, chunk)
);
create table if not exists makewhole.quarantine (
    id bigint generated always as identity primary key,
    plan text not null,
    seq integer not null,
    source_table text not null,
    place text not null,
    row jsonb not null,
    how_to_restore text not null,
    moved_at timestamptz not null default clock_timestamp(),
    restored_at timestamptz
)

-- has_target_schema --
-- Whether both tables are there.
select to_regclass('makewhole.receipt') is not null and to_regclass('makewhole.quarantine') is not null

-- lock_target_schema --
-- `create … if not exists` still collides when two sessions create at once.
select pg_advisory_xact_lock(hashtextextended('makewhole target schema', 0))

-- limit_chunk --
-- A chunk whose runner stopped is ended by the server, before another runner gives up waiting for it.
select set_config('idle_in_transaction_session_timeout', '10s', true), set_config('lock_timeout', '30s', true)

-- lock_target --
-- One chunk of a plan at a time at this target, whoever the runner is.
select pg_advisory_xact_lock(hashtextextended('makewhole chunk ' || %(plan)s || '/' || %(target)s, 0))

-- receipts_of_plan --
-- The chunks that happened here.
select chunk, actions, plan_sha256, lease_epoch, refused
from makewhole.receipt
where plan = %(plan)s and target = %(target)s
order by chunk

-- insert_receipt --
-- The proof, in the transaction of the rows themselves.
insert into makewhole.receipt (plan, target, chunk, actions, plan_sha256, lease_epoch, refused)
values (%(plan)s, %(target)s, %(chunk)s, %(actions)s, %(plan_sha256)s, %(lease_epoch)s, %(refused)s::jsonb)

-- table_columns --
-- The catalogue's word on a table. The type is without its modifier: a cast to varchar(3) would cut a key short.
select n.nspname, c.relname, a.attname, format_type(a.atttypid, -1), a.attgenerated <> '', a.attidentity = 'a'
from pg_class as c
join pg_namespace as n on n.oid = c.relnamespace
join pg_attribute as a on a.attrelid = c.oid
where c.relname = %(name)s and c.relkind in ('r', 'p') and a.attnum > 0 and not a.attisdropped
and (n.nspname = %(schema)s or %(schema)s::text is null and pg_table_is_visible(c.oid))
order by a.attnum

-- cascading_references --
-- Foreign keys through which deleting a row here would delete or change rows elsewhere.
select conname from pg_constraint
where contype = 'f' and confrelid = format('%%I.%%I', %(schema)s::text, %(name)s::text)::regclass
and confdeltype in ('c', 'n', 'd')
order by conname

-- rows_of_key --
-- Every row of one key, the survivor first.
select t.tableoid::bigint, t.ctid::text, row_to_json(t)::text from {table} as t where {match} order by {order}

-- lock_rows_of_key --
-- The same, held until the end of the transaction.
select t.tableoid::bigint, t.ctid::text, row_to_json(t)::text from {table} as t where {match} for update of t

-- lock_table --
-- Writers wait for the length of the chunk, readers do not: absence, once seen, stays true.
lock table {table} in share row exclusive mode

-- move_to_quarantine --
-- One row, taken out of its table and kept.
with moved as (
    delete from {table} as t where t.ctid = %(ctid)s::tid and t.tableoid = %(table_oid)s returning to_jsonb(t) as row
)
insert into makewhole.quarantine (plan, seq, source_table, place, row, how_to_restore)
select %(plan)s, %(seq)s, %(source_table)s, %(ctid)s, moved.row, %(how_to_restore)s from moved

-- restore_row --
-- How a person puts a quarantined row back.
insert into {table} ({columns}) overriding system value
select {columns} from jsonb_populate_record(null::{table},
(select q.row from makewhole.quarantine as q where q.plan = {plan} and q.seq = {seq} and q.place = {place}))

-- insert_row --
-- A row from a JSON object, which lies over its key; columns it does not name take their defaults.
insert into {table} as t ({columns}) overriding system value
select {columns} from jsonb_populate_record(null::{table}, %(key)s::jsonb || %(value)s::jsonb)
returning {key}

-- update_row --
-- The named columns of one row, from a JSON object.
update {table} as t set {assignments}
from jsonb_populate_record(null::{table}, %(key)s::jsonb || %(value)s::jsonb) as wanted
where t.ctid = %(ctid)s::tid and t.tableoid = %(table_oid)s
returning {key}

-- compare_version --
-- How the version of a key's rows stands to that of a JSON object.
select {verdict}
from {table} as t, jsonb_populate_record(null::{table}, %(key)s::jsonb || %(value)s::jsonb) as wanted
where {match}

-- ledger_rows --
-- What the ledger says of one key: record key, value, moment in milliseconds.
select {record_key}, {value}, {moment} from {table} as t where {match} order by {order}
