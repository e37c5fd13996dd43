"""Drive the example: `python -m examples.flights run --days 3`, then `planted`, `verify`, `stop`."""

import argparse
import json
import tempfile
from datetime import date
from pathlib import Path

from examples.flights.misdeeds import as_line, planted
from examples.flights.settings import DAYS_IN_DATA, FIRST_DAY, Systems, add_systems, systems_of
from examples.flights.system import System
from examples.flights.verify import prove


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands and their options."""
    options = argparse.ArgumentParser(prog="python -m examples.flights", description=__doc__)
    commands = options.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="set up, run the days with their mistakes, leave a loader running")
    run.add_argument("--days", type=int, default=3)
    run.add_argument("--first", type=date.fromisoformat, default=FIRST_DAY)
    run.add_argument("--seed", type=int, default=7)
    run.add_argument("--faults", action=argparse.BooleanOptionalAction, default=True)
    run.add_argument("--replication", type=int, default=1, help="replicas of the topic")
    live = commands.add_parser("live", help="start the correct loader in the background")
    stop = commands.add_parser("stop", help="stop the loader")
    show = commands.add_parser("planted", help="what went wrong, as JSON lines {hop, key, verdict, misdeed}")
    verify = commands.add_parser("verify", help="is every flight everywhere, and once in the warehouse?")
    for command in (run, live, stop, show, verify):
        add_systems(command)
        command.add_argument("--state", type=Path, default=Path(tempfile.gettempdir()) / "flights-example")
    return options


def run_days(systems: Systems, arguments: argparse.Namespace) -> None:
    """Set up, run the days, and leave the loader running."""
    last = FIRST_DAY.toordinal() + DAYS_IN_DATA
    if arguments.days < 1 or not FIRST_DAY.toordinal() <= arguments.first.toordinal() <= last - arguments.days:
        raise SystemExit(f"there is data for {DAYS_IN_DATA} days from {FIRST_DAY}; ask for days within")
    system = System(systems, arguments.state, say=lambda text: print(text, flush=True))
    system.prepare(arguments.first, arguments.days, replication=arguments.replication)
    system.run(arguments.first, arguments.days, seed=arguments.seed, with_faults=arguments.faults)
    print(f"the correct loader is running (process {system.live()})", flush=True)


def show_planted(systems: Systems) -> None:
    """Print one line per planted finding."""
    database = systems.database()
    try:
        with database, database.cursor() as cursor:
            for row in planted(cursor):
                print(as_line(row))
    finally:
        database.close()


def main() -> None:
    """Run the command that is named."""
    arguments = parser().parse_args()
    systems = systems_of(arguments)
    if arguments.command == "run":
        run_days(systems, arguments)
    elif arguments.command == "live":
        print(f"the correct loader is running (process {System(systems, arguments.state).live()})")
    elif arguments.command == "stop":
        print("stopped" if System(systems, arguments.state).stop() else "no loader was running")
    elif arguments.command == "planted":
        show_planted(systems)
    else:
        proof = prove(systems)
        print(json.dumps(proof.document(), ensure_ascii=False, indent=2))
        raise SystemExit(0 if proof.holds else 1)


if __name__ == "__main__":
    main()
