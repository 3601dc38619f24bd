/**
 * The transaction of the uplink on SQLite: a batch is one turn, so no other writer
 * comes between its reads and its writes.
 */
import { type DeviceCommit, executionsOf, historyOf, UplinkStore } from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { advance } from "./CommandRow.ts"
import { appendFeed } from "./FeedWriter.ts"
import { appendHistory } from "./HistoryWriter.ts"
import { addReactions } from "./SceneRow.ts"
import { findShadow, putShadow } from "./ShadowRow.ts"
import { Sqlite } from "./Sqlite.ts"

/** Part of the group that is replaced together: a commit writes shadows, history, commands and executions. */
export const layer: Layer.Layer<UplinkStore, never, Sqlite> = Layer.effect(
  UplinkStore,
  Effect.map(Sqlite, (sql) => make(sql))
)

const make = (sql: Sqlite["Service"]) => {
  /** Runs the update of a device; undefined: the device does not exist. */
  const compute = <A>({ deviceId, update }: DeviceCommit<A>) => {
    const before = findShadow(sql, deviceId)
    return before && { before, after: update(before) }
  }

  return UplinkStore.of({
    commit: ({ commands, devices, happened = [], isComplete = () => true, isHistoryApart = false }) =>
      Effect.clockWith((clock) =>
        sql.write("UplinkStore.commit", () => {
          let computed = devices.map(compute)
          while (!isComplete()) computed = devices.map(compute)
          advance(sql, commands)
          const facts = computed.flatMap((each) => each === undefined ? [] : [each.after[2]])
          for (const each of computed) {
            if (each === undefined) continue
            const { after: [, shadow, facts], before } = each
            if (shadow !== before) putShadow(sql, shadow)
            if (!isHistoryApart) appendHistory(sql, before.deviceId, historyOf(facts.happened))
          }
          appendFeed(
            sql,
            [...happened, ...facts.flatMap((each) => each.happened)],
            clock.currentTimeMillisUnsafe()
          )
          addReactions(sql, executionsOf(facts.flatMap(({ reactions }) => reactions)))
          return computed.map((each) => each === undefined ? Option.none() : Option.some(each.after[0]))
        })
      )
  })
}
