"""Debian's packages that tests use, installed where that is allowed.

Run as a program it installs those of systems that plans are tried on; without them these tests are
skipped, and say so.
"""

from __future__ import annotations

import os
import shutil
import subprocess

SYSTEMS = {"mosquitto": "mosquitto", "ip": "iproute2"}
"""Programs, and the packages that have them."""


def debian(*packages: str) -> list[list[str]]:
    """Commands that install packages; all must succeed."""
    apt = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"]
    root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    install = ["install", "--yes", "--no-install-recommends", *packages]
    return [[*root, *apt, "update"], [*root, *apt, *install]]


def succeeded(command: list[str]) -> bool:
    print("$", *command, flush=True)
    try:
        return subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode == 0
    except OSError:
        return False


def main() -> None:
    missing = [package for program, package in SYSTEMS.items() if not shutil.which(program)]
    if missing and shutil.which("apt-get"):
        print("Installing what tests of systems run on", flush=True)
        all(map(succeeded, debian(*missing)))


if __name__ == "__main__":
    main()
