/**
 * Statements for ClickHouse over its HTTP interface. It needs nothing of servers
 * that came after 18.16.
 */
import { StoreError } from "@device-cloud/core"
import { Duration, Effect, Redacted, Stream } from "effect"

export interface ClickHouseOptions {
  /**
   * The HTTP interface and a database, which exists; for example
   * `http://user:password@127.0.0.1:8123/database`. Without them, user and database
   * are `default`. The user may create tables, alter, insert and select.
   */
  readonly url: Redacted.Redacted
}

export interface ClickHouseClient {
  /** Runs a statement that returns nothing. `data` is what an INSERT stores. */
  readonly run: (
    operation: string,
    statement: string,
    data?: Uint8Array<ArrayBuffer>
  ) => Effect.Effect<void, StoreError>
  /** Returns the rows of a SELECT. */
  readonly rows: <Row>(operation: string, select: string) => Effect.Effect<ReadonlyArray<Row>, StoreError>
  /** Emits the rows of a SELECT of any size. */
  readonly stream: <Row>(operation: string, select: string) => Stream.Stream<Row, StoreError>
}

/** How long a statement may take whose rows come at once. */
const timeout = Duration.seconds(30)

/** A SELECT that sorts more than this sorts on disk. */
const sortBytes = 100_000_000

/**
 * Codes of failures that can pass: a table or a database that is made again, a file
 * that cannot be written (the disk is full), time-outs, a user that for now may only
 * read, is not known, has another password, has used up its quota, or is not admitted
 * to the database, to the table or from this address, too many queries, lost
 * connections, memory, disk that cannot be reserved, too many parts, and a statement
 * that somebody has ended.
 */
const passing = new Set([
  60,
  75,
  81,
  159,
  164,
  192,
  193,
  194,
  195,
  201,
  202,
  209,
  210,
  241,
  243,
  252,
  291,
  394,
  497,
  516
])

/** Makes a client. It does not connect before the first statement. Throws a `TypeError` if `url` is none. */
export const make = ({ url }: ClickHouseOptions): ClickHouseClient => {
  // Such as a variable of the environment that is not set.
  if (!Redacted.isRedacted(url) || !/^https?:/i.test(Redacted.value(url)) || !URL.canParse(Redacted.value(url))) {
    throw new TypeError("url: expected Redacted.make of a URL such as http://127.0.0.1:8123/database")
  }
  const { origin, password, pathname, username } = new URL(Redacted.value(url))
  const database = decodeURIComponent(pathname.slice(1)) || "default"
  const headers = {
    "x-clickhouse-user": decodeURIComponent(username) || "default",
    "x-clickhouse-key": decodeURIComponent(password)
  }

  const request = (operation: string, statement: string, data?: Uint8Array<ArrayBuffer>) =>
    Effect.tryPromise({
      try: async (signal) => {
        const settings = { database, max_bytes_before_external_sort: String(sortBytes) }
        const query = new URLSearchParams(data === undefined ? settings : { ...settings, query: statement })
        const response = await fetch(`${origin}/?${query}`, {
          method: "POST",
          headers,
          body: data ?? statement,
          // Where it leads is no ClickHouse, and what answers there has stored nothing.
          redirect: "manual",
          signal
        })
        if (!response.ok) throw refusalOf(response.status, await response.text())
        return response
      },
      catch: failed(operation)
    })

  const text = (operation: string, statement: string, data?: Uint8Array<ArrayBuffer>) =>
    request(operation, statement, data).pipe(
      Effect.flatMap((response) => Effect.tryPromise({ try: () => response.text(), catch: failed(operation) })),
      Effect.timeoutOrElse({
        duration: timeout,
        orElse: () => Effect.fail(failed(operation)(new Error(`no reply within ${Duration.format(timeout)}`)))
      })
    )

  return {
    run: (operation, statement, data) => Effect.asVoid(text(operation, statement, data)),
    rows: <Row>(operation: string, select: string) =>
      Effect.flatMap(text(operation, `${select} FORMAT JSONEachRow`), (lines) =>
        Effect.try({
          try: () => lines.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line) as Row),
          catch: failed(operation)
        })),
    stream: <Row>(operation: string, select: string) =>
      Stream.unwrap(
        Effect.map(request(operation, `${select} FORMAT JSONEachRow`), (response) =>
          Stream.fromReadableStream({ evaluate: () => response.body!, onError: failed(operation) }))
      ).pipe(
        Stream.decodeText,
        Stream.splitLines,
        Stream.mapEffect((line) =>
          Effect.try({ try: () => JSON.parse(line) as Row, catch: failed(operation) })
        )
      )
  }
}

/** What the server says when it refuses a statement. */
class Refusal extends Error {
  readonly isPassing: boolean
  constructor(code: number, message: string) {
    super(message)
    this.isPassing = passing.has(code)
  }
}

/** An answer without a code is none of ClickHouse, but of a proxy in front of it. */
const refusalOf = (status: number, text: string): Error => {
  const code = /Code: (\d+)/.exec(text)?.[1]
  return code === undefined
    ? new Error(`the answer is ${status}, without a word of ClickHouse`)
    : new Refusal(Number(code), text)
}

/** A connection that fails can come back; also a reply that is not whole is due to something that passes. */
const failed = (operation: string) => (cause: unknown): StoreError =>
  new StoreError({ operation, retryable: !(cause instanceof Refusal) || cause.isPassing, cause })

/** A text in a statement. */
export const literal = (text: string): string => `'${text.replace(/[\\']/g, "\\$&")}'`
