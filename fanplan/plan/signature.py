"""Signatures: a plan that one person approved is the plan that another applies.

The seal tells accidents; anybody can seal anew. A signature (Ed25519) cannot be made without the
private key. It is over the SHA-256 of plan.json and of every table, byte for byte.
"""

from __future__ import annotations

import hashlib
import json
import os
from base64 import b64decode, b64encode
from pathlib import Path
from typing import TYPE_CHECKING

from fanplan.core.files import read_small, refuse, require_private
from fanplan.core.folder import write_whole
from fanplan.plan.seal import RECORD

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

SIGNATURE = "plan.sig"
PUBLIC = ".pub"
NEW = "Make a pair with `fanplan sign --new-key FILE`"


def new_key(path: Path) -> Path:
    """Make a pair of keys: the private one here, for its owner alone, the public one beside it."""
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key, public = Ed25519PrivateKey.generate(), path.with_name(path.name + PUBLIC)
    own = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    told = key.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
    for file, mode, content in ((path, 0o600, own), (public, 0o644, told)):
        try:
            number = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        except FileExistsError:
            refuse(file, "there is a file already", "Name another file: no key is overwritten")
        except OSError as error:
            refuse(file, f"cannot be written ({error.strerror})", "Name another file")
        with os.fdopen(number, "wb") as written:
            written.write(content)
    return public


def sign_folder(folder: Path, key: Path) -> Path:
    """Put a signature of all that a plan folder says beside its plan.json."""
    private = read_private(key)
    told = {
        "algorithm": "ed25519",
        "key": fingerprint(private.public_key()),
        "signature": b64encode(private.sign(digest_of(folder))).decode(),
    }
    write_whole(folder / SIGNATURE, json.dumps(told, indent=2) + "\n")
    return folder / SIGNATURE


def unsigned(folder: Path, key: Path) -> str | None:
    """Why a plan folder is not what the owner of a public key signed; None if it is."""
    from cryptography.exceptions import InvalidSignature

    public = read_public(key)
    if not (folder / SIGNATURE).is_file():
        return "it has no signature"
    try:
        told = json.loads(read_small(folder / SIGNATURE, NEW))
        owner, signature = str(told["key"]), b64decode(told["signature"], validate=True)
    except (ValueError, KeyError, TypeError):
        return f"{SIGNATURE} is no signature"
    if owner != fingerprint(public):
        return f"it was signed by another key ({owner[:16]})"
    try:
        public.verify(signature, digest_of(folder))
    except InvalidSignature:
        return "it is not as it was signed"
    return None


def digest_of(folder: Path) -> bytes:
    """What is signed: the names and the SHA-256 of plan.json and of all tables."""
    lines = ["fanplan plan"]
    for path in (folder / RECORD, *sorted(folder.glob("*.parquet"))):
        with path.open("rb") as file:
            lines.append(f"{hashlib.file_digest(file, 'sha256').hexdigest()} {path.name}")
    return "\n".join(lines).encode()


def fingerprint(public: Ed25519PublicKey) -> str:
    return hashlib.sha256(public.public_bytes_raw()).hexdigest()


def read_private(path: Path) -> Ed25519PrivateKey:
    """A private key that nobody but its owner can read."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    content = read_small(path, NEW)
    if b"PUBLIC KEY" in content:
        refuse(path, "is a public key", "Sign with the private key")
    require_private(path, "private key")
    try:
        found = load_pem_private_key(content, password=None)
    except TypeError:
        refuse(path, "is behind a password", "Give a key without one")
    except (ValueError, UnsupportedAlgorithm):
        refuse(path, "is no private key in PEM", NEW)
    if not isinstance(found, Ed25519PrivateKey):
        refuse(path, "is a key of another kind than Ed25519", NEW)
    return found


def read_public(path: Path) -> Ed25519PublicKey:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    content = read_small(path, NEW)
    if b"PRIVATE KEY" in content:
        refuse(path, "is a private key", f"Give the public one, which ends in {PUBLIC}")
    try:
        found = load_pem_public_key(content)
    except (ValueError, UnsupportedAlgorithm):
        refuse(path, "is no public key in PEM", NEW)
    if not isinstance(found, Ed25519PublicKey):
        refuse(path, "is a key of another kind than Ed25519", NEW)
    return found
