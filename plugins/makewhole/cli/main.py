"""The command line: `makewhole …`."""

import typer

from makewhole.cli import check, demo, explain, plan, report, run, stack

app = typer.Typer(
    name="makewhole",
    help=(
        "Finds what a Kafka pipeline lost, repeated or changed on the way to its stores, "
        "and makes the stores whole again.\n\n"
        "Exit codes: 0 certified, 1 gaps remain, 2 wrong usage or configuration, 3 not known, 4 could not run."
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
    rich_markup_mode="rich",
)
for command in (
    stack.up,
    stack.status,
    stack.down,
    demo.demo,
    check.check,
    run.run,
    report.windows,
    report.findings,
    explain.explain,
):
    app.command()(command)
app.add_typer(plan.plan_app, name="plan")
app.add_typer(report.certificate_app, name="certificate")
