/**
 * The notices of a node that is alone: nobody else has the file open.
 */
import { NodeBus } from "@device-cloud/core"
import { Effect, Layer } from "effect"
import { Sqlite } from "./Sqlite.ts"

/** Stands alone: it needs no table. */
export const layer: Layer.Layer<NodeBus, never, Sqlite> = Layer.effect(
  NodeBus,
  Effect.map(Sqlite, (sql) =>
    NodeBus.of({
      nodeId: sql.get<{ readonly id: string }>("SELECT lower(hex(randomblob(16))) AS id")!.id,
      publish: () => Effect.void,
      listen: () => Effect.void
    }))
)
