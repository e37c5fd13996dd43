-- A finding whose key was deleted on purpose needs no repair.
alter table makewhole.finding drop constraint finding_outcome_check;
alter table makewhole.finding add constraint finding_outcome_check
    check (outcome in ('open', 'repaired', 'contained', 'reversed', 'erased', 'handed_over', 'refused'));
