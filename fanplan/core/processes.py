"""What the kernel says of processes."""

from __future__ import annotations

from pathlib import Path


def process_state(pid: int) -> list[str]:
    """What the kernel says of a process, from its state on; nothing if there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return []
    found = text.rpartition(")")[2].split()
    return [] if found[0] == "Z" else found


def started_at(pid: int) -> str:
    """When a process started, in the kernel's ticks; nothing if there is none."""
    return "".join(process_state(pid)[19:20])
