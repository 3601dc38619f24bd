/**
 * Runs the server in a process of its own: for demonstrations, and for tests of the
 * whole.
 */
import { Deferred, Effect, Schema, Stream } from "effect"
import { ChildProcess } from "effect/process"
import { mainFile } from "./MainFile.ts"
import { Ready } from "./WorkerChannel.ts"

const AdminKey = Schema.Struct({ event: Schema.Literal("admin_key"), key: Schema.String })

const Operations = Schema.Struct({ event: Schema.Literal("operations"), http: Schema.String })

const decodeLine = Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.Union([Ready, AdminKey, Operations])))

/** The exit code of a process that a signal ended. */
const endedBySignal = -1

/** The server ended before it could be reached. */
export class ServerEnded extends Schema.TaggedError<ServerEnded>()("ServerEnded", {
  exitCode: Schema.Int,
  /** The output of the server on standard error. */
  output: Schema.String
}) {
  override get message(): string {
    return `The server ended with code ${this.exitCode}: ${this.output}`
  }
}

export interface Options {
  /** The whole environment of the server. */
  readonly env: Readonly<Record<string, string>>
  /** Options of Node.js; default: those of this process. */
  readonly nodeOptions?: ReadonlyArray<string>
  /** The file to run; default: that of `device-cloud-server`. */
  readonly main?: string
}

/** Starts the server and waits until it can be reached. Stops it when the scope ends. */
export const start = Effect.fnUntraced(function*(
  { env, main = mainFile, nodeOptions = process.execArgv }: Options
) {
  const child = yield* ChildProcess.make(process.execPath, [...nodeOptions, main], {
    env: { PATH: process.env["PATH"], ...env },
    forceKillAfter: "15 seconds"
  })
  const ready = yield* Deferred.make<Ready, ServerEnded>()
  let adminKey: string | undefined
  let operations: string | undefined
  const output: Array<string> = []

  yield* child.stdout.pipe(
    Stream.decodeText,
    Stream.splitLines,
    Stream.mapEffect((line) => decodeLine(line)),
    Stream.runForEach((said) => {
      if (said.event === "ready") return Deferred.succeed(ready, said)
      if (said.event === "operations") operations = said.http
      else adminKey = said.key
      return Effect.void
    }),
    Effect.orDie,
    Effect.forkScoped
  )
  yield* child.stderr.pipe(
    Stream.decodeText,
    Stream.runForEach((text) => Effect.sync(() => output.push(text))),
    Effect.andThen(child.exitCode),
    Effect.orElseSucceed(() => endedBySignal),
    Effect.flatMap((exitCode) => Deferred.fail(ready, new ServerEnded({ exitCode, output: output.join("") }))),
    Effect.forkScoped
  )
  return {
    ...yield* Deferred.await(ready),
    /** The key that this start has made; undefined: a key existed. */
    adminKey,
    /** Where metrics and documentation are, if they have a port of their own. */
    operations,
    child,
    /** The output of the server on standard error so far. */
    output: Effect.sync(() => output.join(""))
  }
})
