/**
 * The test cloud with promises, for tests in any runner.
 */
import {
  type Device,
  DeviceCloud,
  type DeviceDraft,
  type DownlinkMessage,
  Objects,
  type Product,
  type ProductDraft
} from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import {
  type Given,
  type Promised,
  promised,
  type PromisedCloud,
  promisedMembers,
  runnerOf
} from "@device-cloud/promise"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Clock, Context, Duration, Effect, Exit, Layer, Option, Queue, Scope } from "effect"
import { HttpServer } from "effect/http"
import { TestClock } from "effect/testing"
import type { DeviceTriple } from "./device/DeviceLink.ts"
import * as Fixtures from "./Fixtures.ts"
import * as SimulatedDevice from "./SimulatedDevice.ts"
import * as SimulatedGateway from "./SimulatedGateway.ts"
import type { Endpoint } from "./mqtt/MqttTestServer.ts"

type Members<Of> = Omit<Promised<Of>, "device" | "received">

/** A simulated device with promises. */
export interface PromisedDevice<out D extends DeviceTriple = Device> extends Members<SimulatedDevice.SimulatedDevice> {
  /** What the device connected as. */
  readonly device: D
  /** What the cloud has sent since the last call and no handler took, in order. */
  readonly received: () => Promise<ReadonlyArray<DownlinkMessage>>
}

/** A simulated gateway with promises. */
export interface PromisedGateway extends PromisedDevice, Omit<Members<SimulatedGateway.SimulatedGateway>, "login"> {
  /**
   * Logs a sub-device in; it logs out with the cloud at the latest. Rejects with the
   * code `Refusal` if the cloud does not admit it.
   */
  readonly login: (subDevice: Device, behaviour?: PromisedBehaviour) => Promise<PromisedDevice>
}

type Handlers = SimulatedDevice.Handlers

type Services = NonNullable<Handlers["services"]>

type PromisedHandler<Handler> = Handler extends
  (first: infer First, device: infer _Device) => Effect.Effect<infer Result, infer _E>
  ? (first: First, device: PromisedDevice<DeviceTriple>) => Result | Promise<Result>
  : never

/** Handlers that return values or promises, and throw `SimulatedDevice.Refusal`. */
export type PromisedHandlers =
  & {
    readonly [Name in Exclude<keyof Handlers, "services">]?: PromisedHandler<NonNullable<Handlers[Name]>>
  }
  & { readonly services?: Readonly<Record<string, PromisedHandler<Services[string]>>> }

/** How a device behaves. */
export interface PromisedBehaviour {
  /** What it does when the cloud speaks to it. Default: nothing; messages wait in `received`. */
  readonly on?: PromisedHandlers
  /** What goes wrong. Default: nothing. */
  readonly faults?: SimulatedDevice.DeviceFaults
}

export interface StartOptions {
  /**
   * When its time begins, from 1970 to 2254. Default: the first of January 2026, 0:00
   * UTC; with ports, now.
   */
  readonly time?: Date
  /** Opens MQTT ports on loopback, with TLS and without. Default false. */
  readonly mqtt?: boolean
  /** Opens an HTTP port on loopback: the management API, registration and HTTP uplink of devices. Default false. */
  readonly http?: boolean
}

/** A cloud in the process of the test. */
export interface StartedTestCloud extends PromisedCloud, AsyncDisposable {
  /** Uploaded files. */
  readonly objects: Promised<Objects["Service"]>
  /** Creates a product of the default project: {@link Fixtures.productDraft} with other fields. */
  readonly createProduct: (draft?: Partial<ProductDraft>) => Promise<Product>
  /** Creates a device of the default project. Default: of a product of its own. */
  readonly createDevice: (product?: Pick<Product, "productKey">, draft?: Given<DeviceDraft>) => Promise<Device>
  /** Connects a device inside the process. Rejects as a CONNECT is refused, for example with `DeviceDisabled`. */
  readonly connect: (
    device: Device,
    behaviour?: PromisedBehaviour & Omit<SimulatedDevice.ConnectOptions, "on" | "faults">
  ) => Promise<PromisedDevice>
  /** Connects a gateway inside the process. */
  readonly connectGateway: (device: Device, behaviour?: PromisedBehaviour) => Promise<PromisedGateway>
  /** Lets time pass, for example `"5 minutes"`, not beyond 2254. What is due in it has happened when the promise resolves. */
  readonly advance: (time: Duration.Input) => Promise<void>
  /** The time of the cloud. */
  readonly now: () => Date
  /** Where devices connect; undefined unless it was started with `mqtt`. */
  readonly mqtt: { readonly tcp: Endpoint; readonly tls: Endpoint } | undefined
  /** Where the API is, and a key of its owner; undefined unless it was started with `http`. */
  readonly http: { readonly url: string; readonly accessKey: string } | undefined
  /** Ends the cloud, with its devices. Calls and loops reject then. Called again, it resolves when the cloud has ended. */
  readonly close: () => Promise<void>
}

