"""The secret that a standalone cluster shares with all who may use it.

Its master and workers have it already, so a run cannot make one up. The user keeps it in a file and
names that file in the environment: it is on no command line and in no table or message.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from py4j.protocol import Py4JError

from fanplan.core.errors import InputError, Problem
from fanplan.core.files import read_small, refuse, require_private

SECRET_FILE = "FANPLAN_SPARK_SECRET_FILE"
STANDALONE = "spark://"
WORD = re.compile(rb"[!-~]{16,}")
ASKED = {"spark.rpc.lookupTimeout": "20s", "spark.rpc.askTimeout": "20s"}


def secret_conf(master: str | None) -> dict[str, str]:
    """Settings with the secret of a standalone cluster, if a file with it is named."""
    named = os.environ.get(SECRET_FILE)
    if not named or not (master or "").startswith(STANDALONE):
        return {}
    path = Path(named)
    word = read_small(path, f"Correct {SECRET_FILE}").strip()
    require_private(path, "secret")
    if not WORD.fullmatch(word):
        what = "is not a secret, which is one word of at least 16 letters, digits and signs"
        refuse(path, what, "Make one with `openssl rand -hex 32`, the same on all its machines")
    return {"spark.authenticate": "true", "spark.authenticate.secret": word.decode()}


def require_accepted(jvm: Any, master: str, settings: Mapping[str, str]) -> None:
    """Ask the masters before a session does, which would try for minutes and not say why."""
    conf = jvm.org.apache.spark.SparkConf(False)
    for name, value in (*settings.items(), *ASKED.items()):
        conf.set(name, value)
    # Spark logs the refusal with its stack; here it is told in a sentence.
    level = jvm.org.apache.logging.log4j.Level
    set_level = jvm.org.apache.logging.log4j.core.config.Configurator.setLevel
    set_level("org.apache.spark.network", level.OFF)
    try:
        accepted = any(master_answers(jvm, conf, host) for host in hosts_of(master))
    finally:
        set_level("org.apache.spark.network", level.FATAL)
    if not accepted:
        what = "the master does not take this driver: it knows another secret, or another Spark"
        remedy = f"Name a file with the cluster's secret in {SECRET_FILE}, and use its Spark"
        raise InputError(Problem(master, what, remedy))


def hosts_of(master: str) -> list[tuple[str, int]]:
    places = [urlsplit(f"//{host}") for host in master.removeprefix(STANDALONE).split(",")]
    return [(place.hostname or "", place.port or 7077) for place in places]


def master_answers(jvm: Any, conf: Any, host: tuple[str, int]) -> bool:
    """Whether a master speaks to who has these settings."""
    spark = jvm.org.apache.spark
    files = getattr(spark.SecurityManager, "$lessinit$greater$default$3")()
    manager = spark.SecurityManager(conf, jvm.scala.Option.empty(), files)
    asking = spark.rpc.RpcEnv.create("asking", "127.0.0.1", 0, conf, manager, True)
    try:
        asking.setupEndpointRef(spark.rpc.RpcAddress(*host), "Master")
    except Py4JError:
        return False
    finally:
        asking.shutdown()
    return True
