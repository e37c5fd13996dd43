-- The tables of makewhole in a database that repairs write to. Run once by whoever may make a schema there:
-- psql -f store_schema.sql. A connection with that right makes them by itself; store_writer.sql needs them.
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
create index if not exists quarantine_of_plan on makewhole.quarantine (plan, seq);
