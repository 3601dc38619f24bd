/**
 * The paging service of the application. A real one would call the API of a
 * provider. This one keeps its pages in memory.
 */
import { Context, Effect, Layer, Ref, Schema } from "effect"

export interface Page {
  readonly to: string
  readonly text: string
}

/** All lines are busy. */
export class PagerIsBusy extends Schema.TaggedError<PagerIsBusy>()("PagerIsBusy", {}) {}

export class Pager extends Context.Service<Pager, {
  /** Pages a person. A page whose id it has seen before is not sent again. */
  readonly send: (id: string, page: Page) => Effect.Effect<void, PagerIsBusy>
  /** The pages that were sent, by id. */
  readonly sent: Effect.Effect<ReadonlyMap<string, Page>>
  /** Makes the next calls fail with `PagerIsBusy`. */
  readonly keepBusy: (calls: number) => Effect.Effect<void>
}>()("own-scene-action/Pager") {
  static readonly layer: Layer.Layer<Pager> = Layer.effect(
    Pager,
    Effect.gen(function*() {
      const sent = yield* Ref.make<ReadonlyMap<string, Page>>(new Map())
      const busy = yield* Ref.make(0)
      return {
        send: Effect.fnUntraced(function*(id, page) {
          if ((yield* Ref.getAndUpdate(busy, (calls) => Math.max(calls - 1, 0))) > 0) return yield* new PagerIsBusy()
          yield* Ref.update(sent, (pages) => pages.has(id) ? pages : new Map([...pages, [id, page]]))
        }),
        sent: Ref.get(sent),
        keepBusy: (calls) => Ref.set(busy, calls)
      }
    })
  )
}
