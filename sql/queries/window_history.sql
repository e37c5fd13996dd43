-- The windows before (and after) one, asked for no more of them than are needed.

-- bounds_near --
-- Read the last windows of a pipeline, and the first one that ends at a moment or later: each with its newest revision, in
-- order.
with near as (
    (
        select distinct number from (
            select number from makewhole.window where pipeline = %(pipeline)s
            order by number desc, revision desc limit %(most)s
        ) as last_revisions
    )
    union
    (select number from makewhole.window where pipeline = %(pipeline)s and end_time >= %(end)s order by end_time limit 1)
)
select number, max(revision) as revision, min(start_time) as start, min(end_time) as end
from near join makewhole.window using (number)
where pipeline = %(pipeline)s
group by number order by number;

-- covered_ranges --
-- Read of the topic that the newest window of a point read, by partition, the first range that a window has, and the last
-- one with the leader epochs of the log up to its end.
with newest as (
    select lane.topic_id
    from makewhole.window_range as covered join makewhole.lane on lane.id = covered.lane
    where covered.pipeline = %(pipeline)s and lane.point = %(point)s
    order by covered.number desc limit 1
), ends as (
    select lane.topic, lane.topic_id, lane.partition, lane.lineage, first_one.number as first_number,
        first_one.lo as first_lo, first_one.hi as first_hi, last_one.number, last_one.lo, last_one.hi, last_one.log_epochs
    from makewhole.lane
    cross join lateral (
        select number, lo, hi from makewhole.window_range where lane = lane.id order by number limit 1
    ) as first_one
    cross join lateral (
        select number, lo, hi, log_epochs from makewhole.window_range where lane = lane.id order by number desc limit 1
    ) as last_one
    where lane.pipeline = %(pipeline)s and lane.point = %(point)s and lane.topic_id in (select topic_id from newest)
)
(
    select distinct on (partition) topic, topic_id, partition, lineage, first_lo as lo, first_hi as hi,
        '[]'::jsonb as leader_epochs, first_number as number
    from ends order by partition, first_number
)
union all
(
    select distinct on (partition) topic, topic_id, partition, lineage, lo, hi, log_epochs as leader_epochs, number
    from ends order by partition, number desc
);

-- judged --
-- Read the newest compared revision of windows, by their numbers, in order.
select distinct on (number) number, revision, start_time as start, end_time as end, opened_at, state, reason, plan_only,
    configuration -> 'key_layout' as key_layout, configuration -> 'value_types' as value_types,
    configuration -> 'places' as places, configuration -> 'former_filters' as former_filters
from makewhole.window as compared
where pipeline = %(pipeline)s and number = any(%(numbers)s) and exists (
    select from makewhole.hop_result as result
    where (result.pipeline, result.number, result.revision) = (compared.pipeline, compared.number, compared.revision)
      and result.stage = 'reconciled'
)
order by number, revision desc;

-- judged_numbers --
-- Read the numbers of the compared windows from one to another, in order.
select number from makewhole.window
where pipeline = %(pipeline)s and number between %(first)s and %(last)s and is_newest and exists (
    select from makewhole.hop_result as result
    where result.pipeline = %(pipeline)s and result.number = makewhole.window.number and result.stage = 'reconciled'
)
order by number;

-- judged_number_before --
-- Read the number of the newest compared window before one.
select number from makewhole.hop_result
where pipeline = %(pipeline)s and number < %(number)s and stage = 'reconciled'
order by number desc limit 1;

-- first_judged_number --
-- Read the number of the first compared window.
select number from makewhole.hop_result
where pipeline = %(pipeline)s and stage = 'reconciled'
order by number limit 1;

-- first_number_with --
-- Read the number of the first compared window that read a topic point.
select covered.number
from makewhole.lane
cross join lateral (
    select number from makewhole.window_range
    where lane = lane.id and exists (
        select from makewhole.hop_result as result
        where result.pipeline = %(pipeline)s and result.number = window_range.number and result.stage = 'reconciled'
    )
    order by number limit 1
) as covered
where lane.pipeline = %(pipeline)s and lane.point = %(point)s
order by covered.number limit 1;

-- number_ending_after --
-- Read the number of the first window that ends after a moment.
select number from makewhole.window where pipeline = %(pipeline)s and end_time > %(moment)s
order by end_time, number limit 1;

