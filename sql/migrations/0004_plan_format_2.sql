-- Plans of format 2: an action carries its chunk, `before` is text that COPY gives back byte for byte, and what became
-- of an action is read from the receipts instead of being written into every row.
create table makewhole.planned_action (
    plan text not null references makewhole.plan (id),
    seq integer not null,
    chunk integer not null check (chunk >= 0),
    remedy text not null,
    hop text not null,
    target text not null,
    key text not null,
    key_hash text not null,
    before text not null,
    refusal text,
    primary key (plan, seq)
);

-- Which chunk an action of an earlier version was in is told by the receipts, which count the actions that took effect.
-- What has no receipt comes behind all that have.
with effective as (
    select plan, seq, target, row_number() over (partition by plan, target order by seq) as place
    from makewhole.action where outcome = 'done'
), receipt as (
    select plan, target, chunk, actions, sum(actions) over (partition by plan, target order by chunk) as upto
    from makewhole.chunk
)
insert into makewhole.planned_action (plan, seq, chunk, remedy, hop, target, key, key_hash, before, refusal)
select action.plan, action.seq,
       coalesce(receipt.chunk, (select count(*) from receipt as known
                                where known.plan = action.plan and known.target = action.target)),
       action.remedy, action.hop, action.target, action.key, action.key_hash, action.before::text,
       case when action.outcome = 'refused' then coalesce(action.outcome_reason, 'refused') end
from makewhole.action
left join effective on effective.plan = action.plan and effective.seq = action.seq
left join receipt
    on receipt.plan = effective.plan and receipt.target = effective.target
    and effective.place > receipt.upto - receipt.actions and effective.place <= receipt.upto;
drop table makewhole.action;
create index action_by_key on makewhole.planned_action (key_hash, target);

create view makewhole.action as
select plan, seq, chunk, remedy, hop, target, key, key_hash, before,
       case when refusal is not null then 'refused'
            when exists (select from makewhole.chunk as receipt
                         where receipt.plan = planned.plan and receipt.target = planned.target
                         and receipt.chunk = planned.chunk) then 'done'
       end as outcome,
       refusal as outcome_reason
from makewhole.planned_action as planned;

alter table makewhole.plan
    add column settled_at timestamptz,
    add column is_untold boolean not null default false;

-- The digests of earlier plans are of another format: what has not ended cannot be checked any more.
update makewhole.plan
set state = 'rejected', reason = 'frozen by an earlier version of makewhole; open a new revision of the window'
where state in ('frozen', 'awaiting_approval', 'approved', 'running');
