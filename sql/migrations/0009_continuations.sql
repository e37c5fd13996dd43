-- A window that was left unfinished (in error, or by a run that ended in the middle of it) and was gone on with by `run`.
-- `asked_by` is the run that found it before its own window.
create table makewhole.continuation (
    pipeline text not null,
    number integer not null,
    revision integer not null,
    attempt integer not null check (attempt > 0),
    run text not null,
    asked_by text not null,
    began_at timestamptz not null default clock_timestamp(),
    primary key (pipeline, number, revision, attempt),
    foreign key (pipeline, number, revision) references makewhole.window
);
