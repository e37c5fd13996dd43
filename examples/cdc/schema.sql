-- The tables of the example. Applying this file again changes nothing.

create schema if not exists shop;
create schema if not exists dw;

-- The shop's outbox, as Debezium's outbox event router expects it: one row for each order that is placed.
create table if not exists shop.outbox (
    id            uuid primary key default gen_random_uuid(),
    aggregatetype text not null default 'orders',
    aggregateid   text not null,
    type          text not null default 'order_placed',
    payload       jsonb not null,
    recorded_at   timestamptz not null default clock_timestamp(),
    -- What the record of the row has, for who compares: the router does not read these.
    customer      text generated always as (payload ->> 'customer') stored,
    amount_cents  bigint generated always as ((payload ->> 'amount_cents')::bigint) stored,
    -- And the value of that record, as the router and JsonConverter make it.
    record_value  jsonb generated always as (jsonb_set(
        '{"schema": {"type": "struct", "name": "payload", "optional": true, "fields": [
            {"field": "customer", "type": "string", "optional": true},
            {"field": "order_id", "type": "string", "optional": true},
            {"field": "placed_at", "type": "string", "optional": true},
            {"field": "amount_cents", "type": "int32", "optional": true}]}}', '{payload}', payload)) stored
);
create index if not exists outbox_in_order on shop.outbox (recorded_at, id);
create index if not exists outbox_by_order on shop.outbox (aggregateid);

-- The warehouse, as the sink inserts into it: nothing here refuses a second row of an order.
create table if not exists dw.orders (
    order_id     text not null,
    customer     text,
    amount_cents bigint,
    placed_at    text,
    loaded_at    timestamptz not null default clock_timestamp()
);
create index if not exists orders_by_order on dw.orders (order_id);
create index if not exists orders_by_time on dw.orders (loaded_at);

-- What went wrong, written by who made it go wrong: a copy too few (-1) or too many (+1) behind a hop, or a row of the
-- warehouse that was changed or of no order.
create table if not exists shop.misdeeds (
    id       bigint generated always as identity primary key,
    what     text not null,
    hop      text not null check (hop in ('outbox→orders', 'orders→warehouse', 'orders→lake')),
    order_id text not null,
    effect   text not null check (effect in ('-1', '+1', 'changed', 'unordered'))
);

-- What a checker should find. A second copy in the topic is loaded twice, so that it shows behind both sinks, too.
create or replace view shop.planted as
with records as (
    select order_id,
           1 + coalesce(sum(effect::int) filter (where hop = 'outbox→orders'), 0)      as copies,
           string_agg(distinct what, ', ' order by what) filter (where hop = 'outbox→orders') as did
      from shop.misdeeds
     where effect in ('-1', '+1')
     group by order_id
), of_sinks as (
    select sink.hop, records.order_id,
           records.copies + coalesce(sum(misdeeds.effect::int), 0)                     as copies,
           concat_ws(', ', records.did, string_agg(distinct misdeeds.what, ', '))      as did
      from (values ('orders→warehouse'), ('orders→lake')) as sink (hop)
      cross join records
      left join shop.misdeeds on misdeeds.hop = sink.hop and misdeeds.order_id = records.order_id
                             and misdeeds.effect in ('-1', '+1')
     where records.copies >= 1
     group by sink.hop, records.order_id, records.copies, records.did
)
select hop, order_id as key, case when copies < 1 then 'missing' else 'duplicate' end as verdict, did as misdeed
  from (select 'outbox→orders' as hop, order_id, copies, did from records union all table of_sinks) as everywhere
 where copies <> 1
union all
select hop, order_id, case effect when 'changed' then 'mismatched' else 'unexpected' end, what
  from shop.misdeeds
 where effect in ('changed', 'unordered');
