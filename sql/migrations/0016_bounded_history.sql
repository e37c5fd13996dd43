-- What a window asks of the windows before it does not grow with their number: indexes for what is searched, and the
-- leader epochs of a log beside its last range, so that the ranges before it need not be read.
create index window_by_end on makewhole.window (pipeline, end_time);
create index unfinished_window on makewhole.window (pipeline, number) where is_newest and state in ('open', 'error');
create index window_with_gaps on makewhole.window (pipeline, opened_at)
where is_newest and state = 'gaps' and not plan_only;
create index range_of_lane on makewhole.window_range (lane, number);
create index incident_of_log on makewhole.incident (pipeline, number)
where kind in ('truncated', 'expired', 'beginning_gone') or detail ->> 'before_it_was_read' = 'true';
create index met_strangers on makewhole.hop_result (pipeline, hop, number)
where stage = 'reconciled' and (
    (files #>> '{summary,counts,unexpected}')::bigint > 0
    or (files #>> '{summary,undecidable_without_source}')::bigint > 0
    or (files #>> '{summary,before_baseline_without_source}')::bigint > 0
);
create index snapshot_of_point on makewhole.snapshot (pipeline, point, number);
create index standing_run on makewhole.key_run (pipeline, point, number) where retired_at is null;
create index run_with_files on makewhole.key_run (pipeline, point, retired_at)
where retired_at is not null and files <> '{}';
create index rerun on makewhole.key_run (pipeline, point, number) where revision > 1;

-- Runs that are older than a pipeline's `history` are dropped: the index knows nothing of their windows any more.
alter table makewhole.key_run add column is_dropped boolean not null default false;
create index dropped_run on makewhole.key_run (pipeline, point, number) where is_dropped;

-- The leader epochs of a partition's log up to the end of a range: those `before` it, cut where the range begins (`lo`),
-- and its `own`. Each is [epoch, end offset], ascending.
create function makewhole.epochs_with(before jsonb, lo bigint, own jsonb) returns jsonb
language sql immutable as $$
    select case
        when own = '[]' then before
        else coalesce(
            (
                select jsonb_agg(jsonb_build_array(entry -> 0, least((entry ->> 1)::bigint, lo)) order by place)
                from jsonb_array_elements(before) with ordinality as known (entry, place)
                where (entry ->> 0)::bigint < (own #>> '{0,0}')::bigint
            ),
            '[]'
        ) || own
    end
$$;

alter table makewhole.window_range add column log_epochs jsonb not null default '[]';
create aggregate pg_temp.epochs_up_to(bigint, jsonb) (sfunc = makewhole.epochs_with, stype = jsonb, initcond = '[]');
update makewhole.window_range as covered set log_epochs = known.log_epochs
from (
    select covered.pipeline, covered.number, covered.lane,
        pg_temp.epochs_up_to(covered.lo, covered.leader_epochs) over (
            partition by lane.pipeline, lane.point, lane.topic_id, lane.partition order by covered.number
        ) as log_epochs
    from makewhole.window_range as covered join makewhole.lane on lane.id = covered.lane
) as known
where (covered.pipeline, covered.number, covered.lane) = (known.pipeline, known.number, known.lane)
    and known.log_epochs <> '[]';
