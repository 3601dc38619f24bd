/**
 * A gateway without hardware: a simulated device that carries sub-devices.
 */
import {
  type Device,
  type DeviceReply,
  fieldsText,
  type Json,
  Mac,
  sessionErrorMethod,
  type StoreError
} from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import { Clock, Deferred, Effect, type Scope } from "effect"
import {
  type ConnectRefused,
  type DeviceLink,
  type DeviceNames,
  type DeviceTriple,
  type Incoming,
  keyOf,
  type LinkEnd,
  type LinkError,
  type OpenLink,
  type Receive
} from "./device/DeviceLink.ts"
import { over } from "./device/DeviceOver.ts"
import { local, type LocalCloud, type LocalRefusal } from "./device/LocalLink.ts"
import { Refusal } from "./device/Refusal.ts"
import type { Behaviour, ConnectOptions, MqttConnectOptions, SimulatedDevice } from "./SimulatedDevice.ts"

type Sent = Effect.Effect<DeviceReply.DeviceReply, StoreError | LinkError>

/** A connected gateway. What it says about its sub-devices returns the cloud's reply. */
export interface SimulatedGateway<out D extends DeviceTriple = Device> extends SimulatedDevice<D> {
  /** Adds 1 to 30 sub-devices to its topology, each with its signature. */
  readonly add: (subDevices: ReadonlyArray<DeviceTriple>) => Sent
  /** Removes 1 to 30 sub-devices from its topology. */
  readonly remove: (subDevices: ReadonlyArray<DeviceNames>) => Sent
  /** Asks for its topology. `data`: `[{deviceName, productKey}]`. */
  readonly topology: Sent
  /** Names sub-devices that it has found, while an application lets it look for them. */
  readonly find: (subDevices: ReadonlyArray<DeviceNames>) => Sent
  /** Asks for the secrets of sub-devices that were created before. `data`: `[{iotId, productKey, deviceName, deviceSecret}]`. */
  readonly register: (subDevices: ReadonlyArray<DeviceNames>) => Sent
  /** Reports for itself and for sub-devices, each value and event as `{value, time}`. */
  readonly postPack: (pack: {
    readonly properties?: Readonly<Record<string, Json>>
    readonly events?: Readonly<Record<string, Json>>
    readonly subDevices?: ReadonlyArray<
      {
        readonly identity: DeviceNames
        readonly properties?: Readonly<Record<string, Json>>
        readonly events?: Readonly<Record<string, Json>>
      }
    >
  }) => Sent
  /**
   * Logs a sub-device in, which then speaks and listens over the connection of the
   * gateway; it logs out with the scope at the latest. Fails with `Refusal` if the
   * cloud does not admit it, for example 6401: it is not in the topology.
   */
  readonly login: <Sub extends DeviceTriple>(
    subDevice: Sub,
    behaviour?: Behaviour
  ) => Effect.Effect<SimulatedDevice<Sub>, Refusal | StoreError | LinkError, Scope.Scope>
}

/** Connects the gateway inside the process of the cloud, as `SimulatedDevice.connect` does. */
export const connect = (
  device: Device,
  options: ConnectOptions = {}
): Effect.Effect<SimulatedGateway, LocalRefusal, LocalCloud | Scope.Scope> =>
  gateway(device, local(device, options), options)

/** Connects a gateway to a server over MQTT, as `SimulatedDevice.connectMqtt` does. */
export const connectMqtt = (
  options: MqttConnectOptions
): Effect.Effect<SimulatedGateway<DeviceTriple>, ConnectRefused, Scope.Scope> =>
  Effect.promise(() => import("./device/MqttLink.ts")).pipe(
    Effect.flatMap(({ overMqtt }) => gateway(options, overMqtt(options, options), options)),
    Effect.provide(PlatformNode.layer)
  )

/** What ends the session of a sub-device: the codes of session errors (docs/protocol/gateways.md). */
const ends: Readonly<Record<number, LinkEnd>> = { 427: "replaced", 521: "deleted", 522: "disabled", 6401: "detached" }

/** A sub-device that is logged in. */
interface Carried {
  readonly receive: Receive
  readonly closed: Deferred.Deferred<LinkEnd>
}

const gateway = Effect.fnUntraced(function*<D extends DeviceTriple, E, R>(
  device: D,
  openLink: OpenLink<E, R>,
  behaviour: Behaviour
): Effect.fn.Return<SimulatedGateway<D>, E, R | Mac | Scope.Scope> {
  const mac = yield* Mac
  const carried = new Map<string, Carried>()

  const end = (names: DeviceNames, why: LinkEnd) => {
    const known = carried.get(keyOf(names))
    carried.delete(keyOf(names))
    if (known !== undefined) Deferred.doneUnsafe(known.closed, Effect.succeed(why))
  }

  const route = (incoming: Incoming) => {
    const { message: { method, params }, to } = incoming
    if (method === sessionErrorMethod) {
      const { code, data } = params as unknown as { readonly code: number; readonly data: DeviceNames }
      if (code in ends) end(data, ends[code]!)
    }
    return carried.get(keyOf(to))?.receive(incoming)
  }

  const { link, simulated } = yield* over(device, openLink, behaviour, route)
  const { send } = simulated

  /** What a sub-device signs for its gateway. A time below 10^11 counts as seconds. */
  const proofOf = ({ deviceName, deviceSecret, productKey }: DeviceTriple) =>
    Effect.map(Clock.currentTimeMillis, (now) => {
      const timestamp = String(now < 1e11 ? Math.floor(now / 1000) : now)
      const fields = { productKey, deviceName, clientId: deviceName, timestamp }
      return { ...fields, signMethod: "hmacSha256", sign: mac.sign("hmacsha256", deviceSecret, fieldsText(fields)) }
    })

  const subLink = (subDevice: DeviceTriple): OpenLink<Refusal | StoreError | LinkError, never> =>
    Effect.fnUntraced(function*(receive) {
      const closed = yield* Deferred.make<LinkEnd>()
      carried.set(keyOf(subDevice), { receive, closed })
      const { code, message } = yield* send("combine.login", yield* proofOf(subDevice))
      if (code !== 200) {
        carried.delete(keyOf(subDevice))
        return yield* new Refusal({ code, reason: message })
      }
      const logout = Effect.suspend(() =>
        carried.has(keyOf(subDevice))
          ? Effect.ignore(
            Effect.tap(send("combine.logout", nameOf(subDevice)), () => Effect.sync(() => end(subDevice, "lost")))
          )
          : Effect.void
      )
      yield* Effect.addFinalizer(() => logout)
      return { ...link, closed: Effect.race(Deferred.await(closed), link.closed), close: logout } satisfies DeviceLink
    })

  return {
    ...simulated,
    add: (subDevices) =>
      Effect.flatMap(Effect.forEach(subDevices, proofOf), (proofs) => send("thing.topo.add", proofs)),
    remove: (subDevices) => send("thing.topo.delete", subDevices.map(nameOf)),
    topology: send("thing.topo.get", {}),
    find: (subDevices) => send("thing.list.found", subDevices.map(nameOf)),
    register: (subDevices) => send("thing.sub.register", subDevices.map(nameOf)),
    postPack: (pack) => send("thing.event.property.pack.post", pack),
    login: (subDevice, options = {}) =>
      Effect.map(over(subDevice, subLink(subDevice), options), ({ simulated }) => simulated)
  }
})

const nameOf = ({ deviceName, productKey }: DeviceNames) => ({ productKey, deviceName })
