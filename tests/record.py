"""Every documented example, the demo and the benchmarks' workloads: what they print and store.

    python tests/record.py OUT.json [--only PAGE …] [--against OTHER.json]

Commands run in one process, on one embedded Spark. OUT.json has, for every command, its exit code
and what it answered, and for every folder it wrote, a hash of each table's content, and plan.json
without what depends on the clock. Two commits that do the same give equal files; ``--against``
lists what differs from a file that another commit gave: tables, exit codes, and figures.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
FILE = re.compile(r"`((?:desk|firm)/[\w.]+)`(?:(?!```).)*```\w+\n(.*?)```", re.DOTALL)
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
NO_SPARK = ("compare",)
NO_JSON = ("generate", "report")
CLOCK = {"seconds", "report", "page", "plan", "out", "made", "created", "version", "hash", "seal"}

PAGES = (
    ("tutorial", "channels", "genetic", "changes", "report"),
    ("overlay", "simulation"),
    ("allocation",),
    ("groups",),
    ("marking",),
)

# Workloads of the benchmarks at sizes that take seconds, with every command that plans them.
OTHERS = """
generate market --flows 400 --users 60 --rate 50 --publications 4000 --out market
ingest market --out market.dataset
channels market.dataset --channels 8 --out m1
channels market.dataset --channels 8 --method tock --unicast greedy-flow --out m2 --w3 2
channels market.dataset --channels 8 --method genetic --out m3
channels market.dataset --channels 8 --unicast-limit 0.1 --max-channels-per-subscriber 3 --out m4
channels market.dataset --channels 8 --from m1 --churn 20 --out m5 --seed 3
channels market.dataset --channels 4,8 --out m6
channels market.dataset --channels 8 --restarts 2 --out m7
channels market.dataset --channels 8 --on-spark --out m8
design market.dataset --channels 5 --out m9
check m4 market.dataset
replay m1 market.dataset
compare m1 m2 m4
diff m1 m5 market.dataset --steps-of 10
apply-check m1 market.dataset
report m1 --workload market.dataset --out m.report
generate random --flows 300 --users 40 --out random
ingest random --out random.dataset
channels random.dataset --channels 6 --out r1
generate websphere --topics 400 --processes 40 --out websphere
ingest websphere --out websphere.dataset
channels websphere.dataset --channels 6 --out w1
channels websphere.dataset --channels 6 --method interior-point --out w2
generate subjects --out subjects
ingest subjects --out subjects.dataset
channels subjects.dataset --channels 6 --method genetic --out s1
generate content --out content
ingest content --out content.dataset
channels content.dataset --channels 6 --method genetic-atomic --out c1
generate enterprise --flows 60 --users 40 --publications 2000 --out enterprise
ingest enterprise --out enterprise.dataset
design enterprise.dataset --channels 4 --out e1
design enterprise.dataset --channels 2 --entries 40 --unicast-limit 0.3 --out e2 --seed 1
design enterprise.dataset --channels 4 --without groups,direct --price matched=2 --price forwarded=1 --price direct=2 --out e3
overlay enterprise.dataset --out e4
groups enterprise.dataset --overlay e4 --out e5
mark enterprise.dataset --trees per-source --out e6
design enterprise.dataset --channels 4 --fix overlay=e4 --out e7
check e2 enterprise.dataset
replay e1 enterprise.dataset
replay e5 enterprise.dataset
replay e6 enterprise.dataset
simulate e1 enterprise.dataset
simulate e4 enterprise.dataset --congestion queue --speed 5
simulate e5 enterprise.dataset
churn e1 enterprise.dataset --layer groups
churn e1 enterprise.dataset --layer marking
churn e5 enterprise.dataset
churn e6 enterprise.dataset
compare e1 e2 e3
diff e1 e2 enterprise.dataset --steps-of 20
diff e3 e1 enterprise.dataset --steps-of 50
apply-check e1 enterprise.dataset
generate enterprise --flows 60 --users 40 --publications 2000 --seed 5 --out enterprise5
ingest enterprise5 --out enterprise5.dataset
apply-check e1 enterprise5.dataset
apply-check e4 enterprise5.dataset
apply-check e5 enterprise5.dataset
apply-check e6 enterprise5.dataset
report e1 e2 --workload enterprise.dataset --out e.report
generate brokers --brokers 15 --subscriptions 90 --advertisements 30 --publications 500 --out brokers
ingest brokers --out brokers.dataset
design brokers.dataset --channels 3 --out b1
overlay brokers.dataset --metric hybrid --alpha 0.3 --out b2
overlay brokers.dataset --trees 3 --price forwarded=1 --price delayed=0.5 --out b3
overlay brokers.dataset --from b2 --changes 3 --out b4
groups brokers.dataset --overlay b2 --select top:10% --rank fc --out b5
mark brokers.dataset --trees given --out b6
diff b2 b4 brokers.dataset
simulate b3 brokers.dataset
report b3 --workload brokers.dataset --out b.report
generate clients --advertisements 40 --brokers 40 --capacity 100 --publications 2000 --out clients
ingest clients --out clients.dataset
allocate clients.dataset --ranking gig --metric overlap --out k1
allocate clients.dataset --out k2
allocate clients.dataset --from k1 --moves 5 --out k3
design clients.dataset --channels 3 --entries 50 --out k4
check k4 clients.dataset
apply-check k2 clients.dataset
simulate k2 clients.dataset
diff k1 k2 clients.dataset --steps-of 30
report k2 --workload clients.dataset --out k.report
generate tree-grid --publications 3000 --out grid2
ingest grid2 --out grid2.dataset
groups grid2.dataset --out g1
groups grid2.dataset --select threshold:50 --no-shortcuts --price matched=2 --price forwarded=1 --price entry=0.5 --out g2
replay g1 grid2.dataset
diff g1 g2 grid2.dataset
churn g1 grid2.dataset
design grid2.dataset --entries 60 --out g3
report g1 --workload grid2.dataset --out g.report
generate transit-stub --publishers 8 --subscribers 12 --out stub
ingest stub --out stub.dataset
mark stub.dataset --trees shared:t0 --out t1
mark stub.dataset --trees per-source --merge --out t2
mark stub.dataset --trees per-source --raw --control-by latency --price stored=0.5 --out t4
replay t2 stub.dataset
churn t1 stub.dataset
diff t1 t2 stub.dataset
apply-check t1 stub.dataset
report t1 --workload stub.dataset --out t.report
design stub.dataset --out t3
demo --out demo --sites 2 --users 16 --symbols 12 --publications 1000
"""  # noqa: E501


def commands() -> list[tuple[str, list[list[str]]]]:
    """(folder, commands as words)."""
    found = []
    for pages in PAGES:
        lines = [
            shlex.split(line.removeprefix("$ fanplan "))
            for page in pages
            for block in BLOCK.findall((DOCS / f"{page}.md").read_text())
            for line in block.splitlines()
            if line.startswith("$ fanplan ")
        ]
        found.append((pages[0], lines))
    lines = [shlex.split(line) for line in OTHERS.strip().splitlines()]
    found.append(("others", lines))
    return found


def plain(value: Any) -> Any:
    """Without what depends on the clock."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items() if k not in CLOCK}
    if isinstance(value, list):
        return [plain(v) for v in value]
    return value


