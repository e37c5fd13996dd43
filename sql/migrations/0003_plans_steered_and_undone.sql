-- Plans that can be slowed, paused and undone.
alter table makewhole.plan
    drop constraint plan_pipeline_number_revision_key,
    add column undoes text references makewhole.plan (id),
    add column control text not null default 'run' check (control in ('run', 'pause')),
    add column records_per_second integer check (records_per_second > 0),
    add column began_at timestamptz,
    add column ended_at timestamptz,
    add column log_ends jsonb;
create unique index plan_of_window on makewhole.plan (pipeline, number, revision) where undoes is null;
create unique index undo_of_plan on makewhole.plan (undoes) where state not in ('refused', 'rejected');

alter table makewhole.finding drop constraint finding_outcome_check;
alter table makewhole.finding add constraint finding_outcome_check
    check (outcome in ('open', 'repaired', 'contained', 'reversed', 'handed_over', 'refused'));
