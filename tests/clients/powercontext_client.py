"""The Python client of PowerContext, unchanged, against `sextant serve`: answers, statuses and errors.

Run by .ci/run with the path of the program. Needs `powercontext[client]`, `jsonschema` and `openapi-spec-validator`. Everything it makes is
in a temporary folder.
"""

import asyncio
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

import jsonschema
from openapi_spec_validator import validate
from powercontext.client import (
    ForbiddenResponseError,
    PowerContextClient,
    ServerResponseError,
    UnauthorizedResponseError,
    UnavailableResponseError,
)
from powercontext.client.client import CodeQueryRequest

PROGRAM = str(pathlib.Path(sys.argv[1]).resolve())
NOBODY = "0" * 64


def make_tree(folder: pathlib.Path) -> dict[str, str]:
    """Makes a repository with two indexes, and the configuration; returns the environment of the programs."""
    tree, home = folder / "tree", folder / "home"
    (tree / "tests").mkdir(parents=True)
    home.mkdir()
    (tree / "lib.py").write_text("def f(x):\n    return x * 2\n")
    (tree / "use.py").write_text("from lib import f\n\n\ndef g():\n    return f(1)\n")
    (tree / "tests" / "test_lib.py").write_text("from lib import f\n\n\ndef test_f():\n    assert f(1) == 2\n")
    rights = {"owner": '["scope.read", "code.manage"]', "reader": '["scope.read"]'}
    config = f"[scopes.demo]\nroot = {json.dumps(str(tree))}\n[scopes.gone]\nroot = \"/nonexistent/nowhere\"\n"
    for name, allowed in rights.items():
        digest = hashlib.sha256(name.encode()).hexdigest()
        scopes = '["*"]' if name == "owner" else '["demo"]'
        config += f'[[http.tokens]]\nname = "{name}"\nsha256 = "{digest}"\nscopes = {scopes}\nrights = {allowed}\n'
    (folder / "sextant.toml").write_text(config)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "SEXTANT_CONFIG": str(folder / "sextant.toml"),
        "SEXTANT_NO_DAEMON": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
    }
    who = ["-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "init.defaultBranch=main"]
    for arguments in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "first"]):
        subprocess.run(["git", *who, *arguments], cwd=tree, env=environment, check=True)
    return environment


def refused(error: ServerResponseError, status: int, code: str) -> None:
    assert (error.status_code, error.code) == (status, code), error
    assert error.request_id, error
    assert "nonexistent" not in str(error), error


