-- The findings of windows.

-- delete_findings --
-- Delete the findings of an earlier attempt at the same revision.
delete from makewhole.finding where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s;

-- copy_findings_in --
-- Write findings in bulk: a line each.
copy makewhole.finding (pipeline, number, revision, hop, key, key_hash, verdict, cause, evidence)
from stdin with (format text, encoding 'UTF8');

-- add_findings --
-- Write findings beside those that are there; the driver fills in the list of values.
insert into makewhole.finding (pipeline, number, revision, hop, key, key_hash, verdict, cause, evidence) values %s
on conflict do nothing;

-- findings --
-- Read the findings of one revision.
select hop, key, key_hash, verdict, cause, evidence::text, outcome, outcome_reason as reason, acceptance
from makewhole.finding_now
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s
order by hop, verdict, key;

-- findings_by_key --
-- Read the findings of one revision, those of a key together.
select hop, key, key_hash, verdict, cause, evidence::text, outcome, outcome_reason as reason, acceptance
from makewhole.finding_now
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s
order by key_hash collate "C", hop, verdict, key;

-- kinds_of_findings --
-- Read the hops of the findings of one revision, each with its verdicts.
select distinct hop, verdict from makewhole.finding
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s;

-- count_findings --
-- Count the findings of each hop and verdict of one revision that its results count, and those of all that are open:
-- verify adds some of keys that a repair broke on another hop.
select hop, verdict, count(*) filter (where not evidence ? 'caused_by') as kept,
    count(*) filter (where outcome = 'open') as open
from makewhole.finding_now
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s
group by hop, verdict;

-- count_outcomes --
-- Count the findings of one revision by verdict and outcome.
select verdict, outcome, count(*) from makewhole.finding_now
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s
group by verdict, outcome;

-- count_refused_by --
-- Count the findings of some verdicts of one revision that were refused with certain words in the reason.
select count(*) from makewhole.finding_now
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s
  and outcome = 'refused' and verdict = any(%(verdicts)s) and position(%(words)s in outcome_reason) > 0;

-- open_findings --
-- Read the first open findings of each hop and verdict of one revision.
select hop, key, key_hash, verdict, cause, evidence
from (
    select hop, key, key_hash, verdict, cause, evidence,
        row_number() over (partition by hop, verdict order by key, key_hash) as place
    from makewhole.finding_now
    where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s
      and outcome = 'open' and verdict = any(%(verdicts)s)
) as found
where place <= %(most)s
order by hop, verdict, place;

-- open_disputes --
-- Read what is open in the newest revisions of other windows of some keys, as far as it disputes a value.
select number, hop, key, key_hash, verdict, cause, coalesce((evidence ->> 'target_copies')::integer, 0) as copies
from makewhole.finding
join makewhole.window as judged using (pipeline, number, revision)
where pipeline = %(pipeline)s and number <> %(number)s and judged.is_newest and key_hash = any(%(hashes)s)
  and outcome in ('open', 'refused') and verdict in ('mismatched', 'unexpected', 'undecidable', 'conflict')
order by number, hop, key_hash;

-- disputes_since_plan --
-- Read, as `open_disputes` does, what other windows found since a plan was frozen; and, with no verdict, which findings of
-- these keys a person has accepted in any window.
select finding.number, hop, key, key_hash, verdict, cause,
    coalesce((evidence ->> 'target_copies')::integer, 0) as copies
from makewhole.plan
join makewhole.finding on finding.pipeline = plan.pipeline and finding.number <> plan.number
join makewhole.window as judged on judged.pipeline = finding.pipeline and judged.number = finding.number
    and judged.revision = finding.revision
where plan.id = %(plan)s and judged.is_newest and key_hash = any(%(hashes)s)
  and outcome in ('open', 'refused') and verdict in ('mismatched', 'unexpected', 'undecidable', 'conflict')
  and exists (
      select from makewhole.hop_result as result
      where result.pipeline = finding.pipeline and result.number = finding.number
        and result.revision = finding.revision and result.hop = finding.hop and result.committed_at > plan.frozen_at
  )
union all
select word.number, word.hop, null, word.key_hash, null, null, 0
from makewhole.plan join makewhole.accepted_now as word on word.pipeline = plan.pipeline
where plan.id = %(plan)s and word.key_hash = any(%(hashes)s)
order by number, hop, key_hash;

-- set_outcomes --
-- Write the outcomes of findings that have others, and add to their evidence what was compared. Each row is looked up by
-- the primary key: right after a large window the planner knows nothing of the table, and would compare all with all.
update makewhole.finding
set outcome = judged.outcome, outcome_reason = judged.reason, evidence = evidence || judged.compared::jsonb
from (
    select stored.ctid as place, given.outcome, given.reason, given.compared
    from unnest(%(hops)s::text[], %(hashes)s::text[], %(outcomes)s::text[], %(reasons)s::text[], %(compared)s::text[])
        as given (hop, key_hash, outcome, reason, compared)
    cross join lateral (
        select ctid from makewhole.finding as one
        where one.pipeline = %(pipeline)s and one.number = %(number)s and one.revision = %(revision)s
          and one.hop = given.hop and one.key_hash = given.key_hash
          and (one.outcome <> given.outcome or one.outcome_reason is distinct from given.reason
               or given.compared <> '{}')
        limit 1
    ) as stored
) as judged
where finding.ctid = judged.place;
