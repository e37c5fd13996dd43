-- What a window has read: the manifests of its snapshots.

-- insert_snapshot --
-- Commit a snapshot: from here on it exists.
insert into makewhole.snapshot (pipeline, number, revision, point, manifest)
values (%(pipeline)s, %(number)s, %(revision)s, %(point)s, %(manifest)s)
on conflict (pipeline, number, revision, point) do nothing
returning true as is_written;

-- snapshots --
-- Read the manifests of one revision, by point.
select point, manifest from makewhole.snapshot
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s;

-- fullest_snapshots --
-- Read the manifests of a window by point: of the compared revision that could read most of its offsets, the newest of
-- such, as `revision`. What was read once is not forgotten when a later revision finds it deleted.
select distinct on (point) point, manifest || jsonb_build_object('revision', revision) as manifest
from makewhole.snapshot join makewhole.hop_result using (pipeline, number, revision)
where pipeline = %(pipeline)s and number = %(number)s and stage = 'reconciled'
order by point, coalesce((manifest #>> '{accounting,expired}')::bigint, 0), revision desc;

-- snapshots_before --
-- Read the manifests of a point's snapshots that earlier compared revisions of a window took, each with its `revision`.
select manifest || jsonb_build_object('revision', revision) as manifest from makewhole.snapshot
where pipeline = %(pipeline)s and number = %(number)s and revision <= %(last_before)s and point = %(point)s
  and revision in (
    select revision from makewhole.hop_result
    where pipeline = %(pipeline)s and number = %(number)s and stage = 'reconciled'
  )
order by revision;

-- newest_before --
-- Read by point the newest manifest that earlier revisions of a window committed.
select distinct on (point) point, revision, manifest from makewhole.snapshot
where pipeline = %(pipeline)s and number = %(number)s and revision < %(revision)s
order by point, revision desc;
