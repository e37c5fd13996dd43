-- Windows that met rows whose record has a time far ahead are asked by all later ones, like those that met strangers.
drop index makewhole.met_strangers;
create index met_strangers on makewhole.hop_result (pipeline, hop, number)
where stage = 'reconciled' and (
    (files #>> '{summary,counts,unexpected}')::bigint > 0
    or (files #>> '{summary,undecidable_without_source}')::bigint > 0
    or (files #>> '{summary,before_baseline_without_source}')::bigint > 0
    or (files ->> 'met_far_ahead')::bigint > 0
);
