/**
 * Converts the messages of a product between bytes and JSON, as a description
 * says (docs/api/codecs.md). Pure, and linear in the bytes of the message.
 */
import { Result } from "effect"
import { InvalidInput } from "../kernel/InvalidInput.ts"
import type { Json } from "../kernel/Json.ts"
import { ByteReader, type Target } from "./ByteReader.ts"
import { ByteWriter } from "./ByteWriter.ts"
import {
  type CodecDescription,
  type CodecDirection,
  type CodecMessage,
  CodecMisfit,
  maxMessageBytes
} from "./CodecDescription.ts"
import type { Layout } from "./Layout.ts"
import { PartCompiler } from "./PartLayout.ts"
import { Source } from "./Source.ts"

/** A compiled description. */
export interface ProductCodec {
  readonly messages: Readonly<Record<CodecDirection, ReadonlyArray<CompiledMessage>>>
}

interface CompiledMessage {
  /** Undefined: any. */
  readonly method: string | undefined
  readonly layout: Layout
}

const directions: ReadonlyArray<CodecDirection> = ["reports", "receipts", "commands", "answers"]

/** The object with the values of a message. */
const contentOf: Readonly<Record<CodecDirection, "params" | "data">> = {
  reports: "params",
  commands: "params",
  receipts: "data",
  answers: "data"
}

/** Says why a place is not in a message of the direction. */
const refuseTarget = (direction: CodecDirection) => {
  const content = contentOf[direction]
  const single = content === "params" ? ["id"] : ["id", "code", "message"]
  const expected = `Expected ${[...single, `${content}.{name}`].join(", ")}`
  return (to: string): string | undefined => single.includes(to) || to.startsWith(`${content}.`) ? undefined : expected
}

/** Compiles a description. Fails with all that is wrong with it. */
export const compile = (description: CodecDescription): Result.Result<ProductCodec, InvalidInput> => {
  const compiler = new PartCompiler()
  const compileDirection = (direction: CodecDirection) =>
    (description[direction] ?? []).map(({ method, parts }, i): CompiledMessage => ({
      method,
      layout: compiler.message(parts, [direction, i], refuseTarget(direction))
    }))
  const messages = Object.fromEntries(
    directions.map((direction) => [direction, compileDirection(direction)])
  ) as unknown as ProductCodec["messages"]
  const [first, ...rest] = compiler.issues
  return first === undefined
    ? Result.succeed({ messages })
    : Result.fail(new InvalidInput({ issues: [first, ...rest] }))
}

/** Runs a step that throws `CodecMisfit`. */
const attempt = <A>(run: () => A): Result.Result<A, CodecMisfit> => {
  try {
    return Result.succeed(run())
  } catch (error) {
    if (error instanceof CodecMisfit) return Result.fail(error)
    throw error
  }
}

const readMessage = (reader: ByteReader, layout: Layout): Target => {
  const message: Target = {}
  reader.within(reader.bytes.length, "", () => layout.read(reader, message))
  return message
}

/**
 * Returns the first message of the direction whose parts fit all bytes. Fails with
 * the misfit of the message that fits the most bytes.
 */
export const decode = (
  codec: ProductCodec,
  direction: CodecDirection,
  bytes: Uint8Array
): Result.Result<CodecMessage, CodecMisfit> => {
  if (bytes.length > maxMessageBytes) {
    return Result.fail(new CodecMisfit({ path: "", expected: `expected at most ${maxMessageBytes} bytes` }))
  }
  let best = new CodecMisfit({ path: "", expected: `the description has no ${direction}` })
  let fitted = -1
  for (const { layout, method } of codec.messages[direction]) {
    const reader = new ByteReader(bytes)
    const read = attempt(() => readMessage(reader, layout))
    if (Result.isSuccess(read)) {
      return Result.succeed({
        ...method === undefined ? {} : { method },
        ...read.success,
        [contentOf[direction]]: read.success[contentOf[direction]] ?? {}
      } as CodecMessage)
    }
    if (reader.position > fitted) {
      fitted = reader.position
      best = read.failure
    }
  }
  return Result.fail(best)
}

/** Returns the bytes of a message with these values. Receipts need not carry all data. */
const writeMessage = (layout: Layout, message: CodecMessage, direction: CodecDirection): Uint8Array => {
  const writer = new ByteWriter()
  const source = new Source(message as Readonly<Record<string, Json>>)
  layout.write(writer, source)
  const left = direction === "receipts" ? undefined : source.take([contentOf[direction]]).unwritten()
  if (left !== undefined) throw new CodecMisfit({ path: left, expected: "no part of the description carries it" })
  return writer.finish()
}

/**
 * Returns the bytes of the first message of the direction and method that carries
 * all values. Fails with the misfit of the first message that needs no value that
 * is missing, or else of the first.
 */
export const encode = (
  codec: ProductCodec,
  direction: CodecDirection,
  message: CodecMessage
): Result.Result<Uint8Array, CodecMisfit> => {
  const ofMethod = codec.messages[direction].filter(({ method }) => method === undefined || method === message.method)
  const source = new Source(message as Readonly<Record<string, Json>>)
  const applying = ofMethod.filter(({ layout }) => layout.applies(source))
  let first: CodecMisfit | undefined
  for (const { layout } of applying.length > 0 ? applying : ofMethod.slice(0, 1)) {
    const written = attempt(() => writeMessage(layout, message, direction))
    if (Result.isSuccess(written)) return written
    first ??= written.failure
  }
  return Result.fail(
    first ??
      new CodecMisfit({
        path: "method",
        expected: `the description has none of the ${direction} for ${message.method ?? "it"}`
      })
  )
}
