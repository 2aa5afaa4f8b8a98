"""Jinja's compiler, in half its time: a load compiles the model's chat template beside the weights.

The nodes are Jinja's, and so is the code but for what is undefined. The tokens are those of `template_lexer`. An
expression is parsed by the precedence of operators, and not through a method for each. A node lists what the passes
before code generation look for below it, so that each of these does not walk through all expressions.
"""

import gc
from collections.abc import Container, Iterable
from functools import partial
from io import StringIO
from types import CodeType
from typing import Any, Final, cast

from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.environment import Environment
from jinja2.idtracking import VAR_LOAD_ALIAS, VAR_LOAD_RESOLVE, VAR_LOAD_UNDEFINED
from jinja2.parser import Parser

_OR, _AND, _NOT, _COMPARE, _SUM, _CONCAT, _PRODUCT, _POWER = range(1, 9)
_LEVELS: Final = {
    **dict.fromkeys(("eq", "ne", "lt", "lteq", "gt", "gteq"), _COMPARE),
    **dict.fromkeys(("add", "sub"), _SUM),
    "tilde": _CONCAT,
    **dict.fromkeys(("mul", "div", "floordiv", "mod"), _PRODUCT),
    "pow": _POWER,
}
"""Levels of operators by the types of their tokens: a higher one binds more tightly."""
_WORD_LEVELS: Final = {"or": _OR, "and": _AND, "in": _COMPARE, "not": _COMPARE}
"""The same for operators that are words."""
_OPERATIONS: Final[dict[str, type[nodes.BinExpr]]] = {
    "or": nodes.Or,
    "and": nodes.And,
    "add": nodes.Add,
    "sub": nodes.Sub,
    "mul": nodes.Mul,
    "div": nodes.Div,
    "floordiv": nodes.FloorDiv,
    "mod": nodes.Mod,
    "pow": nodes.Pow,
}
# Tuples, since a union would be made anew each time.
_CONSTANTS: Final = (nodes.Const, nodes.TemplateData)
_EXPRESSIONS: Final = (nodes.Expr, nodes.Output)
_ASKED_FOR_FIELDS: Final = (nodes.For, nodes.CallBlock)
_DEPENDENCIES: Final[dict[type[nodes.Node], str]] = {nodes.Filter: "filters", nodes.Test: "tests"}
_SOUGHT: Final = (nodes.Name, nodes.NSRef, nodes.ImportedName)
"""Nodes that passes over expressions look for. None has nodes below it."""


def compile_template(environment: Environment, source: str) -> tuple[CodeType, list[str]]:
    """Return a template's code for `jinja2.Template.from_code`, and the names of the variables that it reads.

    Args:
        environment: The environment of the template.
        source: The template.

    Raises:
        TemplateSyntaxError: The template is not valid Jinja.
        RecursionError: It is nested too deeply.
    """
    gc.disable()  # a tree of nodes has no garbage to find
    try:
        code, variables = generate_code(environment, source)
        return compile(code, "<template>", "exec"), variables
    finally:
        gc.enable()


def generate_code(environment: Environment, source: str) -> tuple[str, list[str]]:
    """Return a template's code as Python's source; see `compile_template`."""
    tree = nodes.Template(_Parser(environment, source).subparse(), lineno=1)
    _settle_children(tree)
    stream = StringIO()
    generator = _CodeGenerator(environment, stream)
    generator.visit(tree)
    generator.write_undefined()
    return stream.getvalue(), sorted(generator.variables - environment.globals.keys())


