-- The rights of people who look: `makewhole todo`, `windows`, `findings`, `explain`, `plan show`, `certificate verify`. Run by
-- the schema's owner, after each migration: psql -v role=ROLE -f journal_reader.sql
grant usage on schema makewhole to :"role";
grant select on all tables in schema makewhole to :"role";

-- All of an erasure but the secret with which a guessed key could be tested.
revoke select on makewhole.erasure from :"role";
grant select (
    id, pipeline, key_mac, prefix, spares, reason, asked_by, asked_at, erased_at, searched_to, body, signed_by, signature
) on makewhole.erasure to :"role";
