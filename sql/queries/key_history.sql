-- The history of one business key, by its hash.

-- judgements --
-- Read every finding about the key, in every revision, with when it was judged and when it was verified.
select finding.number as window, finding.revision, finding.hop, finding.verdict, finding.cause, finding.evidence,
       finding.outcome, finding.outcome_reason as reason, judged.committed_at as judged_at,
       verified.committed_at as verified_at
from makewhole.finding_now as finding
left join makewhole.hop_result judged
    on (judged.pipeline, judged.number, judged.revision, judged.hop, judged.stage)
     = (finding.pipeline, finding.number, finding.revision, finding.hop, 'reconciled')
left join makewhole.hop_result verified
    on (verified.pipeline, verified.number, verified.revision, verified.hop, verified.stage)
     = (finding.pipeline, finding.number, finding.revision, finding.hop, 'verified')
where finding.pipeline = %(pipeline)s and finding.key_hash = %(key_hash)s
order by finding.number, finding.revision, finding.hop;

-- judged_at --
-- Read when the hops of one revision were judged.
select hop, committed_at from makewhole.hop_result
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s and stage = 'reconciled';

-- deeds --
-- Read every action on the key, with its plan, the answer to the plan, the receipt of its chunk, and the position of the
-- record that it wrote.
select plan.id as plan, plan.number as window, plan.revision, plan.state as plan_state, plan.reason as plan_reason,
       plan.frozen_at, approval.decision, approval.by as decided_by, approval.at as decided_at,
       action.seq, action.remedy, action.hop, action.target, action.outcome, action.outcome_reason as reason,
       receipt.chunk, receipt.place as receipt, receipt.observed_at as done_at,
       (select position.partition || ':' || position.offsets[array_position(position.seqs, action.seq)]
        from makewhole.replayed_position as position
        where position.plan = action.plan and position.target = action.target and position.chunk = action.chunk
        and action.seq = any(position.seqs)) as position
from makewhole.action
join makewhole.plan on plan.id = action.plan
left join makewhole.approval on approval.plan = plan.id
left join makewhole.chunk as receipt
    on receipt.plan = action.plan and receipt.target = action.target and receipt.chunk = action.chunk
    and action.outcome = 'done'
where plan.pipeline = %(pipeline)s and action.key_hash = %(key_hash)s
order by plan.frozen_at, action.seq;

-- reported_keys --
-- Read the keys that windows [first, number) found wrong on a hop, other than absent, and that were not repaired. That a key
-- had no row (missing, vanished, erased, or not known beside none) says nothing of rows that come. Where no window judges
-- the key again, as its copies were taken back or its window is certified, with the number of copies that was reported last.
with judged as (
    select number, max(revision) as revision
    from makewhole.hop_result
    where pipeline = %(pipeline)s and number >= %(first)s and number < %(number)s and stage = 'reconciled'
    group by number
)
select finding.key_hash,
       case when bool_and(finding.outcome = 'reversed' or of_finding.state = 'certified')
            then (array_agg((finding.evidence ->> 'target_copies')::bigint order by finding.number desc))[1] end as copies
from makewhole.finding join judged using (number, revision)
join makewhole.window as of_finding using (pipeline, number, revision)
where finding.pipeline = %(pipeline)s and finding.hop = %(hop)s
    and finding.verdict in ('duplicate', 'unexpected', 'mismatched', 'conflict', 'undecidable')
    and not (finding.verdict = 'undecidable' and coalesce((finding.evidence ->> 'target_copies')::bigint, 1) = 0)
    and finding.outcome not in ('repaired', 'handed_over')
group by finding.key_hash
order by finding.key_hash;

-- reported_of_keys --
-- Read those of some keys that have a row, and that windows before one found wrong on a hop, and that were not
-- repaired, with the number of copies as above.
select finding.key_hash,
       case when bool_and(finding.outcome = 'reversed' or of_finding.state = 'certified')
            then (array_agg((finding.evidence ->> 'target_copies')::bigint order by finding.number desc))[1] end as copies
from makewhole.finding join makewhole.window as of_finding using (pipeline, number, revision)
where finding.pipeline = %(pipeline)s and finding.hop = %(hop)s and finding.number < %(number)s
    and finding.key_hash = any(%(key_hashes)s)
    and finding.verdict in ('mismatched', 'unexpected', 'undecidable', 'conflict', 'duplicate')
    and finding.outcome in ('open', 'refused', 'contained', 'reversed')
    and finding.revision = (
        select max(judged.revision) from makewhole.hop_result as judged
        where judged.pipeline = finding.pipeline and judged.number = finding.number and judged.stage = 'reconciled'
    )
group by finding.key_hash
order by finding.key_hash;

-- unexpected_keys --
-- Read the keys that revisions of windows (numbers and their revisions) reported as unexpected or undecidable on a
-- hop, whatever became of them since.
select number, key_hash
from makewhole.finding
where pipeline = %(pipeline)s and hop = %(hop)s and verdict in ('unexpected', 'undecidable')
  and (number, revision) in (select * from unnest(%(numbers)s::integer[], %(revisions)s::integer[]))
order by number, key_hash;
