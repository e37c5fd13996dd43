-- What a window's steps commit: snapshots, results, findings, gate reports.

-- insert_snapshot --
-- Commit a snapshot: from here on it exists.
insert into makewhole.snapshot (pipeline, number, revision, point, manifest)
values (%(pipeline)s, %(number)s, %(revision)s, %(point)s, %(manifest)s)
on conflict (pipeline, number, revision, point) do nothing
returning true;

-- snapshots --
-- Read the manifests of one revision, by point.
select point, manifest from makewhole.snapshot
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s;

-- fullest_snapshots --
-- Read the manifests of a window by point: of the compared revision that could read most of its offsets, the newest of
-- such, as `revision`. What was read once is not forgotten when a later revision finds it deleted.
select distinct on (point) point, manifest || jsonb_build_object('revision', revision)
from makewhole.snapshot join makewhole.hop_result using (pipeline, number, revision)
where pipeline = %(pipeline)s and number = %(number)s and stage = 'reconciled'
order by point, coalesce((manifest #>> '{accounting,expired}')::bigint, 0), revision desc;

-- snapshots_before --
-- Read the manifests of a point's snapshots that earlier compared revisions of a window took.
select manifest from makewhole.snapshot
where pipeline = %(pipeline)s and number = %(number)s and revision < %(revision)s and point = %(point)s
  and revision in (
    select revision from makewhole.hop_result
    where pipeline = %(pipeline)s and number = %(number)s and stage = 'reconciled'
  )
order by revision;

-- lock_results --
-- Let one process at a time commit the results of a revision; rows that refer to the window can be written meanwhile.
select from makewhole.window
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s
for no key update;

-- delete_results --
-- Delete the results of an earlier attempt at the same revision and stage.
delete from makewhole.hop_result
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s and stage = %(stage)s;

-- insert_result --
-- Write counts and digest of a hop.
insert into makewhole.hop_result (pipeline, number, revision, hop, stage, counts, digest, files)
values (%(pipeline)s, %(number)s, %(revision)s, %(hop)s, %(stage)s, %(counts)s, %(digest)s, %(files)s);

-- results --
-- Read the results of one revision and stage, by hop.
select hop, counts, digest, files from makewhole.hop_result
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s and stage = %(stage)s;

-- certified_files --
-- Read the files of a hop's result, and of the keys that were repaired, of the newest certified revision of some windows;
-- and those of its slices, where clean keys have no row among the verdicts.
select distinct on (result.number)
    result.number, result.revision, judged.end_time, result.files, verified.files ->> 'repaired',
    source.manifest -> 'files', target.manifest -> 'files'
from makewhole.hop_result as result
join makewhole.window as judged using (pipeline, number, revision)
left join makewhole.hop_result as verified
    on (verified.pipeline, verified.number, verified.revision, verified.hop, verified.stage)
     = (result.pipeline, result.number, result.revision, result.hop, 'verified')
left join makewhole.snapshot as source
    on (source.pipeline, source.number, source.revision, source.point)
     = (result.pipeline, result.number, result.revision, %(source)s)
    and (result.files #>> '{summary,clean}')::bigint > 0
left join makewhole.snapshot as target
    on (target.pipeline, target.number, target.revision, target.point)
     = (result.pipeline, result.number, result.revision, %(target)s)
    and (result.files #>> '{summary,clean}')::bigint > 0
where result.pipeline = %(pipeline)s and result.number = any(%(numbers)s) and result.hop = %(hop)s
  and result.stage = 'reconciled' and judged.state = 'certified' and (result.number, result.revision) <> (%(number)s, %(revision)s)
order by result.number, result.revision desc;

-- certified_met_alone --
-- Read the files, by bucket, of the keys whose rows windows before one met without a record on a hop, of the newest
-- certified revision of those that end after a moment, or that met some whose record is far ahead.
with asked as (
    select number from makewhole.window
    where pipeline = %(pipeline)s and number < %(number)s and end_time > %(moment)s
    union
    select number from makewhole.hop_result
    where pipeline = %(pipeline)s and number < %(number)s and hop = %(hop)s and stage = 'reconciled'
      and (files ->> 'met_far_ahead')::bigint > 0
)
select distinct on (result.number)
    result.number, judged.end_time, coalesce((result.files ->> 'met_far_ahead')::bigint, 0) > 0,
    result.files -> 'met_alone'
from asked
join makewhole.hop_result as result
    on (result.pipeline, result.number, result.hop, result.stage)
     = (%(pipeline)s, asked.number, %(hop)s, 'reconciled')
join makewhole.window as judged
    on (judged.pipeline, judged.number, judged.revision) = (result.pipeline, result.number, result.revision)
where judged.state = 'certified'
order by result.number, result.revision desc;

-- strangers --
-- Read of the windows before one that met keys without a record on a hop, in their newest compared revisions, how many
-- such keys findings name, how many none does as they are from before the baseline or their record is far ahead, how
-- many findings tell of keys as unexpected or undecidable, and the files of all such keys.
select number, revision,
    (files #>> '{summary,counts,unexpected}')::bigint
        + coalesce((files #>> '{summary,undecidable_without_source}')::bigint, 0) as named,
    coalesce((files #>> '{summary,before_baseline_without_source}')::bigint, 0)
        + coalesce((files ->> 'met_far_ahead')::bigint, 0) as unnamed,
    (files #>> '{summary,counts,unexpected}')::bigint + (files #>> '{summary,counts,undecidable}')::bigint as told,
    files -> 'met_alone'
from makewhole.hop_result as met
where pipeline = %(pipeline)s and hop = %(hop)s and number < %(number)s and stage = 'reconciled' and (
    (files #>> '{summary,counts,unexpected}')::bigint > 0
    or (files #>> '{summary,undecidable_without_source}')::bigint > 0
    or (files #>> '{summary,before_baseline_without_source}')::bigint > 0
    or (files ->> 'met_far_ahead')::bigint > 0
) and not exists (
    select from makewhole.hop_result as newer
    where (newer.pipeline, newer.number, newer.hop, newer.stage) = (met.pipeline, met.number, met.hop, met.stage)
      and newer.revision > met.revision
)
order by number;

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
select hop, key, key_hash, verdict, cause, evidence, outcome, outcome_reason
from makewhole.finding
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s
order by hop, verdict, key;

-- findings_by_key --
-- Read the findings of one revision, those of a key together.
select hop, key, key_hash, verdict, cause, evidence, outcome, outcome_reason
from makewhole.finding
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s
order by key_hash collate "C", hop, verdict, key;

-- kinds_of_findings --
-- Read the hops of the findings of one revision, each with its verdicts.
select distinct hop, verdict from makewhole.finding
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s;

-- count_findings --
-- Count the findings of each hop and verdict of one revision that its results count, and those of all that are open:
-- verify adds some of keys that a redelivery doubled.
select hop, verdict, count(*) filter (where not evidence ? 'doubled_by'), count(*) filter (where outcome = 'open')
from makewhole.finding
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s
group by hop, verdict;

-- count_outcomes --
-- Count the findings of one revision by verdict and outcome.
select verdict, outcome, count(*) from makewhole.finding
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s
group by verdict, outcome;

-- open_findings --
-- Read the first open findings of each hop and verdict of one revision.
select hop, key, key_hash, verdict, cause, evidence
from (
    select finding.*, row_number() over (partition by hop, verdict order by key, key_hash) as place
    from makewhole.finding
    where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s
      and outcome = 'open' and verdict = any(%(verdicts)s)
) as found
where place <= %(most)s
order by hop, verdict, place;

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

-- delete_handovers --
-- Delete the handed-over keys of an earlier attempt at the same revision.
delete from makewhole.handover
where pipeline = %(pipeline)s and from_number = %(number)s and from_revision = %(revision)s;

-- insert_handovers --
-- Write handed-over keys in bulk; the driver fills in the list of values.
insert into makewhole.handover (pipeline, from_number, from_revision, hop, key, key_hash, since) values %s
on conflict do nothing;

-- count_handovers --
-- Count the keys that a revision hands over, by hop.
select hop, count(*) from makewhole.handover
where pipeline = %(pipeline)s and from_number = %(number)s and from_revision = %(revision)s
group by hop;

-- waiting_by_hop --
-- Count the keys that a revision hands over, by hop, with the moment since which the first of them waits.
select hop, count(*), min(since) from makewhole.handover
where pipeline = %(pipeline)s and from_number = %(number)s and from_revision = %(revision)s
group by hop order by hop;

-- handover_ids --
-- Read what identifies the keys that a revision handed over; bytes of UTF-8 sort as code points do.
select hop || '|' || key_hash from makewhole.handover
where pipeline = %(pipeline)s and from_number = %(number)s and from_revision = %(revision)s
order by (hop || '|' || key_hash) collate "C";

-- handovers --
-- Read the keys that the newest judged revision of a window handed over, on a hop or on all; a revision that ended before has none. Where it
-- could not read offsets that an older one read, also those of older ones that it has no verdict of: it may not have met
-- them.
with judged as (
    select revision, coalesce(max((manifest #>> '{accounting,expired}')::bigint), 0) as unread
    from (
        select distinct pipeline, number, revision from makewhole.hop_result
        where pipeline = %(pipeline)s and number = %(number)s and stage = 'reconciled'
    ) as compared left join makewhole.snapshot using (pipeline, number, revision)
    group by revision
), counted as (
    select revision from judged where revision >= (select revision from judged order by unread, revision desc limit 1)
)
select hop, min(key), key_hash, min(since) from makewhole.handover as handed
where pipeline = %(pipeline)s and from_number = %(number)s and from_revision in (select revision from counted)
  and (%(hop)s::text is null or hop = %(hop)s)
  and not exists (
    select from makewhole.finding
    where (finding.pipeline, finding.number) = (handed.pipeline, handed.from_number)
      and finding.revision > handed.from_revision
      and (finding.hop, finding.key_hash) = (handed.hop, handed.key_hash)
      and finding.verdict not in ('pending', 'undecidable')
  )
group by hop, key_hash
order by hop, min(key);

-- put_key_run --
-- Write a sorted run of the key index.
insert into makewhole.key_run (pipeline, point, number, revision, files, keys)
values (%(pipeline)s, %(point)s, %(number)s, %(revision)s, %(files)s, %(keys)s)
on conflict (pipeline, point, number, revision) do update set files = excluded.files, keys = excluded.keys;

-- put_gate_report --
-- Write the gate's report on a stage; the newest one counts.
insert into makewhole.gate_report
    (pipeline, number, revision, stage, answer, planned, evaluated, failures, document)
values
    (%(pipeline)s, %(number)s, %(revision)s, %(stage)s, %(answer)s, %(planned)s, %(evaluated)s, %(failures)s,
     %(document)s)
on conflict (pipeline, number, revision, stage) do update set
    answer = excluded.answer, planned = excluded.planned, evaluated = excluded.evaluated,
    failures = excluded.failures, document = excluded.document, committed_at = clock_timestamp();

-- gate_reports --
-- Read the gate's reports of one revision, by stage.
select stage, answer, planned, evaluated, failures, document from makewhole.gate_report
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s;

-- plans_of --
-- Read the plans that were made for a window, whatever the revision.
select id from makewhole.plan where pipeline = %(pipeline)s and number = %(number)s order by id;

-- frozen_at --
-- Read when a plan was frozen.
select frozen_at from makewhole.plan where id = %(plan)s;
