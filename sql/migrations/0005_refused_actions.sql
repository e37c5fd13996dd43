-- Few actions are refused, and every chunk asks for its own twice.
create index refused_action on makewhole.planned_action (plan, target, chunk) where refusal is not null;
