-- Findings that a person accepts.

-- insert --
-- Write what was asked.
insert into makewhole.acceptance
    (id, pipeline, number, revision, request, sha256, reason, until, findings, asked_by, expires_at, state, decided_by,
     decided_at, seen)
values
    (%(id)s, %(pipeline)s, %(number)s, %(revision)s, %(request)s, %(sha256)s, %(reason)s, %(until)s, %(findings)s,
     %(asked_by)s, clock_timestamp() + make_interval(secs => %(expires_seconds)s), %(state)s, %(decided_by)s,
     case when %(decided_by)s::text is not null then clock_timestamp() end, %(seen)s);

-- insert_findings --
-- Write the findings of an acceptance; the driver fills in the list of values.
insert into makewhole.accepted_finding
    (acceptance, pipeline, number, revision, hop, key, key_hash, verdict, cause, fingerprint, held, stands)
values %s;

-- by_id --
-- Read one acceptance.
select id, pipeline, number as window, revision, sha256, reason, until, findings, asked_by, asked_at, state, decided_by,
    decided_at, revoked_by, revoked_at, revoked_because, coalesce(until <= now(), false) as has_expired
from makewhole.acceptance where id = %(id)s;

-- by_id_locked --
-- Read one acceptance and lock it until the end of the transaction.
select id, pipeline, number as window, revision, sha256, reason, until, findings, asked_by, asked_at, state, decided_by,
    decided_at, revoked_by, revoked_at, revoked_because, coalesce(until <= now(), false) as has_expired
from makewhole.acceptance where id = %(id)s for update;

-- by_request --
-- Read the acceptance that a run asked for.
select id, pipeline, number as window, revision, sha256, reason, until, findings, asked_by, asked_at, state, decided_by,
    decided_at, revoked_by, revoked_at, revoked_because, coalesce(until <= now(), false) as has_expired
from makewhole.acceptance where pipeline = %(pipeline)s and request = %(request)s;

-- of_pipeline --
-- Read the acceptances of a pipeline, or of one window of it, oldest first.
select id, pipeline, number as window, revision, sha256, reason, until, findings, asked_by, asked_at, state, decided_by,
    decided_at, revoked_by, revoked_at, revoked_because, coalesce(until <= now(), false) as has_expired
from makewhole.acceptance
where pipeline = %(pipeline)s and (%(number)s::integer is null or number = %(number)s::integer)
order by asked_at, id;

-- question_has_expired --
-- Return whether the time to answer is over.
select expires_at <= clock_timestamp() as has_expired from makewhole.acceptance where id = %(id)s;

-- decide --
-- Write the answer to one that waits.
update makewhole.acceptance
set state = %(state)s, decided_by = %(by)s, decided_at = clock_timestamp(), seen = seen || %(seen)s
where id = %(id)s;

-- stand --
-- Have the findings of an acceptance stand.
update makewhole.accepted_finding set stands = true where acceptance = %(id)s and ended_at is null;

-- revoke --
-- Take an acceptance back.
update makewhole.acceptance
set state = 'revoked', revoked_by = %(by)s, revoked_at = clock_timestamp(), revoked_because = %(reason)s
where id = %(id)s;

-- findings_of --
-- Read the findings of an acceptance, in the revision of which it was asked.
select found.hop, found.key, found.key_hash, found.verdict, found.cause, found.fingerprint, found.held
from makewhole.accepted_finding as found
join makewhole.acceptance as word on word.id = found.acceptance and word.revision = found.revision
where found.acceptance = %(id)s order by found.hop, found.key_hash;

-- end_all_of --
-- End the findings of an acceptance that stand.
update makewhole.accepted_finding
set stands = false, ended_at = clock_timestamp(), ended_because = %(because)s, is_answered = false
where acceptance = %(id)s and stands;

