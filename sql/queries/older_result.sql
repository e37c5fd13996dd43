-- What windows before one wrote of the keys of a hop.

-- certified_files --
-- Read the files of a hop's result, and of the keys that were repaired, of the newest certified revision of some windows,
-- of the judged one among those before it; and those of its slices, where clean keys have no row among the verdicts.
select distinct on (result.number)
    result.number, result.revision, judged.end_time as end, result.files, verified.files ->> 'repaired' as repaired,
    source.manifest -> 'files' as source, target.manifest -> 'files' as target
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
  and result.stage = 'reconciled' and judged.state = 'certified'
  and (result.number <> %(number)s or result.revision <= %(last_before)s)
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
    result.number, judged.end_time as end, coalesce((result.files ->> 'met_far_ahead')::bigint, 0) > 0 as has_far_ahead,
    result.files -> 'met_alone' as files
from asked
join makewhole.hop_result as result
    on (result.pipeline, result.number, result.hop, result.stage)
     = (%(pipeline)s, asked.number, %(hop)s, 'reconciled')
join makewhole.window as judged
    on (judged.pipeline, judged.number, judged.revision) = (result.pipeline, result.number, result.revision)
where judged.state = 'certified'
order by result.number, result.revision desc;

-- unmatched_rows --
-- Read of the windows before one that met keys without a record on a hop, in their newest compared revisions, how many
-- such keys findings name, how many none does as they are from before the baseline or their record is far ahead, how
-- many findings report keys as unexpected or undecidable, and the files of all such keys.
select number, revision,
    (files #>> '{summary,counts,unexpected}')::bigint
        + coalesce((files #>> '{summary,undecidable_without_source}')::bigint, 0) as named,
    coalesce((files #>> '{summary,before_baseline_without_source}')::bigint, 0)
        + coalesce((files ->> 'met_far_ahead')::bigint, 0) as unnamed,
    (files #>> '{summary,counts,unexpected}')::bigint + (files #>> '{summary,counts,undecidable}')::bigint as finding_count,
    files -> 'met_alone' as files
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
