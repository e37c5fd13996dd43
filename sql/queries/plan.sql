-- lock_window_plan --
-- Wait for who is freezing the plan of a window revision; who freezes one does so alone for the window, so that two of its
-- revisions see each other's plan. Released at the end of the transaction.
select pg_advisory_xact_lock(
        hashtextextended('makewhole plan ' || %(pipeline)s || '/' || %(number)s || '/' || %(revision)s, 0)
    ),
    case when %(is_freezing)s then
        pg_advisory_xact_lock(hashtextextended('makewhole plan ' || %(pipeline)s || '/' || %(number)s, 0))
    end as of_window

-- plan_of_window --
-- Read the plan that was frozen for a window revision, if any.
select id, pipeline, number as window, revision, sha256, payload_uri, counts, state, reason, undoes,
payload_sha256, control, records_per_second, began_at, ended_at, log_ends, asked_until
from makewhole.plan
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s and undoes is null

-- plan_by_id --
-- Read one plan.
select id, pipeline, number as window, revision, sha256, payload_uri, counts, state, reason, undoes,
payload_sha256, control, records_per_second, began_at, ended_at, log_ends, asked_until
from makewhole.plan
where id = %(plan)s

-- undo_of_plan --
-- Read the plan that undoes another one, unless it was turned down.
select id, pipeline, number as window, revision, sha256, payload_uri, counts, state, reason, undoes,
payload_sha256, control, records_per_second, began_at, ended_at, log_ends, asked_until
from makewhole.plan
where undoes = %(plan)s and state not in ('refused', 'rejected')

-- newest_undo_of_plan --
-- Read the plan that was last made to undo another one, turned down or not.
select id, pipeline, number as window, revision, sha256, payload_uri, counts, state, reason, undoes,
payload_sha256, control, records_per_second, began_at, ended_at, log_ends, asked_until
from makewhole.plan
where undoes = %(plan)s order by frozen_at desc limit 1

-- begun_undo_of_plan --
-- Read the plan that was last begun to undo another one, whatever became of it.
select id, pipeline, number as window, revision, sha256, payload_uri, counts, state, reason, undoes,
payload_sha256, control, records_per_second, began_at, ended_at, log_ends, asked_until
from makewhole.plan
where undoes = %(plan)s and began_at is not null order by began_at desc limit 1

-- lock_plan --
-- Read one plan and lock it until the end of the transaction.
select id, pipeline, number as window, revision, sha256, payload_uri, counts, state, reason, undoes,
payload_sha256, control, records_per_second, began_at, ended_at, log_ends, asked_until
from makewhole.plan
where id = %(plan)s
for update

-- plans_before --
-- Read the plans of other revisions of a window that were frozen before its own, and could still write, or whose receipts
-- are not all known.
select id, pipeline, number as window, revision, sha256, payload_uri, counts, state, reason, undoes,
payload_sha256, control, records_per_second, began_at, ended_at, log_ends, asked_until
from makewhole.plan
where pipeline = %(pipeline)s and number = %(number)s and revision <> %(revision)s and settled_at is null
and (state not in ('done', 'refused', 'rejected') or state = 'rejected' and began_at is not null)
order by frozen_at

-- insert_plan --
-- Write a frozen plan.
insert into makewhole.plan
(id, pipeline, number, revision, sha256, payload_uri, payload_sha256, counts, state, reason, undoes)
values (%(plan)s, %(pipeline)s, %(number)s, %(revision)s, %(sha256)s, %(payload_uri)s, %(payload_sha256)s,
%(counts)s::jsonb, %(state)s, %(reason)s, %(undoes)s)

-- copy_actions_in --
-- Write the actions of a plan: each line of the plan's hash, with the plan's id in front.
copy makewhole.planned_action (plan, seq, chunk, remedy, hop, target, key, key_hash, before)
from stdin with (format text, encoding 'UTF8')

-- copy_actions_out --
-- Read the very bytes that the plan's hash is over.
copy (
    select seq, chunk, remedy, hop, target, key, key_hash, before
    from makewhole.planned_action where plan = {plan} order by seq
) to stdout with (format text, encoding 'UTF8')

-- actions_of_plan --
-- Read the first actions in order, with their outcomes; all where `most` is null.
select seq, chunk, remedy, hop, target, key, key_hash, before, outcome, outcome_reason as reason
from makewhole.action
where plan = %(plan)s
order by seq limit %(most)s

-- written_records --
-- Read the actions that wrote a record to a topic, by their receipts, the last one first.
select seq, chunk, remedy, hop, target, key, key_hash, before, outcome, outcome_reason as reason
from makewhole.action
where plan = %(plan)s and outcome = 'done' and remedy in ('redeliver', 'produce')
order by seq desc