/** Storage in memory makes numbers of its events of the time, Unix milliseconds: beyond it they are not exact. */
const endOfTime = Date.UTC(2255, 0)

/** A step of time while ports are open, milliseconds. */
const tick = 10

/** Starts a cloud with storage in memory, and time that stands still unless it has ports. */
export const start = async ({ http = false, mqtt = false, time }: StartOptions = {}): Promise<StartedTestCloud> => {
  const scope = Scope.makeUnsafe()
  const starter = runnerOf(Context.empty(), undefined)
  const hasPorts = http || mqtt
  const begin = time ?? (hasPorts ? new Date() : new Date(Date.UTC(2026, 0)))
  if (typeof begin !== "object" || !Number.isFinite(begin.valueOf())) {
    throw new TypeError(`time: expected a valid Date, not ${String(time)}`)
  }
  if (begin.getTime() < 0 || begin.getTime() >= endOfTime) {
    throw new TypeError(`time: expected a Date from 1970 to 2254, not ${begin.toISOString()}`)
  }
  const clock = Layer.effectDiscard(TestClock.setTime(begin.getTime())).pipe(Layer.provideMerge(TestClock.layer()))
  const cloud = DeviceCloud.layer.pipe(
    Layer.provideMerge(Objects.layer.pipe(Layer.provide(PlatformNode.MemoryObjectStore.layer))),
    Layer.provideMerge(StorageMemory.layer),
    Layer.provideMerge(PlatformNode.layer),
    Layer.provideMerge(clock)
  )
  const core = await starter.promise(Layer.buildWithScope(cloud, scope))
  const controller = new AbortController()
  const callRunner = runnerOf(core, controller.signal)
  const run = <A, E>(
    effect: Effect.Effect<A, E, DeviceCloud.DeviceCloud | DeviceCloud.Platform | Objects | Scope.Scope>
  ) => callRunner.promise(effect.pipe(Effect.provide(core), Scope.provide(scope)))
  // A device knows by itself that its connection has ended.
  const runner = runnerOf(core, undefined)

  const now = () => new Date(Effect.runSyncWith(core)(Clock.currentTimeMillis))

  // Movements of time take turns: sockets have time of their own, so it flows, and tests let it pass.
  let moved: Promise<void> = Promise.resolve()
  const advance = (time: Duration.Input) => {
    const movement = moved.then(() => {
      const duration = Option.getOrUndefined(Duration.fromInput(time))
      if (duration === undefined) {
        throw new TypeError(`time: expected milliseconds or a duration such as "5 minutes", not ${String(time)}`)
      }
      if (Number.isNaN(time) || Duration.isNegative(duration)) {
        throw new TypeError(`time: expected a duration that is not negative, not ${String(time)}`)
      }
      if (now().getTime() + Duration.toMillis(duration) >= endOfTime) {
        throw new TypeError(`time: expected a duration that ends before 2255, not ${String(time)}`)
      }
      return callRunner.promise(TestClock.adjust(duration))
    })
    moved = movement.catch(() => undefined)
    return movement
  }
  let flowing: NodeJS.Timeout | undefined
  let ended: Promise<void> | undefined
  const end = async () => {
    clearInterval(flowing)
    controller.abort(new Error("The cloud is closed"))
    await moved
    await starter.promise(Scope.close(scope, Exit.void))
  }
  const close = () => ended ??= end()
  if (hasPorts) {
    let last = performance.now()
    flowing = setInterval(() => {
      const elapsed = Math.floor(performance.now() - last)
      last += elapsed
      // The end of the cloud interrupts the last one.
      advance(elapsed).catch(() => undefined)
    }, tick)
  }
  const { address, endpoints } = await run(ports({ http, mqtt })).catch(async (error: unknown) => {
    await close()
    throw error
  })

  const deviceOf = <D extends DeviceTriple>(device: SimulatedDevice.SimulatedDevice<D>) =>
    ({
      ...promisedMembers(device, runner),
      received: () =>
        runner.promise(Effect.flatMap(Queue.size(device.received), (size) => Queue.takeN(device.received, size)))
    }) as unknown as PromisedDevice<D>

  const behaviourOf = ({ faults, on = {} }: PromisedBehaviour): SimulatedDevice.Behaviour => ({
    ...faults === undefined ? {} : { faults },
    on: handlersOf(on, deviceOf)
  })

  const connectGateway: StartedTestCloud["connectGateway"] = async (device, behaviour = {}) => {
    const gateway = await run(SimulatedGateway.connect(device, behaviourOf(behaviour)))
    return {
      ...deviceOf(gateway),
      login: async (subDevice: Device, behaviour: PromisedBehaviour = {}) =>
        deviceOf(await run(gateway.login(subDevice, behaviourOf(behaviour))))
    } as unknown as PromisedGateway
  }

  return Object.defineProperties(promised(core, controller.signal), {
    ...Object.getOwnPropertyDescriptors({
      objects: promisedMembers(Context.get(core, Objects), callRunner),
      createProduct: (draft?: Partial<ProductDraft>) => run(Fixtures.createProduct(draft)),
      createDevice: (product?: Product, draft?: DeviceDraft) => run(Fixtures.createDevice(product, draft)),
      connect: async (device: Device, { faults, on, ...how }: Parameters<StartedTestCloud["connect"]>[1] = {}) =>
        deviceOf(
          await run(
            SimulatedDevice.connect(device, { ...how, ...behaviourOf({ ...on && { on }, ...faults && { faults } }) })
          )
        ),
      connectGateway,
      advance,
      now,
      mqtt: endpoints,
      http: address,
      close,
      [Symbol.asyncDispose]: close
    })
  }) as StartedTestCloud
}

