-- insert_rows --
-- Insert many rows from JSON objects, those whose key is free. Returns how many were written, of how many keys, and
-- which items under their own key and as they are expected. What `returning` gives is matched to what was given by order,
-- and by key, too: in a full join, which the planner cannot turn into a nested loop, however few rows it expects of a
-- JSON text.
with item as materialized (
    select i.*, row_number() over (order by i.seq) as number
    from {items}
    where not exists (select from {table} as t where {match})
), written as (
    insert into {table} as t ({columns}) overriding system value
    select {values} from item as i, jsonb_populate_record(null::{table}, i.value::jsonb) as wanted order by i.number
    returning {place} as place, (t.*)::text as image, {key_texts} as key, {texts} as texts, {key_columns}
), numbered as (
    select row_number() over () as number, place, image, key, texts from written
), kept as (
    insert into makewhole.effect (plan, target, chunk, seq, kind, place, after)
    select %(plan)s, %(target)s, %(chunk)s, i.seq, 'inserted', n.place, n.image
    from numbered as n full join item as i on i.number = n.number
    where coalesce({key} = n.key, false) and {as_expected}
    returning seq
)
select
    (select count(*) from written) as written,
    (select count(*) from (select from written group by {key_names}) as known) as keys,
    (select coalesce(array_agg(seq), '{{}}') from kept) as seqs

-- update_rows --
-- The named columns of many rows are set from JSON objects, where {{guard}} holds of the row `old` that is to be
-- replaced and is the only one of its key. Returns how many were written, and which items under their own key and as
-- they are expected. Keys with several rows are found by a query of their own, so that a table without an index is read
-- once, and not once for each key; and only where {{is_only}} asks for them.
with item as materialized (
    select * from {items}
), several as (
    select i.seq from item as i join {table} as t on {match} group by i.seq having count(*) > 1
), written as (
    update {table} as t set {assignments}
    from item as i
    join {table} as old on old.ctid = i.ctid::tid and old.tableoid = i.table_oid::oid and {match_old}
    cross join lateral jsonb_populate_record(null::{table}, i.value::jsonb) as wanted
    where t.ctid = old.ctid and t.tableoid = old.tableoid and {guard}
    and {is_only}
    returning
        i.seq, {place} as place, (old.*)::text as before, (t.*)::text as after,
        {key_texts} = {key} and {as_expected} as is_right
), kept as (
    insert into makewhole.effect (plan, target, chunk, seq, kind, place, before, after)
    select %(plan)s, %(target)s, %(chunk)s, seq, 'updated', place, before, after from written where is_right
    returning seq
)
select (select count(*) from written) as written, (select coalesce(array_agg(seq), '{{}}') from kept) as seqs

-- hold_rows --
-- Lock the rows of many keys until the end of the transaction, as they are now.
select count(*) from (select from {items} join {table} as t on {match} for update of t) as held

-- keys_as_they_are --
-- Read of each key: its rows, whether one was written by this very transaction, whether it is the one that the plan
-- saw, and whether its version is above the record's. What is not older than our own transaction counts as ours: where
-- another one wrote it, the items are done one by one, and judged again. The rows are locked where {{hold}} says so, and
-- read as they are then.
with held as materialized (
    select
        i.seq, t.tableoid::bigint as table_oid, t.ctid as place, t.xmin as since, row_to_json(t.*)::text as content,
        {existing} as version
    from {items} join {table} as t on {match} {hold}
)
select
    i.seq, count(h.place) as rows, coalesce(bool_or(age(h.since) <= 0), false) as is_ours,
    coalesce(bool_and(h.place = i.ctid::tid and h.table_oid = i.table_oid and h.content = i.row), false)
        as is_as_planned,
    {is_newer} as is_newer
from {items}
left join held as h on h.seq = i.seq {version}
group by i.seq

-- rows_overtaken --
-- Count the rows that were just written and are another by now: a trigger wrote them again, or deleted them.
select count(*)
from makewhole.effect as e
where e.plan = %(plan)s and e.target = %(target)s and e.chunk = %(chunk)s and e.seq = any(%(seqs)s)
and e.kind in ('inserted', 'updated')
and not exists (
    select from {table} as t
    where t.ctid = substring(e.place from '[(][0-9]+,[0-9]+[)]$')::tid and {place} = e.place and (t.*)::text = e.after
)