-- locking_chunks --
-- Count the chunks of a plan for which other writers of their table wait, by target.
select target, count(distinct chunk) as chunks from makewhole.planned_action
where plan = %(plan)s and before::jsonb ->> 'locks_table' = 'true'
group by target order by min(seq)

-- refused_actions --
-- Read which actions of a chunk are refused, and why.
select seq, refusal
from makewhole.planned_action
where plan = %(plan)s and target = %(target)s and chunk = %(chunk)s and seq between %(first)s and %(last)s
and refusal is not null

-- refused_keys --
-- Read what a plan refused to do when it ran: (hop, key hash, reason).
select hop, key_hash, refusal
from makewhole.planned_action
where plan = %(plan)s and refusal is not null
order by seq

-- chunks_refused_whole --
-- Read the chunks of a target whose every action is refused.
select chunk from makewhole.planned_action
where plan = %(plan)s and target = %(target)s
group by chunk
having bool_and(refusal is not null)
order by chunk

-- note_question --
-- Write until when a question about a plan waits for its answer.
update makewhole.plan set asked_until = %(until)s where id = %(plan)s

-- set_plan_state --
-- Move a plan on. A revision that supersedes it ends it only where it has not ended yet. A paused plan that is approved
-- goes on saying why it waits.
update makewhole.plan
set state = %(state)s,
    reason = case when control = 'pause' and %(state)s = 'approved' then reason else coalesce(%(reason)s, reason) end,
    superseded_by = coalesce(%(superseded_by)s, superseded_by),
    ended_at = case when %(state)s in ('done', 'rejected') then coalesce(ended_at, clock_timestamp()) end
where id = %(plan)s
and (%(superseded_by)s::integer is null or state in ('frozen', 'awaiting_approval', 'approved', 'running'))

-- name_successor --
-- Name the plan that took the place of those that its revision of the window superseded.
update makewhole.plan set reason = %(named)s
where pipeline = %(pipeline)s and number = %(number)s and revision < %(revision)s
and state = 'rejected' and superseded_by = %(revision)s

-- settle_plan --
-- Mark a plan as settled: nothing is written for it any more, and its receipts are all known, or never will be.
update makewhole.plan set settled_at = clock_timestamp(), is_unknown = %(is_unknown)s where id = %(plan)s

-- set_plan_control --
-- Pause a plan, or resume it.
update makewhole.plan set control = %(control)s, reason = %(reason)s where id = %(plan)s

-- set_plan_rate --
-- Set a plan's rate, or give it back its own.
update makewhole.plan set records_per_second = %(records_per_second)s, reason = %(reason)s where id = %(plan)s

-- begin_plan --
-- Use up the approval. The log ends are kept from the first time: nothing of the plan lies before them.
update makewhole.plan
set state = 'running', began_at = coalesce(began_at, clock_timestamp()), log_ends = coalesce(log_ends, %(log_ends)s::jsonb)
where id = %(plan)s

-- put_approval --
-- Write the answer to a plan; a second one changes nothing.
insert into makewhole.approval (plan, sha256, decision, by, at, expires_at, seen)
values (%(plan)s, %(sha256)s, %(decision)s, %(by)s, %(at)s,
case when %(expires_seconds)s::float8 is null then null
else %(at)s::timestamptz + %(expires_seconds)s * interval '1 second' end, %(seen)s::jsonb)
on conflict (plan) do nothing

-- approval_of_plan --
-- Read the answer to a plan, and whether it has expired by the journal's own clock.
select sha256, decision, by, expires_at, coalesce(expires_at <= clock_timestamp(), false) as has_expired
from makewhole.approval
where plan = %(plan)s

-- refuse_actions --
-- Write refusals that are decided before the chunk, so that every later attempt leaves the same actions out.
update makewhole.planned_action set refusal = refused.reason
from unnest(%(seqs)s::integer[], %(reasons)s::text[]) as refused (seq, reason)
where planned_action.plan = %(plan)s and planned_action.seq = refused.seq and planned_action.refusal is null

-- put_chunk --
-- Write a receipt that was seen at the target.
insert into makewhole.chunk (plan, target, chunk, actions, place)
values (%(plan)s, %(target)s, %(chunk)s, %(actions)s, %(place)s)
on conflict (plan, target, chunk) do nothing

-- actions_by_target --
-- Count the actions of a plan for each target.
select target, count(*) as actions from makewhole.planned_action where plan = %(plan)s group by target order by target

-- actions_done --
-- Count the actions that took effect, by the receipts.
select coalesce(sum(actions), 0) as actions from makewhole.chunk where plan = %(plan)s

-- chunks_of_plan --
-- Read the receipts that the journal knows of.
select plan, target, chunk, actions, place from makewhole.chunk where plan = %(plan)s order by target, chunk

