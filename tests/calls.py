"""What some code may call, found in the source without running it.

Functions count that are used by name, directly or through others. A method counts once its class is
made, or may be, and something of its name is asked of any object. So nothing is left out that
Python could call, but what is handed in from elsewhere: for that see `bounds`.
"""

from __future__ import annotations

import ast
import copy
from collections import defaultdict
from collections.abc import Iterable, Iterator

from structure import Function, Module, Name, Source

Method = tuple[Module, Function, Name]


class Calls:
    """Names that are reached; methods are `Class.method`."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.found: set[Name] = set()
        self.asked: set[str] = set()
        self.waiting: defaultdict[str, list[Method]] = defaultdict(list)

    def add(self, name: Name) -> None:
        """A function, class or constant at the top of a module, with all that it calls."""
        # The contract of a layer names all of its parts; whoever asks says which one it takes.
        if name in self.found or name[1] in ("", "LAYER"):
            return
        self.found.add(name)
        module = self.source.modules[name[0]]
        for statement in module.definitions.get(name[1], ()):
            if isinstance(statement, ast.ClassDef):
                self._open(module, statement)
            else:
                self.follow(module, [statement])

    def follow(self, module: Module, nodes: Iterable[ast.AST]) -> None:
        """All that some code of a module calls."""
        nodes = list(nodes)
        for bound in bounds(self.source, module, nodes):
            self.add(bound)
        plain = [without_annotations(node) for node in nodes]
        for used in self.source.used(module, plain):
            self.add(self.source.origin(used))
        for word in {word for node in plain for word in words_in(node)} - self.asked:
            self.asked.add(word)
            for method in self.waiting.pop(word, ()):
                self._enter(*method)

    def _open(self, module: Module, own: ast.ClassDef) -> None:
        methods = methods_of(own)
        # Fields keep their annotations: records are read by them.
        plain = [node for node in own.body if not isinstance(node, Function)]
        self.follow(module, [*plain, *own.bases, *own.decorator_list])
        for method in methods.values():
            self._offer(module, method, (module.name, f"{own.name}.{method.name}"))
        if is_bound(module, own):
            for other, implementing in implementers(self.source, own):
                for name in methods:
                    full = other.name, f"{implementing.name}.{name}"
                    self._offer(other, methods_of(implementing)[name], full)

    def _offer(self, module: Module, method: Function, name: Name) -> None:
        """A method is entered when something of its name is asked; what Python calls, at once."""
        if method.name in self.asked or method.name.startswith("__"):
            self._enter(module, method, name)
        else:
            self.waiting[method.name].append((module, method, name))

    def _enter(self, module: Module, method: Function, name: Name) -> None:
        if name not in self.found:
            self.found.add(name)
            self.follow(module, [method])


def methods_of(own: ast.ClassDef) -> dict[str, Function]:
    return {node.name: node for node in own.body if isinstance(node, Function)}


def bounds(source: Source, module: Module, nodes: Iterable[ast.AST]) -> Iterator[Name]:
    """Protocols of what a layer that binds hands over: annotations are all that tells of them."""
    for used in source.used(module, nodes):
        name = source.origin(used)
        there = source.modules[name[0]]
        for statement in there.definitions.get(name[1], ()):
            if isinstance(statement, ast.ClassDef) and is_bound(there, statement):
                yield name


def is_bound(module: Module, own: ast.ClassDef) -> bool:
    return module.role == "bound" and any(ast.unparse(base) == "Protocol" for base in own.bases)


def implementers(source: Source, protocol: ast.ClassDef) -> Iterator[tuple[Module, ast.ClassDef]]:
    """Classes that have all methods of a protocol."""
    for module in source.modules.values():
        for statement in module.tree.body:
            if not isinstance(statement, ast.ClassDef) or statement is protocol:
                continue
            if methods_of(protocol).keys() <= methods_of(statement).keys():
                yield module, statement


def without_annotations(node: ast.AST) -> ast.AST:
    """What a function says of types is called by nobody."""
    plain = copy.deepcopy(node)
    for function in [each for each in ast.walk(plain) if isinstance(each, Function)]:
        function.returns = None
        for each in ast.walk(function):
            if isinstance(each, ast.arg):
                each.annotation = None
            elif isinstance(each, ast.AnnAssign):
                each.annotation = ast.Constant(None)
    return plain


def words_in(node: ast.AST) -> Iterator[str]:
    """What is asked of objects: attributes, and strings that may be given to getattr."""
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute):
            yield each.attr
        elif isinstance(each, ast.Constant) and str(each.value).isidentifier():
            yield str(each.value)
