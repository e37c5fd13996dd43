"""Ask a NameNode with a limit: its client waits for ever for one that takes a question and says nothing.

Only questions are limited. A change that is not waited for any longer may still be made, behind the back of whoever
tries again.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from hdfs_native import Client, FileStatus

from makewhole.kept_hdfs import set_aside

QUESTION = "question to a NameNode"
"""The name of the threads that wait for answers."""

_T = TypeVar("_T")
_ANSWER_SECONDS = 120.0
_LISTED_TOGETHER = 1_000
_QUESTIONS = ("get_file_info", "glob_status", "get_content_summary", "get_acl_status", "read")


def limited(client: Client) -> Client:
    """Have a client raise OSError where the NameNode does not answer in time; return it."""
    client.inner = _LimitedQuestions(client.inner)  # type: ignore[assignment]
    return client


class _LimitedQuestions:
    """The calls of a client as it has them inside."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._inner, name)
        return (lambda *arguments: _in_time(lambda: call(*arguments))) if name in _QUESTIONS else call

    def list_status(self, path: str, recursive: bool) -> Iterator[FileStatus]:
        """Yield what is below a folder: the NameNode is asked for some at a time."""
        listed = _in_time(lambda: self._inner.list_status(path, recursive))
        while some := _in_time(lambda: list(islice(listed, _LISTED_TOGETHER))):
            yield from some


def _in_time(ask: Callable[[], _T]) -> _T:
    """Return an answer. A question that has none in time is left to itself, in a thread that ends with the process, and
    the client that asked it is asked no more."""
    answers = SimpleQueue[tuple[_T, None] | tuple[None, BaseException]]()

    def wait() -> None:
        try:
            answers.put((ask(), None))
        except BaseException as error:
            answers.put((None, error))

    Thread(target=wait, name=QUESTION, daemon=True).start()
    try:
        answer, error = answers.get(timeout=_ANSWER_SECONDS)
    except Empty:
        set_aside()
        raise OSError(f"the NameNode took a question and said nothing for {_ANSWER_SECONDS:.0f} s") from None
    if error is not None:
        raise error
    return answer  # type: ignore[return-value]
