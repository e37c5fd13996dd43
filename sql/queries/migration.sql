-- Which migrations a journal has.

-- has_schema --
-- Return whether the schema was ever made.
select to_regclass('makewhole.migration') is not null as has_schema;

-- version --
-- Read the number of the newest migration.
select coalesce(max(version), 0) as version from makewhole.migration;

-- missing_rights --
-- List the rights on tables of the journal that its session's user does not have. :tables and :rights are parallel.
select right_name || ' on ' || table_name as missing
from unnest(%(tables)s::text[], %(rights)s::text[]) as needed (table_name, right_name)
where not has_table_privilege(table_name, right_name);
