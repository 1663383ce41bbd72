// Written by `sextant install opencode`; `sextant uninstall opencode` removes it.
// Tells Sextant which files a tool has edited. Nothing waits for it, and no failure of it is one of the edit.
import { spawn } from "node:child_process"

const program = PROGRAM
const editing = new Set(["edit", "write", "multiedit", "patch", "apply_patch"])

function reporter(directory) {
  let files = new Set()
  let patches = []
  let running = false

  function run() {
    if (running || (files.size === 0 && patches.length === 0)) return
    const said = JSON.stringify({ directory, files: [...files], patches })
    files = new Set()
    patches = []
    running = true
    const done = () => {
      if (!running) return
      running = false
      run()
    }
    try {
      const child = spawn(program, ["hook", "opencode"], { cwd: directory, stdio: ["pipe", "ignore", "ignore"] })
      child.on("error", done)
      child.on("close", done)
      child.stdin.on("error", () => {})
      child.stdin.end(said)
    } catch {
      running = false
    }
  }

  return {
    file(path) {
      if (typeof path !== "string") return
      files.add(path)
      run()
    },
    tool(name, input) {
      if (!editing.has(name) || typeof input !== "object" || input === null) return
      for (const key of ["filePath", "path"]) if (typeof input[key] === "string") files.add(input[key])
      for (const key of ["patchText", "patch"]) if (typeof input[key] === "string") patches.push(input[key])
      run()
    },
  }
}

export default {
  id: "sextant",
  // OpenCode 1
  async server({ directory }) {
    const report = reporter(directory)
    return {
      "tool.execute.after": async (input) => report.tool(input?.tool, input?.args),
      event: async ({ event }) => {
        if (event?.type === "file.edited") report.file(event.properties?.file)
      },
    }
  },
  // OpenCode 2
  async setup(ctx) {
    const report = reporter(ctx.location.directory)
    await ctx.tool.hook("execute.after", (event) => report.tool(event?.tool, event?.input))
  },
}
