-- Keys that were erased on request, and what of them the journal has.

-- busy --
-- Read what the erasure of a key would come between: windows that are being judged or broke off, plans that wait or run,
-- and questions that a person has not answered. `what` is for people.
select format('window %%s is %%s', number, state) as what
from makewhole.window
where pipeline = %(pipeline)s and is_newest and state in ('open', 'error')
union all
select format('plan %%s is %%s', id, replace(state, '_', ' '))
from makewhole.plan
where pipeline = %(pipeline)s and settled_at is null and (
    state in ('frozen', 'awaiting_approval', 'approved', 'running')
    or state = 'rejected' and began_at is not null -- stopped, and what it did at its targets is not known yet
)
union all
select format('acceptance %%s awaits approval', id)
from makewhole.acceptance
where pipeline = %(pipeline)s and state = 'awaiting_approval' and expires_at > now()
order by what

-- take_files --
-- Take the files of past windows for this session alone; again as often as it likes. Whether it has them.
select pg_try_advisory_lock(hashtextextended('makewhole files of ' || %(pipeline)s, 0))

-- leave_files --
-- Give back everything that this session has taken.
select pg_advisory_unlock_all()

-- share_files --
-- Keep the files of past windows from being written again, as others may, too. False: an erasure does.
select pg_try_advisory_lock_shared(hashtextextended('makewhole files of ' || %(pipeline)s, 0))

-- hold_files --
-- Keep the files of past windows from being written again until the transaction ends. False: an erasure does.
select pg_try_advisory_xact_lock_shared(hashtextextended('makewhole files of ' || %(pipeline)s, 0))

-- unshare_files --
-- Give back what was shared.
select pg_advisory_unlock_shared(hashtextextended('makewhole files of ' || %(pipeline)s, 0))

-- count_rows --
-- Count the rows of a key in the journal.
select
    (
        select count(*) from makewhole.finding
        where pipeline = %(pipeline)s and key_hash = %(key_hash)s and split_part(hop, '→', 1) <> all(%(spares)s)
    ) as findings,
    (
        select count(*) from makewhole.handover
        where pipeline = %(pipeline)s and key_hash = %(key_hash)s and split_part(hop, '→', 1) <> all(%(spares)s)
    ) as handed_over,
    (
        select count(*) from makewhole.planned_action as planned
        join makewhole.plan on plan.id = planned.plan
        where plan.pipeline = %(pipeline)s and planned.key_hash = %(key_hash)s
            and split_part(planned.hop, '→', 1) <> all(%(spares)s)
    ) as actions,
    (
        select count(*) from makewhole.accepted_finding
        where pipeline = %(pipeline)s and key_hash = %(key_hash)s and split_part(hop, '→', 1) <> all(%(spares)s)
    ) as accepted,
    (
        select count(*) from makewhole.incident
        where pipeline = %(pipeline)s and point <> all(%(spares)s)
            and jsonb_path_exists(detail, '$.first[*] ? (@.key == $key)', jsonb_build_object('key', %(key)s::text))
    ) as incidents

-- plans_of_key --
-- Read the plans that have actions of a key: the places of these that have receipts of the plan, or may have some that are
-- not known, and their numbers.
select plan.id, plan.number, plan.revision, plan.sha256, plan.payload_uri, plan.payload_sha256,
       coalesce(
           array_agg(distinct planned.target) filter (
               where plan.is_unknown or exists (
                   select from makewhole.chunk as done where (done.plan, done.target) = (planned.plan, planned.target)
               )
           ), '{}'
       ) as targets,
       array_agg(planned.seq order by planned.seq) as seqs
from makewhole.planned_action as planned
join makewhole.plan on plan.id = planned.plan
where plan.pipeline = %(pipeline)s and planned.key_hash = %(key_hash)s
    and split_part(planned.hop, '→', 1) <> all(%(spares)s)
group by plan.id
order by plan.frozen_at

-- unfinished --
-- Read the erasures of a pipeline that did not come to their end.
select id, secret, key_mac, prefix, spares, reason, asked_by, asked_at, erased_at
from makewhole.erasure where pipeline = %(pipeline)s and erased_at is null order by id

-- begin_erasure --
-- Decide to erase a key.
insert into makewhole.erasure (pipeline, secret, key_mac, prefix, spares, reason, asked_by)
values (%(pipeline)s, %(secret)s, %(key_mac)s, %(prefix)s, %(spares)s, %(reason)s, %(asked_by)s)
returning id, secret, key_mac, prefix, spares, reason, asked_by, asked_at, erased_at

-- note_file --
-- Note what a file becomes, before it changes. What it was when the erasure first met it stays.
insert into makewhole.erased_file (erasure, path, sha256, became)
values (%(erasure)s, %(path)s, %(sha256)s, %(became)s)
on conflict (erasure, path) do update set became = excluded.became

-- forget_payload --
-- Note the hash of the payloads of a plan without those of a key.
update makewhole.plan set payload_sha256 = %(payload_sha256)s where id = %(plan)s

