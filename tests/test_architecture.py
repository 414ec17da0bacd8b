"""The tree is built as docs/architecture.md says: imports point one way, layers stay in place."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from textwrap import dedent

import pytest
from calls import Calls
from structure import BELOW, LAYERS, PACKAGE, Module, Name, Source, branches, in_cycles

# From the bottom up: a module imports from rows before its own and from its own folder. Layers and
# what stands beside another have rules of their own.
ROWS = (
    ("core",),
    ("workload", "boxes"),
    ("data",),
    ("network",),
    ("plan",),
    ("simulation", "page"),
    ("layers",),
    ("live",),
    ("systems",),
    ("verbs",),
    ("watching",),
    ("papers", "api"),
    ("cli",),
)
ROW = {folder: row for row, folders in enumerate(ROWS) for folder in folders}

# The package itself and its `python -m` entry belong to no row.
TOP = {PACKAGE, f"{PACKAGE}.__main__"}

# Names of files or folders in a layer.
NAMES = {
    "params",
    "problem",
    "stages",
    "ledger",
    "record",
    "bound",
    "check",
    "search",
    "published",
    "changes",
    "drift",
    "simulated",
    "report",
    "command",
    "show",
    "layer",
    "protocol",
}

# Who may import a library that is heavy, or that belongs to one place.
LIBRARIES = {
    "pyspark": ("data", "stages"),
    "py4j": ("data", "stages"),
    "jinja2": ("page", "verbs.report"),
    "matplotlib": ("papers",),
    "typer": ("cli",),
    "cryptography": ("plan.signature",),
}

# A check shares no code with what made the plan: neither its roles nor the trees of the search.
MAKING = {"search", "published", "ledger", "build"}
CARRYING = {f"{PACKAGE}.network.trees", f"{PACKAGE}.network.carried"}
# Where it may call: what reads questions and plans, in layers and beneath, and the verb itself.
PROVING = {
    "check",
    "record",
    "params",
    "problem",
    "read",
    "recount",
    "map",
    "cells",
    "bound",
    "layer",
}
BENEATH = {"core", "workload", "boxes", "data", "network", "plan", "layers", "verbs.check"}

VERB = f"{PACKAGE}.verbs.check"

# What both read: the question, which is asked once.
READING = {
    "layers",
    "layers.registry",
    "layers.channels.map",
    "layers.channels.problem",
    "layers.delivery.problem",
    "layers.groups.cells",
    "layers.groups.problem.dataset",
    "layers.groups.problem.grid",
    "layers.groups.problem.groups",
    "layers.groups.problem.trees",
    "layers.marking.problem.covers",
    "layers.mesh.problem",
    "layers.marking.problem.dataset",
    "layers.marking.problem.marking",
    "layers.marking.problem.trees",
    "network.brokers",
    "network.dataset",
    # Which ways there are between switches is the question too.
    "network.fabric",
    # The trees that were asked to be marked are shortest paths, which no plan stores.
    "network.paths",
}
TYPES = {("layers.groups.problem.build", name) for name in ("MarkedCells", "NOWHERE")}

HEAVY = ("pyspark", "numba", "pandas", "scipy", "pyarrow")


@cache
def source() -> Source:
    return Source(Path(__file__).parent.parent)


def folder_of(module: str) -> str:
    return module.split(".")[1]


def allowed(importer: Module, imported: Module) -> bool:
    """Whether the rows let one module import another."""
    if {importer.name, imported.name} & TOP:
        return True
    if importer.layer and imported.layer:
        return imported.layer in {importer.layer, *BELOW[importer.layer]}
    below = ROW[imported.parts[0]] < ROW[importer.parts[0]]
    return below or importer.parts[0] == imported.parts[0]


def held(found: Iterable[tuple[str, str]], known: set[tuple[str, str]]) -> None:
    """Nothing but the known exceptions, and none of them for nothing."""
    short = {tuple(name.removeprefix(f"{PACKAGE}.") for name in pair) for pair in found}
    assert sorted(short - known) == [], "new breaches"
    assert sorted(known - short) == [], "exceptions that are no longer needed"


def pairs() -> list[tuple[Module, Module]]:
    modules = source().modules
    return [(modules[a], modules[b]) for a, goals in source().edges.items() for b in goals]


def test_every_folder_has_a_row() -> None:
    folders = {folder_of(name) for name in source().modules if name not in TOP}
    assert folders <= set(ROW)


def test_imports_point_one_way() -> None:
    held(((a.name, b.name) for a, b in pairs() if not allowed(a, b)), UPWARDS)


def test_modules_form_no_cycle() -> None:
    held(((name, "") for name in in_cycles(source())), CYCLES)


def test_libraries_stay_where_they_belong() -> None:
    found = {
        (module.name, library)
        for module in source().modules.values()
        for library in {each.module.split(".")[0] for each in module.imports} & set(LIBRARIES)
        if not at_home(module, LIBRARIES[library])
    }
    held(found, STRAY_LIBRARIES)


def at_home(module: Module, places: tuple[str, ...]) -> bool:
    below = ".".join(module.parts)
    return module.role in places or any(f"{below}.".startswith(f"{place}.") for place in places)


def is_making(module: Module) -> bool:
    return module.role in MAKING or module.name in CARRYING


def test_checks_import_nothing_that_makes_plans() -> None:
    found = {(a.name, b.name) for a, b in pairs() if a.role == "check" and is_making(b)}
    held(found, CHECKS_IMPORT)


def test_checks_call_nothing_but_what_reads_and_proves() -> None:
    found = {name for name in called_by_checks(source()) if not is_proving(source(), name)}
    assert sorted(found) == []


def called_by_checks(tree: Source) -> set[Name]:
    """What the checks of layers are made of and call, and what the verb calls around them."""
    calls = Calls(tree)
    for module in tree.modules.values():
        if module.role == "check":
            for name in module.definitions:
                calls.add((module.name, name))
        for statement in module.definitions["LAYER"] if module.role == "layer" else ():
            calls.follow(module, part_of_contract(statement, "check"))
    if VERB in tree.modules:
        calls.add((VERB, "check_plan"))
    return calls.found


def test_checks_share_with_planners_only_what_reads() -> None:
    """Questions and plans are read by one code; whatever is counted from them is counted twice."""
    tree = source()
    planning = Calls(tree)
    for module in tree.modules.values():
        if module.role in MAKING | {"command"}:
            for name in module.definitions:
                planning.add((module.name, name))
    shared = {
        (name.removeprefix(f"{PACKAGE}."), what)
        for name, what in planning.found & called_by_checks(tree)
        if folder_of(name) in ("layers", "network", "boxes")
        and tree.modules[name].role not in ("params", "record", "read")
    }
    assert sorted({name for name, what in shared if (name, what) not in TYPES} - READING) == []


def part_of_contract(statement: ast.stmt, part: str) -> Iterator[ast.expr]:
    """What a layer fills into the contract there."""
    for node in ast.walk(statement):
        if isinstance(node, ast.keyword) and node.arg == part:
            yield node.value


def is_proving(tree: Source, name: Name) -> bool:
    module = tree.modules[name[0]]
    if module.layer:
        return module.role in PROVING
    return name[0] not in CARRYING and any(at_home(module, (place,)) for place in BENEATH)


def test_what_searches_has_trees_of_its_own() -> None:
    walks = f"{PACKAGE}.plan.walks"
    held({(a.name, b.name) for a, b in pairs() if a.role in MAKING and b.name == walks}, set())


TOY = {
    "groups/check": """
        from fanplan.layers.groups.bound import GroupsBound
        from fanplan.layers.groups.read import Reader
        def check(bound: GroupsBound) -> None:
            Reader().rows(bound.possible())
        """,
    "groups/read": """
        from fanplan.layers.groups.search import choose, weigh
        class Reader:
            def rows(self, found): return choose(found)
            def never(self): return weigh()
        """,
    "groups/bound": """
        from typing import Protocol
        class GroupsBound(Protocol):
            def possible(self): ...
            def now(self): ...
        """,
    "delivery/bound": """
        from fanplan.layers.groups.search import seek, weigh
        class Bound:
            def possible(self): return seek()
            def now(self): return weigh()
        class Other:
            def possible(self): return weigh()
        """,
    "groups/search": """
        def choose(found): return found
        def seek(): return 1
        def weigh(): return 2
        """,
    "__init__": "",
}


def test_calls_are_followed_through_methods_and_what_is_handed_over(tmp_path: Path) -> None:
    for name, text in TOY.items():
        file = tmp_path / PACKAGE / "layers" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(text))
    toy = Source(tmp_path)
    found = called_by_checks(toy)
    assert {(module, name) for module, name in found if not is_proving(toy, (module, name))} == {
        (f"{PACKAGE}.layers.groups.search", name) for name in ("choose", "seek")
    }
    assert not [name for _, name in found if name in ("Reader.never", "Bound.now")]


def test_one_place_replaces_files_and_folders() -> None:
    found = {
        (module.name, node.attr)
        for module in source().modules.values()
        for node in module.nodes
        if isinstance(node, ast.Attribute)
        and (node.attr == "rename" or ast.unparse(node) in ("os.replace", "shutil.move"))
        and module.name != f"{PACKAGE}.core.folder"
    }
    held(found, RENAMES)


def test_params_import_only_core() -> None:
    found = {
        (module.name, each.module)
        for module in source().modules.values()
        if module.role == "params"
        for each in module.imports
        if not (each.module.startswith(f"{PACKAGE}.core") or is_standard(each.module))
    }
    held(found, PARAMS_IMPORT)


def is_standard(module: str) -> bool:
    return module.split(".", maxsplit=1)[0] in sys.stdlib_module_names


def test_only_a_layer_and_the_registry_know_its_name() -> None:
    held({(branch.module, branch.layer) for branch in branches(source())}, LAYERS_NAMED)


def test_layers_have_the_same_names_inside() -> None:
    found = {
        (module.layer, module.role)
        for module in source().modules.values()
        if module.layer and module.role not in NAMES | {""}
    }
    held(found, OTHER_NAMES)


def test_layers_are_those_of_the_registry() -> None:
    modules = source().modules.values()
    assert {module.layer for module in modules if module.layer} == set(LAYERS)
    folders = {
        module.parts[1] for module in modules if module.parts[:1] == ("layers",) != module.parts
    }
    # Beside the layers stand their registry and the contract that they fill in.
    assert folders - {"registry", "layer"} == set(LAYERS)


HELP = "sys.argv[1:] = ['--help']; runpy.run_module('fanplan', run_name='__main__')"


@pytest.mark.parametrize("start", ["import fanplan", HELP])
def test_the_package_and_its_help_load_nothing_heavy(start: str) -> None:
    loaded = f"print(sorted(set({HEAVY}) & set(sys.modules)), file=sys.stderr)"
    code = f"import atexit, runpy, sys; atexit.register(lambda: {loaded}); {start}"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr.strip()) == (0, "[]")


def test_clients_of_exported_plans_load_neither_spark_nor_plans() -> None:
    """An application's machine needs an export alone, or what a matcher reads."""
    code = (
        "import sys, fanplan.live.nats.client, fanplan.live.multicast.client\n"
        "from fanplan.live import Matcher, Publisher\n"
        "print([m for m in sys.modules if m.startswith(('pyspark', 'fanplan.layers', "
        "'fanplan.plan', 'fanplan.systems'))])"
    )
    words = [sys.executable, "-c", code]
    result = subprocess.run(words, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


# Exceptions, pair by pair: none but those with a reason.
UPWARDS: set[tuple[str, str]] = set()
CYCLES: set[tuple[str, str]] = set()
STRAY_LIBRARIES: set[tuple[str, str]] = set()
CHECKS_IMPORT: set[tuple[str, str]] = set()

# Inside of what is written aside: parts of a stage find their place, files their ending.
RENAMES: set[tuple[str, str]] = {("data.ingest.store", "rename"), ("data.synthesis", "rename")}
PARAMS_IMPORT: set[tuple[str, str]] = set()
LAYERS_NAMED: set[tuple[str, str]] = set()
# Files that only one or two layers need.
OTHER_NAMES: set[tuple[str, str]] = {
    ("channels", "bounds"),
    ("channels", "explain"),
    ("channels", "lone"),
    ("channels", "map"),
    ("channels", "method_params"),
    ("channels", "methods"),
    ("channels", "names"),
    ("delivery", "build"),
    ("delivery", "carried"),
    ("delivery", "fixed"),
    ("delivery", "legs"),
    ("delivery", "needs"),
    ("delivery", "read"),
    ("delivery", "recount"),
    ("delivery", "replayed"),
    ("delivery", "steps"),
    ("groups", "build"),
    ("groups", "carried"),
    ("groups", "cells"),
    ("groups", "churn"),
    ("groups", "read"),
    ("groups", "replayed"),
    ("marking", "churn"),
    ("marking", "merged"),
    ("marking", "read"),
    ("marking", "replayed"),
    ("overlay", "allocation"),
    ("overlay", "linking"),
}
