import { DeviceCloud } from "@device-cloud/core"
import { assert, it } from "@effect/vitest"
import { readFileSync } from "node:fs"

const page = readFileSync(new URL("../../../docs/adapters.md", import.meta.url), "utf8")

/** The ports that the first column of the table under a heading names, in the order of the alphabet. */
const portsUnder = (heading: string) => {
  const [section = ""] = page.slice(page.indexOf(`\n${heading}\n`) + heading.length + 2).split(/^#/m)
  const cells = Array.from(section.matchAll(/^\| ([^|]*) \|/gm), ([, cell]) => cell!)
  return cells.flatMap((cell) => Array.from(cell.matchAll(/`(\w+)`/g), ([, name]) => name!)).toSorted()
}

const stores = DeviceCloud.stores.map(({ key }) => key.slice(key.lastIndexOf("/") + 1))

it("the page on adapters names each store once, and says once how it is replaced", () => {
  assert.includeMembers(portsUnder("## Ports"), stores)
  assert.deepStrictEqual(
    portsUnder("### Which stores can be replaced alone"),
    [...stores, "ObjectStore", "StoreHealth"].toSorted()
  )
})