async def main(folder: pathlib.Path) -> None:
    environment = make_tree(folder)
    tree = folder / "tree"
    command = [PROGRAM, "serve", "--json", "--http", "127.0.0.1:0"]
    service = subprocess.Popen(command, cwd=tree, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        address = json.loads(service.stdout.readline())["address"]
        await converse(f"http://{address}", tree, environment)
    finally:
        service.terminate()
        assert service.wait(timeout=30) == 0, "it ends in order"


async def converse(url: str, tree: pathlib.Path, environment: dict[str, str]) -> None:
    owner, reader = PowerContextClient(url, token="owner"), PowerContextClient(url, token="reader")
    asked = 0

    async def ask(operation: dict, client=owner, scope="demo", **more):
        nonlocal asked
        asked += 1
        request = CodeQueryRequest.model_validate({"operation": operation, **more})
        answer = await client.query_code(scope, request)
        return answer.model_dump(mode="json", by_alias=True)

    async def fails(status: int, code: str, operation: dict, kind=ServerResponseError, **more) -> None:
        try:
            await ask(operation, **more)
        except kind as error:
            refused(error, status, code)
        else:
            raise AssertionError(f"{operation} was answered, and not refused as {code}")

    def sync() -> None:
        subprocess.run([PROGRAM, "sync", "--quiet", "--scope", "demo"], cwd=tree, env=environment, check=True)

    status = await ask({"kind": "status"})
    assert (status["status"], status["reason"]) == ("missing", "code_index_missing"), status
    await fails(503, "code_index_missing", {"kind": "map"}, kind=UnavailableResponseError)
    sync()
    (tree / "use.py").write_text("from lib import f\n\n\ndef g():\n    return f(3)\n")
    await fails(409, "code_changed", {"kind": "map"})
    sync()

    status = await ask({"kind": "status"})
    assert (status["status"], status["freshness"]) == ("ready", "fresh"), status
    now = status["fingerprint"]
    symbols = await ask({"kind": "symbols", "query": "f"}, client=reader)
    assert symbols["items"][0]["qualified_name"] == "f" and symbols["fingerprint"] == now, symbols
    symbol, digest = symbols["items"][0]["id"], symbols["items"][0]["file_sha256"]
    assert (await ask({"kind": "map", "path_prefix": "tests"}))["items"]
    assert (await ask({"kind": "explore", "query": "f"}, max_bytes=4000))["items"]
    callers = await ask({"kind": "callers", "symbol_id": symbol}, expected_fingerprint=now)
    assert {item["qualified_name"] for item in callers["items"]} == {"g", "test_f"}, callers
    assert (await ask({"kind": "callees", "symbol_id": symbol}, expected_fingerprint=now))["items"] == []
    assert (await ask({"kind": "impact", "symbol_id": symbol, "depth": 3}, expected_fingerprint=now))["items"]
    tests = await ask({"kind": "affected_tests", "paths": ["lib.py"]}, expected_fingerprint=now)
    assert tests["items"][0]["path"] == "tests/test_lib.py", tests
    lines = {"kind": "read", "path": "lib.py", "file_sha256": digest, "start_line": 1, "end_line": 2}
    assert (await ask(lines, expected_fingerprint=now))["items"][0]["content"] == "def f(x):\n    return x * 2\n"
    changes = await ask({"kind": "changes"})
    assert [item["path"] for item in changes["items"]] == ["use.py"], changes
    before = changes["before_fingerprint"]
    paths = {"kind": "impact_changes", "paths": ["use.py"]}
    assert (await ask(paths, expected_fingerprint=now, before_fingerprint=before))["before_fingerprint"] == before

    await fails(409, "code_changed", {"kind": "map"}, expected_fingerprint=NOBODY)
    await fails(409, "baseline_unavailable", paths, expected_fingerprint=now, before_fingerprint=NOBODY)
    await fails(422, "code_target_missing", {"kind": "callers", "symbol_id": NOBODY}, expected_fingerprint=now)
    await fails(422, "code_range_missing", {**lines, "start_line": 90, "end_line": 91}, expected_fingerprint=now)
    await fails(422, "budget_too_small", {"kind": "map"}, max_bytes=512)
    await fails(403, "forbidden", {"kind": "map"}, kind=ForbiddenResponseError, client=reader, scope="gone")
    await fails(503, "repository_unavailable", {"kind": "map"}, kind=UnavailableResponseError, scope="gone")
    await fails(503, "code_repository_unconfigured", {"kind": "map"}, kind=UnavailableResponseError, scope="nosuch")
    for token in ("wrong", None):
        stranger = PowerContextClient(url, token=token)
        await fails(401, "unauthorized", {"kind": "map"}, kind=UnauthorizedResponseError, client=stranger)
    # What the client itself would not send.
    raw = CodeQueryRequest.model_construct(operation={"kind": "nosuch"}, max_bytes=16000)
    with warnings.catch_warnings():
        # The client warns of a request that its own types do not allow.
        warnings.simplefilter("ignore")
        try:
            await owner.query_code("demo", raw)
        except ServerResponseError as error:
            refused(error, 422, "invalid_request")
            assert error.details["errors"][0]["loc"] == ["body", "operation", "kind"], error.details
        else:
            raise AssertionError("what is no request was answered")
    page = await reader.list_scopes()
    assert [scope.scope_id for scope in page.items] == ["demo"], page

    await describe(url, [status, symbols, callers, tests, changes])
    print(f"the client of PowerContext: {asked} questions, each answered or refused as the contract says")


async def describe(url: str, answers: list[dict]) -> None:
    """Holds the description of the routes against its own rules, and answers against it."""
    import httpx

    async with httpx.AsyncClient(base_url=url) as plain:
        document = (await plain.get("/openapi.json")).raise_for_status().json()
        validate(document)
        path = document["paths"]["/v1/scopes/{scope_id}/code/query"]["post"]
        schema = path["responses"]["200"]["content"]["application/json"]["schema"]
        whole = {**schema, "components": document["components"]}
        form = path["requestBody"]["content"]["application/json"]["schema"]
        request = {**form, "components": document["components"]}
        headers = {"authorization": "Bearer owner"}
        bodies = [{"operation": {"kind": kind}} for kind in ("status", "map", "changes", "diagnostics")]
        bodies += [{"operation": {"kind": "explore", "query": "f"}}, {"operation": {"kind": "map", "depth": 9}}, {"operation": {}}, {}]
        for body in bodies:
            answer = await plain.post("/v1/scopes/demo/code/query", json=body, headers=headers)
            fits = jsonschema.Draft202012Validator(request).is_valid(body)
            assert fits == (answer.status_code == 200), (body, answer.text)
            if fits:
                jsonschema.Draft202012Validator(whole).validate(answer.json())
            else:
                error = path["responses"]["422"]["content"]["application/json"]["schema"]
                jsonschema.Draft202012Validator({**error, "components": document["components"]}).validate(answer.json())
        for answer in answers:
            assert answer["schema"].startswith("powercontext.code-"), answer


with tempfile.TemporaryDirectory(prefix="sextant-client-") as place:
    asyncio.run(main(pathlib.Path(place).resolve()))