-- forget_actions --
-- Take the key, and the rows as they were before, out of the actions of a plan. Why one was refused may quote them: of that
-- the code stays.
update makewhole.planned_action
set key = %(marker)s, key_hash = %(blind)s,
    before = (
        select jsonb_object_agg(name, value)::text
        from jsonb_each(before::jsonb) as known (name, value)
        where name in ('place', 'undoes', 'kind')
    ),
    refusal = case
        when split_part(refusal, ': ', 1) = any(%(codes)s) then split_part(refusal, ': ', 1) || ': ' || %(because)s
        when refusal is not null then %(because)s
    end
where plan = %(plan)s and key_hash = %(key_hash)s and split_part(hop, '→', 1) <> all(%(spares)s)

-- note_plan --
-- Note what the hash of a plan is without the actions of a key.
insert into makewhole.erased_plan (erasure, plan, sha256, became)
values (%(erasure)s, %(plan)s, %(sha256)s, %(became)s)

-- forget_findings --
-- Take key and evidence out of the findings of a key. Verdict and cause stay, which certificates count, and how often
-- each side had it, which verify counts. What was missing is not to be brought any more.
update makewhole.finding
set key = %(marker)s, key_hash = %(blind)s, outcome_reason = %(because)s,
    evidence = coalesce(
        (
            select jsonb_object_agg(name, value)
            from jsonb_each(evidence) as known (name, value)
            where name in ('in_source', 'source_copies', 'target_copies')
        ), '{}'
    ),
    outcome = case when verdict = 'missing' and outcome in ('open', 'refused') then 'erased' else outcome end
where pipeline = %(pipeline)s and key_hash = %(key_hash)s and split_part(hop, '→', 1) <> all(%(spares)s)

-- forget_handovers --
-- Take the key out of what windows handed over: the next window does not look for it by name any more.
delete from makewhole.handover
where pipeline = %(pipeline)s and key_hash = %(key_hash)s and split_part(hop, '→', 1) <> all(%(spares)s)

-- forget_accepted --
-- Take the key, and the digests of its values, out of what a person accepted.
update makewhole.accepted_finding set key = %(marker)s, key_hash = %(blind)s, fingerprint = '', held = '{}'
where pipeline = %(pipeline)s and key_hash = %(key_hash)s and split_part(hop, '→', 1) <> all(%(spares)s)

-- incidents_naming --
-- Read the incidents that name a key, as rows of this session.
select ctid::text as place, detail
from makewhole.incident
where pipeline = %(pipeline)s and point <> all(%(spares)s)
    and jsonb_path_exists(detail, '$.first[*] ? (@.key == $key)', jsonb_build_object('key', %(key)s::text))
for update

-- forget_incident --
-- Write what an incident says without the key.
update makewhole.incident set detail = %(detail)s::jsonb where ctid = %(place)s::tid

-- end_erasure --
-- Note that all of it is gone, with what was done.
update makewhole.erasure
set erased_at = %(erased_at)s, body = %(body)s::jsonb, signed_by = %(signed_by)s, signature = %(signature)s
where id = %(erasure)s

-- windows_since --
-- Read the numbers of the windows of which a revision was opened since the erased keys were last looked for.
select distinct number from makewhole.window
where pipeline = %(pipeline)s
    and opened_at >= (
        select min(coalesce(searched_to, asked_at)) from makewhole.erasure where pipeline = %(pipeline)s
    )
order by number

-- search_end --
-- Read up to which moment the windows that were opened have read all that they will: of one that is at work, or may go on,
-- its beginning. The clocks of others, who say when they opened one, may be behind.
select least(now() - interval '1 hour', min(opened_at))
from makewhole.window where pipeline = %(pipeline)s and is_newest and state in ('open', 'error')

-- note_searched --
-- Note up to which moment windows were searched for keys that were erased by then.
update makewhole.erasure set searched_to = %(searched_to)s
where id = any(%(ids)s) and coalesce(searched_to, asked_at) < %(searched_to)s

-- files_of_erasure --
-- Read the files that an erasure wrote again.
select path, sha256, became from makewhole.erased_file where erasure = %(erasure)s order by path

-- plans_of_erasure --
-- Read the plans that an erasure took actions out of.
select plan, sha256, became from makewhole.erased_plan where erasure = %(erasure)s order by plan

-- erasures --
-- Read the keys of a pipeline that were erased on request, the oldest first.
select id, secret, key_mac, prefix, spares, reason, asked_by, asked_at, erased_at
from makewhole.erasure where pipeline = %(pipeline)s order by id

-- signed_erasures --
-- Read what erasures of a pipeline did, as it was signed, the oldest first.
select id, body, signed_by, signature
from makewhole.erasure where pipeline = %(pipeline)s and body is not null order by id

-- unsigned_files --
-- Read the files of erasures that did not come to their end.
select path, sha256, became
from makewhole.erased_file
join makewhole.erasure on erasure.id = erased_file.erasure
where erasure.pipeline = %(pipeline)s and erasure.body is null
order by path

-- erasure_of_plan --
-- Read when a key of a plan was erased first.
select min(erasure.asked_at) as asked_at
from makewhole.erased_plan
join makewhole.erasure on erasure.id = erased_plan.erasure
where erased_plan.plan = %(plan)s
having count(*) > 0
