-- The example system's own tables. Applying this file again changes nothing.

create schema if not exists ops;
create schema if not exists dw;

-- The airline's outbox: every departure that must reach the topic, written by the booking side.
create table if not exists ops.departures (
    flight_id      text primary key,          -- <time_hour>|<carrier>|<flight>
    recorded_at    timestamptz not null,      -- the flight's own time
    year           int not null,
    month          int not null,
    day            int not null,
    dep_time       int,                       -- null: cancelled
    sched_dep_time int not null,
    dep_delay      numeric(6, 1),
    arr_time       int,
    sched_arr_time int not null,
    arr_delay      numeric(6, 1),
    carrier        text not null,
    flight         int not null,
    tailnum        text,
    origin         text not null,
    dest           text not null,
    air_time       int,
    distance       int not null,
    hour           int not null,
    minute         int not null,
    time_hour      timestamptz not null
);
create index if not exists departures_in_order on ops.departures (recorded_at, flight_id);

-- How far the producer got. It is moved after the broker's acknowledgement: a crash in between sends again.
create table if not exists ops.producer_checkpoint (
    producer    text primary key,
    recorded_at timestamptz not null,
    flight_id   text not null
);

-- What this system did wrong, one row per effect: -1 a copy too few, +1 a copy too many, on this hop.
create table if not exists ops.misdeeds (
    id        bigint generated always as identity primary key,
    what      text not null,
    hop       text not null check (hop in ('outbox→flights', 'flights→warehouse')),
    flight_id text not null,
    effect    int not null check (effect in (-1, 1)),
    at        timestamptz not null default clock_timestamp(),
    detail    jsonb not null default '{}'
);
create index if not exists misdeeds_by_flight on ops.misdeeds (flight_id);

-- What a checker should find. A second copy in the topic is loaded twice by a loader that does not deduplicate,
-- so an effect on the first hop shows on the second too, unless the loader lost that very copy.
create or replace view ops.planted as
with copies as (
    select flight_id,
           1 + coalesce(sum(effect) filter (where hop = 'outbox→flights'), 0)    as in_topic,
           coalesce(sum(effect) filter (where hop = 'flights→warehouse'), 0)     as at_load,
           string_agg(distinct what, ', ') filter (where hop = 'outbox→flights') as sent,
           string_agg(distinct what, ', ' order by what)                         as did
      from ops.misdeeds
     group by flight_id
)
select 'outbox→flights' as hop, flight_id as key,
       case when in_topic < 1 then 'missing' else 'duplicate' end as verdict, sent as misdeed
  from copies
 where in_topic <> 1
union all
select 'flights→warehouse', flight_id,
       case when in_topic + at_load < 1 then 'missing' else 'duplicate' end, did
  from copies
 where in_topic >= 1 and in_topic + at_load <> 1;

-- The warehouse: append-only, and nothing here refuses a second row for the same flight.
create table if not exists dw.departures (
    flight_id      text not null,
    departed_at    timestamptz not null,      -- the flight's own time
    loaded_at      timestamptz not null default now(),
    year           int not null,
    month          int not null,
    day            int not null,
    dep_time       int,
    sched_dep_time int not null,
    dep_delay      numeric(6, 1),
    arr_time       int,
    sched_arr_time int not null,
    arr_delay      numeric(6, 1),
    carrier        text not null,
    flight         int not null,
    tailnum        text,
    origin         text not null,
    dest           text not null,
    air_time       int,
    distance       int not null,
    hour           int not null,
    minute         int not null
);
create index if not exists departures_by_flight on dw.departures (flight_id);
create index if not exists departures_by_time on dw.departures (departed_at);

-- The exact loader keeps its offsets here, in the transaction of the rows they stand for.
create table if not exists dw.loader_offsets (
    topic       text not null,
    partition   int not null,
    next_offset bigint not null,
    primary key (topic, partition)
);
