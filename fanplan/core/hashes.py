"""Hashes of files and of what is written as JSON. They show accidents, not what is forged."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

SEAL = "seal"
"""The key by which content has a hash of all else in it."""

RECENT_NS = 100_000_000
"""A file changed within this time could be changed again without a later time of change."""
MOST = 1 << 16
"""Hashes that are remembered."""

_known: dict[tuple[int, ...], str] = {}


def digest() -> hashlib.blake2b:
    return hashlib.blake2b(digest_size=16)


def file_hash(path: Path) -> str:
    """A hash of a file's content, read in pieces; of one that rests it is remembered."""
    about = path.stat()
    stamp = (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)
    if (known := _known.get(stamp)) is not None:
        return known
    with path.open("rb") as file:
        found = hashlib.file_digest(file, digest).hexdigest()
    if time.time_ns() - max(stamp[3:]) > RECENT_NS:
        if len(_known) >= MOST:
            _known.clear()
        _known[stamp] = found
    return found


def file_hashes(paths: Iterable[Path]) -> list[str]:
    """The same of several files: hashing lets other threads work."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(file_hash, paths))


def content_hash(content: Mapping[str, Any]) -> str:
    """A hash of all that content says but its seal, however it is spaced."""
    told = {name: value for name, value in content.items() if name != SEAL}
    found = digest()
    found.update(json.dumps(told, sort_keys=True).encode())
    return found.hexdigest()


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """Content with its seal."""
    return {**content, SEAL: content_hash(content)}


def is_intact(content: object) -> bool:
    """Whether content is as it was sealed."""
    return isinstance(content, dict) and content.get(SEAL) == content_hash(content)
