-- Windows, the ranges they cover, and what was known to exist when they opened.

-- lock_pipeline --
-- Keep two runs from opening windows of one pipeline at once. A client that stands still does not keep the lock.
select pg_advisory_xact_lock(hashtextextended('makewhole.window.' || %(pipeline)s, 0)),
    set_config(
        'idle_in_transaction_session_timeout',
        coalesce(nullif(current_setting('idle_in_transaction_session_timeout'), '0'), '20min'),
        true
    );

-- by_request --
-- Read the revision of a request (one DAG run): it opens one, however often its task is tried.
select number, revision from makewhole.window where pipeline = %(pipeline)s and request = %(request)s;

-- insert_window --
-- Write a new revision; the one before it is the newest no more.
with before as (
    update makewhole.window set is_newest = false
    where pipeline = %(pipeline)s and number = %(number)s and revision < %(revision)s and is_newest
)
insert into makewhole.window
    (pipeline, number, revision, start_time, end_time, opened_at, request, plan_only, read_again, configuration)
values
    (%(pipeline)s, %(number)s, %(revision)s, %(start)s, %(end)s, %(opened_at)s, %(request)s, %(plan_only)s,
     %(read_again)s, %(configuration)s);

-- reads_again --
-- Read whether a revision was asked to read every point again.
select read_again from makewhole.window
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s;

-- lane --
-- Read the id of a partition of a topic's incarnation and lineage; written when it is new.
with made as (
    insert into makewhole.lane (pipeline, point, topic, topic_id, partition, lineage)
    values (%(pipeline)s, %(point)s, %(topic)s, %(topic_id)s, %(partition)s, %(lineage)s)
    on conflict (pipeline, point, topic_id, partition, lineage) do nothing
    returning id
)
select id from made
union all
select id from makewhole.lane
where pipeline = %(pipeline)s and point = %(point)s and topic_id = %(topic_id)s and partition = %(partition)s
    and lineage = %(lineage)s
limit 1;

-- insert_range --
-- Write a range, with the leader epochs of the log up to its end; the exclusion constraint refuses it when it overlaps a
-- range of another window.
with before as (
    select earlier.log_epochs
    from makewhole.lane as own
    join makewhole.lane as same_log
        on (same_log.pipeline, same_log.point, same_log.topic_id, same_log.partition)
         = (own.pipeline, own.point, own.topic_id, own.partition)
    cross join lateral (
        select number, log_epochs from makewhole.window_range where lane = same_log.id order by number desc limit 1
    ) as earlier
    where own.id = %(lane)s
    order by earlier.number desc limit 1
)
insert into makewhole.window_range (pipeline, number, lane, offsets, lo, hi, leader_epochs, log_epochs)
values (
    %(pipeline)s, %(number)s, %(lane)s, int8range(%(lo)s, %(hi)s), %(lo)s, %(hi)s, %(leader_epochs)s,
    makewhole.epochs_with(coalesce((select log_epochs from before), '[]'), %(lo)s, %(leader_epochs)s)
);

-- ranges --
-- Read the ranges of windows, by window, point and partition.
select covered.number, lane.point, lane.topic, lane.topic_id, lane.partition, lane.lineage, covered.lo, covered.hi,
    covered.leader_epochs
from makewhole.window_range covered join makewhole.lane on lane.id = covered.lane
where covered.pipeline = %(pipeline)s and covered.number = any(%(numbers)s)
order by covered.number, lane.point, lane.partition;

-- get --
-- Read one revision of a window.
select number, revision, start_time as start, end_time as end, opened_at, state, reason, plan_only,
    configuration -> 'key_layout' as key_layout, configuration -> 'value_types' as value_types,
    configuration -> 'places' as places, configuration -> 'former_filters' as former_filters
from makewhole.window
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s;

-- configuration --
-- Read what was recorded of the configuration of one revision.
select configuration from makewhole.window
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s;

-- last_types --
-- Read the key layout and the types of columns of the newest window.
select configuration -> 'key_layout' as key_layout, configuration -> 'value_types' as value_types from makewhole.window
where pipeline = %(pipeline)s order by number desc, revision desc limit 1;

