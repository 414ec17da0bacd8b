"""How the source of Fanplan is built: who imports whom, what is spread or said twice.

`python tests/structure.py [FOLDER …]` prints a table of figures with a column for each folder, so
that a clone of an older commit can stand beside the present tree. A folder holds the package.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

PACKAGE = "fanplan"
# Where layers are known by their names.
REGISTRY = (f"{PACKAGE}.layers", f"{PACKAGE}.layers.registry")
LAYERS = ("channels", "overlay", "groups", "marking", "delivery", "mesh")

# Words in the name of a module that say which layer it is about, wherever it lies.
ABOUT = {
    "channels": {"channel", "channels", "kmodes", "genetic", "bounds", "spectral", "islands"},
    "overlay": {"overlay", "overlays", "allocation", "allocations"},
    "groups": {"group", "groups"},
    "marking": {"mark", "marking"},
    "delivery": {"delivery", "design", "designs"},
    "mesh": {"mesh"},
}

# Layers that a layer builds on: it may read their sections of a plan.
BELOW = {
    "channels": set[str](),
    "overlay": set[str](),
    "groups": {"overlay"},
    "marking": {"overlay"},
    "delivery": {"channels", "overlay", "groups", "marking"},
    "mesh": set[str](),
}

# What a stored plan is called where its sections are read: plan.delivery, plan.record.delivery.
PLANS = {"plan", "stored", "old", "new"}

# A walk: names from a command to the plan on disk, stretch by stretch; a stretch ends where a layer
# is found by its name. The first of the ways that a tree has counts. Names that differ between
# trees stand in one place, split by a bar.
TO_LAYER = ("cli:run_one", "planner")
TO_DISK = ("Made", "save_sections|save_layers", "check_plan")
WALKS = {
    "channels": (
        (
            ("cli:channels", "plan_channels"),
            ("METHODS", "Solver"),
            ("ChannelPlan", "save_plan", "check_channels"),
        ),
        (
            (*TO_LAYER, "plan_channels", "find_method"),
            ("METHODS", "Solver"),
            TO_DISK,
            ("check_channels",),
        ),
    ),
    "design": (
        (
            ("cli:design", "joint_delivery", "refine|assign|assign_classes"),
            ("Design", "save_layers|save_plan", "check_delivery"),
        ),
        (
            (*TO_LAYER, "plan_design", "joint_delivery", "refine|assign|assign_classes"),
            TO_DISK,
            ("check_delivery",),
        ),
    ),
}

BODY = "(body)"  # what a module does outside its definitions

Name: TypeAlias = tuple[str, str]  # module, and a name at its top; "" for the module itself
Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Import:
    """One name that a module imports, under the name that it has there."""

    module: str
    name: str  # "" if the module itself is imported
    alias: str

    @property
    def full(self) -> str:
        return f"{self.module}.{self.name}" if self.name else self.module


@dataclass(frozen=True)
class Module:
    """A file of the package with its parsed source."""

    name: str  # dotted, with the package first
    text: str
    tree: ast.Module = field(repr=False)

    @property
    def parts(self) -> tuple[str, ...]:
        """The folders and the file below the package."""
        return tuple(self.name.split(".")[1:])

    @property
    def layer(self) -> str | None:
        """The layer whose folder holds the module."""
        inside = self.parts[:1] == ("layers",) and self.parts[1:2]
        return self.parts[1] if inside and self.parts[1] in LAYERS else None

    @property
    def about(self) -> set[str]:
        """Layers that the module is about, by its folder or else by the words of its name."""
        if self.layer:
            return {self.layer}
        words = {word for part in self.parts for word in part.split("_")}
        return {layer for layer in LAYERS if words & ABOUT[layer]}

    @property
    def role(self) -> str:
        """The file or folder of a layer that the module is or lies in."""
        return self.parts[2] if self.layer and len(self.parts) > 2 else ""

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @cached_property
    def imports(self) -> tuple[Import, ...]:
        """All imports: at the top, in functions and for types."""
        return tuple(imports_of(self.nodes))

    @cached_property
    def bound(self) -> set[str]:
        """Names that the module has, defined there or imported from modules beside it."""
        passed = {each.alias for each in self.imports if each.name and each.full != self.name}
        own = {each.alias for each in self.imports if each.module == self.name}
        return (passed - own) | set(self.definitions)

    @cached_property
    def definitions(self) -> dict[str, list[ast.stmt]]:
        """Statements at the top of the module by the name that they define."""
        found: dict[str, list[ast.stmt]] = defaultdict(list)
        for statement in self.tree.body:
            for name in defined_by(statement):
                found[name].append(statement)
        return found


def imports_of(nodes: Iterable[ast.AST]) -> Iterator[Import]:
    for node in nodes:
        if isinstance(node, ast.Import):
            for each in node.names:
                yield Import(each.name, "", each.asname or each.name.split(".")[0])
        elif isinstance(node, ast.ImportFrom):
            for each in node.names:
                yield Import(node.module or "", each.name, each.asname or each.name)


def defined_by(statement: ast.stmt) -> Iterator[str]:
    """Names that a statement at the top defines; imports define nothing of their own."""
    if isinstance(statement, Definition):
        yield statement.name
    elif isinstance(statement, ast.Assign | ast.AnnAssign):
        goals = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        yield from (goal.id for goal in goals if isinstance(goal, ast.Name))
    elif not isinstance(statement, ast.Import | ast.ImportFrom):
        yield BODY


class Source:
    """The modules of a tree, and what leads from one to another."""

    def __init__(self, folder: Path) -> None:
        root = folder / PACKAGE
        files = sorted(root.rglob("*.py"))
        self.modules = {made.name: made for made in (read(file, folder) for file in files)}

    def target(self, imported: Import) -> Name | None:
        """Module and name that an import reaches inside the package."""
        package = self.modules.get(imported.module)
        # A package may give a function the name of the module that it is from.
        if imported.full in self.modules and not (package and imported.name in package.bound):
            return imported.full, ""
        return (imported.module, imported.name) if package else None

    @cached_property
    def edges(self) -> dict[str, set[str]]:
        """For each module those that it imports."""
        found: dict[str, set[str]] = {}
        for module in self.modules.values():
            targets = (self.target(each) for each in module.imports)
            found[module.name] = {target[0] for target in targets if target} - {module.name}
        return found

    @cached_property
    def uses(self) -> dict[Name, set[Name]]:
        """For each name at the top of a module those that its definition uses."""
        return {
            (module.name, name): {self.origin(used) for used in self.used(module, statements)}
            | set(self._in_layers(loaded(statements)))
            for module in self.modules.values()
            for name, statements in module.definitions.items()
        }

    def _in_layers(self, parts: set[str]) -> Iterator[Name]:
        """Parts of layers are loaded by name, so LAYER of one leads to that of each."""
        for module in self.modules.values():
            if module.layer:
                yield from ((module.name, part) for part in parts if part in module.definitions)

    def origin(self, name: Name) -> Name:
        """The name where it is defined: a module may only pass it on."""
        seen: set[Name] = set()
        while name not in seen and name[1] and name[1] not in self.modules[name[0]].definitions:
            seen.add(name)
            passed = [each for each in self.modules[name[0]].imports if each.alias == name[1]]
            target = self.target(passed[0]) if passed else None
            name = target or name
        return name

    def used(self, module: Module, nodes: Iterable[ast.AST]) -> Iterator[Name]:
        """Names of the package that some code of a module uses."""
        targets = {each.alias: self.target(each) for each in module.imports}
        for each in nodes:
            for node in ast.walk(each):
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                    target = targets.get(node.value.id)
                    if target and not target[1]:
                        yield target[0], node.attr
                elif isinstance(node, ast.Name):
                    yield from self._named(module, node.id, targets)
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield from self._loaded(node.value)

    def _named(
        self, module: Module, name: str, targets: Mapping[str, Name | None]
    ) -> Iterator[Name]:
        target = targets.get(name)
        if target:
            yield target
        elif name in module.definitions:
            yield module.name, name

    def _loaded(self, text: str) -> Iterator[Name]:
        """What is loaded by its name in quotes: `module:name`, below the package or full."""
        module, _, name = text.partition(":")
        for full in (module, f"{PACKAGE}.{module}"):
            if name and full in self.modules:
                yield full, name


def loaded(statements: Iterable[ast.stmt]) -> set[str]:
    """Constants of modules that are loaded by name: ``import_module(…).LAYER``."""
    nodes = (node for statement in statements for node in ast.walk(statement))
    asked = (node for node in nodes if isinstance(node, ast.Attribute) and node.attr.isupper())
    return {node.attr for node in asked if isinstance(node.value, ast.Call)}


def read(file: Path, folder: Path) -> Module:
    parts = file.relative_to(folder).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    text = file.read_text()
    return Module(name, text, ast.parse(text, str(file)))


def reached(edges: Mapping[str, set[str]], start: str) -> set[str]:
    """Modules that one leads to in one step or more."""
    found: set[str] = set()
    ahead = list(edges[start])
    while ahead:
        one = ahead.pop()
        if one not in found:
            found.add(one)
            ahead.extend(edges[one])
    return found


def in_cycles(source: Source) -> list[str]:
    return [name for name in sorted(source.modules) if name in reached(source.edges, name)]


def spread(source: Source, layer: str) -> set[str]:
    """Folders below the package that hold modules about a layer; commands and papers aside."""
    found = set()
    for module in source.modules.values():
        if layer in module.about and module.parts[0] not in ("cli", "papers"):
            found.add(place(module.name))
    return found


@dataclass(frozen=True, order=True)
class Branch:
    """A line that depends on the name of a layer, far from the layer."""

    module: str
    line: int
    layer: str


def branches(source: Source) -> list[Branch]:
    """Branches on layers' names outside the folder of that layer and the registry."""
    found = set()
    for module in source.modules.values():
        # Samples of papers have settings that are called as layers.
        if module.name not in REGISTRY and module.parts[:1] != ("papers",):
            for node in module.nodes:
                own = module.about if not isinstance(node, ast.Attribute) else read_by(module)
                found |= {Branch(module.name, line(node), name) for name in {*names_in(node)} - own}
    return sorted(found)


