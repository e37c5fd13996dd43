"""Import a command only when it is called: `makewhole audit` needs no Spark, no polars."""

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup


class LazyCommands(dict[str, Any]):
    """Commands by name; an entry is `module:attribute` until it is looked up."""

    def __getitem__(self, name: str) -> Any:
        command = super().__getitem__(name)
        if isinstance(command, str):
            command = self[name] = _load(name, command)
        return command

    def get(self, name: str, default: Any = None) -> Any:
        try:
            return self[name]
        except KeyError:
            return default

    def items(self) -> Any:
        self._load_all()
        return super().items()

    def values(self) -> Any:
        self._load_all()
        return super().values()

    def _load_all(self) -> None:
        for name in self:
            self[name]


def _load(name: str, place: str) -> Any:
    module, attribute = place.split(":")
    target = getattr(import_module(module), attribute)
    if isinstance(target, typer.Typer):
        command: Any = typer.main.get_group(target)
    else:
        single = typer.Typer(add_completion=False, rich_markup_mode="rich")
        single.command(name)(target)
        command = typer.main.get_command(single)
    command.name = name
    return command


def lazy_group(places: dict[str, str]) -> type[TyperGroup]:
    """Return a group class with these commands, `name: module:attribute` (a function, or a Typer for a group of its
    own)."""

    class LazyGroup(TyperGroup):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.commands = LazyCommands(places)

    return LazyGroup