class _Parser(Parser):
    """Parses expressions by the precedence of operators."""

    def parse_or(self) -> nodes.Expr:
        """Parse an expression without `if`."""
        return self._parse_operand(_OR)

    def _parse_operand(self, level: int) -> nodes.Expr:
        """Parse an expression whose operators bind at least as tightly as a level."""
        stream = self.stream
        token = stream.current
        if level <= _NOT and token.value == "not" and token.type == "name":
            next(stream)
            left: nodes.Expr = nodes.Not(self._parse_operand(_NOT), lineno=token.lineno)
        else:
            left = self.parse_unary()
        while True:
            _, kind, operator = stream.current
            if kind != "name":
                operator = kind
            found = (_WORD_LEVELS if kind == "name" else _LEVELS).get(operator, 0)
            if found < level:
                return left
            if found == _COMPARE:
                if not (operations := self._parse_comparisons()):
                    return left
                left = nodes.Compare(left, operations, lineno=token.lineno)
            elif found == _CONCAT:
                parts = [left]
                while stream.current.type == "tilde":
                    next(stream)
                    parts.append(self._parse_operand(_PRODUCT))
                left = nodes.Concat(parts, lineno=token.lineno)
            else:
                next(stream)
                right = self._parse_operand(_NOT if found == _AND else found + 1)
                left = _OPERATIONS[operator](left, right, lineno=token.lineno)

    def _parse_comparisons(self) -> list[nodes.Operand]:
        stream = self.stream
        operations: list[nodes.Operand] = []
        while True:
            _, operator, word = stream.current
            if operator == "name" and word == "in":
                operator = "in"
            elif operator == "name" and word == "not" and stream.look().test("name:in"):
                next(stream)
                operator = "notin"
            elif _LEVELS.get(operator) != _COMPARE:
                return operations
            next(stream)
            operations.append(nodes.Operand(operator, self._parse_operand(_SUM)))


def _settle_children(tree: nodes.Node) -> None:
    """Give each node lists of what the passes before code generation look for in it.

    They ask a statement and its expressions for their children. Of an expression they want nodes of a few kinds, so it
    has these as its children, at any depth. Its `dependencies` are its filters and tests.
    """
    rest = [tree]
    kinds: set[type[nodes.Node]] = set()
    while rest:
        node = rest.pop()
        kinds.add(type(node))
        own = vars(node)
        if isinstance(node, _EXPRESSIONS):
            children, own["dependencies"] = _sought_in(node)
            kinds.update(map(type, children))
        else:
            children = _children_of(node)
            rest += children
            own["find_all"] = partial(_find_all, children, kinds)
        if isinstance(node, _ASKED_FOR_FIELDS):
            own["iter_child_nodes"] = partial(_iter_children, _fields_of(node))
        else:
            own["iter_child_nodes"] = children.__iter__


def _sought_in(expression: nodes.Node) -> tuple[list[nodes.Node], set[tuple[str, str]]]:
    """Return the sought nodes below an expression, and the names of all filters and tests in it."""
    found: list[nodes.Node] = []
    used: set[tuple[str, str]] = set()
    names: set[str] = set()
    rest = [expression]
    while rest:
        node = rest.pop()
        if isinstance(node, _SOUGHT) and node is not expression:
            if isinstance(node, nodes.Name) and node.ctx == "load":  # each is wanted once
                if node.name in names:
                    continue
                names.add(node.name)
            found.append(node)
            vars(node)["iter_child_nodes"] = ().__iter__
        elif not isinstance(node, _CONSTANTS):
            rest += reversed(_children_of(node))
            if (group := _DEPENDENCIES.get(type(node))) is not None:
                used.add((group, vars(node)["name"]))
    return found, used


def _children_of(node: nodes.Node) -> list[nodes.Node]:
    """Return the nodes in the fields of a node."""
    children: list[nodes.Node] = []
    for field in node.fields:
        value = getattr(node, field, None)
        if isinstance(value, nodes.Node):
            children.append(value)
        elif value and isinstance(value, list):
            children += [item for item in cast("list[Any]", value) if isinstance(item, nodes.Node)]
    return children


def _fields_of(node: nodes.Node) -> dict[str, list[nodes.Node]]:
    """Return the nodes in each field of a node that passes ask for some of its fields."""
    values = {field: vars(node).get(field) for field in node.fields}
    lists = {field: cast("list[Any]", value if isinstance(value, list) else [value]) for field, value in values.items()}
    return {field: [item for item in items if isinstance(item, nodes.Node)] for field, items in lists.items()}


def _iter_children(
    fields: dict[str, list[nodes.Node]], exclude: Container[str] = (), only: Container[str] | None = None
) -> Iterable[nodes.Node]:
    """Return a node's children as `nodes.Node.iter_child_nodes` does.

    It has no reference to the node: a cycle would keep the tree until garbage is collected, which takes time.
    """
    names = (name for name in fields if name not in exclude and (only is None or name in only))
    return [child for name in names for child in fields[name]]


