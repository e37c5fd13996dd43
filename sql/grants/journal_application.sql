-- The rights of the service at its journal: what its statements do, table by table, and no more. Run by the schema's owner,
-- after each migration: psql -v role=ROLE -f journal_application.sql
-- Certificates, approvals, receipts and manifests can be added and not changed; nothing can be made, altered or dropped.
grant usage on schema makewhole to :"role";

grant select on makewhole.migration, makewhole.action, makewhole.accepted_now, makewhole.finding_now to :"role";

grant select, insert on
    makewhole.lane, makewhole.window_range, makewhole.observation, makewhole.snapshot, makewhole.slice_count, makewhole.approval,
    makewhole.chunk, makewhole.certificate, makewhole.continuation, makewhole.erased_plan
to :"role";

grant select, insert, update on
    makewhole.window, makewhole.incident, makewhole.key_run, makewhole.gate_report, makewhole.plan, makewhole.planned_action,
    makewhole.lease, makewhole.acceptance, makewhole.accepted_finding,
    makewhole.publication, makewhole.published_window, makewhole.notice_channel, makewhole.removal, makewhole.erasure,
    makewhole.erased_file, makewhole.self_check_round, makewhole.pipeline_owner
to :"role";

grant select, insert, delete on
    makewhole.hop_result, makewhole.handover, makewhole.replayed_position
to :"role";

grant select, insert, update, delete on makewhole.key_merge, makewhole.finding, makewhole.step_failure, makewhole.step_progress,
    makewhole.notice to :"role";