-- refuse_findings --
-- Mark the findings that no action could be made for. Each is looked up by the primary key, whatever the planner knows.
update makewhole.finding set outcome = 'refused', outcome_reason = refused.reason
from (
    select stored.ctid as place, given.reason
    from unnest(%(hops)s::text[], %(hashes)s::text[], %(reasons)s::text[]) as given (hop, key_hash, reason)
    cross join lateral (
        select ctid from makewhole.finding as one
        where one.pipeline = %(pipeline)s and one.number = %(number)s and one.revision = %(revision)s
          and one.hop = given.hop and one.key_hash = given.key_hash
        limit 1
    ) as stored
) as refused
where finding.ctid = refused.place

-- refuse_findings_of --
-- Mark the findings whose actions a plan refused when it ran.
update makewhole.finding set outcome = 'refused', outcome_reason = refused.reason
from (
    select stored.ctid as place, given.reason
    from (
        select distinct on (hop, key_hash) hop, key_hash, refusal as reason
        from makewhole.planned_action where plan = %(plan)s and refusal is not null
        order by hop, key_hash, seq
    ) as given
    cross join lateral (
        select ctid from makewhole.finding as one
        where one.pipeline = %(pipeline)s and one.number = %(number)s and one.revision = %(revision)s
          and one.hop = given.hop and one.key_hash = given.key_hash
        limit 1
    ) as stored
) as refused
where finding.ctid = refused.place

-- keys_written_since --
-- Read which of the keys a plan of the pipeline wrote since a window revision was opened: by its receipts, or possibly.
-- A record that was sent again was sent for every hop from its topic, and one that was produced for those behind its
-- hop.
select distinct on (wanted.hop, wanted.key_hash) wanted.hop, wanted.key_hash, action.plan,
       coalesce(receipt.observed_at > judged.opened_at, false) as is_proven
from unnest(%(hops)s::text[], %(hashes)s::text[]) as wanted (hop, key_hash)
join makewhole.planned_action as action
    on action.key_hash = wanted.key_hash and action.refusal is null
    and (
        action.hop = wanted.hop
        or action.remedy = 'redeliver' and split_part(action.hop, '→', 1) = split_part(wanted.hop, '→', 1)
        or action.remedy = 'produce' and split_part(action.hop, '→', 2) = split_part(wanted.hop, '→', 1)
    )
join makewhole.plan on plan.id = action.plan and plan.pipeline = %(pipeline)s
join makewhole.window as judged
    on judged.pipeline = %(pipeline)s and judged.number = %(number)s and judged.revision = %(revision)s
left join makewhole.chunk as receipt
    on receipt.plan = action.plan and receipt.target = action.target and receipt.chunk = action.chunk
where receipt.observed_at > judged.opened_at or plan.is_unknown and plan.settled_at > judged.opened_at
order by wanted.hop, wanted.key_hash, receipt.observed_at desc nulls last

-- undone_since --
-- Read the newest plan that took back what a plan of a window wrote, and did so since a revision looked: one of an earlier
-- revision since this one was opened, one of its own since it was verified last.
select undo.id
from makewhole.plan as undo
join makewhole.window as judged
    on judged.pipeline = undo.pipeline and judged.number = undo.number and judged.revision = %(revision)s
join makewhole.chunk as receipt on receipt.plan = undo.id
left join makewhole.gate_report as verified
    on (verified.pipeline, verified.number, verified.revision) = (judged.pipeline, judged.number, judged.revision)
    and verified.stage = 'verified'
where undo.pipeline = %(pipeline)s and undo.number = %(number)s and undo.revision <= %(revision)s
and undo.undoes is not null and receipt.actions > 0
and receipt.observed_at > case
    when undo.revision < judged.revision then judged.opened_at else coalesce(verified.committed_at, '-infinity')
end
order by receipt.observed_at desc limit 1

-- missing_keys_by_hop --
-- Count the keys that a plan writes because a hop's store lacks them, by hop; those that are refused are left out. Each
-- finding is looked up by the primary key, whatever the planner knows.
select action.hop, count(distinct action.key_hash) as keys
from makewhole.planned_action as action
join makewhole.plan on plan.id = action.plan
cross join lateral (
    select from makewhole.finding
    where (finding.pipeline, finding.number, finding.revision, finding.hop, finding.key_hash)
        = (plan.pipeline, plan.number, plan.revision, action.hop, action.key_hash)
      and finding.verdict = 'missing'
    limit 1
) as found
where action.plan = %(plan)s and action.remedy in ('upsert', 'redeliver') and action.refusal is null
group by action.hop