def _find_all(children: list[nodes.Node], kinds: set[type[nodes.Node]], kind: type[nodes.Node]) -> list[nodes.Node]:
    """Return nodes of a kind as `nodes.Node.find_all` does, in another order, on which nothing depends."""
    found: list[nodes.Node] = []
    rest = children if kind in kinds else []
    while rest:
        found += [node for node in rest if isinstance(node, kind)]
        rest = [child for node in rest for child in node.iter_child_nodes()]
    return found


def _used_in(body: Iterable[nodes.Node]) -> set[tuple[str, str]]:
    """Return the names of filters and tests that nodes use outside of blocks."""
    used: set[tuple[str, str]] = set()
    rest = [*body]
    while rest:
        node = rest.pop()
        used.update(vars(node).get("dependencies", ()))
        if not isinstance(node, nodes.Block):
            rest += node.iter_child_nodes()
    return used


class _CodeGenerator(CodeGenerator):
    """Generates a template's code, and collects the variables that it reads, as `jinja2.meta` does for them alone."""

    def __init__(self, environment: Environment, stream: StringIO) -> None:
        # Folding constants takes a fifth of the time, and templates have hardly any.
        super().__init__(environment, None, "<template>", stream, optimized=False)
        self.variables: set[str] = set()
        self._undefined: set[str] = set()
        self._methods: dict[type[nodes.Node], Any] = {nodes.Name: self._write_name}

    def visit(self, node: nodes.Node, *args: Any, **kwargs: Any) -> Any:
        """Write a node's code."""
        kind = type(node)
        if (method := self._methods.get(kind)) is None:
            method = self._methods[kind] = self.get_visitor(node) or self.generic_visit
        return method(node, *args, **kwargs)

    def newline(self, node: nodes.Node | None = None, extra: int = 0) -> None:
        """Begin a line, without its relation to the template's lines, which only a traceback shows."""
        super().newline(extra=extra)

    def write_undefined(self) -> None:
        """Write a value for each variable while it is undefined.

        Jinja's variables have a mark then, and it writes a comparison with that wherever they are read: a quarter of
        the code.
        """
        names = sorted(self._undefined)
        targets = "".join(f"u_{name}, " for name in names) or "()"
        self.writeline(f"{targets} = (environment.undefined(name=name) for name in {names!r})")

    def write_commons(self) -> None:
        """Write what each part of the template begins with."""
        super().write_commons()
        self.writeline("resolve = context.resolve")

    def _write_name(self, node: nodes.Name, frame: Frame) -> None:
        """Write a variable. A macro's parameter can have Jinja's mark while the defaults of others are found."""
        reference = frame.symbols.ref(node.name)
        if node.ctx != "load" or self.parameter_is_undeclared(reference):
            self.visit_Name(node, frame)
        else:
            self.write(reference)

    def enter_frame(self, frame: Frame) -> None:
        """Set the variables of a part of the template, and collect those that it reads."""
        undefined: list[str] = []
        for target, (action, source) in frame.symbols.loads.items():
            if action == VAR_LOAD_RESOLVE:
                self.writeline(f"{target} = {self.get_resolve_func()}({source!r})")
                self.variables.add(source)
            elif action == VAR_LOAD_ALIAS:
                self.writeline(f"{target} = {source}")
            elif action == VAR_LOAD_UNDEFINED:
                undefined.append(target)
        self._undefine(undefined)

    def leave_frame(self, frame: Frame, with_python_scope: bool = False) -> None:
        """Make the variables of a part undefined again, for macros in it that are called after it."""
        if not with_python_scope:
            self._undefine(frame.symbols.loads)

    def _undefine(self, targets: Iterable[str]) -> None:
        for target in targets:
            name = target.split("_", 2)[2]
            self._undefined.add(name)
            self.writeline(f"{target} = u_{name}")

    def pull_dependencies(self, nodes: Iterable[nodes.Node]) -> None:
        """Give a name to each filter and test in nodes. One that is missing raises where it is called, as in Jinja."""
        for group, name in sorted(_used_in(nodes)):
            identifiers = vars(self)[group]
            identifier = identifiers[name] = identifiers.get(name) or self.temporary_identifier()
            if name in vars(self.environment)[group]:
                self.writeline(f"{identifier} = environment.{group}[{name!r}]")
            else:
                problem = f"No {group[:-1]} named {name!r} found."
                self.writeline(f"def {identifier}(*unused): raise TemplateRuntimeError({problem!r})")
