/**
 * The requests to a bucket, with signatures of version 4.
 */
import { type ByteRange, StoreError } from "@device-cloud/core"
import { AwsClient } from "aws4fetch"
import { type Clock, Effect, type Option, Redacted, Schedule, Stream } from "effect"
import { createHash } from "node:crypto"

export interface BucketOptions {
  /** Of the service, for example `https://s3.eu-central-1.amazonaws.com`. The bucket becomes the beginning of the path. */
  readonly endpoint: string
  readonly bucket: string
  /** Default: `us-east-1`, which most services other than that of Amazon expect. */
  readonly region?: string
  readonly accessKeyId: string
  readonly secretAccessKey: Redacted.Redacted
}

interface Request {
  readonly method: "GET" | "PUT" | "POST" | "DELETE"
  readonly key: string
  readonly query?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array
}

/** How long the service may take to answer. */
const patience = "60 seconds"

/** What is tried again: the service is away or busy, or a proxy in front of it has answered, which names no failure. */
const isTransient = (status: number, code: string | undefined): boolean =>
  status === 429 || status >= 500 || code === undefined

const failed = (operation: string, retryable: boolean, cause: unknown) =>
  new StoreError({ operation: `ObjectStore.${operation}`, retryable, cause })

export class Bucket {
  readonly #client: AwsClient
  readonly #clock: Clock.Clock
  readonly #url: string
  /** How far the clock of the service is ahead of this one, milliseconds; it has said so when it refused a time. */
  #ahead = 0

