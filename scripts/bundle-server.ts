/**
 * Bundles the reference server for `npm start`, and notes when each file that it is
 * made of was changed last.
 */
import { readdirSync, rmSync, statSync } from "node:fs"
import { basename, join } from "node:path"
import { bundle, replaceFile } from "./Bundle.ts"
import { root } from "./Workspace.ts"

const begun = Date.now()
const directory = join(root, "packages/server/.start")

const { inputs, outputs } = await bundle(".start", { "server/main": "server/src/main.ts" })
const sources = [
  ...inputs.filter((file) => !file.startsWith("node_modules/")),
  "scripts/Bundle.ts",
  "scripts/bundle-server.ts",
  // What it takes from other packages changes when they are installed.
  "node_modules/.package-lock.json"
]
// A file that has changed since then may be in the bundle as it was before: the next start makes it anew.
const changed = (file: string): number => Math.min(statSync(join(root, file)).mtimeMs, begun)
const noted = "inputs.json"
await replaceFile(
  join(directory, noted),
  JSON.stringify(Object.fromEntries(sources.map((file) => [file, changed(file)])))
)

const made = new Set([noted, ...outputs.map((file) => basename(file))])
for (const file of readdirSync(directory)) {
  if (file.endsWith(".js") && !made.has(file)) rmSync(join(directory, file), { force: true })
}