-- redelivered_hops --
-- Read the hops for which the plans of a window sent records again, by their receipts.
select distinct action.hop
from makewhole.action join makewhole.plan on plan.id = action.plan
where plan.pipeline = %(pipeline)s and plan.number = %(number)s
and action.remedy = 'redeliver' and action.outcome = 'done'
order by action.hop

-- redelivered_ends --
-- Read the offset behind the last record that the plans of a window wrote to each partition of the topics to which they
-- sent records again, by their receipts: (target, topic id, partition, offset).
with sent as (
    select distinct action.plan, action.target
    from makewhole.action join makewhole.plan on plan.id = action.plan
    where plan.pipeline = %(pipeline)s and plan.number = %(number)s
    and action.remedy = 'redeliver' and action.outcome = 'done'
)
select position.target, position.topic_id, position.partition, max(position.last_offset) + 1 as end
from sent join makewhole.replayed_position as position using (plan, target)
group by position.target, position.topic_id, position.partition

-- redelivered_keys --
-- Read what the plans of a window sent to topics again, by their receipts: (hop, key, key hash, plan, target).
select action.hop, action.key, action.key_hash, max(action.plan) as plan, action.target
from makewhole.action join makewhole.plan on plan.id = action.plan
where plan.pipeline = %(pipeline)s and plan.number = %(number)s
and action.remedy = 'redeliver' and action.outcome = 'done'
group by action.hop, action.key, action.key_hash, action.target
order by action.key_hash collate "C", action.hop, action.target

-- touched_ends --
-- Read for which hops the plans of a window wrote what to where, by their receipts: (hop, remedy, target).
select distinct action.hop, action.remedy, action.target
from makewhole.action join makewhole.plan on plan.id = action.plan
where plan.pipeline = %(pipeline)s and plan.number = %(number)s and action.outcome = 'done'
and action.remedy in ('upsert', 'quarantine', 'redeliver', 'produce')
order by action.hop, action.remedy, action.target

-- touched_keys --
-- Read the keys that the plans of a window wrote for some hops with some remedies, by their receipts.
select action.hop, action.remedy, action.target, action.key, action.key_hash, max(action.plan) as plan
from makewhole.action
join makewhole.plan on plan.id = action.plan
join unnest(%(hops)s::text[], %(remedies)s::text[], %(targets)s::text[]) as wanted (hop, remedy, target)
    on wanted.hop = action.hop and wanted.remedy = action.remedy and wanted.target = action.target
where plan.pipeline = %(pipeline)s and plan.number = %(number)s and action.outcome = 'done'
group by action.hop, action.remedy, action.target, action.key, action.key_hash
order by action.key_hash collate "C", action.hop, action.remedy, action.target

-- rows_written --
-- Read the keys of which the plans of a pipeline wrote a row straight into a table: those made for a window, and since a
-- moment all of them.
with written as (
    select receipt.plan, receipt.target, receipt.chunk
    from makewhole.chunk as receipt join makewhole.plan on plan.id = receipt.plan
    where receipt.observed_at >= %(since)s and plan.pipeline = %(pipeline)s
    union
    select receipt.plan, receipt.target, receipt.chunk
    from makewhole.plan join makewhole.chunk as receipt on receipt.plan = plan.id
    where plan.pipeline = %(pipeline)s and plan.number = %(number)s
)
select distinct action.key, action.key_hash
from written join makewhole.planned_action as action
    on action.plan = written.plan and action.target = written.target and action.chunk = written.chunk
where written.target = %(target)s and action.remedy = 'upsert' and action.refusal is null
order by action.key_hash

-- plans_of --
-- Read the plans that were made for a window, whatever the revision.
select id from makewhole.plan where pipeline = %(pipeline)s and number = %(number)s order by id;

-- frozen_at --
-- Read when a plan was frozen.
select frozen_at from makewhole.plan where id = %(plan)s;

-- newest_plans --
-- List the newest plans, the newest first: of one pipeline, where `pipeline` is no null; in some states, where `states`
-- is none.
select id, pipeline, number as window, revision, sha256, payload_uri, counts, state, reason, undoes,
payload_sha256, control, records_per_second, began_at, ended_at, log_ends, asked_until, frozen_at
from makewhole.plan
where (%(pipeline)s::text is null or pipeline = %(pipeline)s)
and (%(states)s::text[] is null or state = any(%(states)s))
order by frozen_at desc, id limit %(most)s

-- idle_plans --
-- Read which of some plans are running although no runner holds them, each with the moment since which that is so.
select plan.id, lease.expires_at as since
from makewhole.plan inner join makewhole.lease on lease.resource = 'plan ' || plan.id
where plan.id = any(%(plans)s) and plan.state = 'running' and lease.expires_at <= clock_timestamp()
