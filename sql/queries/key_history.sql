-- What the journal remembers of one business key, by its hash.

-- judgements --
-- Every finding about the key, in every revision, with when it was judged and when it was verified.
select finding.number, finding.revision, finding.hop, finding.verdict, finding.cause, finding.evidence,
       finding.outcome, finding.outcome_reason, judged.committed_at, verified.committed_at
from makewhole.finding
left join makewhole.hop_result judged
    on (judged.pipeline, judged.number, judged.revision, judged.hop, judged.stage)
     = (finding.pipeline, finding.number, finding.revision, finding.hop, 'reconciled')
left join makewhole.hop_result verified
    on (verified.pipeline, verified.number, verified.revision, verified.hop, verified.stage)
     = (finding.pipeline, finding.number, finding.revision, finding.hop, 'verified')
where finding.pipeline = %(pipeline)s and finding.key_hash = %(key_hash)s
order by finding.number, finding.revision, finding.hop;

-- judged_at --
-- When the hops of one revision were judged.
select hop, committed_at from makewhole.hop_result
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s and stage = 'reconciled';

-- deeds --
-- Every action on the key, with its plan, the answer to the plan, and the receipt of the chunk that it was in.
-- A chunk's receipt counts the actions that took effect, so that the running sum tells which chunk an action was in.
with plan_of_key as (
    select distinct action.plan from makewhole.action join makewhole.plan on plan.id = action.plan
    where plan.pipeline = %(pipeline)s and action.key_hash = %(key_hash)s
), effective as (
    select plan, seq, target, row_number() over (partition by plan, target order by seq) as place
    from makewhole.action where plan in (select plan from plan_of_key) and outcome = 'done'
), receipt as (
    select plan, target, chunk, place, observed_at, actions,
           sum(actions) over (partition by plan, target order by chunk) as upto
    from makewhole.chunk where plan in (select plan from plan_of_key)
)
select plan.id, plan.number, plan.revision, plan.state, plan.reason, plan.frozen_at,
       approval.decision, approval.by, approval.at,
       action.seq, action.remedy, action.hop, action.target, action.outcome, action.outcome_reason,
       receipt.chunk, receipt.place, receipt.observed_at
from makewhole.action
join makewhole.plan on plan.id = action.plan
left join makewhole.approval on approval.plan = plan.id
left join effective on effective.plan = action.plan and effective.seq = action.seq
left join receipt
    on receipt.plan = effective.plan and receipt.target = effective.target
    and effective.place > receipt.upto - receipt.actions and effective.place <= receipt.upto
where plan.pipeline = %(pipeline)s and action.key_hash = %(key_hash)s
order by plan.frozen_at, action.seq;
