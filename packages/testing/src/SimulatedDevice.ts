/**
 * A device without hardware: it signs, connects, talks, listens and reacts as a
 * real one. Inside the process of the cloud it needs no network; over MQTT and
 * HTTP it speaks to any server of the protocol.
 */
import type { Device, DeviceReply, DownlinkMessage, Json, StoreError } from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import { Effect, type Queue, type Scope } from "effect"
import type { ConnectRefused, DeviceLink, DeviceTriple, LinkEnd, LinkError } from "./device/DeviceLink.ts"
import { type Over, over } from "./device/DeviceOver.ts"
import type { Handlers, Values } from "./device/Handlers.ts"
import { type HttpOptions, overHttp } from "./device/HttpLink.ts"
import type { DeviceFaults } from "./device/LinkFaults.ts"
import { local, type LocalCloud, type LocalOptions, type LocalRefusal } from "./device/LocalLink.ts"
import type { MqttOptions } from "./device/MqttLink.ts"
import type { Refusal } from "./device/Refusal.ts"
import type { Registration } from "./device/Registration.ts"

export { ConnectRefused, type DeviceTriple, type LinkEnd, LinkError } from "./device/DeviceLink.ts"
export type { FirmwareImage, UpgradeOffer } from "./device/FirmwareUpgrade.ts"
export type { Handlers, Values } from "./device/Handlers.ts"
export type { HttpOptions } from "./device/HttpLink.ts"
export type { DeviceFaults } from "./device/LinkFaults.ts"
export type { LocalCloud, LocalRefusal } from "./device/LocalLink.ts"
export type { MqttOptions } from "./device/MqttLink.ts"
export { Refusal } from "./device/Refusal.ts"
export type { Registration } from "./device/Registration.ts"

/** A message that was stored, or refused: `code` 200 says that it took effect. */
type Sent = Effect.Effect<DeviceReply.DeviceReply, StoreError | LinkError>

/**
 * A connected device. What it sends returns the cloud's reply; a refusal is a
 * reply with another code than 200. It fails with `LinkError` if no reply comes,
 * inside the process with `StoreError` if the message could not be stored.
 */
export interface SimulatedDevice<out D extends DeviceTriple = Device> {
  /** What the device connected as. */
  readonly device: D
  /** Sends any message, for example `thing.event.property.post`. */
  readonly send: (method: string, params: unknown) => Sent
  /** Reports values of properties, each bare or as `{value, time}` (Unix milliseconds). */
  readonly postProperties: (values: Values) => Sent
  /** Reports an event with its outputs. */
  readonly postEvent: (eventId: string, outputs?: Values) => Sent
  /** Reports several values of each property and several events, each as `{value, time}`. */
  readonly postBatch: (batch: {
    readonly properties?: Readonly<Record<string, ReadonlyArray<Json>>>
    readonly events?: Readonly<Record<string, ReadonlyArray<Json>>>
  }) => Sent
  /** Sends bytes, as devices of raw products do. */
  readonly postBytes: (bytes: Uint8Array) => Sent
  /** Answers a command. Code 200: it was done. Default data: `{}`. Handlers do it by themselves. */
  readonly answer: (
    command: Pick<DownlinkMessage, "id" | "method">,
    code: number,
    data?: Json
  ) => Effect.Effect<void, StoreError | LinkError>
  /** Asks for the shadow. `data`: `{state, metadata, version}`. */
  readonly getShadow: Sent
  /**
   * Reports values in the shadow. `version`: greater than the stored one; default: the
   * device's time, or the next version after those that it has sent or heard of.
   */
  readonly reportShadow: (values: Values, version?: number) => Sent
  /** Deletes reported values, by property id; default: all. */
  readonly deleteReported: (propertyIds?: ReadonlyArray<string>) => Sent
  /** Clears desired values, by property id; default: all. */
  readonly clearDesired: (propertyIds?: ReadonlyArray<string>) => Sent
  /** Sets tags; others stay. */
  readonly setTags: (tags: Readonly<Record<string, string>>) => Sent
  /** Asks for tags, by their keys; default: all. `data`: `[{attrKey, attrValue}]`. */
  readonly getTags: (keys?: ReadonlyArray<string>) => Sent
  /** Removes tags. */
  readonly deleteTags: (keys: ReadonlyArray<string>) => Sent
  /** Sends a message on a user topic, the levels after `user/`. */
  readonly sendUserMessage: (topic: string, payload: string | Uint8Array) => Sent
  /** Reports the version that it runs. Default module: `default`. */
  readonly inform: (version: string, module?: string) => Sent
  /** Asks whether there is firmware, and hands it to the handler of upgrades. Default module: `default`. */
  readonly checkUpgrade: (module?: string) => Sent
  /** Downloads its configuration. Fails with `Refusal` 6713 if there is none. */
  readonly getConfiguration: Effect.Effect<Uint8Array, StoreError | LinkError | Refusal>
  /** Returns the bytes at an address that the cloud has told the device. */
  readonly download: DeviceLink["download"]
  /** The time of the device's clock, Unix milliseconds. */
  readonly now: Effect.Effect<number>
  /**
   * Asks the cloud for the time and sets the device's clock. Returns by how many
   * milliseconds it was wrong. Fails with `Refusal` if the cloud does not tell it:
   * the clock stays as it is.
   */
  readonly syncTime: Effect.Effect<number, StoreError | LinkError | Refusal>
  /** What the cloud sent and no handler took, in order: commands, shadow documents and more. It keeps the latest 1024. */
  readonly received: Queue.Dequeue<DownlinkMessage>
  /** Cuts the connection so that neither side hears of it: half open. What the device sends gets no reply. */
  readonly cut: Effect.Effect<void>
  /** Waits until the connection has ended, and returns why. */
  readonly closed: Effect.Effect<LinkEnd>
  /** Ends the connection from the device's side. A second time it does nothing. */
  readonly disconnect: Effect.Effect<void>
}

