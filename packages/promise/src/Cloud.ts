/**
 * A cloud in this process, with promises.
 */
import {
  defaultProjectId,
  defaultWorker,
  DeviceCloud,
  Objects,
  type ObjectStore,
  type ProjectId,
  StoreError,
  type SubscriptionDraft,
  subscriptionEvent,
  SubscriptionReader,
  Subscriptions,
  TypedDevices,
  type TypedModel
} from "@device-cloud/core"
import { ManagementApi, type RequestPeer } from "@device-cloud/http"
import { Context, Effect, Exit, Layer, Scope } from "effect"
import { type CloudEvent, eventsOf, type EventSource, type SubscribeOptions, wait } from "./EventLoop.ts"
import { type Promised, promisedMembers, type PromisedServices, promisedServices, type Runner } from "./Promised.ts"
import { runnerOf } from "./Run.ts"

/** The services of the core, each under its name, and the events of a project. */
export interface PromisedCloud extends PromisedServices<(typeof DeviceCloud.services)[number]> {
  /**
   * The events of the subscription with this name, which is created if there is
   * none. An event is acknowledged when the loop asks for the next one: if it ends
   * before, by `break` or an error, the event comes again.
   *
   * ```ts
   * for await (const event of cloud.subscribe("fans", { filter: { kinds: ["PropertiesReported"] } })) {
   *   if (event.type === "property") await fan.follow(event.data.properties)
   * }
   * ```
   */
  readonly subscribe: (name: string, options?: CloudSubscribeOptions) => AsyncIterable<CloudEvent>
  /**
   * The devices of a typed model: what is set, called and read has its types
   * (docs/typed-models.md).
   *
   * ```ts
   * await cloud.typed(heater).services.heat("default", deviceId, { minutes: 5 })
   * ```
   */
  readonly typed: <M extends TypedModel>(model: M) => PromisedDevices<M>
  /** The same, whose calls and loops end when the signal aborts. They reject with its reason. */
  readonly withSignal: (signal: AbortSignal) => PromisedCloud
}

/** The devices of a typed model, with promises. */
export type PromisedDevices<M extends TypedModel> =
  & Promised<Omit<TypedDevices.TypedDevices<M>, "services">>
  & { readonly services: Promised<TypedDevices.TypedDevices<M>["services"]> }

/** How a subscription is read. `filter` and `start` count if it is created. */
export interface CloudSubscribeOptions extends SubscribeOptions, Pick<SubscriptionDraft, "filter" | "start"> {
  /** Default: the project that always exists. */
  readonly projectId?: string
}

/**
 * The cloud of a context with promises, for example in tests on a clock of their own.
 * `signal` ends the calls and loops.
 *
 * ```ts
 * const cloud = promised(yield* Effect.context<DeviceCloud.DeviceCloud>())
 * ```
 */
export const promised = (
  context: Context.Context<DeviceCloud.DeviceCloud>,
  signal?: AbortSignal
): PromisedCloud => promisedBy(runnerOf(context, signal), context)

const promisedBy = (runner: Runner, context: Context.Context<DeviceCloud.DeviceCloud>): PromisedCloud => {
  const services = promisedServices(
    DeviceCloud.services,
    (tag) => Context.get(context, tag as unknown as typeof Subscriptions),
    runner
  )
  return Object.defineProperties({}, {
    ...Object.getOwnPropertyDescriptors(services),
    ...Object.getOwnPropertyDescriptors({
      subscribe: (name: string, options: CloudSubscribeOptions = {}) =>
        runner.iterable(eventsOf(Effect.provide(sourceOf(name, options), context), isPassing, options.missed)),
      typed: (model: TypedModel) => {
        const devices = Effect.runSync(Effect.provide(TypedDevices.of(model), context))
        return { ...promisedMembers(devices, runner), services: promisedMembers(devices.services, runner) }
      },
      withSignal: (signal: AbortSignal) => promisedBy(runner.withSignal(signal), context)
    })
  }) as PromisedCloud
}

/** The parts of a cloud: layers, which are values that adapters export. */
export interface CloudParts {
  /** For example `StorageMemory.layer`. */
  readonly storage: Layer.Layer<DeviceCloud.Stores, unknown, DeviceCloud.Platform>
  /** For example `PlatformNode.layer`. */
  readonly platform: Layer.Layer<DeviceCloud.Platform, unknown>
  /** What runs as long as the cloud, for example `MqttServer.layer({ … })`. Default: nothing. */
  readonly servers?: ReadonlyArray<
    Layer.Layer<never, unknown, DeviceCloud.DeviceCloud | DeviceCloud.Platform | DeviceCloud.Stores>
  >
}

/** A cloud that runs in this process. */
export interface StartedCloud extends PromisedCloud, AsyncDisposable {
  /** Ends the cloud and what runs on it. Calls and loops reject then. Called again, it resolves when the cloud has ended. */
  readonly close: () => Promise<void>
}

/** A cloud with objects: files that applications upload. */
export interface CloudWithObjects extends StartedCloud {
  readonly objects: Promised<Objects["Service"]>
  /**
   * The management API as a function from request to response, to be mounted in a
   * server. `peer` is what the server knows of the connection; without an address,
   * all clients count as one for limits. When the cloud is closed, requests that have
   * no response get 503, and it rejects others. Rejects with the code
   * `InvalidRateLimit` if a limit of `rateLimits` cannot be read.
   */
  readonly fetchHandler: (
    options?: Partial<ManagementApi.Options>
  ) => Promise<(request: Request, peer?: RequestPeer) => Promise<Response>>
}

