import { assert, it } from "@effect/vitest"
import { crc16 } from "../src/Crc16.ts"

it("the checksum of a block is CRC-16/ARC", () => {
  assert.strictEqual(crc16(Buffer.from("123456789")), 0xbb3d)
  assert.strictEqual(crc16(new Uint8Array()), 0)
})