def read_by(module: Module) -> set[str]:
    """Layers whose sections a module may read: its own and those below."""
    return module.about.union(*(BELOW[layer] for layer in module.about))


def line(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 0))


def names_in(node: ast.AST) -> Iterator[str]:
    """Layers that a comparison, a case, a mapping or the section of a plan names."""
    if isinstance(node, ast.Compare):
        for side in (node.left, *node.comparators):
            yield from literals(side)
    elif isinstance(node, ast.MatchValue):
        yield from literals(node.value)
    elif isinstance(node, ast.Dict):
        keys = [list(literals(key)) if key else [] for key in node.keys]
        # A mapping of figures may have one that is called as a layer; one by layers has no others.
        if keys and all(keys):
            yield from (name for key in keys for name in key)
    elif isinstance(node, ast.Attribute) and node.attr in LAYERS and is_plan(node.value, node.attr):
        yield node.attr


def literals(node: ast.AST) -> Iterator[str]:
    """Names of layers in quotes, alone or in a tuple, list or set."""
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        for each in node.elts:
            yield from literals(each)
    elif isinstance(node, ast.Constant) and node.value in LAYERS:
        yield str(node.value)


def is_plan(node: ast.AST, attribute: str) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in {"plan", "record"}
    # A record's number of channels is a figure of the layer itself.
    names = PLANS if attribute == "channels" else {*PLANS, "record"}
    return isinstance(node, ast.Name) and node.id in names


