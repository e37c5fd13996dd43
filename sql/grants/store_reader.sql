-- The rights of a connection that is compared and never written: of a ledger, and of a store whose remedies are `report`.
-- Run by the table's owner, for each table: psql -v role=ROLE -v schema=SCHEMA -v table=TABLE -f store_reader.sql
grant usage on schema :"schema" to :"role";
grant select on :"schema".:"table" to :"role";
