/**
 * The shadow in the form in which devices and applications read it
 * (docs/protocol/shadow.md).
 */
import type { Json } from "../kernel/Json.ts"
import type { Shadow, ShadowSide } from "./Shadow.ts"

const seconds = (millis: number): number => Math.floor(millis / 1000)

const values = (side: ShadowSide) =>
  Object.fromEntries(Object.entries(side).map(([id, { value }]): [string, Json] => [id, value]))

const times = (side: ShadowSide) =>
  Object.fromEntries(Object.entries(side).map(([id, { time }]) => [id, { timestamp: seconds(time) }]))

/** State and metadata of a shadow; times in Unix seconds. */
export const shadowDocument = ({ desired, reported }: Pick<Shadow, "desired" | "reported">) => ({
  state: { reported: values(reported), desired: values(desired) },
  metadata: { reported: times(reported), desired: times(desired) }
})

/** The message that tells a device its desired values. */
export const shadowControl = (shadow: Shadow) => ({
  method: "thing.shadow",
  params: { version: shadow.version, timestamp: seconds(shadow.updatedAt ?? 0), ...shadowDocument(shadow) }
})