-- numbers_in_spans --
-- Read the numbers of the windows whose times lie in spans [start, end); without a start: from the beginning.
select distinct found.number
from unnest(%(starts)s::timestamptz[], %(ends)s::timestamptz[]) as span (starts, ends)
cross join lateral (
    select number from makewhole.window
    where pipeline = %(pipeline)s and end_time > coalesce(span.starts, '-infinity') and end_time <= coalesce(
        (
            select min(end_time) from makewhole.window where pipeline = %(pipeline)s and end_time >= span.ends
        ),
        'infinity'
    ) and (start_time is null or start_time < span.ends)
) as found
order by found.number;

-- numbers_reached --
-- Read the numbers of the windows before one of which truncations took records: lineages up to one, from offset `lo` on.
select distinct covered.number
from unnest(%(topic_ids)s::text[], %(partitions)s::integer[], %(lineages)s::integer[], %(los)s::bigint[])
    as truncated (topic_id, partition, lineage, lo)
join makewhole.lane
    on lane.pipeline = %(pipeline)s and lane.point = %(point)s and lane.topic_id = truncated.topic_id
    and lane.partition = truncated.partition and lane.lineage <= truncated.lineage
join makewhole.window_range as covered
    on int8range(covered.lane, covered.lane, '[]') && int8range(lane.id, lane.id, '[]')
    and covered.offsets && int8range(truncated.lo, null)
where covered.number < %(number)s
order by covered.number;

-- topic_ids --
-- Read the ids that topic points had, with the number of the first window that read each.
select lane.point, lane.topic_id, min(covered.number) as number
from makewhole.lane
cross join lateral (select number from makewhole.window_range where lane = lane.id order by number limit 1) as covered
where lane.pipeline = %(pipeline)s and lane.point = any(%(points)s)
group by lane.point, lane.topic_id
order by min(covered.number), array_position(%(points)s, lane.point);

-- fullest_manifests --
-- Read the manifests of windows by number and point: of the compared revision that could read most of its offsets, the
-- newest of such, as `revision`.
select distinct on (number, point) number, point, manifest || jsonb_build_object('revision', revision) as manifest
from makewhole.snapshot
where pipeline = %(pipeline)s and number = any(%(numbers)s) and exists (
    select from makewhole.hop_result as result
    where (result.pipeline, result.number, result.revision) = (snapshot.pipeline, snapshot.number, snapshot.revision)
      and result.stage = 'reconciled'
)
order by number, point, coalesce((manifest #>> '{accounting,expired}')::bigint, 0), revision desc;

-- newest_judged_numbers --
-- Read the numbers of the newest compared windows, newest first.
select number from makewhole.window
where pipeline = %(pipeline)s and is_newest and exists (
    select from makewhole.hop_result as result
    where result.pipeline = %(pipeline)s and result.number = makewhole.window.number and result.stage = 'reconciled'
)
order by number desc limit %(most)s;

-- numbers_holding --
-- Read the numbers of the windows before one whose ranges of a topic point hold any of some positions, whatever the
-- incarnation.
select distinct covered.number
from unnest(%(partitions)s::integer[], %(offsets)s::bigint[]) as wanted (partition, at)
join makewhole.lane
    on lane.pipeline = %(pipeline)s and lane.point = %(point)s and lane.partition = wanted.partition
join makewhole.window_range as covered
    on int8range(covered.lane, covered.lane, '[]') && int8range(lane.id, lane.id, '[]')
    and covered.offsets && int8range(wanted.at, wanted.at, '[]')
where covered.number < %(number)s
order by covered.number;

-- start_of --
-- Read when a window begins.
select start_time from makewhole.window where pipeline = %(pipeline)s and number = %(number)s
order by revision limit 1;

-- newest_keys --
-- Read how the newest compared window that had each of some points read its key.
select point.name, known.key_layout, known.key_fields
from unnest(%(points)s::text[]) as point (name) cross join lateral (
    select configuration -> 'key_layout' -> point.name as key_layout,
        configuration -> 'key_fields' -> point.name as key_fields
    from makewhole.window as compared
    where pipeline = %(pipeline)s and configuration -> 'key_layout' ? point.name and exists (
        select from makewhole.hop_result as result
        where (result.pipeline, result.number, result.revision) = (compared.pipeline, compared.number, compared.revision)
          and result.stage = 'reconciled'
    )
    order by number desc, revision desc limit 1
) as known;

-- names_of_places --
-- Read the names of the points that compared windows knew at some places, each with its newest place.
select distinct on (known.key) known.key as name, known.value as place
from makewhole.window as compared cross join jsonb_each_text(configuration -> 'places') as known
where pipeline = %(pipeline)s and known.value = any(%(places)s) and exists (
    select from makewhole.hop_result as result
    where (result.pipeline, result.number, result.revision) = (compared.pipeline, compared.number, compared.revision)
      and result.stage = 'reconciled'
)
order by known.key, number desc, revision desc;
