/**
 * `npm start`: runs the reference server from a bundle, which `npm ci` makes. Bundles
 * it again if a file that it is made of has changed.
 */
import { spawnSync } from "node:child_process"
import { readFileSync, statSync } from "node:fs"
import { fileURLToPath } from "node:url"

const root = new URL("../", import.meta.url)
const bundle = new URL("packages/server/.start/", root)

const isCurrent = () => {
  try {
    const inputs = JSON.parse(readFileSync(new URL("inputs.json", bundle), "utf8"))
    return Object.entries(inputs).every(([file, changed]) => statSync(new URL(file, root)).mtimeMs === changed)
  } catch {
    // There is no bundle, or a file has gone.
    return false
  }
}

if (!isCurrent()) {
  const { status } = spawnSync(process.execPath, ["--import", "tsx", "scripts/bundle-server.ts"], {
    cwd: fileURLToPath(root),
    // Standard output is for what the server says.
    stdio: ["ignore", 2, 2]
  })
  if (status !== 0) process.exit(1)
}
await import(new URL("main.js", bundle).href)
