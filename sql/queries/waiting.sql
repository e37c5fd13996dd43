-- What waits for a person, over all pipelines.

-- plans --
-- Read the plans that wait for an answer, those that are paused, and the undos that were begun and are carried out by no
-- task: no later run of a pipeline goes on with one.
select plan.id as subject, plan.pipeline, plan.number as window, plan.revision, plan.undoes, plan.counts, plan.reason,
    plan.state, plan.control = 'pause' as is_paused, plan.frozen_at as since, plan.asked_until as until
from makewhole.plan
where plan.state = 'awaiting_approval' or plan.state in ('approved', 'running') and (
    plan.control = 'pause'
    or plan.undoes is not null and plan.began_at is not null and not exists (
        select from makewhole.lease where resource = 'plan ' || plan.id and expires_at > clock_timestamp()
    )
)
order by plan.asked_until nulls last, plan.frozen_at;

-- acceptances --
-- Read the acceptances that wait for another person's answer.
select id as subject, pipeline, number as window, revision, findings, reason, asked_by, asked_at as since,
    expires_at as until
from makewhole.acceptance
where state = 'awaiting_approval' and expires_at > clock_timestamp()
order by expires_at;

-- unopened --
-- Read the runs that opened no window and are not tried again, and not for what their form asked for.
select pipeline, step, dag, run, reason, failed_at from makewhole.step_failure
where number = 0 and is_final and not is_request
order by failed_at;

-- windows --
-- Read the windows that are not certified, in their newest revision, with the keys that their last results leave open and
-- that are not accepted, and with the plan that no task carries out any more. Open ones only where a step broke and is
-- not tried again; certified ones only where that step comes behind the certificate.
select newest.pipeline, newest.number as window, newest.revision, newest.state, newest.reason, newest.plan_only,
    newest.opened_at as since, broken.step, broken.dag, broken.run, broken.reason as step_reason, begun.plan,
    undone.plan as undone, coalesce(left_open.findings, 0)::bigint as findings
from makewhole.window as newest
left join lateral (
    select step, dag, run, reason from makewhole.step_failure as failure
    where (failure.pipeline, failure.number, failure.revision) = (newest.pipeline, newest.number, newest.revision)
        and (failure.is_final or newest.state not in ('open', 'certified'))
        and (newest.state <> 'certified' or step in ('publish', 'restore', 'reopen'))
    order by failed_at desc limit 1
) as broken on true
left join lateral (
    select id as plan from makewhole.plan
    where (pipeline, number, revision) = (newest.pipeline, newest.number, newest.revision)
        and undoes is null and state in ('approved', 'running') and not newest.plan_only and newest.state <> 'certified'
) as begun on true
left join lateral (
    select undoes as plan from makewhole.plan
    where (pipeline, number, revision) = (newest.pipeline, newest.number, newest.revision) and undoes is not null
        and broken.step in ('restore', 'reopen')
    order by frozen_at desc limit 1
) as undone on true
left join lateral (
    select sum((counts ->> verdict)::bigint) - (
            select count(*) from makewhole.accepted_now
            where pipeline = newest.pipeline and number = newest.number
        ) as findings
    from (
        select distinct on (hop) counts
        from makewhole.hop_result
        where pipeline = newest.pipeline and number = newest.number and newest.state <> 'certified'
        order by hop, revision desc, stage = 'verified' desc
    ) as last_results
    cross join unnest(%(verdicts)s) as verdict
) as left_open on true
where newest.is_newest and (newest.state in ('error', 'gaps', 'not_known') or newest.state in ('open', 'certified') and broken.step is not null)
order by newest.pipeline, newest.number;

-- is_at_work --
-- Whether a window of a pipeline is open that was judged, or at least tried, before: it has a result, an earlier revision,
-- or a run that went on with it.
select exists (
    select from makewhole.window as newest
    where newest.pipeline = %(pipeline)s and newest.is_newest and newest.state = 'open' and (
        newest.revision > 1
        or exists (
            select from makewhole.hop_result as result
            where (result.pipeline, result.number) = (newest.pipeline, newest.number)
        )
        or exists (
            select from makewhole.continuation as later
            where (later.pipeline, later.number, later.revision) = (newest.pipeline, newest.number, newest.revision)
        )
    )
);

-- refused --
-- Read the plans that were refused as a whole, of windows that are not certified, in their newest revision.
select plan.id as subject, plan.pipeline, plan.number as window, plan.revision, plan.undoes, plan.counts, plan.reason,
    plan.state, false as is_paused, plan.frozen_at as since, null::timestamptz as until
from makewhole.plan
join makewhole.window as newest using (pipeline, number, revision)
where plan.state = 'refused' and newest.is_newest and newest.state in ('error', 'gaps', 'not_known', 'open')
order by plan.frozen_at;

-- revoked --
-- Read the windows whose certificate was revoked, and that have no other since.
select pipeline, number as window, revokes as certificate, issued_at as since
from (
    select distinct on (pipeline, number) pipeline, number, kind, revokes, issued_at
    from makewhole.certificate order by pipeline, number, ordinal desc
) as newest
where kind <> 'certificate'
order by issued_at;

-- reaches --
-- Read until when a pipeline is certified without a gap: null before its first window, and while that is not certified and
-- has no beginning.
select case when not coalesce(bool_or(start_time is null and state <> 'certified'), false) then coalesce(
    min(start_time) filter (where state <> 'certified'), max(end_time) filter (where state = 'certified')
) end as certified_until, count(*) as windows, min(end_time) filter (where state <> 'certified') as first_open_end
from makewhole.window where pipeline = %(pipeline)s and is_newest;
