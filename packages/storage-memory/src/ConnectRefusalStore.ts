/**
 * Why devices could not connect, in memory.
 */
import { type ConnectRefusal, ConnectRefusalStore, deviceKey, keptRefusals } from "@device-cloud/core"
import { Effect, Layer } from "effect"
import { Tables } from "./Tables.ts"

/** Can be replaced alone. It drops refusals of devices that its tables do not have. */
export const layer: Layer.Layer<ConnectRefusalStore, never, Tables> = Layer.effect(
  ConnectRefusalStore,
  Effect.map(Tables, (tables) => make(tables))
)

const latestFirst = (a: ConnectRefusal, b: ConnectRefusal) => b.at - a.at

const make = ({ connectRefusals, deviceNames }: Tables["Service"]) =>
  ConnectRefusalStore.of({
    add: (refusals) =>
      Effect.sync(() => {
        for (const { deviceName, productKey, ...refusal } of refusals) {
          const deviceId = deviceNames.get(deviceKey({ productKey, deviceName }))
          if (deviceId === undefined) continue
          const known = connectRefusals.get(deviceId) ?? []
          const isEqual = ({ address, reason }: ConnectRefusal) =>
            address === refusal.address && reason === refusal.reason
          const before = known.find(isEqual)
          const after = before === undefined ? refusal : {
            ...refusal,
            times: before.times + refusal.times,
            firstAt: Math.min(before.firstAt, refusal.firstAt),
            at: Math.max(before.at, refusal.at)
          }
          const others = known.filter((one) => one !== before)
          connectRefusals.set(deviceId, [after, ...others].toSorted(latestFirst).slice(0, keptRefusals))
        }
      }),
    of: (deviceId) => Effect.sync(() => connectRefusals.get(deviceId) ?? [])
  })
