"""Pictures of few colours as PNG files, and those as addresses inside a page."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np

from fanplan.core.arrays import Bytes


def png(pixels: Bytes, palette: Bytes) -> bytes:
    """A file whose pixels (height × width) are rows of a palette (colours × RGBA, at most 256)."""
    height, width = pixels.shape
    # Each line begins with its filter: 0, none.
    lines = np.concatenate((np.zeros((height, 1), np.uint8), pixels), axis=1).tobytes()
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        (
            chunk(b"IHDR", header),
            chunk(b"PLTE", palette[:, :3].tobytes()),
            chunk(b"tRNS", palette[:, 3].tobytes()),
            chunk(b"IDAT", zlib.compress(lines)),
            chunk(b"IEND", b""),
        )
    )


def chunk(kind: bytes, content: bytes) -> bytes:
    """Length, kind, content, and a sum to check kind and content by."""
    return (
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
    )


def inline(file: bytes) -> str:
    """The file as an address that needs no network."""
    return "data:image/png;base64," + base64.b64encode(file).decode("ascii")