def repeated(source: Source) -> dict[str, list[str]]:
    """Functions and classes at the top of more than one module, with these modules."""
    found: dict[str, list[str]] = defaultdict(list)
    for module in source.modules.values():
        for statement in module.tree.body:
            if isinstance(statement, Definition):
                found[statement.name].append(module.name)
    return {name: modules for name, modules in sorted(found.items()) if len(set(modules)) > 1}


def functions(module: Module) -> Iterator[Function]:
    return (node for node in module.nodes if isinstance(node, Function))


def parameters(function: Function) -> int:
    """How many parameters a function has, its own object aside."""
    given = function.args
    names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def comments(module: Module) -> int:
    """Lines that are nothing but a comment."""
    tokens = tokenize.generate_tokens(io.StringIO(module.text).readline)
    return sum(t.type == tokenize.COMMENT and not t.line[: t.start[1]].strip() for t in tokens)


def walk(source: Source, ways: Iterable[tuple[tuple[str, ...], ...]]) -> list[str]:
    """Modules on the shortest way over the names given, or none if a name leads no further."""
    for stretches in ways:
        found: dict[str, None] = {}
        for names in stretches:
            legs = [
                shortest(source, find(source, start), find(source, end))
                for start, end in pairwise(names)
            ] or [sorted(find(source, names[0]))]
            if not all(legs):
                break
            found |= dict.fromkeys(module for leg in legs for module, _ in leg)
        else:
            return list(found)
    return []


