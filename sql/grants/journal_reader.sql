-- The rights of people who look: `makewhole todo`, `windows`, `findings`, `explain`, `plan show`, `certificate verify`. Run by
-- the schema's owner, after each migration: psql -v role=ROLE -f journal_reader.sql
grant usage on schema makewhole to :"role";
grant select on all tables in schema makewhole to :"role";
