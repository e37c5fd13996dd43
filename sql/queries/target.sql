-- create_target_schema --
-- Create our tables in people's own database: the receipts of chunks, the rows that were moved aside, the effects of
-- actions, and the lease from which on runners of a plan may write here.
-- Every statement keeps what exists: a schema that an earlier version made gets what it lacks.
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
);
create table if not exists makewhole.effect (
    plan text not null,
    target text not null,
    chunk integer not null,
    seq integer not null,
    kind text not null check (kind in ('inserted', 'updated', 'moved', 'deleted')),
    place text not null,
    before text,
    after text
);
create table if not exists makewhole.fence (
    plan text not null,
    target text not null,
    lease_epoch bigint not null,
    primary key (plan, target)
);
create index if not exists effect_of_plan on makewhole.effect (plan, target, chunk);
create index if not exists quarantine_of_plan on makewhole.quarantine (plan, seq)

-- has_target_schema --
-- Return whether all of our tables exist.
select
    to_regclass('makewhole.receipt') is not null
    and to_regclass('makewhole.quarantine_of_plan') is not null
    and to_regclass('makewhole.effect_of_plan') is not null
    and to_regclass('makewhole.fence') is not null as is_whole

-- lock_target_schema --
-- Lock the creation: `create … if not exists` still collides when two sessions create at once.
select pg_advisory_xact_lock(hashtextextended('makewhole target schema', 0))

-- begin_chunk --
-- Set up the transaction of a chunk. Each statement sees what was committed before it, so what was waited for is seen.
-- A deferred constraint is checked with the row, so that it refuses a row and not the chunk. The server ends a chunk
-- whose runner stopped, before another runner gives up waiting for it. A receipt that was seen is never lost.
set transaction isolation level read committed;
set constraints all immediate;
select
    set_config('idle_in_transaction_session_timeout', '10s', true) as idle,
    set_config('lock_timeout', '30s', true) as lock,
    set_config(
        'synchronous_commit',
        case current_setting('synchronous_commit') when 'off' then 'on' else current_setting('synchronous_commit') end,
        true
    ) as commit

-- lock_target --
-- Allow one chunk of a plan at a time at this target, whoever the runner is.
select pg_advisory_xact_lock(hashtextextended('makewhole chunk ' || %(plan)s || '/' || %(target)s, 0))

-- raise_fence --
-- Refuse every runner with an earlier lease of the plan here from now on; a later lease stays.
insert into makewhole.fence as known (plan, target, lease_epoch)
values (%(plan)s, %(target)s, %(lease_epoch)s)
on conflict (plan, target) do update set lease_epoch = greatest(known.lease_epoch, excluded.lease_epoch)

-- newest_epoch --
-- Read the highest epoch of the leases under which a plan was worked on here.
select coalesce(max(lease_epoch), 0) as epoch
from (
    select lease_epoch from makewhole.fence where plan = %(plan)s and target = %(target)s
    union all
    select lease_epoch from makewhole.receipt where plan = %(plan)s and target = %(target)s
) as known

-- receipts_of_plan --
-- Read the receipts of the chunks that happened here.
select chunk, actions, plan_sha256, lease_epoch, refused
from makewhole.receipt
where plan = %(plan)s and target = %(target)s
order by chunk

-- insert_receipt --
-- Write the proof of a chunk, in the transaction of its rows.
insert into makewhole.receipt (plan, target, chunk, actions, plan_sha256, lease_epoch, refused)
values (%(plan)s, %(target)s, %(chunk)s, %(actions)s, %(plan_sha256)s, %(lease_epoch)s, %(refused)s::jsonb)

-- count_kept_of_plan --
-- Count what is kept of a plan at a target: effects, receipts and fences, and the rows that it moved aside and that were
-- not put back.
select
    (select count(*) from makewhole.effect where plan = %(plan)s and target = %(target)s)
    + (select count(*) from makewhole.receipt where plan = %(plan)s and target = %(target)s)
    + (select count(*) from makewhole.fence where plan = %(plan)s and target = %(target)s) as effects,
    (
        select count(*) from makewhole.quarantine as aside
        where aside.plan = %(plan)s
            and exists (
                select from makewhole.effect as done
                where (done.plan, done.target, done.seq, done.place)
                    = (aside.plan, %(target)s, aside.seq, aside.place)
            )
    ) as aside,
    (
        select count(*) from makewhole.quarantine as aside
        where aside.plan = %(plan)s and aside.restored_at is null
            and exists (
                select from makewhole.effect as done
                where (done.plan, done.target, done.seq, done.place)
                    = (aside.plan, %(target)s, aside.seq, aside.place)
            )
    ) as waiting

