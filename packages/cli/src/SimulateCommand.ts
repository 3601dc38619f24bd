/**
 * `device-cloud simulate`: devices that are not there.
 */
import { Clock, Console, Duration, Effect, Option, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import { failure, usage } from "./CommandFailure.ts"
import { endpointFlags, mqttEndpoint } from "./Endpoints.ts"
import { follow } from "./Events.ts"
import * as Output from "./Output.ts"
import { Server } from "./Server.ts"
import { findDevices, findProduct } from "./SimulatedFleet.ts"
import type { Counts } from "./Simulation.ts"
import { line } from "./WatchCommand.ts"

/** Above, rates are printed in place of values. */
const readable = 10

const most = 10_000

export const simulateCommand = Command.make(
  "simulate",
  {
    devices: Flag.Int("devices").pipe(Flag.withDescription("How many (3)"), Flag.withDefault(3)),
    product: Flag.String("product").pipe(
      Flag.withDescription("Their product key; default: a thermostat that is made for simulations"),
      Flag.optional
    ),
    interval: Flag.Finite("interval").pipe(
      Flag.withDescription("Seconds between two reports of a device (2)"),
      Flag.withDefault(2)
    ),
    duration: Flag.Finite("duration").pipe(
      Flag.withDescription("Seconds until the end; default: until it is interrupted"),
      Flag.optional
    ),
    prefix: Flag.String("prefix").pipe(
      Flag.withDescription("What the names of the devices begin with (sim)"),
      Flag.withDefault("sim")
    ),
    ...endpointFlags
  },
  Effect.fnUntraced(function*({ devices: count, duration, interval, prefix, product, ...flags }) {
    if (count < 1 || count > most) return yield* usage(`--devices must be 1 to ${most}`)
    if (interval < 0.01) return yield* usage("--interval must be 0.01 seconds or more")
    const server = yield* Server
    const endpoint = yield* mqttEndpoint(server.url, flags)
    const { model, productKey } = yield* findProduct(Option.getOrUndefined(product))
    const names = Array.from({ length: count }, (_, i) => `${prefix}-${String(i + 1).padStart(4, "0")}`)
    const devices = yield* findDevices(productKey, names, `${prefix}-`)
    yield* Console.error(`${count} devices of ${productKey} connect to ${endpoint.url}.`)

    // What is printed is what the cloud tells, not what the devices say.
    const showsValues = count / interval <= readable
    if (showsValues) {
      const events = yield* follow({ product_key: productKey, type: "property,status" })
      yield* Stream.runForEach(
        events,
        Effect.fnUntraced(function*(event) {
          if (!(yield* Output.jsonLine(event))) yield* Console.log(line(event))
        })
      ).pipe(Effect.catch(({ message }) => Console.error(message)), Effect.forkScoped)
    }
    const { start } = yield* Effect.promise(() => import("./Simulation.ts"))
    const counts = yield* start({ endpoint, devices, model, interval: Duration.seconds(interval) })
    const begin = yield* Clock.currentTimeMillis
    let reports = 0
    const tick = Effect.gen(function*() {
      yield* Effect.sleep("1 second")
      const { failed, reason, refused } = counts
      reports += counts.reports
      if (!showsValues) yield* printRates(counts, (yield* Clock.currentTimeMillis) - begin)
      else if (refused + failed > 0) {
        const hint = counts.connected === 0 ? "; `device-cloud doctor` finds out why, --mqtt names another place" : ""
        yield* Console.error(`${refused + failed} failed: ${reason}${hint}`)
      }
      Object.assign(counts, { reports: 0, failed: 0, refused: 0, commands: 0, latencies: [] })
    })
    yield* Effect.forever(tick).pipe(
      Option.isSome(duration) ? Effect.timeoutOption(Duration.seconds(duration.value)) : (forever) => forever,
      Effect.ensuring(Effect.suspend(() => Console.error(`${reports + counts.reports} reports were acknowledged.`)))
    )
    if (reports + counts.reports === 0) {
      const hint = counts.reason.includes("certificate") ? ": --ca names the authority that devices trust" : ""
      return yield* failure(`No report was acknowledged. ${counts.reason}${hint}`.trim())
    }
  }, Effect.scoped)
).pipe(
  Command.withDescription(
    "Let devices connect over MQTT, report values that fit their thing model, and obey. Prints what the cloud tells of them, of many the rates. They are made when they are missing, and stay."
  ),
  Command.withShortDescription("Let simulated devices connect and report"),
  Command.provide(Server.layer)
)

const printRates = Effect.fnUntraced(function*(counts: Counts, millis: number) {
  const { commands, connected, failed, latencies, reason, refused, reports } = counts
  const sorted = latencies.toSorted((a, b) => a - b)
  const quantile = (part: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0
  const rates = {
    seconds: Math.round(millis / 1000),
    connected,
    reports,
    p50_ms: quantile(0.5),
    p99_ms: quantile(0.99),
    commands,
    failed: failed + refused
  }
  if (yield* Output.jsonLine(rates)) return
  yield* Console.log(
    `${String(rates.seconds).padStart(5)} s  ${connected} connected  ${reports} reports/s  ` +
      `p50 ${rates.p50_ms} ms  p99 ${rates.p99_ms} ms` +
      (commands > 0 ? `  ${commands} commands` : "") +
      (rates.failed > 0 ? `  ${rates.failed} failed: ${reason}` : "")
  )
})
