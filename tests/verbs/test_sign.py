"""A plan that one person approved is the plan that another applies."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from commands import answer, run
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from forged_worlds import channels
from forging import forge

import fanplan
from fanplan.core.errors import CheckError, InputError
from fanplan.data.engine import EMBEDDED
from fanplan.plan.signature import digest_of
from fanplan.verbs.export import checked_plan


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return channels(tmp_path_factory.mktemp("signed"))


@pytest.fixture
def plan(made: tuple[Path, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(made[0], tmp_path / "plan"))


@pytest.fixture
def dataset(made: tuple[Path, Path]) -> fanplan.Dataset:
    return fanplan.open_dataset(made[1])


@pytest.fixture
def key(tmp_path: Path) -> Path:
    assert fanplan.new_key(tmp_path / "key") == tmp_path / "key.pub"
    return tmp_path / "key"


def public(key: Path) -> Path:
    return key.with_name(key.name + ".pub")


def test_a_signed_plan_holds_with_its_key(plan: Path, dataset: fanplan.Dataset, key: Path) -> None:
    assert key.stat().st_mode & 0o777 == 0o600
    signature = fanplan.sign(plan, key)
    assert json.loads(signature.read_text())["algorithm"] == "ed25519"
    assert fanplan.check(plan, dataset, key=public(key)).ok
    assert fanplan.apply_check(plan, dataset, key=public(key)).ok
    assert checked_plan(plan, dataset, EMBEDDED, public(key)).folder == plan


def test_a_plan_without_a_signature_is_refused(
    plan: Path, dataset: fanplan.Dataset, key: Path, tmp_path: Path
) -> None:
    assert fanplan.check(plan, dataset).ok
    found = fanplan.check(plan, dataset, key=public(key))
    assert found.violations == ("signature: it has no signature",)
    verdict = fanplan.apply_check(plan, dataset, key=public(key))
    assert (verdict.ok, verdict.refusals) == (False, ("signature: it has no signature",))
    with pytest.raises(CheckError, match="it has no signature"):
        fanplan.export(plan, dataset, "multicast", tmp_path / "out", key=public(key))
    assert not (tmp_path / "out").exists()


def test_another_key_is_not_this_one(
    plan: Path, dataset: fanplan.Dataset, key: Path, tmp_path: Path
) -> None:
    fanplan.sign(plan, key)
    other = fanplan.new_key(tmp_path / "other")
    (found,) = fanplan.check(plan, dataset, key=other).violations
    assert found.startswith("signature: it was signed by another key (")
    # The name of the key can be forged, its signature cannot.
    told = json.loads((plan / "plan.sig").read_text())
    fanplan.sign(plan, tmp_path / "other")
    mixed = json.loads((plan / "plan.sig").read_text()) | {"signature": told["signature"]}
    (plan / "plan.sig").write_text(json.dumps(mixed))
    (found,) = fanplan.check(plan, dataset, key=other).violations
    assert found == "signature: it is not as it was signed"


def test_sealing_again_does_not_help(plan: Path, dataset: fanplan.Dataset, key: Path) -> None:
    """The seed is a claim that the check cannot prove: only the signature tells."""
    fanplan.sign(plan, key)
    forge(plan, "seed", to=7)
    assert fanplan.check(plan, dataset).ok
    found = fanplan.check(plan, dataset, key=public(key)).violations
    assert found == ("signature: it is not as it was signed",)


def test_every_file_is_signed(plan: Path) -> None:
    before = digest_of(plan)
    for path in sorted(plan.iterdir()):
        content = path.read_bytes()
        path.write_bytes(content + b"\n")
        assert digest_of(plan) != before, path.name
        path.write_bytes(content)
    shutil.copy(plan / "unicast.parquet", plan / "more.parquet")
    assert digest_of(plan) != before


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"key": 1, "signature": "?"}', "\0"])
def test_what_is_no_signature_is_refused(
    plan: Path, dataset: fanplan.Dataset, key: Path, text: str
) -> None:
    (plan / "plan.sig").write_text(text)
    found = fanplan.check(plan, dataset, key=public(key)).violations
    assert found == ("signature: plan.sig is no signature",)


def test_an_edited_plan_is_not_signed(plan: Path, key: Path) -> None:
    (plan / "unicast.parquet").write_bytes(b"")
    with pytest.raises(InputError, match="edited since it was written"):
        fanplan.sign(plan, key)
    assert not (plan / "plan.sig").exists()


def other_kind(path: Path) -> None:
    key = X25519PrivateKey.generate()
    own = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    path.write_bytes(own)
    path.chmod(0o600)
    told = key.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
    public(path).write_bytes(told)


def test_keys_that_cannot_sign_are_named(plan: Path, key: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("no key")
    wrong.chmod(0o600)
    other_kind(tmp_path / "other")
    for path, told in (
        (wrong, "is no private key"),
        (tmp_path / "none", "there is no such file"),
        (tmp_path, "there is no such file"),
        (public(key), "is a public key"),
        (tmp_path / "other", "another kind than Ed25519"),
    ):
        with pytest.raises(InputError, match=told):
            fanplan.sign(plan, path)
    key.chmod(0o644)
    with pytest.raises(InputError, match="others can read this private key"):
        fanplan.sign(plan, key)


def test_keys_that_cannot_verify_are_named(
    plan: Path, dataset: fanplan.Dataset, key: Path, tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("no key")
    other_kind(tmp_path / "other")
    for path, told in (
        (wrong, "is no public key"),
        (tmp_path / "none", "there is no such file"),
        (key, "is a private key"),
        (tmp_path / "other.pub", "another kind than Ed25519"),
    ):
        with pytest.raises(InputError, match=told):
            fanplan.check(plan, dataset, key=path)


def test_no_key_is_overwritten(key: Path) -> None:
    before = key.read_bytes()
    with pytest.raises(InputError, match="there is a file already"):
        fanplan.new_key(key)
    assert key.read_bytes() == before


def test_sign_as_a_user_runs_it(
    plan: Path, made: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "mine"
    code, told = answer(capsys, "sign", plan, "--new-key", own)
    assert (code, told["public"], os.path.basename(told["signature"])) == (
        0,
        f"{own}.pub",
        "plan.sig",
    )
    assert run("sign", plan, "--key", own) == 0
    assert "Signed: " in capsys.readouterr().out
    assert run("check", plan, made[1], "--key", f"{own}.pub") == 0
    assert "Stated, not proved by tables: version, seed" in capsys.readouterr().out
    (plan / "plan.sig").unlink()
    assert run("check", plan, made[1], "--key", f"{own}.pub") == 1
    assert "signature: it has no signature" in capsys.readouterr().out
    assert run("sign", plan) == 2
    assert "nothing to sign with" in capsys.readouterr().err


# ---- planning again


def test_planning_again_proves_method_and_seed(
    plan: Path, made: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    code, told = answer(capsys, "check", plan, made[1], "--replan")
    assert (code, told["ok"], told["stated"]) == (0, True, [])
    forge(plan, "channels", "params", "options", to={"swaps": 3})
    assert fanplan.check(plan, fanplan.open_dataset(made[1])).ok
    code, told = answer(capsys, "check", plan, made[1], "--replan")
    assert code == 1
    assert told["violations"] == ["planned again, it differs (1): channels"]


def test_a_plan_of_another_version_is_not_planned_again(
    plan: Path, dataset: fanplan.Dataset
) -> None:
    forge(plan, "version", to="0.0.1")
    with pytest.raises(InputError, match=r"was made by version 0\.0\.1"):
        fanplan.replan(plan, dataset)