/** Opens the ports; they close with the scope. */
const ports = Effect.fnUntraced(function*({ http, mqtt }: { readonly http: boolean; readonly mqtt: boolean }) {
  const services = yield* Effect.context<DeviceCloud.DeviceCloud | Objects>()
  const scope = yield* Effect.scope
  const open = <A, E>(layer: Layer.Layer<A, E, unknown>) =>
    Layer.buildWithScope(layer as Layer.Layer<A, E>, scope).pipe(Effect.provide(services))
  const endpoints = mqtt
    ? yield* Effect.flatMap(
      Effect.promise(() => import("./mqtt/MqttTestServer.ts")),
      ({ MqttTestServer }) => Effect.map(open(MqttTestServer.layerBroker()), Context.get(MqttTestServer))
    )
    : undefined
  const address = http
    ? yield* Effect.gen(function*() {
      const { apiServer, ownerKey } = yield* Effect.promise(() => import("./http/TestApi.ts"))
      const server = Context.get(yield* open(apiServer()), HttpServer.HttpServer)
      return { url: HttpServer.formatAddress(server.address), accessKey: ownerKey }
    })
    : undefined
  return { endpoints, address }
})

/** Handlers as a device runs them. What a handler throws is a bug of the test, unless it is a `Refusal`. */
const handlersOf = (
  { services = {}, ...handlers }: PromisedHandlers,
  deviceOf: <D extends DeviceTriple>(device: SimulatedDevice.SimulatedDevice<D>) => PromisedDevice<D>
): Handlers => {
  const wrapAll = (all: object) =>
    Object.fromEntries(
      Object.entries(all).map(([name, handle]: [string, PromisedHandler<Services[string]>]) => [
        name,
        (first: never, device: SimulatedDevice.SimulatedDevice<DeviceTriple>) =>
          Effect.tryPromise(async () => handle(first, deviceOf(device))).pipe(
            Effect.catch(({ cause }) =>
              cause instanceof SimulatedDevice.Refusal ? Effect.fail(cause) : Effect.die(cause)
            )
          )
      ])
    )
  return { ...wrapAll(handlers), services: wrapAll(services) } as Handlers
}
