"""Put together all that is reported of a window, so that two reports can be compared byte by byte."""

import json
from collections.abc import Mapping

from makewhole.compute.frames import VERDICTS
from makewhole.journal.database import connect
from makewhole.journal.findings import window_findings
from makewhole.journal.results import gate_answers, hop_results
from makewhole.window.certifying.certificate_content import certified_content
from makewhole.window.context import WindowContext

Report = Mapping[str, str]


def report(journal_dsn: str, context: WindowContext) -> Report:
    """All that is reported of a window, as text: counts, digests, findings, verdicts, what the gate says,
    what would be certified."""
    with connect(journal_dsn) as journal:
        results = hop_results.results(journal, context.window)
        findings = [repr(item.finding) for item in window_findings.findings(journal, context.window)]
        content = certified_content(journal, context.window)
        answers = gate_answers.gate_reports(journal, context.window).values()
    paths = [path for result in results.values() for path in result.files["verdicts"]]
    verdicts = context.storage.read_parquet(paths, list(VERDICTS))
    summaries = {hop: result.files["summary"] for hop, result in results.items()}
    return {
        "results": json.dumps([[hop, vars(r.counts), r.digest] for hop, r in sorted(results.items())]),
        "findings": "\n".join(findings),
        "verdicts": "" if verdicts is None else verdicts.sort("hop", "key_hash").write_csv(),
        "content": json.dumps(content, sort_keys=True),
        "gate": "\n".join(line for reply in answers for line in (reply.answer.value, *reply.failures)),
        "summaries": json.dumps(summaries, sort_keys=True),
    }
