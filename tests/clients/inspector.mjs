// The Inspector of the Model Context Protocol, without its pages, against `sextant mcp` and `sextant serve`, unchanged. Each question is a
// process of its own, which connects, asks and goes.
//
// Usage: node inspector.mjs PROGRAM, where the package is installed. It is the last release for Node.js 20; later ones want 22.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";

const TOOLS = ["explore", "symbols", "relations", "tests", "read", "changes", "status", "sync"];
const program = resolve(process.argv[2]);
const inspector = join(process.cwd(), "node_modules/@modelcontextprotocol/inspector/cli/build/cli.js");

const place = realpathSync(mkdtempSync(join(tmpdir(), "sextant-inspector-")));
for (const part of ["home", "cache", "tree"]) mkdirSync(join(place, part));
writeFileSync(join(place, "tree", "lib.py"), "def f():\n    return 1\n");
writeFileSync(join(place, "tree", "use.py"), "from lib import f\n\n\ndef g():\n    return f()\n");
const env = { HOME: join(place, "home"), XDG_CACHE_HOME: join(place, "cache"), XDG_RUNTIME_DIR: join(place, "home"), PATH: process.env.PATH };
const given = { env, cwd: join(place, "tree") };

function ask(server, method, ...more) {
  const line = [inspector, "--cli", ...server, "--method", method, ...more];
  return JSON.parse(execFileSync(process.execPath, line, { ...given, timeout: 60_000, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] }));
}

const call = (server, tool, ...given) =>
  ask(server, "tools/call", "--tool-name", tool, ...given.flatMap((argument) => ["--tool-arg", argument]));
const names = (result) => result.structuredContent.items.map((item) => item.qualified_name ?? item.path);

let serving;
try {
  const stdio = [program, "mcp", "--no-daemon"];
  assert.deepEqual(ask(stdio, "tools/list").tools.map((tool) => tool.name), TOOLS);
  assert.equal(call(stdio, "explore", "query=f").structuredContent.error.code, "code_index_missing");
  assert.equal(call(stdio, "sync").structuredContent.files, 2);
  assert.deepEqual(names(call(stdio, "relations", "symbol=f", "relation=callers")), ["g"]);
  const unfit = call(stdio, "symbols", "query=f", "limit=0");
  assert.ok(unfit.isError && unfit.structuredContent.error.code === "invalid_code_request");
  console.log("inspector over stdio: ok");

  serving = spawn(program, ["serve", "--json", "--http", "127.0.0.1:0"], { ...given, stdio: ["ignore", "pipe", "ignore"] });
  const [line] = await once(createInterface(serving.stdout), "line");
  const http = [`http://${JSON.parse(line).address}/mcp`, "--transport", "http"];
  assert.deepEqual(ask(http, "tools/list").tools.map((tool) => tool.name), TOOLS);
  assert.deepEqual(names(call(http, "symbols", "query=g")), ["g"]);
  assert.equal(call(http, "sync").structuredContent.error.code, "forbidden");
  console.log("inspector over http: ok");
} finally {
  serving?.kill();
  rmSync(place, { recursive: true, force: true });
}
