-- What happens to a topic's log itself: incidents, and the lineages that truncation gives a partition.

-- A truncated partition goes on as another log: offsets from the point of truncation on mean other records.
alter table makewhole.lane add column lineage integer not null default 0 check (lineage >= 0);
alter table makewhole.lane drop constraint lane_pipeline_point_topic_id_partition_key;
alter table makewhole.lane add unique (pipeline, point, topic_id, partition, lineage);

-- Which leader epochs the offsets of a range had when they were frozen: [[epoch, end offset], …], ascending.
alter table makewhole.window_range add column leader_epochs jsonb not null default '[]';

-- Windows of before take them from what their newest snapshot read.
update makewhole.window_range covered
set leader_epochs = known.epochs
from (
    select distinct on (s.pipeline, s.number, lane.id)
        s.pipeline, s.number, lane.id as lane,
        (
            select jsonb_agg(jsonb_build_array(entry -> 0, entry -> 2) order by (entry ->> 1)::bigint)
            from jsonb_array_elements(s.manifest -> 'leader_epochs' -> lane.partition::text) entry
        ) as epochs
    from makewhole.snapshot s
    join makewhole.lane on lane.pipeline = s.pipeline and lane.point = s.point
    where s.manifest -> 'leader_epochs' ? lane.partition::text
    order by s.pipeline, s.number, lane.id, s.revision desc
) known
where covered.pipeline = known.pipeline and covered.number = known.number and covered.lane = known.lane
    and known.epochs is not null;

create table makewhole.incident (
    pipeline text not null,
    number integer not null,
    revision integer not null,
    kind text not null,
    point text not null,
    topic text not null,
    topic_id text not null,
    partition integer,
    lo bigint,
    hi bigint,
    detail jsonb not null default '{}',
    found_at timestamptz not null default clock_timestamp(),
    foreign key (pipeline, number, revision) references makewhole.window,
    check (lo <= hi)
);
create unique index incident_once on makewhole.incident
    (pipeline, number, revision, kind, point, topic_id, coalesce(partition, -1), coalesce(lo, -1));
