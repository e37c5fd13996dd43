"""Drive the example: `python -m examples.cdc run`, then `planted`, `verify`, `stop`."""

import argparse
import json
from contextlib import closing
from pathlib import Path

from examples.cdc.settings import Systems
from examples.cdc.system import Shop
from examples.cdc.verify import prove
from examples.cdc.worker import process_in


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands and their options."""
    options = argparse.ArgumentParser(prog="python -m examples.cdc", description=__doc__)
    commands = options.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="set up, place orders, make things go wrong, leave Connect running")
    run.add_argument("--seed", type=int, default=7)
    run.add_argument("--orders", type=int, default=2_000, help="orders with which nothing goes wrong")
    run.add_argument("--faults", action=argparse.BooleanOptionalAction, default=True)
    commands.add_parser("planted", help="what went wrong, as JSON lines {hop, key, verdict, misdeed}")
    commands.add_parser("verify", help="is every order everywhere, once in warehouse and lake, as it was placed?")
    stop = commands.add_parser("stop", help="end the Connect worker")
    stop.add_argument("--folder", type=Path, required=True)
    return options


def show_planted(systems: Systems) -> None:
    """Print one line per planted finding."""
    names = ("hop", "key", "verdict", "misdeed")
    with closing(systems.database()) as database, database.cursor() as cursor:
        cursor.execute('select hop, key, verdict, misdeed from shop.planted order by hop collate "C", key collate "C"')
        for row in cursor.fetchall():
            print(json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False))


def main() -> None:
    """Run the command that is named."""
    arguments = parser().parse_args()
    if arguments.command == "stop":
        process_in(arguments.folder).stop()
        return
    systems = Systems.of_environment()
    if arguments.command == "run":
        Shop(systems, seed=arguments.seed, say=lambda text: print(text, flush=True)).run(
            arguments.orders, with_faults=arguments.faults
        )
    elif arguments.command == "planted":
        show_planted(systems)
    else:
        proof = prove(systems)
        print(json.dumps(proof.document(), ensure_ascii=False, indent=2))
        raise SystemExit(0 if proof.holds else 1)


if __name__ == "__main__":
    main()
