/**
 * The bodies of the requests of a server. Effect's own reading of a body forks a fiber and
 * waits until the stream has closed; one that is there already is taken here in one
 * call, and others are read as they come in (docs/decisions/0037-request-bodies.md).
 */
import { TokenBuckets } from "@device-cloud/core"
import { ByteSize, Deferred, Effect, type Fiber } from "effect"
import { HttpIncomingMessage, HttpServerError, type HttpServerRequest } from "effect/http"
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import type { IncomingMessage, ServerResponse } from "node:http"
import type { ArrivingBodies } from "./ArrivingBodies.ts"
import type { Reader, ReadingPlaces } from "./ReadingPlaces.ts"
import type { RequestTurns } from "./RequestTurns.ts"

type Request = HttpServerRequest.HttpServerRequest
type Read<A> = Effect.Effect<A, HttpServerError.HttpServerError>

/** The private part of a request: what reads its body. Effect makes JSON of the text. */
interface RequestInternals {
  arrayBufferEffect: Read<ArrayBuffer>
  textEffect: Read<string>
  modify: Request["modify"]
}

/** A body of more bytes is read when it has a place, and is handed over in a turn of its own. */
const largeBytes = 16 * 1024

/** What is read of the large bodies of an address at once after silence, milliseconds of its rate. */
const burst = 2000
/** Addresses whose rates are remembered. */
const capacity = 16_384

const nothing = Buffer.alloc(0)

export class RequestBodies {
  readonly #arriving: ArrivingBodies
  readonly #places: ReadingPlaces
  readonly #turns: RequestTurns
  readonly #rates = new TokenBuckets({ burst, capacity })
  readonly #bytesPerMilli: number

  /** `rate`: bytes of the large bodies of an address that are read in a second. */
  constructor(arriving: ArrivingBodies, places: ReadingPlaces, turns: RequestTurns, rate: number) {
    this.#bytesPerMilli = rate / 1000
    this.#arriving = arriving
    this.#places = places
    this.#turns = turns
  }

  /** Reads the body when it is needed for the first time, also for the requests that are made of this one. */
  take(request: Request): void {
    let reading: Read<Buffer> | undefined
    const bytes: Read<Buffer> = Effect.withFiber((fiber) => reading ??= this.#begin(request, limitOf(fiber)))
    const arrayBuffer = Effect.map(bytes, toArrayBuffer)
    // A client that waits for `100 Continue` gets it from what reads bytes.
    const text = sourceOf(request).headers.expect === undefined ? Effect.map(bytes, toText) : undefined
    const takeOver = (request: Request): Request => {
      const internals = request as unknown as RequestInternals
      const modify = request.modify.bind(request)
      internals.arrayBufferEffect = arrayBuffer
      if (text !== undefined) internals.textEffect = text
      internals.modify = (options) => takeOver(modify(options))
      return request
    }
    takeOver(request)
  }

  #begin(request: Request, limit: number): Read<Buffer> {
    const source = sourceOf(request)
    const { complete, readableEnded, readableLength } = source
    if (complete && !readableEnded && !source.destroyed && readableLength <= largeBytes) {
      const whole = source.read() as Buffer | null ?? nothing
      return whole.length > limit ? Effect.fail(unreadable(request, "BodyTooLarge")) : Effect.succeed(whole)
    }
    const body = Deferred.makeUnsafe<Buffer, HttpServerError.HttpServerError>()
    this.#read(request, source, limit, (read) => Deferred.doneUnsafe(body, read))
    return Deferred.await(body)
  }

  /** Reads the body to its end, even beyond the limit, so that the connection can take another request. */
  #read(request: Request, source: IncomingMessage, limit: number, done: (read: Read<Buffer>) => void): void {
    let chunks: Array<Buffer> = []
    let size = 0
    let isDone = false
    const succeed = () => {
      if (isDone) return
      isDone = true
      const hand = () => {
        this.#arriving.end(body)
        const whole = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
        chunks = []
        done(Effect.succeed(whole))
      }
      // What is made of a large body takes long.
      if (size > largeBytes) this.#turns.wait(source, hand)
      else hand()
    }
    const fail = (reason: "Parse" | "BodyTooLarge", cause?: unknown) => {
      if (isDone) return
      isDone = true
      this.#arriving.end(body)
      chunks = []
      done(Effect.fail(unreadable(request, reason, cause)))
    }
    const address = this.#turns.addressOf(source)
    const body = this.#arriving.begin(address, (reason) => fail("Parse", reason))
    if (source.readableEnded) return succeed()
    if (source.destroyed) return fail("Parse")
    const { socket } = source
    const reader: Reader = { address, resume: () => source.resume() }
    let pause: NodeJS.Timeout | undefined
    const keep = (chunk: Buffer) => {
      if (size > limit) return fail("BodyTooLarge")
      chunks.push(chunk)
      this.#arriving.grows(body, chunk.length)
    }
    if (Number(source.headers["content-length"]) > limit) fail("BodyTooLarge")
    source.on("data", (chunk: Buffer) => {
      size += chunk.length
      if (!isDone) keep(chunk)
      // Of a connection that has ended no more comes than is there.
      if (size <= largeBytes || socket.destroyed) return
      if (!this.#places.take(reader)) return void source.pause()
      const millis = this.#pauseAfter(chunk, address)
      if (millis > 0) {
        source.pause()
        pause = setTimeout(reader.resume, millis)
      } else if (!this.#turns.mayRun(source)) {
        source.pause()
        this.#turns.wait(source, reader.resume)
      }
    })
    source.on("end", succeed)
    source.on("error", (cause) => fail("Parse", cause))
    const leave = () => {
      clearTimeout(pause)
      this.#places.leave(reader)
    }
    source.on("close", () => {
      socket.off("close", leave)
      leave()
      // Without effect after `end`.
      fail("Parse")
    })
    // Once it has its response, a request is not told that its connection has ended.
    socket.once("close", leave)
    // Nobody waits for the body any more, for example because the request took too long.
    const response = NodeHttpServerRequest.toServerResponse(request) as ServerResponse
    response.once("close", () => fail("Parse"))
  }

  /** Counts what came of a large body that has a place. Returns how long nothing more of it is read, milliseconds. */
  #pauseAfter({ length }: Buffer, address: string): number {
    const now = performance.now()
    const rate = this.#rates.of(address)
    rate.charge(length / this.#bytesPerMilli, now)
    return rate.emptyFor(now)
  }
}

const sourceOf = ({ source }: Request): IncomingMessage => source as IncomingMessage

const limitOf = (fiber: Fiber.Fiber<unknown, unknown>): number => {
  const limit = fiber.getRef(HttpIncomingMessage.MaxBodySize)
  return limit === undefined ? Infinity : ByteSize.toNumberUnsafe(limit)
}

const unreadable = (request: Request, reason: "Parse" | "BodyTooLarge", cause?: unknown) =>
  new HttpServerError.HttpServerError({ reason: new HttpServerError.RequestParseError({ request, reason, cause }) })

const toArrayBuffer = ({ buffer, byteOffset, length }: Buffer): ArrayBuffer =>
  length === buffer.byteLength ? buffer as ArrayBuffer : (buffer as ArrayBuffer).slice(byteOffset, byteOffset + length)

/** The text without a byte order mark. */
const toText = (bytes: Buffer): string => {
  const isMarked = bytes[0] === 0xEF && bytes[1] === 0xBB && bytes[2] === 0xBF
  return bytes.toString("utf8", isMarked ? 3 : 0)
}
