-- The keys that windows hand over.

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
select hop, count(*) as keys from makewhole.handover
where pipeline = %(pipeline)s and from_number = %(number)s and from_revision = %(revision)s
group by hop;

-- waiting_by_hop --
-- Count the keys that a revision hands over, by hop, with the moment since which the first of them waits.
select hop, count(*) as keys, min(since) as since from makewhole.handover
where pipeline = %(pipeline)s and from_number = %(number)s and from_revision = %(revision)s
group by hop order by hop;

-- handover_ids --
-- Read what identifies the keys that a revision handed over; bytes of UTF-8 sort as code points do.
select hop || '|' || key_hash as identity from makewhole.handover
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
select hop, min(key) as key, key_hash, min(since) as since from makewhole.handover as handed
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

-- handed_on --
-- Read those of some keys that a window handed over on a hop: by its newest certified revision, or without one by its newest judged one.
with counted as (
    select judged.revision from makewhole.hop_result as result join makewhole.window as judged using (pipeline, number, revision)
    where result.pipeline = %(pipeline)s and result.number = %(number)s and result.hop = %(hop)s and result.stage = 'reconciled'
    order by judged.state = 'certified' desc, judged.revision desc limit 1
)
select key_hash from makewhole.handover
where pipeline = %(pipeline)s and from_number = %(number)s and from_revision = (select revision from counted)
  and hop = %(hop)s and key_hash = any(%(key_hashes)s)
order by key_hash;

-- is_overtaken --
-- Return whether the window behind a revision's own was compared without what the revision hands over: the last time that it was compared, its
-- snapshots were taken before this revision was compared, or what it was given was of newer revisions alone.
with behind as (
    select (
        select max(taken.committed_at) from makewhole.snapshot as taken
        where (taken.pipeline, taken.number, taken.revision) = (%(pipeline)s, %(number)s + 1, compared.revision)
    ) as begun_at
    from (
        select max(revision) as revision from makewhole.hop_result
        where pipeline = %(pipeline)s and number = %(number)s + 1 and stage = 'reconciled'
    ) as compared where compared.revision is not null
), judged as (
    select revision, coalesce(max((manifest #>> '{accounting,expired}')::bigint), 0) as unread
    from (
        select pipeline, number, revision from makewhole.hop_result
        where pipeline = %(pipeline)s and number = %(number)s and stage = 'reconciled'
        group by pipeline, number, revision having max(committed_at) < (select begun_at from behind)
    ) as compared left join makewhole.snapshot using (pipeline, number, revision)
    group by revision
)
select exists (select from behind) and not exists (
    select from judged where revision = %(revision)s
      and revision >= (select revision from judged order by unread, revision desc limit 1)
) as is_overtaken;
