-- The right to remove what repairs left, for a connection of a pipeline whose `keep` names `effects` or `quarantine`. Beside
-- store_writer.sql, run by the owner of the schema: psql -v role=ROLE -f store_keeper.sql
grant delete on makewhole.receipt, makewhole.effect, makewhole.quarantine, makewhole.fence to :"role";
