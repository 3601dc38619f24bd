import { CodecDescription, type CodecMessage, ProductCodec } from "@device-cloud/core"
import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { checksumOf } from "../src/codec/Checksum.ts"

const read = Schema.decodeUnknownResult(CodecDescription, { errors: "all" })

const compile = (description: unknown) => Result.getOrThrow(ProductCodec.compile(Result.getOrThrow(read(description))))

const issuesOf = (description: unknown) =>
  Result.match(ProductCodec.compile(Result.getOrThrow(read(description))), {
    onFailure: ({ issues }) => issues.map(({ message, path }) => `${path.join(".")}: ${message}`),
    onSuccess: () => []
  })

const between = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

const hex = (text: string) => Uint8Array.from(Buffer.from(text.replaceAll(" ", ""), "hex"))
const text = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex")

/** A report of one message with these parts. */
const report = (...parts: ReadonlyArray<unknown>) =>
  compile({ reports: [{ method: "thing.event.property.post", parts }] })

const decoded = (codec: ProductCodec.ProductCodec, bytes: string) =>
  Result.getOrThrow(ProductCodec.decode(codec, "reports", hex(bytes))).params

const misfit = (codec: ProductCodec.ProductCodec, bytes: string) =>
  Result.getOrThrow(Result.flip(ProductCodec.decode(codec, "reports", hex(bytes)))).message

const encoded = (codec: ProductCodec.ProductCodec, params: CodecMessage["params"]) =>
  text(Result.getOrThrow(ProductCodec.encode(codec, "reports", { method: "thing.event.property.post", params })))

const refused = (codec: ProductCodec.ProductCodec, params: CodecMessage["params"]) =>
  Result.getOrThrow(
    Result.flip(ProductCodec.encode(codec, "reports", { method: "thing.event.property.post", params }))
  ).message

