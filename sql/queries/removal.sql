-- What was removed because it was kept as long as its pipeline's file says.

-- windows_with_archives --
-- Read the certified windows that ended, and were closed, longer ago than they are kept: nothing waits for them, they are
-- not the newest, and what is published of them is there, in the folders `published_to`. `kind`: of what was not removed
-- yet, or not to the end. `number`: of this one alone. Findings stay as long as a plan of theirs can be undone: they are
-- open again then. Archives stay while findings are accepted for a time, and until those that are open again were judged:
-- their records may be replayed then.
select of_window.number, of_window.revision
from makewhole.window as of_window
where of_window.pipeline = %(pipeline)s and of_window.is_newest and of_window.state = 'certified'
    and (%(number)s is null or of_window.number = %(number)s)
    and greatest(of_window.end_time, of_window.closed_at) < now() - %(kept)s
    and of_window.number < (select max(number) from makewhole.window where pipeline = %(pipeline)s)
    and not exists (
        select from makewhole.plan
        where plan.pipeline = of_window.pipeline and plan.number = of_window.number and plan.settled_at is null
            and plan.state in ('frozen', 'awaiting_approval', 'approved', 'running')
    )
    and (
        %(kind)s <> 'findings'
        or not exists (
            select from makewhole.plan
            where plan.pipeline = of_window.pipeline and plan.number = of_window.number and plan.began_at is not null
                and not exists (
                    select from makewhole.removal as gone where gone.plan = plan.id and gone.kind = 'effects'
                )
        )
    )
    and not exists (
        select from makewhole.acceptance as word
        where word.pipeline = of_window.pipeline and word.number = of_window.number and word.state = 'awaiting_approval'
    )
    and (
        %(kind)s <> 'archives'
        or not exists (
            select from makewhole.accepted_finding as found
            join makewhole.acceptance as word on word.id = found.acceptance
            where found.pipeline = of_window.pipeline and found.number = of_window.number
                and (found.stands and word.until is not null or not found.is_answered)
        )
    )
    and not exists (
        select from makewhole.publication as once
        where once.pipeline = of_window.pipeline and once.root = any(%(published_to)s)
            and of_window.number >= once.first_window
            and not exists (
                select from makewhole.published_window as sent
                where sent.publication = once.id and sent.number = of_window.number
                    and sent.revision = of_window.revision and sent.visible_at is not null
            )
    )
    and not exists (
        select from makewhole.removal as done
        where done.pipeline = of_window.pipeline and done.kind = %(kind)s and done.number = of_window.number
            and done.revision = of_window.revision and done.removed_at is not null
    )
order by of_window.number

-- ended_plans --
-- Read the plans that ended longer ago than they are kept, and that no plan which waits or runs takes back, with the places
-- where receipts of theirs are: of one whose receipts are not known for good, where its actions lead. One that was stopped,
-- and is not settled, is not ended.
select plan.id, plan.number, plan.revision, plan.payload_uri,
       array(
           select target from makewhole.chunk where chunk.plan = plan.id
           union
           select target from makewhole.planned_action as planned where plan.is_unknown and planned.plan = plan.id
           order by target
       ) as targets
from makewhole.plan
where plan.pipeline = %(pipeline)s
    and (
        plan.state = 'done' or plan.settled_at is not null
        or plan.state in ('refused', 'rejected') and plan.began_at is null
    )
    and greatest(plan.frozen_at, plan.ended_at, plan.settled_at) < now() - %(kept)s
    and not exists (
        select from makewhole.plan as undo
        where undo.undoes = plan.id and undo.settled_at is null
            and undo.state in ('frozen', 'awaiting_approval', 'approved', 'running')
    )
    and not exists (
        select from makewhole.removal as done
        where done.kind = %(kind)s and done.plan = plan.id and done.removed_at is not null
    )
order by plan.frozen_at

-- moved_aside --
-- Count the actions of a plan that moved rows aside at some targets, unless it was undone.
select count(*)
from makewhole.planned_action
where plan = %(plan)s and remedy = 'quarantine' and target = any(%(targets)s)
    and not exists (select from makewhole.plan as undo where undo.undoes = %(plan)s and undo.state = 'done')

-- decide_of_plan --
-- Decide to remove what a plan left, unless its undo waits or runs: from here on it cannot be undone. The plan is locked by
-- the caller. Returns a row if it is decided.
insert into makewhole.removal as known (pipeline, kind, number, revision, plan, kept, removed)
select plan.pipeline, %(kind)s, plan.number, plan.revision, plan.id, %(kept)s, %(removed)s::jsonb
from makewhole.plan
where plan.id = %(plan)s
    and not exists (
        select from makewhole.plan as undo
        where undo.undoes = plan.id and undo.settled_at is null
            and undo.state in ('frozen', 'awaiting_approval', 'approved', 'running')
    )
