"""Log how far a step is that goes through very many things."""

import logging

_EVERY = 50_000


class CountLog:
    """Counts things, and logs the count each time that another `every` of them are done."""

    def __init__(self, logger: logging.Logger, text: str, every: int = _EVERY) -> None:
        """`text`: what is logged, with a `%d` for the count."""
        self._logger, self._text, self._every = logger, text, every
        self.count = 0

    def add(self, more: int) -> None:
        """Count some more."""
        before, self.count = self.count, self.count + more
        if self.count // self._every > before // self._every:
            self._logger.info(self._text, self.count)