/**
 * Starts a cloud. It ends with `close`, or with the block of `await using`. Rejects
 * if a part cannot start, with a `TypeError` that names it if it is no layer.
 *
 * ```ts
 * await using cloud = await startCloud({ storage: StorageMemory.layer, platform: PlatformNode.layer })
 * const { productKey } = await cloud.products.create(defaultProjectId, draft)
 * const device = await cloud.devices.create(defaultProjectId, productKey, { nickname: "Desk" })
 * ```
 *
 * With `objects`, for example `MemoryObjectStore.layer` of the platform, it also
 * has objects and the management API.
 */
export const startCloud: {
  (
    parts: CloudParts & { readonly objects: Layer.Layer<ObjectStore, unknown, DeviceCloud.Platform> }
  ): Promise<CloudWithObjects>
  (parts: CloudParts): Promise<StartedCloud>
} = async (
  { objects, platform, servers = [], storage }: CloudParts & {
    readonly objects?: Layer.Layer<ObjectStore, unknown, DeviceCloud.Platform>
  }
): Promise<CloudWithObjects> => {
  checkLayers({ storage, platform, objects }, servers)
  const core = DeviceCloud.layer.pipe(
    Layer.provideMerge(
      objects === undefined ? storage : Layer.provideMerge(Objects.layer, Layer.merge(storage, objects))
    ),
    Layer.provideMerge(platform)
  )
  const all = servers.reduce<Layer.Layer<Provided, unknown>>(
    (cloud, server) => Layer.provideMerge(server, cloud),
    core as Layer.Layer<Provided, unknown>
  )
  const scope = Scope.makeUnsafe()
  const starter = runnerOf(Context.empty(), undefined)
  const close = () => starter.promise(Scope.close(scope, Exit.void))
  const context = await starter.promise(Layer.buildWithScope(all, scope)).catch(async (error: unknown) => {
    await close()
    throw error
  })
  const controller = new AbortController()
  const runner = runnerOf(context, controller.signal)
  let ended: Promise<void> | undefined
  const end = () => {
    controller.abort(new Error("The cloud is closed"))
    return ended ??= close()
  }
  return Object.defineProperties(promisedBy(runner, context), {
    ...Object.getOwnPropertyDescriptors({
      ...objects === undefined ? {} : {
        ...promisedServices([Objects], () => Context.get(context, Objects), runner),
        fetchHandler: async (options: Partial<ManagementApi.Options> = {}) => {
          const handle = await runner.promise(
            ManagementApi.fetchHandler({ readiness: {}, ...options }).pipe(
              Effect.provide(context),
              Scope.provide(scope)
            )
          )
          return async (request: Request, peer?: RequestPeer) => {
            controller.signal.throwIfAborted()
            try {
              return await runner.promise(Effect.promise(() => handle(request, peer)))
            } catch (error) {
              // The request came before the end: its server can still respond.
              if (controller.signal.aborted) return new Response(null, { status: 503 })
              throw error
            }
          }
        }
      },
      close: end,
      [Symbol.asyncDispose]: end
    })
  }) as CloudWithObjects
}

/** Programs in JavaScript may give something else: a module in place of its layer, a function that was not called. */
const checkLayers = (
  { objects, ...parts }: Record<"storage" | "platform" | "objects", unknown>,
  servers: unknown
): void => {
  if (!Array.isArray(servers)) throw new TypeError("servers: Expected an array of layers")
  const named = Object.entries(objects === undefined ? parts : { ...parts, objects })
  for (const [name, part] of [...named, ...servers.map((server, i) => [`servers[${i}]`, server] as const)]) {
    if (!Layer.isLayer(part)) throw new TypeError(`${name}: Expected a layer, for example StorageMemory.layer`)
  }
}

/** What a cloud with objects has. */
type Provided = DeviceCloud.DeviceCloud | DeviceCloud.Platform | DeviceCloud.Stores | Objects

/** The subscription with this name; it is created if there is none. */
const find = Effect.fnUntraced(function*(projectId: ProjectId, name: string, { filter, start }: CloudSubscribeOptions) {
  const subscriptions = yield* Subscriptions
  for (let page = 1;; page++) {
    const { items, total } = yield* subscriptions.list(projectId, { page, pageSize: 100 })
    const found = items.find((subscription) => subscription.name === name)
    if (found !== undefined) return found
    if (page * 100 >= total) break
  }
  return yield* subscriptions.create(projectId, { name, filter, start })
})

/** What a loop reads. */
const sourceOf = Effect.fnUntraced(function*(name: string, options: CloudSubscribeOptions) {
  const reader = yield* SubscriptionReader
  const { limit = 100, worker = defaultWorker } = options
  const projectId = (options.projectId ?? defaultProjectId) as ProjectId
  const { subscriptionId } = yield* find(projectId, name, options).pipe(
    // Another loop has created it at the same moment. The next attempt finds it.
    Effect.retry({ while: ({ _tag }) => _tag === "SubscriptionNameTaken", times: 3 })
  )
  const reading = { projectId, subscriptionId, worker }
  const acknowledge = (cursor: string) => reader.acknowledge(reading, cursor)
  const read = reader.read({ ...reading, cursor: undefined, limit, wait })
  type Failure = Effect.Error<typeof read> | Effect.Error<ReturnType<typeof acknowledge>>
  const source: EventSource<Failure> = {
    read: Effect.map(read, ({ cursor, entries, isGap }) => ({
      events: entries.map((entry) => subscriptionEvent(entry) as object as CloudEvent),
      cursor,
      isGap
    })),
    acknowledge,
    isLost: ({ _tag }) => _tag === "SubscriptionLeaseLost"
  }
  return source
})

/** Whether the storage is away. */
const isPassing = (failure: object): boolean => failure instanceof StoreError && failure.retryable
