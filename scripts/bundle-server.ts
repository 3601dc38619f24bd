/**
 * Bundles the reference server for `npm start`, and notes when each file that it is
 * made of was changed last.
 */
import { rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { bundle } from "./Bundle.ts"
import { root } from "./Workspace.ts"

const begun = Date.now()
const directory = join(root, "packages/server/.start")
rmSync(directory, { recursive: true, force: true })

const sources = (await bundle(".start", { "server/main": "server/src/main.ts" }))
  .filter((file) => !file.startsWith("node_modules/"))
const inputs = [
  ...sources,
  "scripts/Bundle.ts",
  "scripts/bundle-server.ts",
  // What it takes from other packages changes when they are installed.
  "node_modules/.package-lock.json"
]
// A file that has changed since then may be in the bundle as it was before: the next start makes it anew.
const changed = (file: string): number => Math.min(statSync(join(root, file)).mtimeMs, begun)
writeFileSync(
  join(directory, "inputs.json"),
  JSON.stringify(Object.fromEntries(inputs.map((file) => [file, changed(file)])))
)