-- end_expired --
-- End what stands longer than it was accepted for.
update makewhole.accepted_finding as found
set stands = false, ended_at = clock_timestamp(), is_answered = false,
    ended_because = 'it was accepted until ' || to_char(word.until at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC"')
from makewhole.acceptance as word
where word.id = found.acceptance and found.pipeline = %(pipeline)s and found.stands and word.until <= now();

-- end_findings --
-- End some findings that stand, each with its reason.
update makewhole.accepted_finding as found
set stands = false, ended_at = clock_timestamp(), ended_because = given.because, is_answered = false
from unnest(%(hops)s::text[], %(hashes)s::text[], %(reasons)s::text[]) as given (hop, key_hash, because)
where found.pipeline = %(pipeline)s and found.number = %(number)s and found.revision = %(revision)s and found.stands
  and (found.hop, found.key_hash) = (given.hop, given.key_hash);

-- end_whole --
-- End what stands of findings of a revision that were repaired, or are none any more.
update makewhole.accepted_finding as stood
set stands = false, ended_at = clock_timestamp(),
    ended_because = 'the key was whole: ' || coalesce(found.outcome, 'no finding any more')
from makewhole.accepted_finding as same
left join makewhole.finding as found
    on (found.pipeline, found.number, found.revision, found.hop, found.key_hash)
     = (same.pipeline, same.number, same.revision, same.hop, same.key_hash)
where same.pipeline = %(pipeline)s and same.number = %(number)s and same.revision = %(revision)s and same.stands
  and stood.ctid = same.ctid and coalesce(found.outcome not in ('open', 'refused'), true);

-- standing_of_number --
-- Read what stands of a window in revisions before one, each with the acceptance, the revision, and the finding that the
-- given revision has of the same key, if any.
select stood.acceptance, stood.revision, stood.hop, stood.key, stood.key_hash, stood.verdict, stood.cause,
    stood.fingerprint, stood.held, found.verdict as verdict_now, found.cause as cause_now,
    found.evidence::text as evidence_now
from makewhole.accepted_finding as stood
left join makewhole.finding as found
    on (found.pipeline, found.number, found.hop, found.key_hash) = (stood.pipeline, stood.number, stood.hop, stood.key_hash)
    and found.revision = %(revision)s
where stood.pipeline = %(pipeline)s and stood.number = %(number)s and stood.revision < %(revision)s and stood.stands
order by stood.hop, stood.key_hash;

-- pass_on --
-- End what a later revision of the window has judged again.
update makewhole.accepted_finding
set stands = false, ended_at = clock_timestamp(), ended_because = %(because)s
where acceptance = %(acceptance)s and revision = %(revision)s and hop = %(hop)s and key_hash = %(key_hash)s;

-- end_met_later --
-- End what stands of keys of earlier windows that this one found wrong on the same hop, where it was accepted before this
-- window was first judged.
update makewhole.accepted_finding as stood
set stands = false, ended_at = clock_timestamp(), is_answered = false,
    ended_because = 'window ' || found.number || ' met the key again: ' || found.verdict
from makewhole.finding as found, makewhole.acceptance as word
where found.pipeline = %(pipeline)s and found.number = %(number)s and found.revision = %(revision)s
  and found.verdict = any(%(verdicts)s)
  and (stood.pipeline, stood.hop, stood.key_hash) = (found.pipeline, found.hop, found.key_hash)
  and stood.stands and stood.number < found.number and word.id = stood.acceptance
  and not exists (
    select from makewhole.hop_result as judged
    where judged.pipeline = found.pipeline and judged.number = found.number and judged.stage = 'reconciled'
      and judged.committed_at < word.decided_at
);

-- standing --
-- Read what stands of a pipeline's windows in their newest revisions, window by window.
select stood.number as window, stood.revision, stood.hop, stood.key, stood.key_hash, stood.verdict, stood.cause,
    stood.fingerprint, stood.held
from makewhole.accepted_finding as stood
join makewhole.window using (pipeline, number, revision)
where stood.pipeline = %(pipeline)s and stood.stands and is_newest
order by stood.number, stood.hop, stood.key_hash;

-- unanswered --
-- Read the revisions of windows with findings that are open again, and have not been judged since, with the reasons.
select found.number as window, found.revision, found.ended_because, count(*) as keys
from makewhole.accepted_finding as found
where found.pipeline = %(pipeline)s and not found.is_answered
group by found.number, found.revision, found.ended_because
order by found.number, found.revision, count(*) desc, found.ended_because;

-- set_answered --
-- Note that a revision was judged again, or is the newest of its window no more.
update makewhole.accepted_finding set is_answered = true
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s and not is_answered;

-- count_accepted --
-- Count the findings of one revision that are accepted, by hop and verdict. `with_doubled`: those that verify found, too.
select hop, verdict, count(*) as keys from makewhole.finding_now
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s and outcome = 'accepted'
  and (%(with_doubled)s or not evidence ? 'caused_by')
group by hop, verdict order by hop, verdict;

-- count_standing --
-- Count the findings of a window that a person has accepted and that stand.
select count(*) from makewhole.accepted_finding
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s and stands;

-- standing_words --
-- Read the acceptances of which findings of one revision are accepted now, with how many, and their identities in order.
select word.id, word.sha256, word.reason, word.until, word.asked_by, word.asked_at, word.decided_by, word.decided_at,
    count(*) as findings,
    array_agg(found.hop || ' ' || found.key_hash order by found.hop collate "C", found.key_hash collate "C")
        as identities
from makewhole.finding_now as found
join makewhole.acceptance as word on word.id = found.acceptance
where found.pipeline = %(pipeline)s and found.number = %(number)s and found.revision = %(revision)s
group by word.id order by word.asked_at, word.id;

-- ended_of --
-- Count the findings of one revision that were accepted and are open again, by the reason.
select coalesce(
        found.ended_because,
        'it was accepted until ' || to_char(word.until at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC"')
    ) as because, count(*) as keys
from makewhole.accepted_finding as found
join makewhole.acceptance as word on word.id = found.acceptance
join makewhole.finding_now as now_is
    on (now_is.pipeline, now_is.number, now_is.revision, now_is.hop, now_is.key_hash)
     = (found.pipeline, found.number, found.revision, found.hop, found.key_hash)
where found.pipeline = %(pipeline)s and found.number = %(number)s and found.revision = %(revision)s
  and now_is.outcome in ('open', 'refused') and (not found.stands or word.until <= now())
  and (found.ended_at is not null or word.until <= now())
group by because order by keys desc, because;

-- accepted_elsewhere --
-- Read which findings of some keys are accepted now in other windows.
select distinct hop, key_hash from makewhole.accepted_now
where pipeline = %(pipeline)s and number <> %(number)s and key_hash = any(%(hashes)s);

-- taken_meanwhile --
-- Count the findings of an acceptance that another one has taken, or that are not open any more.
select count(*)
from makewhole.accepted_finding as asked
left join makewhole.finding_now as now_is
    on (now_is.pipeline, now_is.number, now_is.revision, now_is.hop, now_is.key_hash)
     = (asked.pipeline, asked.number, asked.revision, asked.hop, asked.key_hash)
where asked.acceptance = %(id)s and coalesce(now_is.outcome not in ('open', 'refused'), true);

-- words_on_key --
-- Read what people said of the findings of a key, each with when it ended and why.
select found.acceptance, found.number as window, found.revision, found.hop, found.verdict, word.state, word.reason,
    word.until, word.asked_by, word.asked_at, word.decided_by, word.decided_at,
    coalesce(found.ended_at, case when found.stands and word.until <= now() then word.until end) as ended_at,
    coalesce(found.ended_because, case when found.stands and word.until <= now() then 'its time is over' end)
        as ended_because
from makewhole.accepted_finding as found
join makewhole.acceptance as word on word.id = found.acceptance
where found.pipeline = %(pipeline)s and found.key_hash = %(key_hash)s
order by word.asked_at, found.number, found.revision, found.hop;