-- newest --
-- Read the newest revisions of the newest windows, or of one window, newest window first.
select number, revision, start_time as start, end_time as end, opened_at, state, reason, plan_only,
    configuration -> 'key_layout' as key_layout, configuration -> 'value_types' as value_types,
    configuration -> 'places' as places, configuration -> 'former_filters' as former_filters
from makewhole.window
where pipeline = %(pipeline)s and is_newest and (%(number)s::integer is null or number = %(number)s::integer)
order by number desc limit %(most)s;

-- count_numbers --
-- Count the windows of a pipeline.
select count(*) from makewhole.window where pipeline = %(pipeline)s and is_newest;

-- newest_judged --
-- Read the newest revision of every window that was compared to its end, newest window first.
select distinct on (number) number, revision, start_time as start, end_time as end, opened_at, state, reason, plan_only,
    configuration -> 'key_layout' as key_layout, configuration -> 'value_types' as value_types,
    configuration -> 'places' as places, configuration -> 'former_filters' as former_filters
from makewhole.window join makewhole.hop_result using (pipeline, number, revision)
where pipeline = %(pipeline)s and stage = 'reconciled' order by number desc, revision desc;

-- last_judged --
-- Read the newest compared revision of the newest window that has one, or of one window.
select number, revision, start_time as start, end_time as end, opened_at, state, reason, plan_only,
    configuration -> 'key_layout' as key_layout, configuration -> 'value_types' as value_types,
    configuration -> 'places' as places, configuration -> 'former_filters' as former_filters
from makewhole.window as compared
where pipeline = %(pipeline)s and (%(number)s::integer is null or number = %(number)s::integer)
  and exists (
    select from makewhole.hop_result as result
    where (result.pipeline, result.number, result.revision) = (compared.pipeline, compared.number, compared.revision)
      and result.stage = 'reconciled'
  )
order by number desc, revision desc limit 1;

-- compared_otherwise --
-- Read until when windows before one were compared by other columns than these on a hop, and by which: of the newest
-- such window the newest revision that was compared. Asked for as a range, the newest window of a digest is one entry
-- of `compared_by`; by equality it is looked for in all windows behind it, as most have the same digest. By `case` the
-- planner expects many revisions to be the newest one; otherwise so few that it sorts the entries of all windows.
with recursive compared (digest) as (
    (
        select md5((configuration ->> 'compare') || coalesce(configuration ->> 'compare_of_hops', ''))
        from makewhole.window
        where pipeline = %(pipeline)s
        order by md5((configuration ->> 'compare') || coalesce(configuration ->> 'compare_of_hops', '')) limit 1
    )
    union all
    select (
        select md5(
            (following.configuration ->> 'compare') || coalesce(following.configuration ->> 'compare_of_hops', '')
        )
        from makewhole.window as following
        where following.pipeline = %(pipeline)s
            and md5(
                (following.configuration ->> 'compare') || coalesce(following.configuration ->> 'compare_of_hops', '')
            ) > compared.digest
        order by md5(
            (following.configuration ->> 'compare') || coalesce(following.configuration ->> 'compare_of_hops', '')
        ) limit 1
    ) from compared where digest is not null
)
select newest.end_time as until, newest.compare
from compared cross join lateral (
    select
        number,
        end_time,
        coalesce(configuration -> 'compare_of_hops' -> %(hop)s, configuration -> 'compare') as compare
    from makewhole.window as one
    where pipeline = %(pipeline)s
        and md5((configuration ->> 'compare') || coalesce(configuration ->> 'compare_of_hops', '')) >= compared.digest
        and (md5((configuration ->> 'compare') || coalesce(configuration ->> 'compare_of_hops', '')), number)
        < (compared.digest, %(number)s)
        and case
            when revision = (
                select max(revision) from makewhole.hop_result as judged
                where judged.pipeline = one.pipeline and judged.number = one.number and stage = 'reconciled'
            ) then true
        end
    order by md5((configuration ->> 'compare') || coalesce(configuration ->> 'compare_of_hops', '')) desc, number desc
    limit 1
) as newest
where newest.compare <> %(compare)s::jsonb
order by newest.number desc limit 1;

