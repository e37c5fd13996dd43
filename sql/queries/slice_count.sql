-- The rows of tables by time slice.

-- put_slice_counts --
-- Write the rows of slices as a revision counted them.
insert into makewhole.slice_count (pipeline, point, slice, number, revision, source, rows)
select %(pipeline)s, %(point)s, slice, %(number)s, %(revision)s, %(source)s, rows
from unnest(%(slices)s::integer[], %(rows)s::bigint[]) as counted (slice, rows);

-- slice_bounds --
-- Read the number of the first window that read a point, and of the first one that ends after a moment.
select
    (
        select number from makewhole.snapshot where pipeline = %(pipeline)s and point = %(point)s
        order by number limit 1
    ) as first,
    (
        select number from makewhole.window where pipeline = %(pipeline)s and end_time > %(reached)s
        order by end_time, number limit 1
    ) as reaching;

-- slice_counts --
-- Read the slices of judged windows before one, by their numbers, each with its newest count by a window that was judged
-- and comes before, too: what an older revision of this one read, the next one reads again. `pg_snapshot` is the one under
-- which it was counted, or, never counted, its window read the point; none where the table stood in another place then.
select judged.number as window, judged.start_time as start, judged.end_time as end, newest.rows,
    case when coalesce(newest.manifest, taken.manifest) ->> 'place' is not distinct from %(place)s
        then coalesce(newest.manifest, taken.manifest) ->> 'pg_snapshot' end as pg_snapshot,
    coalesce(newest.number, judged.number) as counted_by, coalesce(newest.counted_at, taken.committed_at) as counted_at
from (
    select distinct on (number) number, revision, start_time, end_time
    from makewhole.window
    where pipeline = %(pipeline)s and number = any(%(numbers)s) and number < %(number)s and exists (
        select from makewhole.hop_result as result
        where (result.pipeline, result.number, result.revision) =
            (makewhole.window.pipeline, makewhole.window.number, makewhole.window.revision)
        and result.stage = 'reconciled'
    )
    order by number, revision desc
) as judged
join makewhole.snapshot as taken
    on (taken.pipeline, taken.number, taken.revision, taken.point) =
        (%(pipeline)s, judged.number, judged.revision, %(point)s)
left join lateral (
    select counted.rows, counted.number, counted.counted_at, counting.manifest
    from makewhole.slice_count as counted
    join makewhole.snapshot as counting using (pipeline, point, number, revision)
    where counted.pipeline = %(pipeline)s and counted.point = %(point)s and counted.slice = judged.number
        and counted.number < %(number)s and counted.source = %(source)s and exists (
            select from makewhole.hop_result as result
            where (result.pipeline, result.number, result.revision) =
                (counted.pipeline, counted.number, counted.revision)
            and result.stage = 'reconciled'
        )
    order by counted.counted_at desc
    limit 1
) as newest on true
order by judged.number;

-- has_counted --
-- Return whether a revision counted the rows of its own slice of a point that is read so.
select true as is_counted from makewhole.slice_count
where (pipeline, point, slice, number, revision, source) =
    (%(pipeline)s, %(point)s, %(number)s, %(number)s, %(revision)s, %(source)s);

-- written_since --
-- Count the rows of a table that compensation may have written or moved aside since a moment.
select count(*)
from makewhole.chunk
join makewhole.planned_action as planned using (plan, target, chunk)
join makewhole.plan on plan.id = planned.plan
where plan.pipeline = %(pipeline)s and planned.target = %(target)s and planned.refusal is null
    and chunk.observed_at >= %(since)s;
