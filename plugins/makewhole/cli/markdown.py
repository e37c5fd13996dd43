"""Markdown as a terminal shows it: nothing of it is cut off, however narrow the terminal is."""

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Markdown, TableElement
from rich.table import Table


class _WholeTable(TableElement):
    """A word that is too long for its column goes on in the next line."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for part in super().__rich_console__(console, options):
            if isinstance(part, Table):
                for column in part.columns:
                    column.overflow = "fold"
            yield part


class FoldedMarkdown(Markdown):
    """To be printed without `soft_wrap`, which would cut off lists."""

    elements = {**Markdown.elements, "table_open": _WholeTable}  # noqa: RUF012 - as the class above has it
