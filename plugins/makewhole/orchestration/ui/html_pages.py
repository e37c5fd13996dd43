"""Write pages as HTML: the result of a run, and a page of the documentation. What comes from outside is escaped."""

from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from typing import Any

from jinja2 import Environment
from markdown_it import MarkdownIt

from makewhole.model.verdict import Verdict
from makewhole.model.window import WindowState
from makewhole.orchestration.task_ids import CERTIFY
from makewhole.orchestration.ui.addresses import PREFIX, base_url
from makewhole.orchestration.ui.runbook import RUNBOOK, anchor, entry_of_state, entry_of_task

_PAGE = """\
<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{{ title }}</title><style>
body { font: 15px/1.5 sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #222; background: #fff }
table { border-collapse: collapse } td, th { border: 1px solid #ccc; padding: .2rem .6rem; text-align: left }
td.number { text-align: right } pre, code { background: #f3f3f3; padding: .1rem .3rem } pre { overflow-x: auto }
:target { background: #fff6d0 }
</style></head><body>{{ body | safe }}</body></html>
"""
_RUN = """\
<h1>{{ title }}</h1>
<p><a href="{{ run_url }}">run {{ run }} of {{ dag }}</a></p>
{% if closed %}
<p><strong>{{ closed.state }}</strong>{% if closed.reason %}: {{ closed.reason }}{% endif %}</p>
{% endif %}
{% for task, reason in failures.items() %}
<p>{{ reason }} (<a href="{{ runbook }}#{{ entry_of_task(task) }}">runbook</a>)</p>
{% endfor %}
<h2 id="findings">Findings</h2>
{% if hops %}
{% for hop in hops %}
<h3>{{ hop.name }}</h3>
<p>{{ number(hop.sent) }} keys at the source, {{ number(hop.matched) }} matched.
Rows and records: {{ number(hop.source_rows) }} at the source, {{ number(hop.target_rows) }} at the target.</p>
{% if hop.rows %}
<table><tr><th>verdict</th><th>found</th><th>whole again</th><th>left</th></tr>
{% for row in hop.rows %}
<tr><th><a href="{{ glossary }}">{{ row.verdict }}</a></th><td class="number">{{ number(row.found) }}</td>
<td class="number">{{ number(row.whole) }}</td><td class="number">{{ number(row.left) }}</td></tr>
{% endfor %}</table>
{% else %}<p>Nothing was wrong.</p>{% endif %}
{% endfor %}
<p>All of them, by key:</p>
<pre>makewhole findings {{ closed.pipeline }} --window {{ closed.window }}</pre>
{% else %}<p>Nothing was judged.</p>{% endif %}
<h2 id="plan">Plan</h2>
{% if closed and closed.plan %}
<p>{{ closed.plan.id }}: {{ closed.plan.state }}{% for remedy, count in closed.plan.actions.items() %},
{{ "{:,}".format(count) }} {{ remedy }}{% endfor %}</p>
<pre>makewhole plan show {{ closed.plan.id }}</pre>
{% else %}<p>No plan was made.</p>{% endif %}
<h2 id="certificate">Certificate</h2>
{% if closed and closed.certificate %}
<p>number {{ closed.certificate.number }} of the chain, SHA-256 {{ closed.certificate.sha256 }}</p>
<p>{{ closed.certificate.uri }}</p>
<pre>makewhole certificate verify {{ closed.pipeline }}</pre>
{% else %}<p>No certificate was issued.</p>{% endif %}
<h2 id="runbook">Runbook</h2>
<ul>{% for name, entry in entries.items() %}<li><a href="{{ runbook }}#{{ entry }}">{{ name }}</a></li>{% endfor %}</ul>
"""


@cache
def _environment() -> Environment:
    return Environment(autoescape=True)


def page_of_run(dag: str, run: str, closed: Mapping[str, Any] | None, failures: Mapping[str, str]) -> str:
    """Return the page of a run. `closed`: what `certify` left of the window, None where none came to its end.
    `failures`: task → why it failed."""
    causes = {task: line for task, line in failures.items() if closed is None or task != CERTIFY}
    entries = {f"task {task}": entry_of_task(task) for task in causes}
    if closed:
        state = WindowState(closed["state"])
        entries |= {f"the window is {state.value}": entry_of_state(state)}
        entries |= {kind: anchor(kind) for kind in closed["incidents"]}
    title = "No window came to its end"
    if closed:
        title = f"Window {closed['window']} (revision {closed['revision']}) of {closed['pipeline']}"
    body = (
        _environment()
        .from_string(_RUN)
        .render(
            title=title,
            dag=dag,
            run=run,
            run_url=f"{base_url()}/dags/{dag}/runs/{run}",
            closed=closed,
            hops=_hops(closed) if closed else [],
            number="{:,}".format,
            glossary=f"{base_url()}{PREFIX}/docs/glossary.md#judgement",
            failures=causes,
            entries=entries or {"Tasks": anchor("Tasks")},
            runbook=f"{base_url()}{PREFIX}/docs/{RUNBOOK}",
            entry_of_task=entry_of_task,
        )
    )
    return _page(title, body)


def _hops(closed: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what the page shows of each hop: its verdicts but `matched`, each with the keys that it was found of, that
    are whole again after the repair, and that it is left of."""
    return [_hop(name, closed["found"].get(name, left), left) for name, left in closed["hops"].items()]


def _hop(name: str, counts: Mapping[str, int], left: Mapping[str, int]) -> dict[str, Any]:
    rows = [
        {
            "verdict": verdict.value.replace("_", " "),
            "found": counts.get(verdict.value, 0),
            "whole": max(0, counts.get(verdict.value, 0) - left.get(verdict.value, 0)),
            "left": left.get(verdict.value, 0),
        }
        for verdict in Verdict
        if verdict is not Verdict.MATCHED
    ]
    return {
        "name": name,
        "sent": left.get("source_keys", 0),
        "matched": left.get("matched", 0),
        "source_rows": left.get("source_rows", 0),
        "target_rows": left.get("target_rows", 0),
        "rows": [row for row in rows if row["found"] or row["left"]],
    }


def page_of_document(text: str) -> str:
    """Return a page of the documentation, whose headings can be linked to as on GitHub. `text` is Markdown."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(text)
    title = ""
    for token, following in pairwise(tokens):
        if token.type == "heading_open":
            token.attrSet("id", anchor(following.content))
            title = title or following.content
    return _page(title, markdown.renderer.render(tokens, markdown.options, {}))


def _page(title: str, body: str) -> str:
    return _environment().from_string(_PAGE).render(title=title, body=body)
