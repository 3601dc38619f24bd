/**
 * How a command fails: a sentence for its user, and an exit code.
 */
import { Cause, Exit, type PlatformError, Runtime, Schema } from "effect"
import { CliError } from "effect/cli"
import { HttpClientError } from "effect/http"

/** Exit codes of commands that do not succeed. */
export const exitCodes = { failure: 1, usage: 2 } as const

const interrupted = 130

/** Ends a command. */
export class CommandFailure extends Schema.TaggedError<CommandFailure>()("CommandFailure", {
  /** What went wrong, and what to do about it. */
  message: Schema.String,
  exitCode: Schema.Literals([1, 2])
}) {
  override readonly [Runtime.errorReported] = false
}

/** The command did not succeed. */
export const failure = (message: string): CommandFailure => new CommandFailure({ message, exitCode: exitCodes.failure })

/** The command cannot be carried out as it was written. */
export const usage = (message: string): CommandFailure => new CommandFailure({ message, exitCode: exitCodes.usage })

/** The failure to read a file that the command names. */
export const unreadable = (file: string) => (error: PlatformError.PlatformError): CommandFailure =>
  usage(`${file} cannot be read: ${innermost(error)}`)

/** The failure to write a file that the command names. */
export const unwritable = (file: string) => (error: PlatformError.PlatformError): CommandFailure =>
  failure(`${file} cannot be written: ${innermost(error)}`)

/** A failure of the API, as it is in the body of a response. */
export interface ApiFailure {
  readonly code: number
  readonly message: string
  readonly data?: unknown
}

/** Whether an error is a failure of the API. */
export const isApiFailure = (error: unknown): error is ApiFailure =>
  typeof error === "object" && error !== null && "code" in error && typeof error.code === "number" &&
  "message" in error && typeof error.message === "string"

/** The failure that any error of a call to the server at `url` means. The API's own sentence stays as it is. */
export const explain = (url: string) => (error: unknown): CommandFailure => {
  if (error instanceof CommandFailure) return error
  if (isApiFailure(error)) return failure(`${error.message} (${error.code})`)
  if (HttpClientError.isHttpClientError(error)) {
    const { reason } = error
    return reason._tag === "TransportError"
      ? failure(`${url} cannot be reached: ${innermost(reason.cause ?? reason)}`)
      : failure(`${url} sent a response that this version does not understand: ${reason.message}`)
  }
  // A value that the definition of the API does not admit: the first line says what was expected.
  return failure(error instanceof Error ? error.message.replace(/\n\s*at /, " at ") : String(error))
}

/** `fetch` wraps the cause: `fetch failed` says nothing, `connect ECONNREFUSED` does. */
const innermost = (cause: unknown): string => {
  if (!(cause instanceof Error)) return String(cause)
  if (cause instanceof AggregateError && cause.errors.length > 0) return innermost(cause.errors[0])
  return cause.cause === undefined ? cause.message : innermost(cause.cause)
}

/** The exit code of the program: 0, one of {@link exitCodes}, or 130 if a signal has ended it, as shells have it. */
export const exitCodeOf = (exit: Exit.Exit<unknown, unknown>): number => {
  if (Exit.isSuccess(exit)) return 0
  if (Cause.hasInterruptsOnly(exit.cause)) return interrupted
  const error = Cause.squash(exit.cause)
  if (error instanceof CommandFailure) return error.exitCode
  if (!CliError.isCliError(error)) return exitCodes.failure
  return error._tag === "ShowHelp" && error.errors.length === 0 ? 0 : exitCodes.usage
}
