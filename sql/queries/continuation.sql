-- Windows that were left unfinished, and the runs that went on with them.

-- unfinished --
-- Read the newest revision of each window that no run has brought to its end, oldest first. Of those whose repair was
-- left: the ones opened since a moment, and one number.
with newest as (
    select pipeline, number, revision, start_time, end_time, opened_at, state, reason, request, plan_only
    from makewhole.window where pipeline = %(pipeline)s and is_newest and state in ('open', 'error')
    union all
    select pipeline, number, revision, start_time, end_time, opened_at, state, reason, request, plan_only
    from makewhole.window
    where pipeline = %(pipeline)s and is_newest and state = 'gaps' and not plan_only and opened_at >= %(since)s
    union all
    select pipeline, number, revision, start_time, end_time, opened_at, state, reason, request, plan_only
    from makewhole.window
    where pipeline = %(pipeline)s and is_newest and state = 'gaps' and not plan_only and opened_at < %(since)s
        and number = %(number)s
)
select newest.number, newest.revision, newest.start_time as start, newest.end_time as end, newest.opened_at,
    newest.reason, newest.request,
    exists (
        select from makewhole.hop_result hop
        where hop.pipeline = newest.pipeline and hop.number = newest.number and hop.stage = 'reconciled'
    ) as is_compared,
    coalesce(plan.state = 'awaiting_approval', false) as awaits_approval,
    coalesce(done.runs, '{}') as runs, coalesce(done.askers, '{}') as askers
from newest
left join makewhole.plan on (plan.pipeline, plan.number, plan.revision)
    = (newest.pipeline, newest.number, newest.revision) and plan.undoes is null
left join lateral (
    select array_agg(run order by attempt) as runs, array_agg(asked_by order by attempt) as askers
    from makewhole.continuation
    where (pipeline, number, revision) = (newest.pipeline, newest.number, newest.revision)
) done on true
where newest.state in ('open', 'error')
    or plan.state = 'running'
    or plan.state = 'done' and not exists (
        select from makewhole.gate_report gate
        where (gate.pipeline, gate.number, gate.revision) = (newest.pipeline, newest.number, newest.revision)
            and gate.stage = 'verified'
    )
order by newest.number;

-- insert_continuation --
-- Write that a run goes on with a window; nothing when that attempt is written already.
insert into makewhole.continuation (pipeline, number, revision, attempt, run, asked_by)
values (%(pipeline)s, %(number)s, %(revision)s, %(attempt)s, %(run)s, %(asked_by)s)
on conflict do nothing;

-- reopen --
-- Write that an unfinished window is being worked on again.
update makewhole.window set state = 'open', reason = null, closed_at = null
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s;

-- continuations --
-- Read the runs that went on with a revision, in order.
select run, asked_by, began_at from makewhole.continuation
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s order by attempt;
