/**
 * Finds the scenes that a change of a device fires, without asking the store: the
 * scenes of a product are read when one of its devices first says something.
 */
import { Context, Effect, Layer, Queue, Schema, Semaphore } from "effect"
import { Identifiers } from "../../kernel/Identifiers.ts"
import type { DeviceChange } from "../../events/DeviceChange.ts"
import { type PropertyWatch, Reactions } from "../../events/Reactions.ts"
import * as NodeCache from "../../kernel/NodeCache.ts"
import { NodeBus } from "../../cluster/NodeBus.ts"
import { ProductKey } from "../../product/Product.ts"
import type { ProjectId } from "../../project/Project.ts"
import { type StoreError, untilStored } from "../../kernel/StoreError.ts"
import type { NewExecution } from "./NewExecution.ts"
import { type Scene, watchedProducts } from "../definition/Scene.ts"
import { SceneId } from "../definition/SceneId.ts"
import { SceneBacklog } from "./SceneBacklog.ts"
import type { SceneEvent } from "./SceneEvent.ts"
import { type Lasting, SceneIndex } from "./SceneIndex.ts"
import { SceneStore } from "../definition/SceneStore.ts"

export class SceneTriggers extends Context.Service<SceneTriggers, {
  /** Returns whether the scenes of the product are read and current. An unread product fires no scene. */
  readonly isLoaded: (productKey: ProductKey) => boolean
  /** Reads the scenes of those products that are not read yet, or were read long ago. */
  readonly load: (productKeys: ReadonlyArray<ProductKey>) => Effect.Effect<void, StoreError>
  /** Returns whether this kind of change of the device may fire a scene. */
  readonly watches: (
    kind: DeviceChange["_tag"],
    device: { readonly productKey: ProductKey; readonly deviceName: string }
  ) => boolean
  /** Returns which properties of the device may fire a scene; undefined: none. */
  readonly propertyWatch: (
    device: { readonly productKey: ProductKey; readonly deviceName: string }
  ) => PropertyWatch | undefined
  /**
   * Returns an execution of each scene that the change fires and the project has
   * room for, and those that wait for the status to last, to be stored with the
   * change.
   */
  readonly reactTo: (projectId: ProjectId, change: DeviceChange) => ReadonlyArray<NewExecution>
  /** Returns the scenes that a value of the property may fire. */
  readonly watchersOf: (
    device: { readonly productKey: ProductKey; readonly deviceName: string },
    propertyId: string
  ) => ReadonlyArray<Scene>
  /** Returns the scenes that wait when the device changes to the status, at most `maxWaiting`. */
  readonly waitersOf: (
    device: { readonly productKey: ProductKey; readonly deviceName: string },
    status: "online" | "offline"
  ) => ReadonlyArray<Scene>
  /**
   * Takes a stored change of a scene into account, here and on the other nodes at once, and
   * within ten seconds where the notice does not reach, or when this call does not happen.
   * Undefined: there was, or is, no scene.
   */
  readonly changed: (before: Scene | undefined, after: Scene | undefined) => Effect.Effect<void>
  /** Returns a new execution of the scene. `at`: Unix milliseconds. */
  readonly execution: (
    scene: { readonly projectId: ProjectId; readonly sceneId: SceneId },
    event: SceneEvent,
    at: number
  ) => NewExecution
  /** Says that executions have been stored, so that the runner does not wait for its next round. */
  readonly wake: () => void
  /** Gets an element after `wake`. */
  readonly wakeUps: Queue.Dequeue<void>
}>()("@device-cloud/core/scene/matching/SceneTriggers") {
  static readonly layer: Layer.Layer<SceneTriggers, never, SceneStore | SceneBacklog | NodeBus | Identifiers> = Layer
    .effect(
      SceneTriggers,
      Effect.suspend(() => make)
    )

  /** Executions of scenes are the reactions to changes of devices. */
  static readonly layerReactions: Layer.Layer<Reactions, never, SceneTriggers> = Layer.effect(Reactions, SceneTriggers)
}

/** Products whose scenes are kept. */
const capacity = 16_384

/** How long scenes as they were may count after a change that was not told, milliseconds. */
const timeToLive = 10_000

const SceneChanged = NodeBus.channel(
  "scene/changed",
  /** The scene is another one now, or gone; devices of these products set it off, or did. */
  Schema.Struct({ sceneId: SceneId, productKeys: Schema.Array(ProductKey) })
)