def find(source: Source, wanted: str) -> set[Name]:
    """The names that a place on a walk stands for; `cli:name` asks for the folder, too."""
    folder, _, names = wanted.rpartition(":")
    for name in names.split("|"):
        found = {
            (module.name, name)
            for module in source.modules.values()
            if name in module.definitions
            and module.parts[: bool(folder)] == (folder,) * bool(folder)
        }
        if found:
            return found
    return set()


def shortest(source: Source, starts: set[Name], ends: set[Name]) -> list[Name]:
    before: dict[Name, Name | None] = dict.fromkeys(sorted(starts))
    ahead = list(before)
    for one in ahead:  # grows as it goes
        if one in ends:
            return way_back(before, one)
        for following in sorted(source.uses.get(one, ())):
            if following not in before:
                before[following] = one
                ahead.append(following)
    return []


def way_back(before: Mapping[Name, Name | None], last: Name) -> list[Name]:
    way, previous = [last], before[last]
    while previous:
        way.append(previous)
        previous = before[previous]
    return way[::-1]


def place(module: str) -> str:
    """The package that a module counts to: its folder, or its layer's."""
    parts = module.split(".")[1:]
    return "/".join(parts[:2] if parts[0] == "layers" else parts[:1])


def figures(source: Source) -> dict[str, str]:
    modules = list(source.modules.values())
    lines = sum(len(module.text.splitlines()) for module in modules)
    counts = sorted(parameters(each) for module in modules for each in functions(module))
    share = 100 * sum(comments(module) for module in modules) / lines
    table = {
        "files": f"{len(modules):,}",
        "lines": f"{lines:,}",
        "modules in cycles": f"{len(in_cycles(source))}",
    }
    for layer in LAYERS:
        table[f"folders about {layer}"] = f"{len(spread(source, layer))}"
    table |= {
        "lines that name a layer": f"{len({(b.module, b.line) for b in branches(source)})}",
        "names in several modules": f"{len(repeated(source))}",
        "parameters, 9 of 10 functions": f"{counts[len(counts) * 9 // 10]}",
        "parameters, most": f"{counts[-1]}",
        "comment lines, per cent": f"{share:.1f}",
    }
    for command, stretches in WALKS.items():
        way = walk(source, stretches)
        table[f"files on the walk of {command}"] = f"{len(way)}" if way else "?"
        table[f"packages on the walk of {command}"] = (
            f"{len({place(m) for m in way})}" if way else "?"
        )
    return table


def main(folders: list[str]) -> None:
    sources = [Source(Path(folder)) for folder in folders]
    columns = [figures(source) for source in sources]
    width = max(len(folder) for folder in (*folders, "63,208")) + 2
    print(" " * 32 + "".join(f"{folder:>{width}}" for folder in folders))
    for row in columns[0]:
        print(f"{row:32}" + "".join(f"{column[row]:>{width}}" for column in columns))


if __name__ == "__main__":
    main(sys.argv[1:] or [str(Path(__file__).parent.parent)])