-- forget_rows_aside --
-- Remove the rows that a plan moved aside from a target.
delete from makewhole.quarantine as aside
where aside.plan = %(plan)s
    and exists (
        select from makewhole.effect as done
        where (done.plan, done.target, done.seq, done.place) = (aside.plan, %(target)s, aside.seq, aside.place)
    )

-- forget_effects --
-- Remove the effects of a plan at a target.
delete from makewhole.effect where plan = %(plan)s and target = %(target)s

-- erase_rows_aside --
-- Remove the rows that some actions of a plan moved aside from a target; count them.
with gone as (
    delete from makewhole.quarantine as aside
    where aside.plan = %(plan)s and aside.seq = any(%(seqs)s)
        and exists (
            select from makewhole.effect as done
            where (done.plan, done.target, done.seq, done.place) = (aside.plan, %(target)s, aside.seq, aside.place)
        )
    returning 1
)
select count(*) from gone

-- erase_effects --
-- Remove the effects of some actions of a plan at a target; count them.
with gone as (
    delete from makewhole.effect where plan = %(plan)s and target = %(target)s and seq = any(%(seqs)s)
    returning 1
)
select count(*) from gone

-- forget_receipts --
-- Remove the receipts of a plan at a target.
delete from makewhole.receipt where plan = %(plan)s and target = %(target)s

-- forget_fence --
-- Remove the lease from which on runners of a plan may write to a target.
delete from makewhole.fence where plan = %(plan)s and target = %(target)s

