-- The number of rows of a table in the time slice of window `slice`, counted by the snapshot of a revision of a window.
-- `source` is what was counted: connection, table and time column; counts of another one say nothing.
create table makewhole.slice_count (
    pipeline text not null,
    point text not null,
    slice integer not null,
    number integer not null,
    revision integer not null,
    source text not null,
    rows bigint not null check (rows >= 0),
    pg_snapshot text not null,
    counted_at timestamptz not null default clock_timestamp(),
    primary key (pipeline, point, slice, number, revision),
    foreign key (pipeline, number, revision) references makewhole.window
);
