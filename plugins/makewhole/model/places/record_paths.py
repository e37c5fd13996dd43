"""Write and read paths of names in records."""

import re
from collections.abc import Sequence

_PLAIN = r"[A-Za-z_][A-Za-z0-9_-]*"


_QUOTED = r"(?:[^'\\\x00-\x1f]|\\['\\])+"


STEPS = rf"(?:\.{_PLAIN}|\.?\['{_QUOTED}'\])"
"""The pattern of a step of a path: `.name`, or `['any name']`, where a backslash stands before a quotation mark and
before itself."""


_STEP = re.compile(rf"\.({_PLAIN})|\.?\['({_QUOTED})'\]")


def path_names(path: str) -> tuple[str, ...]:
    """Return the names of the steps of a path, which begins at its first step: `.a['b c'].d`."""
    steps = (plain or re.sub(r"\\(.)", r"\1", quoted) for plain, quoted in _STEP.findall(path))
    return tuple(steps)


def written_path(names: Sequence[str]) -> str:
    """Return the one spelling of a path of these names."""
    return "".join(f".{name}" if re.fullmatch(_PLAIN, name) else f".['{_escaped(name)}']" for name in names)


def respelled(path: str) -> str:
    """Return a path in its one spelling; what stands behind a step (`[*]`) stays."""
    return _STEP.sub(lambda step: written_path(path_names(step.group())), path)


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace("'", "\\'")
