-- Runs of the key index are merged, so that their number follows the logarithm of the windows. What was merged or
-- replaced is retired: its files stay for whoever still reads them, and are removed some days later.
alter table makewhole.key_run add column retired_at timestamptz;

-- A merged run: `windows` are the windows in it with their revisions, `files` one file for each bucket, in a folder that is
-- named after the `attempt`. It is retired from the attempt's beginning, and stands once that has succeeded.
create table makewhole.key_merge (
    id bigint generated always as identity primary key,
    pipeline text not null,
    point text not null,
    attempt text not null unique,
    windows jsonb not null,
    files jsonb not null,
    rows bigint not null check (rows >= 0),
    merged_at timestamptz not null default clock_timestamp(),
    retired_at timestamptz
);

create index standing_merge on makewhole.key_merge (pipeline, point) where retired_at is null;
