-- The rights of a connection that repairs write to, at one table and at the tables of makewhole in the same database, which
-- store_schema.sql makes. Run by the owner: psql -v role=ROLE -v schema=SCHEMA -v table=TABLE -f store_writer.sql
-- Receipts and effects can be added and not changed.
grant usage on schema :"schema" to :"role";
grant select, insert, update, delete on :"schema".:"table" to :"role";

grant usage on schema makewhole to :"role";
grant select, insert on makewhole.receipt, makewhole.effect, makewhole.quarantine, makewhole.fence to :"role";
grant update on makewhole.fence to :"role";
grant update (restored_at) on makewhole.quarantine to :"role";