on conflict (kind, plan) where plan is not null do update set removed = case
        when (excluded.removed ->> 'files')::bigint + (excluded.removed ->> 'rows')::bigint
            > coalesce((known.removed ->> 'files')::bigint + (known.removed ->> 'rows')::bigint, 0)
        then excluded.removed else known.removed
    end
returning decided_at

-- decide_of_window --
-- Decide to remove what a window has, up to a revision. Decided before, it stays so, with all that was there then: a run that
-- was killed has removed some of it.
insert into makewhole.removal as known (pipeline, kind, number, revision, kept, removed)
values (%(pipeline)s, %(kind)s, %(number)s, %(revision)s, %(kept)s, %(removed)s::jsonb)
on conflict (pipeline, kind, number, revision) where plan is null do update set removed = case
        when (excluded.removed ->> 'files')::bigint + (excluded.removed ->> 'rows')::bigint
            > coalesce((known.removed ->> 'files')::bigint + (known.removed ->> 'rows')::bigint, 0)
        then excluded.removed else known.removed
    end
returning decided_at, kept

-- done_of_plan --
-- Note that all of it is gone.
update makewhole.removal set removed_at = clock_timestamp()
where kind = %(kind)s and plan = %(plan)s and removed_at is null

-- done_of_window --
-- Note that all of it is gone.
update makewhole.removal set removed_at = clock_timestamp()
where pipeline = %(pipeline)s and kind = %(kind)s and number = %(number)s and revision = %(revision)s and plan is null
    and removed_at is null

-- removals_of_plan --
-- Read what was removed, or is being removed, of a plan.
select kind, number, revision, plan, kept, decided_at, removed_at
from makewhole.removal where plan = %(plan)s order by decided_at

-- removals_of_window --
-- Read what was removed, or is being removed, of the revisions of a window, the newest first.
select kind, number, revision, plan, kept, decided_at, removed_at
from makewhole.removal
where pipeline = %(pipeline)s and number = %(number)s and plan is null
order by revision desc, decided_at

-- texts_of_window --
-- Read every text in which a file of a window is named: manifests, results, payloads, what was published, its run of the
-- key index, and the anchors of its certificates.
select manifest::text as text from makewhole.snapshot where pipeline = %(pipeline)s and number = %(number)s
union all
select files::text from makewhole.hop_result where pipeline = %(pipeline)s and number = %(number)s
union all
select document::text from makewhole.gate_report where pipeline = %(pipeline)s and number = %(number)s
union all
select to_json(payload_uri)::text from makewhole.plan
where pipeline = %(pipeline)s and number = %(number)s and payload_uri is not null
union all
select manifest::text || files::text from makewhole.published_window
where pipeline = %(pipeline)s and number = %(number)s
union all
select files::text from makewhole.key_run where pipeline = %(pipeline)s and number = %(number)s
union all
select to_json(uri)::text from makewhole.certificate where pipeline = %(pipeline)s and number = %(number)s

-- texts_of_merge --
-- Read the text in which the files of a merged run of the key index are named.
select files::text as text from makewhole.key_merge where pipeline = %(pipeline)s and attempt = %(attempt)s

-- count_findings --
-- Count the findings of a window whose keys and evidence can go. What is open may dispute a value, be accepted or be
-- repaired: it stays.
select count(*)
from makewhole.finding
where pipeline = %(pipeline)s and number = %(number)s and revision <= %(revision)s and key <> %(marker)s
    and outcome in ('repaired', 'erased', 'handed_over')

-- forget_findings --
-- Remove the keys and the evidence of findings; what was judged, by which cause and with which outcome, stays by the
-- key's hash, and how often each side had it, which verify counts.
update makewhole.finding
set key = %(marker)s,
    evidence = coalesce(
        (
            select jsonb_object_agg(name, value)
            from jsonb_each(evidence) as known (name, value)
            where name in ('in_source', 'source_copies', 'target_copies')
        ), '{}'
    ),
    outcome_reason = concat_ws('; ', outcome_reason, %(because)s)
where pipeline = %(pipeline)s and number = %(number)s and revision <= %(revision)s and key <> %(marker)s
    and outcome in ('repaired', 'erased', 'handed_over')
