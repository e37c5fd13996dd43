"""Parse and evaluate the expressions of templates: what a leaf of a pipeline file may say, and its exact value.

A leaf is a text with `{{ expressions }}` in it. Only what stands in the file is a template; what the expressions give
is data and is never looked at again, whatever it says. The language is Jinja's, cut down: no statements, no calls, no
attributes of Python's, a handful of filters. It is checked when the file is, and again when it is compiled.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, DecimalException, Inexact, InvalidOperation, localcontext
from functools import lru_cache
from typing import Any

from jinja2 import StrictUndefined, TemplateSyntaxError, Undefined, nodes
from jinja2.filters import do_default
from jinja2.sandbox import ImmutableSandboxedEnvironment

from makewhole.config.template import exact_json
from makewhole.config.values import UnfitError, allowed, shown
from makewhole.model.errors import ActionRefusedError
from makewhole.model.refusal import RefusalCode

SCOPE: Mapping[str, tuple[str, ...] | None] = {
    "key": (),
    "row": None,
    "source": ("headers", "key", "offset", "partition", "timestamp_ms", "value"),
    "finding": ("cause", "copies", "copy", "hop", "place", "verdict"),
    "window": ("end", "number", "revision", "start"),
    "plan": ("pipeline", "revision", "window"),
}
"""The names that exist, with their fields; None: those of the data, which are not known before."""

Scope = Mapping[str, Any]
"""A value for each name."""

_EXACT = Context(prec=1_000, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[Inexact, InvalidOperation])
_TESTS = ("defined", "none", "undefined")
_PARTS = (
    nodes.Template, nodes.Output, nodes.TemplateData, nodes.Name, nodes.Const, nodes.Getattr, nodes.Getitem,
    nodes.Filter, nodes.Test, nodes.Neg, nodes.Add, nodes.Sub, nodes.Mul, nodes.CondExpr, nodes.Compare, nodes.Operand,
    nodes.And, nodes.Or, nodes.Not,
)  # fmt: skip
_WRITE = "Write fields of data, such as {{ row.amount }}"


class _Sandbox(ImmutableSandboxedEnvironment):
    """A Jinja sandbox with fields of mappings, elements of lists and arithmetic on numbers: there is nothing else to
    reach."""

    intercepted_binops = frozenset(("+", "-", "*"))
    intercepted_unops = frozenset("-")

    def getattr(self, obj: Any, attribute: str) -> Any:
        return self.getitem(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if isinstance(obj, Mapping) and isinstance(argument, str) and argument in obj:
            return obj[argument]
        if isinstance(obj, list) and isinstance(argument, int) and 0 <= argument < len(obj):
            return obj[argument]
        return self.undefined(obj=obj, name=argument)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:  # noqa: ARG002
        return self.binop_table[operator](_number(left), _number(right))

    def call_unop(self, context: Any, operator: str, arg: Any) -> Any:  # noqa: ARG002
        return self.unop_table[operator](_number(arg))


def _number(value: Any) -> Decimal | int:
    if isinstance(value, bool) or not isinstance(value, Decimal | int):
        raise TypeError("not a number")
    return value


def _text(value: Any) -> str:
    """Return a value inside a text, or as one."""
    if value is None or isinstance(value, Undefined):
        raise TypeError("no value")
    return value if isinstance(value, str) else exact_json.dumps(value)


def _of_text(change: Callable[[str], str]) -> Callable[[Any], str]:
    return lambda value: change(_text(value))


_SANDBOX = _Sandbox(undefined=StrictUndefined, finalize=_text, keep_trailing_newline=True, autoescape=False)
_SANDBOX.globals.clear()
_SANDBOX.tests = {name: _SANDBOX.tests[name] for name in _TESTS}
_SANDBOX.filters = {
    "abs": lambda value: abs(_number(value)),
    "default": do_default,
    "lower": _of_text(str.lower),
    "string": _text,
    "trim": _of_text(str.strip),
    "upper": _of_text(str.upper),
}


@dataclass(frozen=True, kw_only=True)
class TemplateLeaf:
    """A checked leaf. `names` are those of `SCOPE` that it uses."""

    text: str
    names: frozenset[str]
    _render: Callable[[Scope], Any]

    def value(self, scope: Scope) -> Any:
        """Return the leaf's value: of a single expression its very value, numbers as Decimal; otherwise a text.

        Raises:
            RefusedError: the data have not what it names, or not of that kind. The message quotes the leaf, no data.
        """
        try:
            with localcontext(_EXACT):
                return self._render(scope)
        except DecimalException:
            why = "cannot be computed exactly"
        except Exception:  # whatever the data caused; only our own name for it may be shown
            why = "names what the data do not have, or have not of that kind"
        raise ActionRefusedError.of(RefusalCode.UNFIT, f"the template {shown(self.text)} {why}") from None


@lru_cache(maxsize=1_024)
def read_leaf(text: str) -> TemplateLeaf:
    """Parse and check a leaf.

    Raises:
        UnfitError: it says what no leaf may say.
    """
    try:
        tree = _SANDBOX.parse(text)
    except TemplateSyntaxError as error:
        raise UnfitError(f"{shown(text)} is not a template: {(error.message or '').rstrip('.')}", _WRITE) from None
    except (RecursionError, ValueError):  # as deep, or with as long a number, as Python's own parser takes none
        raise UnfitError(f"{shown(text)} is not a template: it is too deep, or a number too long", _WRITE) from None
    for node in _walk(tree):
        _check(text, node)
    names = frozenset(name.name for name in tree.find_all(nodes.Name))
    return TemplateLeaf(text=text, names=names, _render=_compiled(tree))


def _walk(node: nodes.Node) -> Iterator[nodes.Node]:
    yield node
    for child in node.iter_child_nodes():
        yield from _walk(child)


def _check(text: str, node: nodes.Node) -> None:
    match node:
        case nodes.Stmt() if not isinstance(node, nodes.Output):
            raise UnfitError(f"{shown(text)} has a statement", _WRITE)
        case nodes.Call():
            raise UnfitError(f"{shown(text)} calls something", _WRITE)
        case nodes.Name() if node.name not in SCOPE:
            raise UnfitError(f"{shown(text)} names {node.name!r}", allowed(node.name, SCOPE))
        case nodes.Getattr():
            _check_field(text, node.node, node.attr)
        case nodes.Getitem(arg=nodes.Const(value=str(field))):
            _check_field(text, node.node, field)
        case nodes.Filter() if node.name not in _SANDBOX.filters:
            raise UnfitError(f"{shown(text)} uses the filter {node.name!r}", allowed(node.name, _SANDBOX.filters))
        case nodes.Test() if node.name not in _TESTS:
            raise UnfitError(f"{shown(text)} uses the test {node.name!r}", allowed(node.name, _TESTS))
        case nodes.Const(value=float(value)):
            raise UnfitError(f"{shown(text)} computes with {value}, which is not exact", "Write a whole number")
        case _ if not isinstance(node, _PARTS):
            raise UnfitError(f"{shown(text)} uses what templates leave out ({type(node).__name__})", _WRITE)


def _check_field(text: str, node: nodes.Node, field: str) -> None:
    if field.startswith("__"):
        raise UnfitError(f"{shown(text)} asks for {field!r}", "Name a field of data: there is nothing else to reach")
    fields = SCOPE.get(node.name) if isinstance(node, nodes.Name) else None
    if fields is None or field in fields:
        return
    assert isinstance(node, nodes.Name)
    if (node.name, field) == ("plan", "id"):
        remedy = "A plan is named after what it writes: the record carries the id in its header makewhole-plan"
    else:
        remedy = allowed(field, fields) if fields else "It has no fields"
    raise UnfitError(f"{shown(text)} asks {node.name!r} for {field!r}", remedy)


def _compiled(tree: nodes.Template) -> Callable[[Scope], Any]:
    parts = [part for output in tree.body if isinstance(output, nodes.Output) for part in output.nodes]
    if len(parts) != 1 or isinstance(parts[0], nodes.TemplateData):
        return _SANDBOX.from_string(tree).render
    kept = nodes.Template([nodes.Assign(nodes.Name("result", "store", lineno=1), parts[0], lineno=1)], lineno=1)
    kept.set_environment(_SANDBOX)
    template = _SANDBOX.from_string(kept)

    def value(scope: Scope) -> Any:
        context = template.new_context(dict(scope))
        list(template.root_render_func(context))
        result = context.vars["result"]
        if isinstance(result, Undefined):
            raise TypeError("no value")
        return result

    return value
