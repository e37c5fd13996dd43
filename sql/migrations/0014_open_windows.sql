-- What older windows leave open is read by an index that holds such windows alone, however many were ever certified.
alter table makewhole.window add column is_newest boolean not null default true;

update makewhole.window as older set is_newest = false
where exists (
    select from makewhole.window as later
    where later.pipeline = older.pipeline and later.number = older.number and later.revision > older.revision
);

create index open_window on makewhole.window (pipeline, number) where is_newest and state <> 'certified';
