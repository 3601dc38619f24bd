import {
  type DeviceChange,
  DeviceId,
  type DeviceIdentity,
  DeviceName,
  emptyShadow,
  ProductKey,
  ProjectId,
  type Reactions,
  type ShadowEntry
} from "@device-cloud/core"
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { DeviceState } from "../src/uplink/DeviceState.ts"

const device: DeviceIdentity = {
  deviceId: DeviceId.make("device"),
  productKey: ProductKey.make("product0001"),
  deviceName: DeviceName.make("name"),
  projectId: ProjectId.make("project"),
  validateType: "none"
}

type Messages = ReadonlyArray<ReadonlyArray<readonly [id: string, entry: ShadowEntry]>>

/** Properties with their values, and those before. */
type Changes = Readonly<Record<string, unknown>>

const mayFire = (id: string, value: unknown): boolean => id === "toString" || value === (id === "a" ? 2 : 1)

/** What a state emits that follows changes; one that does not must say so where there is something. */
const fired = (messages: Messages): ReadonlyArray<Changes> => {
  const events: Array<Changes> = []
  const watch: Pick<Reactions["Service"], "watches" | "propertyWatch" | "reactTo"> = {
    watches: () => false,
    propertyWatch: () => ({ mayFire }),
    reactTo: (_, event: DeviceChange) => {
      if (event._tag === "PropertiesChanged") events.push(event.properties)
      return []
    }
  }
  const [following, other] = [true, false].map((follows) =>
    new DeviceState(device, emptyShadow(device.deviceId), undefined, watch, follows)
  ) as [DeviceState, DeviceState]
  for (const values of messages) for (const state of [following, other]) state.report(values, 1000)
  assert.isFalse(following.mustFollow)
  if (events.length > 0) assert.isTrue(other.mustFollow)
  assert.deepStrictEqual(other.draft.reported, following.draft.reported)
  return events
}

/** The same, with every step written down. */
const expected = (messages: Messages): ReadonlyArray<Changes> => {
  const events: Array<Changes> = []
  const stored = new Map<string, ShadowEntry>()
  for (const values of messages) {
    const seen = new Set<string>()
    let changes: Record<string, object> = {}
    let fires = false
    for (const [id, { time, value }] of values) {
      const before = stored.get(id)
      if (before === undefined || time >= before.time) {
        stored.set(id, { value, time })
        if (before?.value !== value) {
          if (fires && seen.has(id)) {
            events.push(changes)
            changes = {}
            fires = false
          }
          changes[id] = before === undefined ? { value, time } : { value, time, previous: before.value }
          fires ||= mayFire(id, value)
        } else if (Object.hasOwn(changes, id)) changes[id] = { ...changes[id], time }
      }
      seen.add(id)
    }
    if (fires) events.push(changes)
  }
  return events
}

describe("what a report fires", () => {
  const small = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 3 }))
  const Value = Schema.Tuple([
    Schema.Literals(["a", "b", "toString"]),
    Schema.Struct({ value: small, time: small })
  ])

  it.prop(
    "each of several values of a property in a message is a change of its own, if it is stored and another",
    [Schema.Array(Schema.Array(Value))],
    ([messages]) => assert.deepStrictEqual(fired(messages), expected(messages)),
    { arbitrary: { runs: 1000 } }
  )
})
