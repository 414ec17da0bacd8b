"""The project's glossary as a section, from docs/glossary.md, which is shipped along."""

from __future__ import annotations

from importlib.resources import files

from fanplan.page.content import Listing, Section


def glossary_section() -> Section:
    words = Listing("words", "Words", ("word", "meaning"), glossary())
    return Section("glossary", "Glossary", "What the words on this page mean.", listings=[words])


def glossary() -> list[tuple[str, str]]:
    """(word, meaning) from the rows of the table."""
    content = files("fanplan.page").joinpath("glossary.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in content.splitlines() if line.startswith("| ")]
    return [(word.strip(), plain(meaning)) for word, meaning in rows[2:]]


def plain(meaning: str) -> str:
    """Without the marks of emphasis and code."""
    return meaning.strip().replace("*", "").replace("`", "")
