import { assert, it } from "@effect/vitest"
import { ChurnMap } from "../src/kernel/ChurnMap.ts"

it("holds what was set last and not deleted since, whatever the key", () => {
  const map = new ChurnMap<string, { readonly n: number }>()
  for (const key of ["__proto__", "constructor", "7", "device"]) {
    assert.isUndefined(map.get(key))
    map.set(key, { n: 1 })
    map.set(key, { n: 2 })
    assert.deepStrictEqual(map.get(key), { n: 2 })
  }
  assert.strictEqual(map.size, 4)
  map.delete("7")
  map.delete("7")
  map.delete("never set")
  assert.isUndefined(map.get("7"))
  assert.strictEqual(map.size, 3)
  assert.deepStrictEqual(map.values(), [{ n: 2 }, { n: 2 }, { n: 2 }])
})