def table_hash(path: Path) -> str:
    import pyarrow.parquet as pq

    table = pq.read_table(path).combine_chunks()
    sink = hashlib.sha256(str([(f.name, str(f.type)) for f in table.schema]).encode())
    sink.update(json.dumps(table.to_pylist(), default=str).encode())
    return sink.hexdigest()[:20]


def stored(folder: Path) -> dict[str, Any]:
    """Tables by their content, and plan.json."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if any(part.startswith((".", "_")) for part in Path(name).parts):
            continue
        if path.suffix == ".parquet" and not name.startswith(("dataset", "part")):
            with contextlib.suppress(Exception):
                found[name] = table_hash(path)
        elif path.name == "plan.json":
            found[name] = plain(json.loads(path.read_text()))
        elif path.suffix == ".html":
            text = re.sub(r"data:[\w/+;-]+,[\w+/=]+", "", path.read_text())
            found[name] = hashlib.sha256(re.sub(r"\s+", " ", text).encode()).hexdigest()[:20]
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--keep")
    parser.add_argument("--against")
    given = parser.parse_args()
    sys.path.insert(0, str(ROOT / "tests"))
    from commands import run

    from fanplan.data import spark as sparks

    jvm = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
    os.environ[sparks.EXTRA] = (
        f"spark.driver.extraJavaOptions='{jvm}' spark.driver.memory=2g "
        "spark.sql.codegen.wholeStage=false spark.sql.codegen.factoryMode=NO_CODEGEN "
        "spark.buffer.pageSize=2m"
    )
    answers: dict[str, Any] = {}
    out = Path(given.out).resolve()
    with tempfile.TemporaryDirectory() as folder, sparks.running(master="local[2]"):
        base = Path(given.keep).resolve() if given.keep else Path(folder)
        for name, lines in commands():
            if given.only and name not in given.only:
                continue
            prepare(base / name, name)
            for words in lines:
                key = f"{name}: {shlex.join(words)}"
                answers[key] = answered(run, words)
                print(answers[key]["exit"], key, file=sys.__stdout__, flush=True)
                out.write_text(json.dumps(answers, indent=1, sort_keys=True, default=str))
    if given.against:
        sys.exit(not same_as(json.loads(Path(given.against).read_text()), answers))


def prepare(here: Path, name: str) -> None:
    """An empty folder to work in, with the files that the tutorial shows."""
    here.mkdir(parents=True, exist_ok=True)
    os.chdir(here)
    if name == "tutorial":
        for file, content in FILE.findall((DOCS / "tutorial.md").read_text()):
            Path(file).parent.mkdir(exist_ok=True)
            Path(file).write_text(content)


def answered(run: Callable[..., int], words: list[str]) -> dict[str, Any]:
    """Exit code, answer and what was written by a command."""
    extra = [] if words[0] in NO_SPARK else ["--master", "local[2]"]
    extra += [] if words[0] in NO_JSON else ["--json"]
    told, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(err):
        code = run(*words, *extra)
    text = told.getvalue()
    row: dict[str, Any] = {"exit": code, "said": text}
    with contextlib.suppress(ValueError):
        row["said"] = plain(json.loads(text))
    if code:
        row["err"] = err.getvalue()[-800:]
    if "--out" in words and words[0] != "ingest":
        row["stored"] = stored(Path(words[words.index("--out") + 1]))
    return row


# ---- two recordings


def same_as(before: dict[str, Any], now: dict[str, Any]) -> bool:
    """Whether the same commands, in their order, gave the same; prints what did not."""
    differs = 0
    # Flags may be spelled anew, so commands are told apart by what they do and where they write.
    older = {known_as(key): row for key, row in before.items()}
    for key, row in now.items():
        other = older.get(known_as(key))
        if other is None:
            print("only here:", key)
            continue
        for what, was, found in differences(other, row):
            differs += 1
            print(f"{key}\n    {what}: {was!r:.100} is now {found!r:.100}")
    print(f"{len(now)} commands, {differs} differences")
    return not differs


def known_as(key: str) -> str:
    words = shlex.split(key)
    out = words[words.index("--out") + 1] if "--out" in words else ""
    return f"{words[0]} {words[1]} {out}" if out else key


def differences(before: dict[str, Any], now: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    found = [("exit", before["exit"], now["exit"])]
    tables, others = before.get("stored", {}), now.get("stored", {})
    found += [
        (name, tables.get(name), others.get(name))
        for name in sorted(tables.keys() | others.keys())
        # Spark names parts of publications anew each time, and their rows are in any order.
        if not name.endswith((".json", ".html")) and "part-" not in name
    ]
    figures, own = figures_in(before), figures_in(now)
    found += [(name, figures[name], own[name]) for name in sorted(figures.keys() & own.keys())]
    return [row for row in found if row[1] != row[2]]


ASKED = {"format", "params", "prices", "weights", "files", "parameters", "differing"}
"""What is no figure, and may have other names in another commit."""


def figures_in(row: dict[str, Any]) -> dict[str, Any]:
    """Numbers by where they stand; what was asked for is left out, as its names may change."""
    found: dict[str, Any] = {}

    def walk(content: Any, path: str) -> None:
        if isinstance(content, dict):
            for name, value in content.items():
                if name not in (
                    "format",
                    "params",
                    "prices",
                    "weights",
                    "files",
                    "parameters",
                    "differing",
                ):
                    walk(value, f"{path}.{name}")
        elif isinstance(content, list):
            for place, value in enumerate(content):
                walk(value, f"{path}[{place}]")
        elif isinstance(content, int | float):
            found[path] = content

    walk({"said": row["said"], "plan": row.get("stored", {}).get("plan.json", {})}, "")
    return found


if __name__ == "__main__":
    main()
