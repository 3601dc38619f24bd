/**
 * Devices that connect, report and obey until they are interrupted, and what is
 * counted of them.
 */
import { SimulatedDevice } from "@device-cloud/testing"
import { Clock, Duration, Effect, Random, type Scope, Semaphore } from "effect"
import type { MqttEndpoint } from "./Endpoints.ts"
import type { Triple } from "./SimulatedFleet.ts"
import * as SimulatedValues from "./SimulatedValues.ts"

/** What has happened since the counts were last taken. */
export interface Counts {
  /** Devices that are connected now. */
  connected: number
  /** Reports that were acknowledged. */
  reports: number
  /** Reports that were refused, or got no reply. */
  failed: number
  /** Commands that were carried out. */
  commands: number
  /** Connections that could not be made. */
  refused: number
  /** The latest reason why something has failed. */
  reason: string
  /** How long each acknowledged report took, milliseconds. */
  latencies: Array<number>
}

/** A fleet, and how it behaves. */
export interface SimulationOptions {
  readonly endpoint: MqttEndpoint
  readonly devices: ReadonlyArray<Triple>
  readonly model: SimulatedValues.Model
  /** Between two reports of a device. */
  readonly interval: Duration.Duration
}

/** Connections that are made at the same time: what a server takes in its stride. */
const connecting = 50

/** Starts all devices; they end with the scope. Returns what is counted. */
export const start = Effect.fnUntraced(function*(
  options: SimulationOptions
): Effect.fn.Return<Counts, never, Scope.Scope> {
  const counts: Counts = { connected: 0, reports: 0, failed: 0, commands: 0, refused: 0, reason: "", latencies: [] }
  const slots = yield* Semaphore.make(connecting)
  yield* Effect.forEach(
    options.devices,
    (triple) =>
      life(options, triple, counts, (connect) => slots.withPermits(1)(connect)).pipe(
        Effect.forkScoped
      ),
    { discard: true }
  )
  return counts
})

/** A device connects, reports, and comes back when its connection ends. */
const life = Effect.fnUntraced(function*(
  { endpoint, interval, model }: SimulationOptions,
  triple: Triple,
  counts: Counts,
  inTurn: <A, E, R>(connect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
) {
  let values = yield* SimulatedValues.first(model.properties)

  const set = (desired: SimulatedValues.Values) =>
    Effect.sync(() => {
      counts.commands++
      values = { ...values, ...desired }
    })
  const services = Object.fromEntries(
    model.services.map(({ id, outputData = [] }) => [
      id,
      () => Effect.tap(SimulatedValues.first(outputData), Effect.sync(() => counts.commands++))
    ])
  )

  const session = Effect.gen(function*() {
    const device = yield* inTurn(SimulatedDevice.connectMqtt({
      ...triple,
      url: endpoint.url,
      ...endpoint.ca === undefined ? {} : { ca: endpoint.ca },
      on: { set, desired: set, services }
    }))
    yield* Effect.acquireRelease(
      Effect.sync(() => counts.connected++),
      () => Effect.sync(() => counts.connected--)
    )
    const report = Effect.gen(function*() {
      const before = yield* Clock.currentTimeMillis
      const { code, message } = yield* device.postProperties(values)
      if (code !== 200) return yield* Effect.fail({ message: `${code} ${message}` })
      counts.reports++
      counts.latencies.push((yield* Clock.currentTimeMillis) - before)
    }).pipe(Effect.catch((error) =>
      Effect.sync(() => {
        counts.failed++
        counts.reason = error.message
      })
    ))
    const reports = Effect.gen(function*() {
      // Those of a fleet do not report at the same moment.
      yield* Effect.sleep(Duration.times(interval, yield* Random.next))
      while (true) {
        yield* report
        yield* Effect.sleep(interval)
        values = { ...values, ...yield* SimulatedValues.next(model.properties, values) }
      }
    })
    yield* Effect.raceFirst(reports, device.closed)
  }).pipe(
    Effect.scoped,
    Effect.catch((error) =>
      Effect.sync(() => {
        counts.refused++
        counts.reason = error.message
      })
    )
  )
  return yield* Effect.forever(
    Effect.andThen(session, Effect.flatMap(Random.nextBetween(1, 5), (s) => Effect.sleep(s * 1000)))
  )
})