/** How a device behaves, whatever link it has. */
export interface Behaviour {
  /** What it does when the cloud speaks to it. Default: it does nothing, and messages stay in `received`. */
  readonly on?: Handlers
  /** What goes wrong. Default: nothing. */
  readonly faults?: DeviceFaults
}

/** How a device connects inside the process. */
export interface ConnectOptions extends LocalOptions, Behaviour {}

/**
 * Connects the device inside the process of the cloud; it disconnects with the
 * scope at the latest. Fails as a real CONNECT does, for example with
 * `WrongSignature` or `DeviceDisabled`.
 *
 * ```ts
 * const lamp = yield* SimulatedDevice.connect(device, {
 *   on: { services: { reset: ({ hard }) => Effect.succeed({ was: hard ?? 0 }) } }
 * })
 * yield* lamp.postProperties({ power: 1 })
 * ```
 */
export const connect = (
  device: Device,
  options: ConnectOptions = {}
): Effect.Effect<SimulatedDevice, LocalRefusal, LocalCloud | Scope.Scope> =>
  Effect.map(over(device, local(device, options), options), simulatedOf)

/** How a device connects over MQTT. */
export interface MqttConnectOptions extends DeviceTriple, MqttOptions, Behaviour {}

/**
 * Connects a device to a server over MQTT; it disconnects with the scope at the
 * latest, and does not come back by itself when the connection ends. Fails with
 * `ConnectRefused`.
 *
 * ```ts
 * const lamp = yield* SimulatedDevice.connectMqtt({
 *   url: "mqtts://localhost:8883",
 *   productKey: "a1B2c3D4e5F",
 *   deviceName: "thermostat01",
 *   deviceSecret: "0123456789abcdef0123456789abcdef"
 * })
 * ```
 */
export const connectMqtt = (
  options: MqttConnectOptions
): Effect.Effect<SimulatedDevice<DeviceTriple>, ConnectRefused, Scope.Scope> =>
  mqttLink.pipe(
    Effect.flatMap(({ overMqtt }) => over(options, overMqtt(options, options), options)),
    Effect.map(simulatedOf),
    Effect.provide(PlatformNode.layer)
  )

/** How a device sends its messages over HTTP. */
export interface HttpConnectOptions extends DeviceTriple, HttpOptions, Behaviour {}

/**
 * A device that sends its messages over HTTP. It gets commands with the reply to
 * its next message, and nothing else of the cloud.
 */
export const connectHttp = (
  options: HttpConnectOptions
): Effect.Effect<SimulatedDevice<DeviceTriple>, never, Scope.Scope> =>
  Effect.provide(Effect.map(over(options, overHttp(options, options), options), simulatedOf), PlatformNode.layer)

/**
 * Gets the triple of a device that knows only the secret of its product, over
 * MQTT (TLS only) or HTTP. Fails with `ConnectRefused`.
 */
export const register = (options: Registration): Effect.Effect<DeviceTriple, ConnectRefused> =>
  Effect.promise(() => import("./device/Registration.ts")).pipe(
    Effect.flatMap(({ registerOver }) => registerOver(options)),
    Effect.provide(PlatformNode.layer)
  )

/** Only programs that use MQTT load its client. */
const mqttLink = Effect.promise(() => import("./device/MqttLink.ts"))

const simulatedOf = <D extends DeviceTriple>({ simulated }: Over<D>) => simulated
