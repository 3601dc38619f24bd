/**
 * A bus between nodes that loses, doubles and delays notices, as no bus should:
 * what nodes tell each other is a hint, and a cloud must hold without it.
 */
import { NodeBus, type Notice } from "@device-cloud/core"
import { Effect, Layer, Random } from "effect"

/** What becomes of notices. */
export interface Faults {
  /** The part of the notices that nobody hears, from 0 to 1. */
  readonly lost: number
  /** The part of the others that is heard twice, from 0 to 1. */
  readonly doubled: number
  /** How late a notice is heard at most, milliseconds; later ones overtake it. 0: in order. */
  readonly latest: number
}

/** Every notice is heard once, in order. */
export const faultless: Faults = { lost: 0, doubled: 0, latest: 0 }

/**
 * Puts faults between a node and its bus. `faults` is asked for each notice, so that
 * a test can change them.
 *
 * ```ts
 * const Node = DeviceCloud.layer.pipe(
 *   Layer.provide(LossyNodeBus.layer(() => ({ lost: 0.5, doubled: 0.2, latest: 50 }))),
 *   Layer.provide(Storage)
 * )
 * ```
 */
export const layer = (faults: () => Faults): Layer.Layer<NodeBus, never, NodeBus> =>
  Layer.effect(
    NodeBus,
    Effect.gen(function*() {
      const bus = yield* NodeBus
      const scope = yield* Effect.scope

      const send = Effect.fnUntraced(function*(notice: Notice, to: string | undefined) {
        const { doubled, latest, lost } = faults()
        if ((yield* Random.next) < lost) return
        const times = (yield* Random.next) < doubled ? 2 : 1
        for (let i = 0; i < times; i++) {
          const late = Math.round((yield* Random.next) * latest)
          if (late === 0) yield* bus.publish([notice], to)
          else yield* Effect.forkIn(Effect.delay(Effect.ignore(bus.publish([notice], to)), late), scope)
        }
      })

      return NodeBus.of({
        ...bus,
        publish: (notices, to) => Effect.forEach(notices, (notice) => send(notice, to), { discard: true })
      })
    })
  )
