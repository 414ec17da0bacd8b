"""The version of Fanplan, and where its package lies."""

from __future__ import annotations

from pathlib import Path

__version__ = "0.1.0"

PACKAGE = Path(__file__).resolve().parent.parent
"""The folder of the package."""