-- older_open --
-- Count the windows before one that no standing certificate closes, and the keys that their last results leave open and
-- that are not accepted.
with older as (
    select number, start_time
    from makewhole.window as open_one
    where pipeline = %(pipeline)s and number < %(number)s and is_newest and state <> 'certified'
      and not exists (
        select from makewhole.certificate as issued
        where issued.pipeline = open_one.pipeline and issued.number = open_one.number and issued.kind = 'certificate'
          and not exists (
            select from makewhole.certificate as later
            where later.pipeline = issued.pipeline and later.revokes = issued.ordinal
        )
    )
)
select count(*) as windows, coalesce(sum(findings), 0)::bigint as findings, min(number) as first_window,
    case when bool_or(start_time is null) then null else min(start_time) end as since
from older
left join lateral (
    select sum((counts ->> verdict)::bigint) - (
            select count(*) from makewhole.accepted_now
            where pipeline = %(pipeline)s and number = older.number
        ) as findings
    from (
        select distinct on (hop) counts
        from makewhole.hop_result
        where pipeline = %(pipeline)s and number = older.number
        order by hop, revision desc, stage = 'verified' desc
    ) as last_results
    cross join unnest(%(verdicts)s) as verdict
) as left_open on true;

-- close --
-- Write the end of a revision, with the reason when it is not certified.
update makewhole.window set state = %(state)s, reason = %(reason)s, closed_at = clock_timestamp()
where pipeline = %(pipeline)s and number = %(number)s and revision = %(revision)s;

-- moment_now --
-- Read the journal's clock: the one that every worker has.
select clock_timestamp();

-- observe --
-- Write what exists at a point now.
insert into makewhole.observation
    (pipeline, point, observed_at, topic_id, stable_offsets, leader_epochs, pg_snapshot, place)
values (
    %(pipeline)s, %(point)s, %(observed_at)s, %(topic_id)s, %(stable_offsets)s, %(leader_epochs)s, %(pg_snapshot)s,
    %(place)s
)
on conflict do nothing;

-- observations_since --
-- Read what was observed at a point last up to a moment, and everything since, oldest first.
select observed_at, topic_id, stable_offsets, pg_snapshot, place from makewhole.observation
where pipeline = %(pipeline)s and point = %(point)s and observed_at >= coalesce(
    (
        select observed_at from makewhole.observation
        where pipeline = %(pipeline)s and point = %(point)s and observed_at <= %(until)s
        order by observed_at desc limit 1
    ),
    '-infinity'
)
order by observed_at;

-- last_observation --
-- Read what was observed at a point last, up to a moment.
select observed_at, topic_id, stable_offsets, pg_snapshot, place from makewhole.observation
where pipeline = %(pipeline)s and point = %(point)s and observed_at <= %(until)s
order by observed_at desc limit 1;

-- lanes --
-- Read every lane of a point, where its first window started in it, and when that was opened.
select lane.topic_id, lane.partition, lane.lineage, covered.lo, opened.opened_at as noticed_at
from makewhole.lane
cross join lateral (
    select pipeline, number, lo from makewhole.window_range where lane = lane.id order by number limit 1
) as covered
join makewhole.window opened on (opened.pipeline, opened.number, opened.revision) = (covered.pipeline, covered.number, 1)
where lane.pipeline = %(pipeline)s and lane.point = %(point)s
order by covered.number, lane.partition;

-- pipelines --
-- Read every pipeline that ever opened a window.
select distinct pipeline from makewhole.window order by pipeline;

-- is_reconciled --
-- Return whether any revision of a window was compared: only then its part of the key index exists.
select exists (
    select from makewhole.hop_result where pipeline = %(pipeline)s and number = %(number)s and stage = 'reconciled'
) as is_reconciled;

-- last_chunk --
-- Read when compensation last wrote for a window.
select max(chunk.observed_at)
from makewhole.chunk join makewhole.plan on plan.id = chunk.plan
where plan.pipeline = %(pipeline)s and plan.number = %(number)s;

-- live_plans --
-- Read the plans of a window that could still write.
select id from makewhole.plan
where pipeline = %(pipeline)s and number = %(number)s and state not in ('done', 'refused', 'rejected');
