/**
 * Runs the server as several processes behind one set of ports
 * (docs/decisions/0090-workers.md). They are nodes of one cloud on one database.
 */
import { Clock, Console, Deferred, Effect, FiberSet, Layer, Option, Redacted, Schema, type Scope } from "effect"
import cluster, { type Worker } from "node:cluster"
import { closeWithWorker } from "./ConnectionHandover.ts"
import * as EmbeddedDatabase from "./EmbeddedDatabase.ts"
import * as Logging from "./Logging.ts"
import { mainFile } from "./MainFile.ts"
import type { EnvironmentVariables, InvalidConfig, ServerConfig } from "./ServerConfig.ts"
import { FromWorker, type Ready, type ToWorker } from "./WorkerChannel.ts"
import * as WorkerOperations from "./WorkerOperations.ts"

/** A worker has ended before it was ready for the first time. It has said why. */
export class WorkerEnded extends Schema.TaggedError<WorkerEnded>()("WorkerEnded", { code: Schema.Int }) {
  override get message(): string {
    return `A worker has ended with code ${this.code} while it started`
  }
}

/** Runs the workers, with the variables of `config`, while the layer lives. Prints one line when all are ready. */
export const layer = (
  config: ServerConfig,
  variables: EnvironmentVariables
): Layer.Layer<never, InvalidConfig | WorkerEnded> =>
  Layer.effectDiscard(make(config, variables)).pipe(Layer.provide(Logging.layer(config)))

/** How long a worker may take to stop, milliseconds, beside the time to drain. The supervisor's own limit is longer. */
const stopMillis = 9000

/** A worker that has run so long, milliseconds, is started again at once. */
const steadyMillis = 60_000

/** Milliseconds before the first new start of a worker that ends soon after its start; each further one waits twice as long. */
const firstDelay = 500
const longestDelay = 30_000

const isFromWorker = Schema.is(FromWorker)

/** One of the processes that are to run. */
interface Place {
  readonly number: number
  /** Where the worker can be reached that runs in this place now. */
  readonly served: Deferred.Deferred<Ready, WorkerEnded>
  worker: Worker | undefined
  nodeId: string | undefined
  /** The base URL of its operations. */
  operations: string | undefined
}

const make = Effect.fnUntraced(function*(
  config: ServerConfig,
  variables: EnvironmentVariables
): Effect.fn.Return<void, InvalidConfig | WorkerEnded, Scope.Scope> {
  const env = { ...variables, ...yield* environment(config) }
  cluster.setupPrimary({ exec: mainFile, args: [] })
  const places = Array.from({ length: config.workers }, (_, i): Place => ({
    number: i + 1,
    served: Deferred.makeUnsafe(),
    worker: undefined,
    nodeId: undefined,
    operations: undefined
  }))
  /** Nodes that have ended, and that no worker has heard of. */
  let ended: Array<string> = []

  const tell = (worker: Worker, message: ToWorker) => {
    // Without effect if it has ended meanwhile.
    if (worker.isConnected()) worker.send(message, () => {})
  }

  /** A worker sets the devices of an ended node offline at once; without it, other nodes would wait for its silence. */
  const tellOfEnded = () => {
    const listener = places.find(({ nodeId }) => nodeId !== undefined)
    if (listener?.worker === undefined || ended.length === 0) return
    tell(listener.worker, { event: "ended", nodeIds: ended })
    ended = []
  }

  /** Runs one process to its end. Returns its exit code; -1: a signal ended it. */
  const run = (place: Place) =>
    Effect.callback<number>((resume) => {
      const worker = cluster.fork(env)
      closeWithWorker(worker)
      place.worker = worker
      let isStopping = false
      worker.on("message", (message: unknown) => {
        if (!isFromWorker(message)) return
        if (message.event === "hears") {
          if (isStopping) tell(worker, { event: "stop" })
        } else if (message.event === "operations") place.operations = message.http
        else {
          place.nodeId = message.nodeId
          Deferred.doneUnsafe(place.served, Effect.succeed(message.ready))
          tellOfEnded()
        }
      })
      worker.once("exit", (code: number | null) => {
        if (place.nodeId !== undefined) ended.push(place.nodeId)
        place.worker = place.nodeId = place.operations = undefined
        tellOfEnded()
        resume(Effect.succeed(code ?? -1))
      })
      return Effect.callback<void>((stopped) => {
        isStopping = true
        const limit = setTimeout(() => {
          process.stderr.write(`Worker ${place.number} does not stop; it is killed.\n`)
          worker.process.kill("SIGKILL")
        }, stopMillis + config.drainSeconds * 1000)
        worker.once("exit", () => {
          clearTimeout(limit)
          stopped(Effect.void)
        })
        tell(worker, { event: "stop" })
      })
    })

  const keepRunning = (place: Place) =>
    Effect.gen(function*() {
      let delay = firstDelay
      while (true) {
        const startedAt = yield* Clock.currentTimeMillis
        const code = yield* run(place)
        if (Deferred.doneUnsafe(place.served, Effect.fail(new WorkerEnded({ code })))) return
        const isSteady = (yield* Clock.currentTimeMillis) - startedAt >= steadyMillis
        if (isSteady) delay = firstDelay
        yield* Effect.logError(`Worker ${place.number} has ended with code ${code}; it is started again`)
        if (!isSteady) {
          yield* Effect.sleep(delay)
          delay = Math.min(2 * delay, longestDelay)
        }
      }
    })

  const running = yield* FiberSet.make()
  const start = (place: Place) =>
    Effect.andThen(FiberSet.run(running, keepRunning(place)), Deferred.await(place.served))

  // The first one makes what is missing: tables, keys, a certificate.
  const [first, ...others] = places
  const ready = yield* start(first!)
  yield* Effect.forEach(others, start, { concurrency: "unbounded", discard: true })
  if (Option.isSome(config.metricsPort)) {
    const http = yield* WorkerOperations.listen(
      config.httpHost,
      config.metricsPort.value,
      () => places.flatMap(({ number, operations }) => operations === undefined ? [] : [{ number, url: operations }])
    )
    yield* Console.log(JSON.stringify({ event: "operations", http }))
  }
  yield* Console.log(JSON.stringify(ready))
})

/** What the workers get in place of what the supervisor was given. */
const environment = Effect.fnUntraced(function*(config: ServerConfig) {
  const url = Option.isSome(config.databaseUrl) ? config.databaseUrl.value : yield* EmbeddedDatabase.make(config)
  return {
    DATABASE_URL: Redacted.value(url),
    ...Option.isSome(config.metricsPort) ? { METRICS_PORT: "0" } : {}
  }
})
