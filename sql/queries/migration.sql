-- Which migrations a journal has.

-- has_schema --
-- Return whether the schema was ever made.
select to_regclass('makewhole.migration') is not null as has_schema;

-- version --
-- Read the number of the newest migration.
select coalesce(max(version), 0) as version from makewhole.migration;
