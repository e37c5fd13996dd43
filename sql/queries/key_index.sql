-- The key index: the runs of windows, and the merged runs that stand for them.

-- topics --
-- Read the points of a pipeline that have a run.
select distinct point from makewhole.key_run where pipeline = %(pipeline)s order by point;

-- counted_runs --
-- Read a run of every window that is in no merged run, or was judged again, by window: of the revision that could read most
-- of its offsets, the newest of such. Manifests are large: only those of windows with several revisions are read.
with asked as (
    select number from makewhole.key_run
    where pipeline = %(pipeline)s and point = %(point)s and retired_at is null and number >= %(first)s
    union
    select number from makewhole.key_run
    where pipeline = %(pipeline)s and point = %(point)s and revision > 1 and number >= %(first)s
), run as (
    select number, revision, files, keys, retired_at, count(*) over (partition by number) as revisions
    from makewhole.key_run join asked using (number)
    where pipeline = %(pipeline)s and point = %(point)s
)
select distinct on (run.number) run.number, run.revision, run.files, run.keys as rows,
    run.retired_at is not null as is_retired
from run left join makewhole.snapshot as taken
    on run.revisions > 1 and (taken.pipeline, taken.number, taken.revision, taken.point) =
        (%(pipeline)s, run.number, run.revision, %(point)s)
order by run.number, coalesce((taken.manifest #>> '{accounting,expired}')::bigint, 0), run.revision desc;

-- partial_runs --
-- Read the numbers and revisions of the windows in whose runs keys of earlier revisions may be missing.
select number, revision from makewhole.key_run
where pipeline = %(pipeline)s and point = %(point)s and revision > 1 and is_partial;

-- count_windows --
-- Count the windows from one on that have a run, in a merged run or not.
select count(distinct number) from makewhole.key_run
where pipeline = %(pipeline)s and point = %(point)s and number >= %(first)s;

-- windows_with_run --
-- Read the numbers of the windows from one on that have a run, in order.
select distinct number from makewhole.key_run
where pipeline = %(pipeline)s and point = %(point)s and number >= %(first)s order by number;

-- first_indexed --
-- Read the number of the first window that the index reaches: the one behind the last that was dropped.
select coalesce(max(number), 0) + 1 as number from makewhole.key_run
where pipeline = %(pipeline)s and point = %(point)s and is_dropped;

-- drop_runs --
-- Drop the runs of the windows before one, and retire them.
update makewhole.key_run set is_dropped = true, retired_at = coalesce(retired_at, clock_timestamp())
where pipeline = %(pipeline)s and point = %(point)s and number < %(number)s and not is_dropped
returning number;

-- retire_old_merges --
-- Retire the merged runs that have no window from one on.
update makewhole.key_merge set retired_at = clock_timestamp()
where pipeline = %(pipeline)s and point = %(point)s and retired_at is null and not exists (
    select from jsonb_object_keys(windows) as held (number) where held.number::integer >= %(number)s
);

-- standing_merges --
-- Read the merged runs that nothing has replaced, oldest first.
select id, windows, files, rows from makewhole.key_merge
where pipeline = %(pipeline)s and point = %(point)s and retired_at is null
order by id;

-- begin_merge --
-- Note the attempt at a merged run, whose files are not read until it stands.
insert into makewhole.key_merge (pipeline, point, attempt, windows, files, rows, retired_at)
values (%(pipeline)s, %(point)s, %(attempt)s, '{}', '{}', 0, clock_timestamp());

-- put_merge --
-- Make the merged run of an attempt stand; returns nothing where the attempt was forgotten.
update makewhole.key_merge
set windows = %(windows)s, files = %(files)s, rows = %(rows)s, merged_at = clock_timestamp(), retired_at = null
where pipeline = %(pipeline)s and point = %(point)s and attempt = %(attempt)s
returning id;

-- retire_merges --
-- Retire merged runs; returns those that stood until now.
update makewhole.key_merge set retired_at = clock_timestamp()
where pipeline = %(pipeline)s and point = %(point)s and id = any(%(ids)s) and retired_at is null
returning id;

-- retire_runs --
-- Retire the runs of windows (numbers and their revisions); returns those that stood until now.
update makewhole.key_run set retired_at = clock_timestamp()
where pipeline = %(pipeline)s and point = %(point)s and retired_at is null
  and (number, revision) in (select * from unnest(%(numbers)s::integer[], %(revisions)s::integer[]))
returning number;

-- retire_replaced_runs --
-- Retire runs of revisions that newer ones replaced for good: those before the revision of a window that counts.
update makewhole.key_run set retired_at = clock_timestamp()
from unnest(%(numbers)s::integer[], %(revisions)s::integer[]) as counted (number, revision)
where pipeline = %(pipeline)s and point = %(point)s and retired_at is null
  and key_run.number = counted.number and key_run.revision < counted.revision;

-- put_rebuilt_run --
-- Write the run of a revision of a window in the place of the one that it had.
insert into makewhole.key_run (pipeline, point, number, revision, files, keys, is_partial)
values (%(pipeline)s, %(point)s, %(number)s, %(revision)s, %(files)s, %(keys)s, %(is_partial)s)
on conflict (pipeline, point, number, revision)
do update set files = excluded.files, keys = excluded.keys, is_partial = excluded.is_partial, retired_at = null,
    is_dropped = false;

-- retired_merges --
-- Read the attempts at merged runs that were retired so long ago that their files are not read or written any more.
select attempt from makewhole.key_merge
where pipeline = %(pipeline)s and point = %(point)s and retired_at < clock_timestamp() - %(grace)s;

-- forget_merge --
-- Forget a merged run, in the transaction in which its files are removed.
delete from makewhole.key_merge
where pipeline = %(pipeline)s and point = %(point)s and attempt = %(attempt)s and retired_at is not null
returning id;

-- retired_runs --
-- Read the runs with files that were retired so long ago that these are not read any more.
select number, revision, files from makewhole.key_run
where pipeline = %(pipeline)s and point = %(point)s and retired_at < clock_timestamp() - %(grace)s and files <> '{}';

-- forget_files_of_run --
-- Forget the files of a run, in the transaction in which they are removed.
update makewhole.key_run set files = '{}'
where pipeline = %(pipeline)s and point = %(point)s and number = %(number)s and revision = %(revision)s
  and retired_at is not null
returning number;

-- put_key_run --
-- Write a sorted run of the key index.
insert into makewhole.key_run (pipeline, point, number, revision, files, keys, is_partial)
values (%(pipeline)s, %(point)s, %(number)s, %(revision)s, %(files)s, %(keys)s, %(is_partial)s)
on conflict (pipeline, point, number, revision)
do update set files = excluded.files, keys = excluded.keys, is_partial = excluded.is_partial;
