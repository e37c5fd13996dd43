-- reversals_of_keys --
-- Read every reversal that was written for copies of these keys, or may have been: by a plan that began, and whose
-- receipts are not all known.
select action.key_hash, plan.id as plan, plan.number as window, action.seq, action.target,
       action.before::jsonb ->> 'of' as place, action.before::jsonb ->> 'of_identity' as identity,
       action.before::jsonb -> 'copy' as copy, coalesce(action.outcome = 'done', false) as is_done
from makewhole.action
join makewhole.plan on plan.id = action.plan
where plan.pipeline = %(pipeline)s and action.remedy = 'reverse' and action.key_hash = any(%(key_hashes)s)
and (action.outcome = 'done'
     or action.outcome is null and (plan.state = 'running' or plan.began_at is not null)
     and (plan.settled_at is null or plan.is_unknown))
order by plan.frozen_at, plan.id, action.seq