  /** `clock`: tells the time of signatures. The service refuses one that is too far from its own, and says its own. */
  constructor(
    { accessKeyId, bucket, endpoint, region = "us-east-1", secretAccessKey }: BucketOptions,
    clock: Clock.Clock
  ) {
    // Such as a variable of the environment that is not set: "undefined" is a name that a bucket can have.
    if (!/^https?:/i.test(endpoint) || !URL.canParse(endpoint)) {
      throw new TypeError("endpoint: expected a URL such as https://s3.example.com")
    }
    for (const [name, value] of Object.entries({ bucket, accessKeyId })) {
      if (!value) throw new TypeError(`${name}: expected a text, not ${String(value)}`)
    }
    if (!Redacted.isRedacted(secretAccessKey) || !Redacted.value(secretAccessKey)) {
      throw new TypeError("secretAccessKey: expected Redacted.make of a text")
    }
    this.#clock = clock
    this.#client = new AwsClient({
      accessKeyId,
      secretAccessKey: Redacted.value(secretAccessKey),
      service: "s3",
      region,
      retries: 0
    })
    this.#url = `${endpoint.replace(/\/+$/, "")}/${encodeURIComponent(bucket)}`
  }

  put(key: string, body: Uint8Array): Effect.Effect<void, StoreError> {
    return Effect.asVoid(this.#send("write", { method: "PUT", key, body }))
  }

  /** Nothing happens if there is nothing under the key. */
  remove(key: string): Effect.Effect<void, StoreError> {
    return Effect.asVoid(this.#send("remove", { method: "DELETE", key }))
  }

  /** None: there is nothing under the key. */
  text(key: string): Effect.Effect<Option.Option<string>, StoreError> {
    return Effect.flatMap(
      this.#send("find", { method: "GET", key }),
      (response) => response.status === 404 ? Effect.succeedNone : Effect.asSome(bodyOf("find", response))
    )
  }

  /** All bytes, or those in `range`. */
  read(key: string, range?: ByteRange): Stream.Stream<Uint8Array, StoreError> {
    const headers = range === undefined ? {} : { range: `bytes=${range.start}-${range.end}` }
    return Stream.unwrap(
      Effect.map(this.#send("read", { method: "GET", key, headers }), (response) =>
        response.status === 404
          ? Stream.fail(failed("read", false, "The object is gone"))
          : Stream.fromReadableStream({
            evaluate: () => response.body!,
            onError: (cause) => failed("read", true, cause)
          }))
    )
  }

  /** Begins an upload in parts; returns its id. */
  beginParts(key: string): Effect.Effect<string, StoreError> {
    return this.#send("write", { method: "POST", key, query: "uploads=" }).pipe(
      Effect.flatMap((response) => bodyOf("write", response)),
      Effect.flatMap((text) => {
        const id = /<UploadId>([^<]+)<\/UploadId>/.exec(text)?.[1]
        return id === undefined ? Effect.fail(failed("write", false, "No upload id")) : Effect.succeed(id)
      })
    )
  }

  /** `number` from 1. Returns the tag of the part. */
  putPart(key: string, uploadId: string, number: number, body: Uint8Array): Effect.Effect<string, StoreError> {
    const query = `partNumber=${number}&uploadId=${encodeURIComponent(uploadId)}`
    return Effect.map(
      this.#send("write", { method: "PUT", key, query, body }),
      ({ headers }) => headers.get("etag") ?? ""
    )
  }

  endParts(key: string, uploadId: string, tags: ReadonlyArray<string>): Effect.Effect<void, StoreError> {
    const parts = tags.map((tag, i) => `<Part><PartNumber>${i + 1}</PartNumber><ETag>${tag}</ETag></Part>`)
    const body = Buffer.from(`<CompleteMultipartUpload>${parts.join("")}</CompleteMultipartUpload>`)
    const query = `uploadId=${encodeURIComponent(uploadId)}`
    return this.#send("write", { method: "POST", key, query, body }).pipe(
      Effect.flatMap((response) => bodyOf("write", response)),
      // The service says 200 before it has put the parts together.
      Effect.flatMap((text) =>
        text.includes("<Error>") ? Effect.fail(failed("write", true, codeOf(text) ?? unknown)) : Effect.void
      )
    )
  }

  abortParts(key: string, uploadId: string): Effect.Effect<void, StoreError> {
    return Effect.asVoid(
      this.#send("write", { method: "DELETE", key, query: `uploadId=${encodeURIComponent(uploadId)}` })
    )
  }

  /** Sends the request, again if the service is away. That there is nothing to get or to delete is no failure, unless the bucket itself is gone. */
  #send(operation: string, { body, headers, key, method, query }: Request): Effect.Effect<Response, StoreError> {
    const url = `${this.#url}/${key}${query === undefined ? "" : `?${query}`}`
    const hash = createHash("sha256").update(body ?? "").digest("hex")
    const attempt = (now: number) =>
      Effect.tryPromise({
        try: async (signal) => {
          const response = await this.#client.fetch(url, {
            method,
            signal,
            // The signature is for this address, and does not go along.
            redirect: "manual",
            aws: { datetime: new Date(now + this.#ahead).toISOString().replaceAll(/[:-]|\.\d{3}/g, "") },
            headers: { ...headers, "x-amz-content-sha256": hash },
            ...body === undefined ? {} : { body: body as Uint8Array<ArrayBuffer> }
          })
          if (response.ok) return response
          const code = codeOf(await response.text())
          const mayLack = method === "GET" || method === "DELETE"
          const isLack = mayLack && response.status === 404 && code !== undefined && code !== "NoSuchBucket"
          if (isLack) return response
          const explanation = `The object storage answers ${response.status}: ${code ?? unknown}`
          const serviceTime = Date.parse(response.headers.get("date") ?? "")
          const isOtherTime = code === "RequestTimeTooSkewed" && Number.isFinite(serviceTime)
          if (isOtherTime) this.#ahead = serviceTime - now
          throw failed(operation, isOtherTime || isTransient(response.status, code), explanation)
        },
        catch: (cause) => cause instanceof StoreError ? cause : failed(operation, true, cause)
      })
    return Effect.flatMap(this.#clock.currentTimeMillis, attempt).pipe(
      Effect.timeoutOrElse({ duration: patience, orElse: () => Effect.fail(failed(operation, true, "No answer")) }),
      Effect.retry({ times: 2, schedule: Schedule.exponential("200 millis"), while: ({ retryable }) => retryable })
    )
  }
}

/** What the service calls the failure. The rest of the text has the key in it, which is a secret. */
const codeOf = (text: string): string | undefined => /<Code>([^<]+)<\/Code>/.exec(text)?.[1]

const unknown = "an unknown failure"

const bodyOf = (operation: string, response: Response) =>
  Effect.tryPromise({ try: () => response.text(), catch: (cause) => failed(operation, true, cause) })