const make = Effect.gen(function*() {
  const store = yield* SceneStore
  const backlog = yield* SceneBacklog
  const channel = yield* SceneChanged
  const prefix = yield* (yield* Identifiers).prefix
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const wakeUps = yield* Queue.sliding<void>(1)
  /** Reading scenes and hearing of changes: one after the other, so that the newer counts. */
  const reading = yield* Semaphore.make(1)
  let lastNumber = 0

  const read = Effect.fnUntraced(function*(productKeys: ReadonlyArray<ProductKey>) {
    const scenes = yield* store.watching(productKeys)
    const indexes = new Map(productKeys.map((productKey) => [productKey, new SceneIndex(productKey)]))
    for (const scene of scenes) {
      for (const productKey of watchedProducts(scene)) indexes.get(productKey)?.put(scene)
    }
    return indexes
  })

  /** By product, also those that no scene watches. An index that is stale counts until it is read again. */
  const indexes = yield* NodeCache.make({ capacity, timeToLive, load: read })

  const isLoaded = (productKey: ProductKey): boolean => indexes.fresh(productKey) !== undefined

  const indexOf = indexes.last

  const execution = (
    { projectId, sceneId }: { readonly projectId: ProjectId; readonly sceneId: SceneId },
    event: SceneEvent,
    at: number
  ): NewExecution => ({
    executionId: `${prefix}${(++lastNumber).toString(36)}`,
    sceneId,
    projectId,
    at,
    event,
    chain: []
  })

  const waiting = (
    projectId: ProjectId,
    { at, device, status }: DeviceChange & { readonly _tag: "StatusChanged" },
    lasting: ReadonlyArray<Lasting>
  ): ReadonlyArray<NewExecution> =>
    lasting.map(({ minutes, scene: { sceneId } }) => {
      const until = at + 60_000 * minutes
      const event: SceneEvent = { _tag: "StatusLasted", device, at: until, status, minutes, since: at }
      return execution({ projectId, sceneId }, event, until)
    })

  const load = (productKeys: ReadonlyArray<ProductKey>) =>
    Effect.suspend(() =>
      productKeys.every(isLoaded) ? Effect.void : reading.withPermit(Effect.asVoid(indexes.get(productKeys)))
    )

  /** Reads a scene again, for the products that are known. */
  const refresh = (sceneId: SceneId, productKeys: ReadonlyArray<ProductKey>) =>
    Effect.suspend(() => {
      const concerned = productKeys.flatMap((productKey) => {
        const index = indexOf(productKey)
        return index === undefined ? [] : [{ productKey, index }]
      })
      if (concerned.length === 0) return Effect.void
      return Effect.map(store.find([sceneId]), ([scene]) => {
        const watched = scene?.status === "enable" ? watchedProducts(scene) : []
        for (const { index, productKey } of concerned) {
          if (scene !== undefined && watched.includes(productKey)) index.put(scene)
          else index.remove(sceneId)
        }
      })
    }).pipe(
      (read) => reading.withPermit(read),
      Effect.catch(() => Effect.sync(indexes.forgetAll))
    )

  yield* channel.subscribe({
    heard: ({ productKeys, sceneId }) => refresh(sceneId, productKeys),
    missed: Effect.sync(indexes.forgetAll)
  })

  const changed = Effect.fnUntraced(function*(before: Scene | undefined, after: Scene | undefined) {
    const scenes = [before, after].flatMap((scene) => scene ?? [])
    const productKeys = [...new Set(scenes.flatMap(watchedProducts))]
    const sceneId = scenes[0]?.sceneId
    if (sceneId === undefined || productKeys.length === 0) return
    yield* refresh(sceneId, productKeys)
    const tell = channel.publish([{ sceneId, productKeys }])
    // It has been stored: others must learn of it, however long that takes.
    const again = untilStored(tell).pipe(
      Effect.catch((error) => Effect.logWarning("Other nodes could not be told of a scene", error))
    )
    yield* tell.pipe(Effect.catch(() => Effect.sync(() => void runFork(again))))
  })

  return SceneTriggers.of({
    isLoaded,
    load,
    watches: (kind, { deviceName, productKey }) => indexOf(productKey)?.watches(kind, deviceName) === true,
    propertyWatch: ({ deviceName, productKey }) => indexOf(productKey)?.propertyWatch(deviceName),
    reactTo: (projectId, event) => {
      const index = indexOf(event.device.productKey)
      if (index === undefined) return []
      const fired = index.match(event).map(({ sceneId }) => execution({ projectId, sceneId }, event, event.at))
        .filter(backlog.admit)
      return event._tag === "StatusChanged"
        ? [...fired, ...waiting(projectId, event, index.lasting(event.device.deviceName, event.status))]
        : fired
    },
    watchersOf: (device, propertyId) => indexOf(device.productKey)?.watchersOf(device.deviceName, propertyId) ?? [],
    waitersOf: ({ deviceName, productKey }, status) =>
      indexOf(productKey)?.lasting(deviceName, status).map(({ scene }) => scene) ?? [],
    execution,
    changed,
    wake: () => Queue.offerUnsafe(wakeUps, undefined),
    wakeUps
  })
})