-- lock_rows_of_keys --
-- Every row of many keys with its exact text, locked until the end of the transaction where {hold} says so.
select i.seq, t.tableoid::bigint as table_oid, t.ctid::text as ctid, row_to_json(t.*)::text as text,
    (t.*)::text as image, {place} as place
from {items} join {table} as t on {match} {hold}

-- move_rows_to_quarantine --
-- Move many rows from their table into quarantine. Returns how many.
with moved as (
    delete from {table} as t using {items}
    where t.ctid = i.ctid::tid and t.tableoid = i.table_oid::oid
    returning i.seq, i.stays, {place} as place, to_jsonb(t.*) as row, (t.*)::text as image
), kept as (
    insert into makewhole.quarantine (plan, seq, source_table, place, row, how_to_restore)
    select %(plan)s, seq, %(source_table)s, place, row, format(%(how_to_restore)s, %(plan)s::text, seq, place)
    from moved order by seq, place
), noted as (
    insert into makewhole.effect (plan, target, chunk, seq, kind, place, before, after)
    select %(plan)s, %(target)s, %(chunk)s, seq, 'moved', place, image, stays from moved
)
select count(*) from moved

-- moved_beside_many --
-- Read the rows that actions moved aside and that were put back, with the plan and the number of each.
select distinct e.plan, e.seq, e.place, e.before
from {items}
join makewhole.effect as e on e.plan = i.undone_plan and e.target = %(target)s and e.seq = i.undone_seq
join makewhole.quarantine as q on (q.plan, q.seq, q.place) = (e.plan, e.seq, e.place)
where e.kind = 'moved' and q.restored_at is not null

-- release_many_from_quarantine --
-- Mark rows that were moved aside as put back; once. Where exact text and table agree, as in release_from_quarantine.
update makewhole.quarantine as q set restored_at = clock_timestamp()
from {items}
where q.plan = i.undone_plan and q.seq = i.undone_seq and q.place = i.undone_place and q.restored_at is null
and to_jsonb(i.image::{table}) = to_jsonb(jsonb_populate_record(null::{table}, q.row))
returning q.id

-- delete_rows --
-- Delete rows that a plan had inserted. Returns how many.
with gone as (
    delete from {table} as t using {items}
    where t.ctid = i.ctid::tid and t.tableoid = i.table_oid::oid
    returning i.seq, {place} as place, (t.*)::text as image
), kept as (
    insert into makewhole.effect (plan, target, chunk, seq, kind, place, before)
    select %(plan)s, %(target)s, %(chunk)s, seq, 'deleted', place, image from gone
    returning seq
)
select count(*) from kept

-- put_rows_back --
-- Update rows to what they were. Returns how many are exactly that.
with written as (
    update {table} as t set {assignments}
    from {items} cross join lateral (select i.image::{table} as image offset 0) as was
    where t.ctid = i.ctid::tid and t.tableoid = i.table_oid::oid
    returning i.seq, i.image, i.present, {place} as place, (t.*)::text as after
), kept as (
    insert into makewhole.effect (plan, target, chunk, seq, kind, place, before, after)
    select %(plan)s, %(target)s, %(chunk)s, seq, 'updated', place, present, after from written where after = image
    returning seq
)
select count(*) from kept

-- bring_rows_back --
-- Insert rows again that were there. Returns how many are exactly that. In a full join, as in insert_rows.
with item as materialized (
    select i.*, row_number() over (order by i.seq) as number from {items}
), written as (
    insert into {table} as t ({columns}) overriding system value
    select {values} from item as i cross join lateral (select i.image::{table} as image offset 0) as was
    order by i.number
    returning {place} as place, (t.*)::text as image
), numbered as (
    select row_number() over () as number, place, image from written
), kept as (
    insert into makewhole.effect (plan, target, chunk, seq, kind, place, after)
    select %(plan)s, %(target)s, %(chunk)s, i.seq, 'inserted', n.place, n.image
    from numbered as n full join item as i on i.number = n.number
    where coalesce(i.image = n.image, false)
    returning seq
)
select count(*) from kept

-- values_read --
-- Read the values of many items as the table's types, for the texts of the compared columns: an error says that they
-- cannot be read.
select i.seq, {texts} as texts
from {items} cross join lateral jsonb_populate_record(null::{table}, i.value::jsonb) as wanted
