import { assert, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"

const page = fileURLToPath(new URL("../../../docs/security.md", import.meta.url))

/** The tests that a page links to: the text of each link is the name of a test in that file. */
const linkedTests = (text: string) =>
  Array.from(text.matchAll(/\[([^\]]+)\]\(([^)]+\.ts)\)/g), ([, name, file]) => ({ name: name!, file: file! }))

it("each promise of the security page names a test that exists", () => {
  const linked = linkedTests(readFileSync(page, "utf8"))
  assert.isAbove(linked.length, 20)
  const missing = linked.filter(({ file, name }) =>
    !readFileSync(new URL(file, new URL(`file://${page}`)), "utf8").includes(`"${name}"`)
  )
  assert.deepStrictEqual(missing, [])
})
