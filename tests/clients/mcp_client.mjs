// The official TypeScript SDKs of the Model Context Protocol against `sextant mcp` and `sextant serve`, unchanged: the one of the revisions with a handshake,
// and the one of the current revision.
//
// Usage: node mcp_client.mjs PROGRAM, where both packages are installed. The SDKs check each structured answer against the output schema
// of its tool.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

// The packages are where this is run, and not where this file is.
const require = createRequire(join(process.cwd(), "package.json"));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);

const TOOLS = ["explore", "symbols", "relations", "tests", "read", "changes", "status", "sync"];
const program = resolve(process.argv[2]);

const text = (result) => result.content.map((block) => block.text).join("");
const names = (result) => result.structuredContent.items.map((item) => item.qualified_name ?? item.path);

async function converse(client) {
  assert.equal(client.getServerVersion()?.name ?? "sextant", "sextant");
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map((tool) => tool.name), TOOLS);

  const call = (name, args) => client.callTool({ name, arguments: args });
  const offered = await call("explore", { query: "f" });
  assert.ok(!offered.isError && text(offered).includes("sync"), text(offered));
  assert.equal(offered.structuredContent.error.code, "code_index_missing");

  const told = [];
  const sync = { name: "sync", arguments: {} };
  const built = await client.callTool(sync, ...options({ onprogress: (progress) => told.push(progress) }, client));
  assert.equal(built.structuredContent.files, 2);
  assert.ok(told.length >= 1, "progress of a sync");

  const found = await call("explore", { query: "f" });
  assert.deepEqual(names(found), ["f", "g"]);
  assert.match(text(found), /lib\.py:1 function lib\.f[^]*fresh/);
  assert.deepEqual(names(await call("relations", { symbol: "f", relation: "callers" })), ["g"]);
  assert.equal((await call("status", {})).structuredContent.status, "ready");
  const unfit = await call("explore", { question: "f" });
  assert.ok(unfit.isError && text(unfit).includes("`query`"), text(unfit));
  await assert.rejects(call("grep", {}), /explore, symbols/);

  const several = await Promise.all([..."fgfgfgfgfg"].map((query) => call("symbols", { query })));
  several.forEach((answer, turn) => assert.ok(names(answer).includes("fg"[turn % 2])));
}

// The older SDK takes the schema of the result before the options.
const options = (given, client) => (client.takesSchema ? [undefined, given] : [given]);

async function inTree(name, connect) {
  const place = realpathSync(mkdtempSync(join(tmpdir(), "sextant-client-")));
  try {
    for (const part of ["home", "cache", "tree"]) mkdirSync(join(place, part));
    writeFileSync(join(place, "tree", "lib.py"), "def f():\n    return 1\n");
    writeFileSync(join(place, "tree", "use.py"), "from lib import f\n\n\ndef g():\n    return f()\n");
    const env = {
      HOME: join(place, "home"),
      XDG_CACHE_HOME: join(place, "cache"),
      XDG_RUNTIME_DIR: join(place, "home"),
      PATH: process.env.PATH,
    };
    const client = await connect({ command: program, args: ["mcp", "--no-daemon"], env, cwd: join(place, "tree") });
    await converse(client);
    await client.close();
    console.log(`typescript ${name}: ok`);
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

async function overHttp(name, connect) {
  const place = realpathSync(mkdtempSync(join(tmpdir(), "sextant-client-")));
  for (const part of ["home", "cache", "tree"]) mkdirSync(join(place, part));
  writeFileSync(join(place, "tree", "lib.py"), "def f():\n    return 1\n");
  const env = { HOME: join(place, "home"), XDG_CACHE_HOME: join(place, "cache"), PATH: process.env.PATH };
  const given = { env, cwd: join(place, "tree"), stdio: ["ignore", "pipe", "ignore"] };
  execFileSync(program, ["index", "--quiet", "--no-daemon"], given);
  const server = spawn(program, ["serve", "--json", "--http", "127.0.0.1:0"], given);
  try {
    const [line] = await once(createInterface(server.stdout), "line");
    const client = await connect(new URL(`http://${JSON.parse(line).address}/mcp`));
    assert.deepEqual((await client.listTools()).tools.map((tool) => tool.name), TOOLS);
    assert.deepEqual(names(await client.callTool({ name: "explore", arguments: { query: "f" } })), ["f"]);
    const refused = await client.callTool({ name: "sync", arguments: {} });
    assert.ok(refused.isError && refused.structuredContent.error.code === "forbidden");
    await client.close();
    console.log(`typescript ${name}: ok`);
  } finally {
    server.kill();
    rmSync(place, { recursive: true, force: true });
  }
}

for (const mode of ["auto", "legacy", { pin: "2026-07-28" }]) {
  await inTree(`client over stdio, ${mode.pin ?? mode}`, async (server) => {
    const { Client } = await load("@modelcontextprotocol/client");
    const { StdioClientTransport } = await load("@modelcontextprotocol/client/stdio");
    const client = new Client({ name: "test", version: "0" }, { versionNegotiation: { mode } });
    await client.connect(new StdioClientTransport(server));
    return client;
  });
}

await overHttp("client over http, auto", async (url) => {
  const { Client, StreamableHTTPClientTransport } = await load("@modelcontextprotocol/client");
  const client = new Client({ name: "test", version: "0" }, { versionNegotiation: { mode: "auto" } });
  await client.connect(new StreamableHTTPClientTransport(url));
  return client;
});

await overHttp("sdk over http", async (url) => {
  const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
  const { StreamableHTTPClientTransport } = await load("@modelcontextprotocol/sdk/client/streamableHttp.js");
  const client = new Client({ name: "test", version: "0" });
  await client.connect(new StreamableHTTPClientTransport(url));
  return client;
});

await inTree("sdk over stdio", async (server) => {
  const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
  const { StdioClientTransport } = await load("@modelcontextprotocol/sdk/client/stdio.js");
  const client = new Client({ name: "test", version: "0" });
  client.takesSchema = true;
  await client.connect(new StdioClientTransport(server));
  return client;
});