-- table_columns --
-- Read a table from the catalogue. The type is without its modifier: a cast to varchar(3) would cut a key short. The
-- base type is the same, but of a domain the type that it is made of.
-- `column_sets` are those of columns that no two rows ever share, where `=` means to the index what it means to a
-- statement (types of PostgreSQL's own, their usual operators and collations) and where no child has rows of its own. A
-- valid unique index of a partitioned table is one of all its partitions together.
select
    n.nspname as schema, c.relname as table_name, c.oid::bigint as oid, u.column_sets, a.attname as name,
    format_type(a.atttypid, -1) as type, b.name as base_type, a.attgenerated <> '' as is_generated, a.attidentity = 'a' as is_identity_always,
    a.attnotnull or d.typnotnull as is_required,
    a.atthasdef or a.attidentity <> '' or d.typdefault is not null as has_default
from pg_class as c
join pg_namespace as n on n.oid = c.relnamespace
join pg_attribute as a on a.attrelid = c.oid
join pg_type as d on d.oid = a.atttypid
cross join lateral (
    select coalesce(json_agg(k.names) filter (where k.are_usual), '[]') as column_sets
    from pg_index as x
    cross join lateral (
        select
            json_agg(y.attname) as names,
            bool_and(o.opcdefault and x.indcollation[p] = y.attcollation and t.typnamespace = 'pg_catalog'::regnamespace)
            as are_usual
        from generate_series(0, x.indnkeyatts - 1) as p
        join pg_opclass as o on o.oid = x.indclass[p]
        join pg_attribute as y on y.attrelid = c.oid and y.attnum = x.indkey[p]
        join pg_type as t on t.oid = y.atttypid
    ) as k
    where x.indrelid = c.oid
    and (c.relkind = 'p' or not exists (select from pg_inherits where inhparent = c.oid))
    and x.indisunique and x.indimmediate and x.indisvalid and not x.indisexclusion
    and x.indpred is null and x.indexprs is null
) as u
cross join lateral (
    with recursive made as (
        select d.oid as id, d.typtype as kind, d.typbasetype as base
        union all
        select t.oid, t.typtype, t.typbasetype from made join pg_type as t on t.oid = made.base and made.kind = 'd'
    )
    select format_type(made.id, -1) as name from made where made.kind <> 'd'
) as b
where c.relname = %(name)s and c.relkind in ('r', 'p') and a.attnum > 0 and not a.attisdropped
and (n.nspname = %(schema)s or %(schema)s::text is null and pg_table_is_visible(c.oid))
order by a.attnum

-- cascading_references --
-- Read the foreign keys through which deleting a row here would delete or change rows elsewhere: those onto the table,
-- and those onto one of its partitions alone. One onto the table has a row for each of its partitions besides. Where it
-- is asked, also the triggers that run after a row is deleted.
with recursive family as (
    select format('%%I.%%I', %(schema)s::text, %(name)s::text)::regclass::oid as id
    union
    select pg_inherits.inhrelid from pg_inherits join family on family.id = pg_inherits.inhparent
)
select conname::text from pg_constraint as reference join family on family.id = confrelid
where contype = 'f' and confdeltype in ('c', 'n', 'd') and not exists (
    select from pg_constraint as whole join family on family.id = whole.confrelid
    where whole.oid = reference.conparentid
)
union
select 'trigger ' || tgname from pg_trigger join family on family.id = tgrelid
where %(with_triggers)s and not tgisinternal and tgenabled <> 'D' and tgtype & 8 = 8 and tgtype & 66 = 0
order by 1

-- triggers_after --
-- Return whether triggers of the table, or of its partitions and children, run after a row is written.
with recursive family as (
    select format('%%I.%%I', %(schema)s::text, %(name)s::text)::regclass::oid as id
    union
    select pg_inherits.inhrelid from pg_inherits join family on family.id = pg_inherits.inhparent
)
select exists (
    select from pg_trigger join family on family.id = pg_trigger.tgrelid
    where not tgisinternal and tgenabled <> 'D' and tgtype & 66 = 0  -- neither before (2) nor instead of (64)
)

-- rows_of_key --
-- Read every row of one key, the survivor first.
select t.tableoid::bigint, t.ctid::text, row_to_json(t.*)::text from {table} as t where {match} order by {order}

-- rows_with_values --
-- Read every row of one key, the survivor first by time or version, with its place and its compared columns as text.
select t.tableoid::bigint as table_oid, t.ctid::text as ctid, row_to_json(t.*)::text as text, {place} as place,
    {compared} as compared
from {table} as t where {match} order by {order}

-- rows_of_many_keys --
-- Read the same of many keys, with the number of its key among those that were given.
-- First every key is read as the columns' types: the join with an empty table would not show that they cannot hold one.
select {values} from unnest({arrays}) as wanted ({fields});
select wanted.number, t.tableoid::bigint as table_oid, t.ctid::text as ctid, row_to_json(t.*)::text as text,
    {place} as place, {compared} as compared
from unnest({arrays}) with ordinality as wanted ({fields}, number) join {table} as t on {match}
order by wanted.number, {order}

-- lock_rows_of_key --
-- The same rows with their exact text, locked until the end of the transaction where {hold} says so.
select t.tableoid::bigint as table_oid, t.ctid::text as ctid, row_to_json(t.*)::text as text, (t.*)::text as image,
    {place} as place
from {table} as t where {match} {hold}

-- lock_table --
-- Make writers wait for the length of the chunk, but not readers: absence, once seen, stays true. Writers queue behind
-- this request already while it waits, so it does not wait for long.
set local lock_timeout = '500ms';
lock table {table} in share row exclusive mode

-- keep_table --
-- Allow others to write, but keep the table as the catalogue has it: no foreign key is added meanwhile, and a unique
-- index goes on to be kept. No row is waited for so long that those who wait for our rows take it for a deadlock.
set local lock_timeout = '500ms';
lock table {table} in row exclusive mode

-- move_to_quarantine --
-- Move one row from its table into quarantine.
with moved as (
    delete from {table} as t where t.ctid = %(ctid)s::tid and t.tableoid = %(table_oid)s
    returning {place} as place, to_jsonb(t.*) as row, (t.*)::text as image
), kept as (
    insert into makewhole.quarantine (plan, seq, source_table, place, row, how_to_restore)
    select %(plan)s, %(seq)s, %(source_table)s, m.place, m.row,
    format(%(how_to_restore)s, %(plan)s::text, %(seq)s::integer, m.place)
    from moved as m
)
insert into makewhole.effect (plan, target, chunk, seq, kind, place, before, after)
select %(plan)s, %(target)s, %(chunk)s, %(seq)s, 'moved', m.place, m.image, %(stays)s from moved as m
returning seq

-- restore_row --
-- Put a quarantined row back, once, by hand: a text for format(), with plan, action and place. Not where the columns of
-- the table are others now: the exact text has their values in order, and no names.
with back as (
    update makewhole.quarantine as q set restored_at = clock_timestamp()
    from makewhole.effect as e
    where q.plan = %1$L and q.seq = %2$s and q.place = %3$L and q.restored_at is null
    and e.plan = q.plan and e.seq = q.seq and e.place = q.place and e.kind = 'moved'
    and to_jsonb(e.before::{table}) = to_jsonb(jsonb_populate_record(null::{table}, q.row))
    returning e.before::{table} as image
)
insert into {table} ({columns}) overriding system value select {values} from back

-- insert_row --
-- Insert a row from a JSON object laid over its key; columns that are not named take their defaults.
insert into {table} as t ({columns}) overriding system value
select {values} from jsonb_populate_record(null::{table}, %(key)s::jsonb || %(value)s::jsonb) as wanted
returning {written}

-- update_row --
-- Update the named columns of one row, from a JSON object.
update {table} as t set {assignments}
from jsonb_populate_record(null::{table}, %(key)s::jsonb || %(value)s::jsonb) as wanted
where t.ctid = %(ctid)s::tid and t.tableoid = %(table_oid)s
returning {written}

-- row_at --
-- Read a row that was just written, if no trigger has touched it since.
select {place} as place, (t.*)::text as image, {texts} as texts
from {table} as t where t.ctid = %(ctid)s::tid and t.tableoid = %(table_oid)s

-- row_of_key --
-- Read a row that was just written, wherever a trigger moved it.
select {place} as place, (t.*)::text as image, {texts} as texts from {table} as t where {match}

-- insert_effect --
-- Write the effect on one row.
insert into makewhole.effect (plan, target, chunk, seq, kind, place, before, after)
values (%(plan)s, %(target)s, %(chunk)s, %(seq)s, %(kind)s, %(place)s, %(before)s, %(after)s)

-- chunks_without_effects --
-- Read the chunks whose receipt counts other actions than there are effects of.
select r.chunk, r.actions, count(distinct e.seq) as found
from makewhole.receipt as r
left join makewhole.effect as e on e.plan = r.plan and e.target = r.target and e.chunk = r.chunk
where r.plan = %(plan)s and r.target = %(target)s
group by r.chunk, r.actions
having count(distinct e.seq) <> r.actions
order by r.chunk

-- effects_of_plan --
-- Read the effects of a plan, the latest first.
select chunk, seq, kind, place, before, after
from makewhole.effect
where plan = %(plan)s and target = %(target)s
order by chunk desc, seq desc, place desc

-- delete_row --
-- Delete one row that a plan had inserted.
with gone as (
    delete from {table} as t where t.ctid = %(ctid)s::tid and t.tableoid = %(table_oid)s
    returning {place} as place, (t.*)::text as image
)
insert into makewhole.effect (plan, target, chunk, seq, kind, place, before)
select %(plan)s, %(target)s, %(chunk)s, %(seq)s, 'deleted', gone.place, gone.image from gone
returning seq

-- put_back --
-- Update one row to what it was.
update {table} as t set {assignments}
from (select %(image)s::{table} as image offset 0) as was
where t.ctid = %(ctid)s::tid and t.tableoid = %(table_oid)s
returning {written}

-- bring_back --
-- Insert one row again that was there.
insert into {table} as t ({columns}) overriding system value
select {values} from (select %(image)s::{table} as image offset 0) as was
returning {written}

-- read_image --
-- Check that the text of a row is still one of this table.
select %(image)s::{table} is null as is_null

-- moved_beside --
-- Read the rows that an action moved aside and that were put back.
select before from makewhole.effect as e
join makewhole.quarantine as q on (q.plan, q.seq, q.place) = (e.plan, e.seq, e.place)
where e.plan = %(undone_plan)s and e.target = %(target)s and e.seq = %(undone_seq)s and e.kind = 'moved'
  and q.restored_at is not null

-- release_from_quarantine --
-- Mark a row that was moved aside as put back; once. Its exact text, which has values and no names, is to be the same row
-- of the table as its JSON object, which has names: both as the table and the session are now.
update makewhole.quarantine set restored_at = clock_timestamp()
where plan = %(undone_plan)s and seq = %(undone_seq)s and place = %(undone_place)s and restored_at is null
and to_jsonb(%(image)s::{table}) = to_jsonb(jsonb_populate_record(null::{table}, row))
returning id

-- is_in_quarantine --
-- Return whether a row that was moved aside is still there or was put back, and whether its exact text is that row in the
-- table as it is now; no row where it is not kept.
select
    restored_at is null as waits,
    to_jsonb(%(image)s::{table}) = to_jsonb(jsonb_populate_record(null::{table}, row)) as is_same
from makewhole.quarantine
where plan = %(undone_plan)s and seq = %(undone_seq)s and place = %(undone_place)s

-- compare_version --
-- Compare the version of a key's rows with that of a JSON object.
select {verdict} as is_older
from {table} as t, jsonb_populate_record(null::{table}, %(key)s::jsonb || %(value)s::jsonb) as wanted
where {match}

-- ledger_rows --
-- Read the rows of one key from the ledger: record key, value, time in milliseconds, texts of the compared columns, texts
-- of the headers, and whether the row passes the hop's filter.
select {record_key} as record_key, {value} as value, {moment} as moment, {compared} as compared, {headers} as headers,
    {passes} as passes
from {table} as t where {match} order by {order}

-- ledger_rows_of_many_keys --
-- Read of many keys the row of the ledger that counts, with the number of its key among those that were given.
-- First every key is read as the columns' types: the join with an empty table would not show that they cannot hold one.
select {values} from unnest({arrays}) as wanted ({fields});
select distinct on (wanted.number) wanted.number, {record_key} as record_key, {value} as value, {moment} as moment,
    {compared} as compared, {headers} as headers, {passes} as passes
from unnest({arrays}) with ordinality as wanted ({fields}, number) join {table} as t on {match}
order by wanted.number, {order}

-- column_ids --
-- Read what the catalogue knows columns of a table by: a column that gets another name keeps it.
select attname::text, format('%%s.%%s', attrelid::bigint, attnum)
from pg_attribute
where attrelid = to_regclass(%(table)s) and attname = any(%(columns)s::text[]) and not attisdropped;

-- identity_of_data --
-- Read the number and the timeline of a server's data: a standby, and a connection of another name, have the same.
select system_identifier || '/' || timeline_id from pg_control_system(), pg_control_checkpoint();

-- identity_of_server --
-- Read when a server was started, whether it follows another one, and the number of the session's database in it.
select pg_postmaster_start_time()::text, pg_is_in_recovery(), oid::bigint
from pg_database where datname = current_database();

-- identity_of_table --
-- Read what the catalogue knows a table by: a table that gets another name or schema keeps it.
select to_regclass(%(table)s)::oid::bigint;

-- tables_of_rows --
-- Read where the rows of a table lie: in itself and its partitions and children, those of a view in the tables that it
-- reads; and whether each of them is one row there, and not one that a view joins or sums up from several.
with recursive place (relation) as (
    select to_regclass(%(table)s)::oid
    union
    select further.relation
    from place
    cross join lateral (
        select inhrelid as relation from pg_inherits where inhparent = place.relation
        union all
        select d.refobjid
        from pg_class as c
        join pg_rewrite as r on r.ev_class = c.oid
        join pg_depend as d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid
        where c.oid = place.relation and c.relkind = 'v'
            and d.refclassid = 'pg_class'::regclass and d.refobjid <> c.oid
    ) as further
)
select array_agg(relation::bigint),
    (select c.relkind <> 'v' or pg_relation_is_updatable(c.oid, false) & 4 = 4  -- 4: rows can be updated
     from pg_class as c where c.oid = to_regclass(%(table)s))
from place;

-- has_receipts --
-- Return whether a plan was ever done in this database.
select to_regclass('makewhole.receipt') is not null

-- row_as_inserted --
-- Read the named columns of a row that is to be inserted, from a JSON object, as the table's types read it.
select row_to_json(r.*)::text
from (select {values} from jsonb_populate_record(null::{table}, %(key)s::jsonb || %(value)s::jsonb) as wanted) as r

-- row_as_updated --
-- Read a row as it would be after an update from a JSON object: its other columns are as they are.
select row_to_json(r.*)::text
from (
    select {values}
    from {table} as t, jsonb_populate_record(null::{table}, %(key)s::jsonb || %(value)s::jsonb) as wanted
    where t.ctid = %(ctid)s::tid and t.tableoid = %(table_oid)s
) as r

-- row_as_it_was --
-- Read a row that is to be put back, from its exact text.
select row_to_json(r.*)::text from (select {values} from (select %(image)s::{table} as image offset 0) as was) as r
