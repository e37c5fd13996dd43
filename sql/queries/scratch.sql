-- The tables of a self-check, in a schema of its own in people's database.

-- schema_mark --
-- Read whose a schema is, by its comment, and how much is in it; no row where there is none.
select obj_description(oid, 'pg_namespace') as mark,
    (select count(*) from pg_class where relnamespace = found.oid) as relations,
    pg_has_role(nspowner, 'usage') as is_owned
from pg_namespace as found where nspname = %(name)s;

-- create_schema --
-- Make the schema.
create schema if not exists {schema};

-- create_tables --
-- Make the tables, and mark the schema.
create table {schema}.sent (
    id text primary key,
    sent_at timestamptz not null,
    amount numeric(12, 2) not null,
    payload text not null
);
create index on {schema}.sent (sent_at);
create table {schema}.stored (
    row_number bigint generated always as identity primary key,
    id text not null,
    sent_at timestamptz not null,
    amount numeric(12, 2) not null
);
create index on {schema}.stored (sent_at);
create index on {schema}.stored (id);
create table {schema}.topic (name text primary key, topic_id text);
create table {schema}.spoilt (round text primary key, spoilt_at timestamptz not null);
comment on schema {schema} is %(mark)s;

-- known_topic --
-- Read which topic was made; no row where none was begun.
select topic_id from {schema}.topic where name = %(name)s;

-- put_topic --
-- Note that a topic is made, or its id when it was.
insert into {schema}.topic as known (name, topic_id) values (%(name)s, %(topic_id)s)
on conflict (name) do update set topic_id = excluded.topic_id;

-- send --
-- Write the rows of a round into the ledger, or give them the time of this attempt.
insert into {schema}.sent as known (id, sent_at, amount, payload)
select id, %(at)s, amount, payload
from unnest(%(ids)s::text[], %(amounts)s::numeric[], %(payloads)s::text[]) as row (id, amount, payload)
on conflict (id) do update set sent_at = excluded.sent_at, payload = excluded.payload;

-- load --
-- Write what was read of the topic into the store, each key once.
insert into {schema}.stored (id, sent_at, amount)
select distinct on (id) id, sent_at, amount
from unnest(%(ids)s::text[], %(times)s::timestamptz[], %(amounts)s::numeric[]) as row (id, sent_at, amount)
where not exists (select from {schema}.stored as there where there.id = row.id)
order by id;

-- begin_spoiling --
-- Note that a round's faults are planted in the store; no row where they were.
insert into {schema}.spoilt (round, spoilt_at) values (%(round)s, %(at)s) on conflict do nothing returning round;

-- lose --
-- Remove rows.
delete from {schema}.stored where id = any(%(ids)s);

-- repeat --
-- Write rows a second time.
insert into {schema}.stored (id, sent_at, amount) select id, sent_at, amount from {schema}.stored where id = any(%(ids)s);

-- change --
-- Change the value of rows.
update {schema}.stored set amount = amount + 1 where id = any(%(ids)s);

-- invent --
-- Write rows that no record has.
insert into {schema}.stored (id, sent_at, amount) select id, %(at)s, 1 from unnest(%(ids)s::text[]) as id;

-- rows_of_round --
-- Read the rows of the store whose keys begin with the name of a round.
select id, amount::text as amount from {schema}.stored where starts_with(id, %(begin)s);

-- purge --
-- Remove what is older than a moment.
with sent as (delete from {schema}.sent where sent_at < %(before)s returning 1),
    stored as (delete from {schema}.stored where sent_at < %(before)s returning 1),
    spoilt as (delete from {schema}.spoilt where spoilt_at < %(before)s)
select (select count(*) from sent) + (select count(*) from stored) as rows;
