/**
 * `npm start`: the bundle that it runs is that of the source.
 */
import { assert, beforeEach, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const repository = fileURLToPath(new URL("../../../", import.meta.url))

/** Bundles `source.txt` into a program that prints it. */
const bundler = `
import { readFileSync, statSync, writeFileSync } from "node:fs"
const bundle = "packages/server/.start/"
writeFileSync(bundle + "main.js", "console.log(" + JSON.stringify(readFileSync("source.txt", "utf8")) + ")")
writeFileSync(bundle + "inputs.json", JSON.stringify({ "source.txt": statSync("source.txt").mtimeMs }))
`

let root = ""

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "device-cloud-start-"))
  mkdirSync(join(root, "packages/server/.start"), { recursive: true })
  mkdirSync(join(root, "scripts"))
  symlinkSync(join(repository, "node_modules"), join(root, "node_modules"))
  cpSync(join(repository, "scripts/start.js"), join(root, "scripts/start.js"))
  writeFileSync(join(root, "scripts/bundle-server.ts"), bundler)
  return () => rmSync(root, { recursive: true })
})

const write = (file: string, text: string) => writeFileSync(join(root, file), text)

const start = () => {
  const { status, stdout } = spawnSync(process.execPath, [join(root, "scripts/start.js")], { encoding: "utf8" })
  return { status, said: stdout.trim() }
}

it("bundles the server where that was not done, and again when a source has changed", () => {
  write("source.txt", "as it was")
  assert.deepStrictEqual(start(), { status: 0, said: "as it was" })

  write("packages/server/.start/main.js", `console.log("bundled before")`)
  assert.deepStrictEqual(start(), { status: 0, said: "bundled before" })

  write("source.txt", "as it is")
  utimesSync(join(root, "source.txt"), 1, 1)
  assert.deepStrictEqual(start(), { status: 0, said: "as it is" })
})

it("runs no former bundle when the source cannot be bundled", () => {
  write("source.txt", "as it was")
  start()
  rmSync(join(root, "source.txt"))
  assert.deepStrictEqual(start(), { status: 1, said: "" })
})
