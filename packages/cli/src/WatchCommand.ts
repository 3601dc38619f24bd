/**
 * `device-cloud watch`: what happens, as it happens.
 */
import { Code, DeviceCloudClient } from "@device-cloud/http"
import { Console, Effect, Option, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import { explain, isApiFailure } from "./CommandFailure.ts"
import { type Event, follow } from "./Events.ts"
import { deviceId } from "./OperationCommand.ts"
import * as Output from "./Output.ts"
import { patiently, Server } from "./Server.ts"

const types = ["status", "takeover", "property", "event", "reply", "upgrade", "lifecycle", "topology", "scene"] as const

export const watchCommand = Command.make(
  "watch",
  {
    product: Flag.String("product").pipe(Flag.withDescription("Devices of this product key"), Flag.optional),
    device: Flag.String("device").pipe(
      Flag.withDescription("This device: its id, or product-key/device-name"),
      Flag.optional
    ),
    type: Flag.Literals("type", types).pipe(Flag.withDescription("Events of this type (repeatable)"), Flag.atLeast(0))
  },
  Effect.fnUntraced(function*({ device, product, type }) {
    const cloud = yield* DeviceCloudClient
    if (Option.isSome(product)) {
      yield* exists(cloud.products.getProduct({ params: { product_key: product.value as never } }))
    }
    const id = Option.isSome(device) ? yield* deviceId(device.value) : undefined
    if (id !== undefined) yield* exists(cloud.devices.getDeviceStatus({ params: { device_id: id as never } }))
    const events = yield* follow({
      ...Option.isSome(product) ? { product_key: product.value } : {},
      ...id === undefined ? {} : { device_id: id },
      ...type.length > 0 ? { type: type.join(",") } : {}
    })
    yield* Stream.runForEach(events, print)
  })
).pipe(
  Command.withDescription(
    "Print what happens, as it happens, until it is interrupted. A broken connection is made again; nothing is missed."
  ),
  Command.withShortDescription("Print what happens, as it happens"),
  Command.provide(Server.layer)
)

const missing: ReadonlySet<number> = new Set([Code.noSuchProduct, Code.noSuchDevice])

/** Fails if there is nothing of that name, which has no events. All else is for the stream to say: a key may be for it alone. */
const exists = Effect.fnUntraced(function*(read: Effect.Effect<unknown, unknown>) {
  const { url } = yield* Server
  yield* patiently(read).pipe(
    Effect.catch((error) =>
      isApiFailure(error) && missing.has(error.code) ? Effect.fail(explain(url)(error)) : Effect.void
    )
  )
})

const print = Effect.fnUntraced(function*(event: Event) {
  if (yield* Output.jsonLine(event)) return
  yield* Console.log(line(event))
})

/** An event in one line, such as `12:00:01 a1b2c3/lamp property PowerSwitch=1`. */
export const line = ({ data, type }: Event): string => {
  const { device_id: _, device_name, product_key, time, ...rest } = data
  const device = device_name === undefined ? "" : `${Output.cell(product_key)}/${Output.cell(device_name)}`
  return [clock(time), device, type, details(rest)].filter((part) => part !== "").join("  ")
}

/** The time of day of a reader. */
const clock = (time: unknown): string =>
  typeof time === "number" ? new Date(time).toLocaleTimeString("en-GB", { hour12: false }) : "        "

const details = ({ properties, ...rest }: Readonly<Record<string, unknown>>): string =>
  [
    ...Object.entries((properties ?? {}) as Readonly<Record<string, { readonly value: unknown }>>)
      .map(([name, { value }]) => `${Output.cell(name)}=${Output.cell(value)}`),
    ...Object.entries(rest).flatMap(([name, value]) =>
      value === "" || value === null ? [] : [`${name.replaceAll("_", " ")} ${Output.cell(value)}`]
    )
  ].join("  ")
