"""The official Python SDK of the Model Context Protocol against `sextant mcp` and `sextant serve`, unchanged.

Usage: mcp_client.py PROGRAM. The SDK checks each structured answer against the output schema of its tool, and refuses the answer when it does not fit.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from mcp import Client, StdioServerParameters

TOOLS = ["explore", "symbols", "relations", "tests", "read", "changes", "status", "sync"]

FILES = {
    "lib.py": "def f():\n    return 1\n",
    "use.py": "from lib import f\n\n\ndef g():\n    return f()\n",
    "tests/test_lib.py": "from lib import f\n\n\ndef test_f():\n    assert f() == 1\n",
}


def expect(condition: bool, what: object) -> None:
    if not condition:
        raise SystemExit(f"not as expected: {what!r}")


def write(tree: Path) -> None:
    for path, text in FILES.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text)


def text_of(result) -> str:
    return "".join(block.text for block in result.content)


def names(result) -> list[str]:
    return [item.get("qualified_name", item["path"]) for item in result.structured_content["items"]]


async def converse(client: Client, is_new: bool) -> None:
    # A client that is told the revision never asks who the server is.
    expect(client.server_info is None or client.server_info.name == "sextant", client.server_info)
    tools = (await client.list_tools()).tools
    expect([tool.name for tool in tools] == TOOLS, tools)
    expect(all(tool.annotations.read_only_hint == (tool.name != "sync") for tool in tools), tools)

    if is_new:
        offered = await client.call_tool("explore", {"query": "f"})
        expect(not offered.is_error and "sync" in text_of(offered), offered)
        expect(offered.structured_content["error"]["code"] == "code_index_missing", offered)

    told = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append((done, message))

    built = await client.call_tool("sync", {}, progress_callback=progress)
    expect(built.structured_content["files"] == len(FILES), built)
    expect(len(told) >= 1, "progress of a sync")

    found = await client.call_tool("explore", {"query": "f"})
    expect(names(found)[0] == "f" and {"g", "test_f"} <= set(names(found)), found)
    expect("lib.py:1 function lib.f" in text_of(found) and "fresh" in text_of(found), found)
    expect(names(await client.call_tool("symbols", {"query": "g"})) == ["g"], "symbols")
    for relation, want in [("callers", {"g", "test_f"}), ("callees", set()), ("impact", {"g", "test_f"})]:
        related = await client.call_tool("relations", {"symbol": "lib.f", "relation": relation})
        expect(want <= set(names(related)), related)
    tests = await client.call_tool("tests", {"paths": ["lib.py"]})
    expect(text_of(tests).startswith("tests/test_lib.py\n"), tests)
    read = await client.call_tool("read", {"path": "lib.py", "start_line": 2, "end_line": 2})
    expect(read.structured_content["items"][0]["content"] == "    return 1\n", read)
    status = await client.call_tool("status", {})
    expect(status.structured_content["status"] == "ready", status)
    changes = await client.call_tool("changes", {})
    expect(not changes.is_error, changes)

    missing = await client.call_tool("relations", {"symbol": "no_such_name", "relation": "callers"})
    expect(not missing.is_error and missing.structured_content["error"]["code"] == "code_target_missing", missing)
    unfit = await client.call_tool("explore", {"question": "f"})
    expect(unfit.is_error and "`query`" in text_of(unfit), unfit)

    # Many at once: each gets its own answer.
    several = await asyncio.gather(*(client.call_tool("symbols", {"query": "fg"[turn % 2]}) for turn in range(20)))
    expect(all("fg"[turn % 2] in names(answer) for turn, answer in enumerate(several)), several)


async def over_stdio(program: str, mode: str, revision: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory).resolve()
        for part in ["home", "cache", "tree"]:
            (place / part).mkdir()
        write(place / "tree")
        environment = {
            "HOME": str(place / "home"),
            "XDG_CACHE_HOME": str(place / "cache"),
            "XDG_RUNTIME_DIR": str(place / "home"),
            "PATH": os.environ["PATH"],
        }
        server = StdioServerParameters(
            command=program, args=["mcp", "--no-daemon"], env=environment, cwd=str(place / "tree")
        )
        async with Client(server, mode=mode) as client:
            expect(str(client.protocol_version) == revision, client.protocol_version)
            await converse(client, is_new=True)
    print(f"python sdk over stdio, {mode}, {revision}: ok")


async def over_http(program: str, mode: str, revision: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory).resolve()
        for part in ["home", "cache", "tree"]:
            (place / part).mkdir()
        write(place / "tree")
        environment = {"HOME": str(place / "home"), "XDG_CACHE_HOME": str(place / "cache"), "PATH": os.environ["PATH"]}
        options = {"env": environment, "cwd": place / "tree"}
        subprocess.run([program, "index", "--quiet", "--no-daemon"], check=True, **options)
        serve = [program, "serve", "--json", "--http", "127.0.0.1:0"]
        with subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **options) as server:
            try:
                address = json.loads(server.stdout.readline())["address"]
                async with Client(f"http://{address}/mcp", mode=mode) as client:
                    expect(str(client.protocol_version) == revision, client.protocol_version)
                    expect([tool.name for tool in (await client.list_tools()).tools] == TOOLS, "tools")
                    found = await client.call_tool("explore", {"query": "f"})
                    expect(names(found)[0] == "f" and {"g", "test_f"} <= set(names(found)), found)
                    # Without tokens whoever reaches the loopback may read, and nobody may sync.
                    refused = await client.call_tool("sync", {})
                    expect(refused.is_error and refused.structured_content["error"]["code"] == "forbidden", refused)
            finally:
                server.terminate()
    print(f"python sdk over http, {mode}, {revision}: ok")


async def main() -> None:
    program = str(Path(sys.argv[1]).resolve())
    await over_http(program, "auto", "2026-07-28")
    await over_http(program, "legacy", "2025-11-25")
    await over_stdio(program, "auto", "2026-07-28")
    await over_stdio(program, "2026-07-28", "2026-07-28")
    await over_stdio(program, "legacy", "2025-11-25")


asyncio.run(main())
