/**
 * A connection to NATS, with a stream that stores what is published on it.
 */
import { EventSinkError } from "@device-cloud/core"
import {
  jetstream,
  JetStreamApiCodes,
  JetStreamApiError,
  type JetStreamClient,
  jetstreamManager,
  type StreamInfo
} from "@nats-io/jetstream"
import { connect as open, type ConnectionOptions } from "@device-cloud/nats"
import { nanos, PermissionViolationError } from "@nats-io/transport-node"
import { Effect } from "effect"

export interface NatsOptions extends ConnectionOptions {
  /** The beginning of all subjects. Default `device-cloud`. */
  readonly prefix?: string | undefined
  /** The name of the stream, which is made if it does not exist. Default `DEVICE_CLOUD`. */
  readonly stream?: string | undefined
}

export interface Connected {
  readonly client: JetStreamClient
  readonly isOpen: () => boolean
  readonly close: Effect.Effect<void>
}

/** Milliseconds until a server that does not reply counts as lost. */
const timeout = 5000
/** How long a stream that the cloud makes keeps events and recognizes those that come twice, milliseconds. */
const keepMillis = 7 * 24 * 3_600_000
const recognizeMillis = 120_000

/**
 * Connects, and makes or checks the stream. The connection ends when it breaks: it
 * never comes back by itself, so that what was on its way is not followed by
 * something later before it is sent again.
 */
export const connect = (
  options: NatsOptions & { readonly prefix: string; readonly stream: string }
): Effect.Effect<Connected, EventSinkError> =>
  Effect.gen(function*() {
    const connection = yield* open(options).pipe(
      Effect.mapError(({ cause, message }) => new EventSinkError({ message, cause }))
    )
    const connected: Connected = {
      client: jetstream(connection, { timeout }),
      isOpen: () => !connection.isClosed(),
      close: Effect.ignore(Effect.promise(() => connection.close()))
    }
    const manager = yield* attempt("JetStream cannot be used", () => jetstreamManager(connection, { timeout })).pipe(
      Effect.onError(() => connected.close)
    )
    const { prefix, stream: name } = options
    const subjects = [`${prefix}.>`]
    const info = yield* attempt(`The stream ${name} cannot be made`, () =>
      manager.streams.info(name).catch((error: unknown) => {
        if (!isUnknownStream(error)) {
          throw error
        }
        return manager.streams.add({
          name,
          subjects,
          max_age: nanos(keepMillis),
          duplicate_window: nanos(recognizeMillis)
        })
      })).pipe(Effect.onError(() =>
        connected.close
      ))
    const misfit = misfitOf(info, subjects[0]!)
    if (misfit === undefined) return connected
    yield* connected.close
    return yield* new EventSinkError({ message: `The stream ${name} ${misfit}` })
  })

const isUnknownStream = (error: unknown): boolean =>
  error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamNotFound

/** What is wrong with a stream that was there before. One that mirrors another has no subjects. */
const misfitOf = (
  { config: { no_ack: isSilent, subjects = [] } }: StreamInfo,
  subject: string
): string | undefined =>
  !subjects.includes(subject) && !subjects.includes(">")
    ? `has ${
      subjects.length === 0 ? "no subjects of its own" : `the subjects ${subjects.join(", ")}`
    }; expected ${subject}`
    : isSilent
    ? "does not acknowledge; expected no_ack to be false"
    : undefined

const attempt = <A>(what: string, run: () => Promise<A>): Effect.Effect<A, EventSinkError> =>
  Effect.tryPromise({
    try: run,
    catch: (cause) =>
      isInboxRefused(cause)
        ? new EventSinkError({ message: `${what}: the user may not subscribe to _INBOX.>` })
        : new EventSinkError({ message: `${what}: ${cause instanceof Error ? cause.message : cause}`, cause })
  })

/** Whether it is the subject of replies that NATS refuses. It is another one on each connection. */
const isInboxRefused = (error: unknown): boolean =>
  error instanceof PermissionViolationError
    ? error.subject.startsWith("_INBOX.")
    : error instanceof Error && isInboxRefused(error.cause)