describe("the codec of a product", () => {
  it("knows the checksums that are in use", () => {
    const bytes = new TextEncoder().encode("123456789")
    const of = (algorithm: Parameters<typeof checksumOf>[0]) => checksumOf(algorithm).of(bytes, 0, bytes.length)
    // The check values of the catalogue of parametrised CRC algorithms.
    assert.deepStrictEqual(
      ([
        "crc8",
        "crc16-modbus",
        "crc16-arc",
        "crc16-ccitt",
        "crc16-xmodem",
        "crc16-kermit",
        "crc32",
        "sum8",
        "xor8"
      ] as const).map(of),
      [0xf4, 0x4b37, 0xbb3d, 0x29b1, 0x31c3, 0x2189, 0xcbf43926, 0xdd, 0x31]
    )
    assert.strictEqual(of({ width: 8, poly: 0x31, reflect: true }), 0xa1)
    assert.strictEqual(of({ width: 32, poly: 0x04c11db7, init: 0xffffffff, xor: 0xffffffff }), 0xfc891918)
    assert.strictEqual(of({ width: 16, poly: 0x8005, init: 0xffff, reflect: true, xor: 0xffff }), 0xb4c8)
  })

  it("reads and writes a response of Modbus", () => {
    const codec = report(
      { type: "constant", hex: "0103" },
      {
        type: "sized",
        size: 1,
        parts: [
          { type: "int", size: 2, scale: 0.1, to: "params.temperature" },
          { type: "uint", size: 2, scale: 0.1, to: "params.humidity" }
        ]
      },
      { type: "checksum", algorithm: "crc16-modbus", endian: "little" }
    )
    const bytes = "010304ff9b0213fb65"
    assert.deepStrictEqual(decoded(codec, bytes), { temperature: -10.1, humidity: 53.1 })
    assert.strictEqual(encoded(codec, { temperature: -10.1, humidity: 53.1 }), bytes)
    assert.match(
      misfit(codec, "010304ff9b0213fa65"),
      /^reports\[0\]\.parts\[2\]: expected the checksum 65fb, not 65fa$/
    )
    assert.match(misfit(codec, "010304ff9b"), /parts\[1\]: expected 4 bytes from byte 3 on, and there are 2/)
    assert.strictEqual(
      refused(codec, { temperature: 99_999, humidity: 1 }),
      "params.temperature: expected a number from -3276.8 to 3276.7"
    )
    assert.match(refused(codec, { humidity: 1 }), /^params\.temperature: expected a number/)
    assert.strictEqual(
      refused(codec, { temperature: 1, humidity: 1, power: 1 }),
      "params.power: no part of the description carries it"
    )
  })

  it("reads bits, labels, texts, arrays, objects, places and what is skipped", () => {
    const codec = report(
      {
        type: "bits",
        size: 2,
        endian: "little",
        fields: [
          { bit: 0, to: "params.on" },
          { bit: 1, width: 2, labels: { 0: "off", 1: "low", 2: "high" }, to: "params.fan" },
          { bit: 12, width: 4, signed: true, to: "params.trend" }
        ]
      },
      { type: "skip", size: 1 },
      { type: "text", length: 4, to: "params.name" },
      { type: "text", length: { prefix: 1 }, encoding: "hex", to: "params.key" },
      { type: "uint", size: 3, endian: "little", to: "params.position.x", at: 12 },
      { type: "object", to: "params.more", parts: [{ type: "float", size: 4, to: "deep.ratio" }] },
      {
        type: "array",
        count: { prefix: 1 },
        to: "params.points",
        of: { type: "object", parts: [{ type: "uint", size: 1, to: "a" }, { type: "value", to: "kind", value: "p" }] }
      },
      { type: "array", count: "rest", of: { type: "uint", size: 2 }, to: "params.list" },
      { type: "constant", hex: "0d0a" }
    )
    const params = {
      on: 1,
      fan: "high",
      trend: -2,
      name: "ab",
      key: "00ff",
      position: { x: 0x010203 },
      more: { deep: { ratio: 0.1 } },
      points: [{ a: 7, kind: "p" }, { a: 8, kind: "p" }],
      list: [1, 65_535]
    }
    const bytes = "05e0 00 61620000 0200ff 0000 030201 3dcccccd 02 07 08 0001ffff 0d0a".replaceAll(" ", "")
    assert.deepStrictEqual(decoded(codec, bytes), params)
    assert.strictEqual(encoded(codec, params), bytes)
    assert.strictEqual(
      refused(codec, { ...params, fan: "mid" }),
      "params.fan: expected one of \"off\", \"low\", \"high\""
    )
    assert.strictEqual(
      refused(codec, { ...params, points: [{ a: 300, kind: "p" }] }),
      "params.points[0].a: expected a number from 0 to 255"
    )
    assert.strictEqual(
      refused(codec, { ...params, points: [{ a: 3, kind: "p" }, { a: 4, kind: "p", b: 1 }] }),
      "params.points[1].b: no part of the description carries it"
    )
    assert.strictEqual(
      refused(codec, { ...params, position: { x: 1, y: 2 } }),
      "params.position.y: no part of the description carries it"
    )
  })

  it("reads numbers with sign of any size, and refuses those that are not exact", () => {
    for (const endian of ["big", "little"] as const) {
      for (const size of [1, 2, 3, 4, 5, 6, 7, 8]) {
        const codec = report({ type: "int", size, endian, to: "params.n" })
        const least = Math.max(-(2 ** (8 * size - 1)), Number.MIN_SAFE_INTEGER)
        for (const n of [-1, -2, least, least + 1, 0, 1, -1 - least]) {
          assert.deepStrictEqual(decoded(codec, encoded(codec, { n })), { n })
        }
      }
    }
    const wide = report({ type: "int", size: 7, to: "params.n" })
    for (const bytes of ["80000000000000", "dfffffffffffff", "e0000000000000", "20000000000000", "7fffffffffffff"]) {
      assert.match(misfit(wide, bytes), /expected a number below 2\^53/)
    }
  })

  it("reads entries with tags, with and without a length", () => {
    const cases = [
      { tag: 1, parts: [{ type: "int", size: 2, scale: 0.01, to: "params.temperature" }] },
      { tag: 2, parts: [{ type: "uint", size: 1, to: "params.battery" }] }
    ]
    const plain = report({ type: "choice", size: 1, repeat: true, cases }, { type: "checksum", algorithm: "sum8" })
    assert.deepStrictEqual(decoded(plain, "02 63 01 0102 69"), { battery: 99, temperature: 2.58 })
    assert.strictEqual(encoded(plain, { battery: 99, temperature: 2.58 }), "010102026369")
    assert.strictEqual(encoded(plain, { battery: 99 }), "026365")
    assert.strictEqual(misfit(plain, "03 63 66"), "reports[0].parts[0]: expected a known tag, not 3")
    const sized = report({ type: "choice", size: 1, length: 1, repeat: true, cases })
    assert.deepStrictEqual(decoded(sized, "09 03 aabbcc 02 01 63"), { battery: 99 })
  })

  it("takes the first message that fits, and says how far the best one came", () => {
    const codec = compile({
      reports: [
        {
          method: "thing.event.alarm.post",
          parts: [{ type: "constant", hex: "aa02" }, { type: "uint", size: 1, to: "params.code" }]
        },
        {
          method: "thing.event.property.post",
          parts: [{ type: "constant", hex: "aa01" }, { type: "uint", size: 1, to: "id" }, {
            type: "uint",
            size: 2,
            to: "params.level"
          }]
        }
      ],
      receipts: [{
        parts: [
          { type: "constant", hex: "bb" },
          { type: "uint", size: 1, to: "id" },
          { type: "uint", size: 1, to: "code", labels: { 0: 200 }, otherwise: 255 }
        ]
      }],
      commands: [
        { method: "thing.service.property.set", parts: [{ type: "uint", size: 1, to: "params.a" }] },
        { method: "thing.service.property.set", parts: [{ type: "uint", size: 2, to: "params.b" }] }
      ]
    })
    const one = (bytes: string) => Result.getOrThrow(ProductCodec.decode(codec, "reports", hex(bytes)))
    assert.deepStrictEqual(one("aa0207"), { method: "thing.event.alarm.post", params: { code: 7 } })
    assert.deepStrictEqual(one("aa01090100"), { method: "thing.event.property.post", id: 9, params: { level: 256 } })
    assert.strictEqual(
      misfit(codec, "aa010901"),
      "reports[1].parts[2]: expected 2 bytes from byte 3 on, and there are 1"
    )
    assert.strictEqual(misfit(codec, "aa0107000000"), "expected the end at byte 5")
    const receipt = (code: number) =>
      text(
        Result.getOrThrow(
          ProductCodec.encode(codec, "receipts", { id: "265", code, data: { level: "not in the model" } })
        )
      )
    assert.deepStrictEqual([receipt(200), receipt(26_002)], ["bb0900", "bb09ff"])
    const set = (params: CodecMessage["params"]) =>
      ProductCodec.encode(codec, "commands", { method: "thing.service.property.set", params })
    assert.deepStrictEqual([set({ a: 1 }), set({ b: 1 })].map((bytes) => text(Result.getOrThrow(bytes))), [
      "01",
      "0001"
    ])
    assert.match(
      Result.getOrThrow(Result.flip(set({ a: 1, b: 1 }))).message,
      /^params\.[ab]: no part of the description carries it$/
    )
    assert.strictEqual(
      Result.getOrThrow(Result.flip(ProductCodec.encode(codec, "commands", { method: "thing.service.reset" }))).message,
      "method: the description has none of the commands for thing.service.reset"
    )
  })

  it("writes no message whose fixed value is another one", () => {
    const codec = report({ type: "value", value: "open", to: "params.valve" }, { type: "constant", hex: "01" })
    assert.deepStrictEqual(encoded(codec, { valve: "open" }), "01")
    assert.strictEqual(refused(codec, { valve: "closed" }), "params.valve: expected \"open\"")
    const points = report({
      type: "array",
      count: "rest",
      of: { type: "object", parts: [{ type: "uint", size: 1, to: "a" }, { type: "value", to: "kind", value: "p" }] },
      to: "params.points"
    })
    assert.strictEqual(encoded(points, { points: [{ a: 3, kind: "p" }] }), "03")
    assert.strictEqual(refused(points, { points: [{ a: 3, kind: "q" }] }), "params.points[0].kind: expected \"p\"")
    assert.strictEqual(refused(points, { points: [{ a: 3 }] }), "params.points[0].kind: expected \"p\"")
  })

  it("names all that is wrong with a description", () => {
    const parts = (...parts: ReadonlyArray<unknown>) => ({ reports: [{ method: "thing.event.property.post", parts }] })
    assert.deepStrictEqual(
      issuesOf(parts(
        { type: "uint", size: 1 },
        { type: "uint", size: 1, to: "state.x" },
        { type: "text", length: "rest", to: "params.a" },
        { type: "text", length: { prefix: 1 }, to: "params.b" },
        { type: "bits", size: 1, fields: [{ bit: 7, width: 2, to: "params.c" }] },
        { type: "choice", size: 1, cases: [{ tag: 1, parts: [] }, { tag: 1, parts: [] }, { tag: 256, parts: [] }] }
      )).toSorted(),
      [
        "reports.0.parts.0.to: Expected where the value goes, for example params.temperature",
        "reports.0.parts.1.to: Expected id, params.{name}",
        "reports.0.parts.2.length: Expected no rest here: the number of bytes that follow is not known",
        "reports.0.parts.4.fields.0.width: Expected bits below 8",
        "reports.0.parts.5.cases.1.tag: Expected a tag that no other case has, not 1",
        "reports.0.parts.5.cases.2.tag: Expected a tag of 1 bytes"
      ]
    )
    for (
      const [part, path] of [
        [{ type: "uint", size: 9, to: "params.a" }, "size"],
        [{ type: "uint", size: 1, to: "params.__proto__" }, "to"],
        [{ type: "script" }, "parts"],
        [{ type: "constant", hex: "0" }, "hex"],
        [{ type: "checksum", algorithm: "md5" }, "algorithm"]
      ] as const
    ) {
      const failure = Result.getOrThrow(Result.flip(read(parts(part))))
      assert.include(failure.message, path)
    }
    const inside = (others: number) => {
      let part: unknown = { type: "uint", size: 1, to: "params.a" }
      for (let i = 0; i < others; i++) part = { type: "object", parts: [part] }
      return issuesOf(parts(part)).join()
    }
    assert.strictEqual(inside(8), "")
    assert.include(inside(9), "Expected a part inside at most 8 others")
    const many = Array.from({ length: 600 }, (_, i) => ({ type: "uint", size: 1, to: `params.a${i}` }))
    assert.include(issuesOf(parts(...many)).join(), "Expected at most 512 parts")
    assert.include(
      issuesOf(parts({ type: "array", count: "rest", of: { type: "text", length: "rest" }, to: "params.a" })).join(),
      "Expected"
    )
  })

  it("bounds what a message may hold", () => {
    const codec = report({
      type: "array",
      count: { prefix: 4 },
      of: { type: "object", parts: [{ type: "uint", size: 1, to: "a" }, { type: "value", to: "b", value: 1 }] },
      to: "params.list"
    })
    assert.match(misfit(codec, "ffffffff"), /expected 1 bytes from byte 4 on/)
    assert.match(misfit(codec, `00001000${"00".repeat(4096)}`), /expected at most 4096 values/)
    assert.match(misfit(codec, "00".repeat(16_385)), /expected at most 16384 bytes/)
    assert.match(refused(codec, { list: Array.from({ length: 16_384 }, () => ({ a: 1, b: 1 })) }), /16384 bytes/)
  })

  /** A number part, and what its raw value is made of. */
  const NumberPart = Schema.Struct({
    type: Schema.Literals(["uint", "int"]),
    size: Schema.Literals([1, 2, 3, 4, 5, 6]),
    endian: Schema.Literals(["big", "little"]),
    scale: Schema.Literals([1, 0.1, 0.01, -0.5, 10]),
    offset: between(-40, 40),
    seed: between(0, Number.MAX_SAFE_INTEGER)
  })

  it.prop(
    "writes the bytes that it has read, whatever the numbers, and reads them again",
    [Schema.Array(NumberPart)],
    ([numbers]) => {
      const checksum = { type: "checksum", algorithm: "crc32" }
      const scaled = report(
        ...numbers.map(({ endian, offset, scale, size, type }, i) => ({
          type,
          size,
          endian,
          scale,
          offset,
          to: `params.n${i}`
        })),
        checksum
      )
      const plain = report(
        ...numbers.map(({ endian, size, type }, i) => ({ type, size, endian, to: `params.n${i}` })),
        checksum
      )
      const raw = ({ seed, size, type }: typeof NumberPart.Type) =>
        seed % 2 ** (8 * size) - (type === "int" ? 2 ** (8 * size - 1) : 0)
      const bytes = encoded(plain, Object.fromEntries(numbers.map((number, i) => [`n${i}`, raw(number)])))
      assert.strictEqual(encoded(scaled, decoded(scaled, bytes)), bytes)
    },
    { arbitrary: { runs: 500 } }
  )

  const everything = report(
    { type: "constant", hex: "7e" },
    {
      type: "sized",
      size: 2,
      endian: "little",
      adjust: 2,
      parts: [
        { type: "uint", size: 1, to: "id" },
        {
          type: "choice",
          size: 1,
          cases: [
            { tag: 1, parts: [{ type: "text", length: { prefix: 2 }, to: "params.note" }] },
            {
              tag: 2,
              parts: [{
                type: "array",
                count: { prefix: 1 },
                to: "params.list",
                of: {
                  type: "object",
                  parts: [{ type: "int", size: 4, to: "x" }, { type: "float", size: 8, to: "y" }]
                }
              }]
            },
            { tag: 3, parts: [{ type: "text", length: "rest", encoding: "hex", to: "params.bytes" }] }
          ]
        }
      ]
    },
    { type: "checksum", algorithm: "crc16-ccitt", from: 1 }
  )

  const Params = Schema.Union([
    Schema.Struct({ note: Schema.String }),
    Schema.Struct({
      list: Schema.Array(Schema.Struct({ x: between(-(2 ** 31), 2 ** 31 - 1), y: Schema.Finite })).check(
        Schema.isMaxLength(50)
      )
    }),
    Schema.Struct({ bytes: Schema.String })
  ])

  it.prop("reads what it has written, whatever the message", [Params, between(0, 255)], ([given, id]) => {
    // Bytes hold no unpaired surrogates.
    const params = "bytes" in given
      ? { bytes: Buffer.from(given.bytes).toString("hex") }
      : "note" in given
      ? { note: Buffer.from(given.note).toString() }
      : given
    const message = { method: "thing.event.property.post", id, params }
    const bytes = Result.getOrThrow(ProductCodec.encode(everything, "reports", message))
    assert.deepStrictEqual(Result.getOrThrow(ProductCodec.decode(everything, "reports", bytes)), message)
  }, { arbitrary: { runs: 500 } })

  it.prop(
    "refuses or reads any bytes, and writes what it reads as the same message",
    [Schema.Array(between(0, 255)).check(Schema.isMaxLength(64)), between(1, 4)],
    ([tail, tag]) => {
      const bytes = Uint8Array.from([0x7e, tail.length + 4, 0, 7, tag, ...tail, 0, 0])
      const crc = checksumOf("crc16-ccitt").of(bytes, 1, bytes.length - 2)
      bytes.set([crc >> 8, crc & 255], bytes.length - 2)
      const read = ProductCodec.decode(everything, "reports", bytes)
      if (Result.isFailure(read)) return assert.notStrictEqual(read.failure.message, "")
      const again = Result.getOrThrow(ProductCodec.encode(everything, "reports", read.success))
      assert.deepStrictEqual(ProductCodec.decode(everything, "reports", again), read)
    },
    { arbitrary: { runs: 500 } }
  )
})
