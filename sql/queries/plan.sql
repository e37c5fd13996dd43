-- lock_window_plan --
-- One freeze at a time per window revision; released at the end of the transaction.
select pg_advisory_xact_lock(hashtextextended('makewhole plan ' || %(pipeline)s || '/' || %(number)s || '/' || %(revision)s, 0))

-- plan_of_window --
-- The plan that was frozen for a window revision, if any.
select id, pipeline, number, revision, sha256, payload_uri, counts, state, reason, payload_sha256
from makewhole.plan
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s and undoes is null

-- plan_by_id --
-- One plan.
select id, pipeline, number, revision, sha256, payload_uri, counts, state, reason, payload_sha256
from makewhole.plan
where id = %(plan)s

-- lock_plan --
-- One plan, locked until the end of the transaction.
select id, pipeline, number, revision, sha256, payload_uri, counts, state, reason, payload_sha256
from makewhole.plan
where id = %(plan)s
for update

-- insert_plan --
-- Freeze a plan.
insert into makewhole.plan
(id, pipeline, number, revision, sha256, payload_uri, payload_sha256, counts, state, reason)
values (%(plan)s, %(pipeline)s, %(number)s, %(revision)s, %(sha256)s, %(payload_uri)s, %(payload_sha256)s,
%(counts)s::jsonb, %(state)s, %(reason)s)

-- insert_actions --
-- The actions of a plan, many at once.
insert into makewhole.action (plan, seq, remedy, hop, target, key, key_hash, payload_sha256, before) values %s

-- actions_of_plan --
-- Every action in order, with what became of it.
select seq, remedy, hop, target, key, key_hash, payload_sha256, before, outcome, outcome_reason
from makewhole.action
where plan = %(plan)s
order by seq

-- refused_actions --
-- Which of these actions are refused, and why.
select seq, coalesce(outcome_reason, 'refused')
from makewhole.action
where plan = %(plan)s and seq = any(%(seqs)s) and outcome = 'refused'

-- set_plan_state --
-- Move a plan on.
update makewhole.plan set state = %(state)s, reason = coalesce(%(reason)s, reason) where id = %(plan)s

-- put_approval --
-- One answer per plan; a second one changes nothing.
insert into makewhole.approval (plan, sha256, decision, by, at, expires_at, seen)
values (%(plan)s, %(sha256)s, %(decision)s, %(by)s, %(at)s,
case when %(expires_seconds)s::float8 is null then null
else %(at)s::timestamptz + %(expires_seconds)s * interval '1 second' end, %(seen)s::jsonb)
on conflict (plan) do nothing

-- approval_of_plan --
-- The answer, and whether it has expired by the journal's own clock.
select sha256, decision, by, expires_at, coalesce(expires_at <= clock_timestamp(), false)
from makewhole.approval
where plan = %(plan)s

-- refuse_actions --
-- A refusal that is decided before the chunk, so that every later attempt leaves the same actions out.
update makewhole.action set outcome = 'refused', outcome_reason = refused.reason
from unnest(%(seqs)s::integer[], %(reasons)s::text[]) as refused (seq, reason)
where action.plan = %(plan)s and action.seq = refused.seq and action.outcome is null

-- finish_actions --
-- What a receipt says was done; a recorded refusal stays.
update makewhole.action set outcome = 'done'
where plan = %(plan)s and seq = any(%(seqs)s) and outcome is null

-- put_chunk --
-- A receipt seen at the target.
insert into makewhole.chunk (plan, target, chunk, actions, place)
values (%(plan)s, %(target)s, %(chunk)s, %(actions)s, %(place)s)
on conflict (plan, target, chunk) do nothing

-- chunks_of_plan --
-- What the journal knows of the receipts.
select target, chunk, actions, place from makewhole.chunk where plan = %(plan)s order by target, chunk

-- refuse_findings --
-- Findings that no action could be made for.
update makewhole.finding set outcome = 'refused', outcome_reason = refused.reason
from unnest(%(hops)s::text[], %(hashes)s::text[], %(reasons)s::text[]) as refused (hop, key_hash, reason)
where finding.pipeline = %(pipeline)s and finding.number = %(number)s and finding.revision = %(revision)s
and finding.hop = refused.hop and finding.key_hash = refused.key_hash

-- replayed_keys --
-- What the plans of a pipeline may have written to topics: (plan, key hash).
select action.plan, action.key_hash
from makewhole.action join makewhole.plan on plan.id = action.plan
where plan.pipeline = %(pipeline)s and plan.id = any(%(plans)s) and plan.state in ('running', 'done', 'rejected')
and action.remedy in ('redeliver', 'produce') and action.outcome is distinct from 'refused'
order by action.plan, action.key_hash
