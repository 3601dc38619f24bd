/**
 * Scenes that are merely stored: one for each of the first stored devices.
 */
import { type Device, DeviceName, SceneId, SceneStore } from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"

/** Stores scenes that watch a property of one device each, of those that `storeDevices` has stored like `device`. */
export const storeScenes = Effect.fnUntraced(function*({ productKey, projectId }: Device, count: number) {
  const of = { _tag: "Property", productKey, deviceName: DeviceName.make("stored0") } as const
  yield* (yield* SceneStore).insert({
    sceneId: SceneId.make("stored0"),
    projectId,
    name: "stored0",
    desc: "",
    status: "enable",
    triggers: [{ ...of, propertyId: "temperature", comparison: { type: ">", value: "20" } }],
    conditions: [{ ...of, propertyId: "humidity", comparison: { type: "<", value: "90" } }],
    actions: [],
    pausedUntil: null,
    revision: 1,
    createdAt: 0,
    updatedAt: 0
  }, [])
  const sql = yield* PgClient.PgClient
  yield* sql`
    INSERT INTO scene (scene_id, project_id, name, description, status, triggers, conditions, actions, revision,
      created_at, updated_at)
    SELECT 'stored' || i, project_id, 'stored' || i, description, status,
      replace(triggers::text, 'stored0', 'stored' || i)::json, replace(conditions::text, 'stored0', 'stored' || i)::json,
      actions, revision, created_at, updated_at
    FROM scene, generate_series(1, ${count - 1}::int) AS i WHERE scene_id = 'stored0'`
  yield* sql`
    INSERT INTO scene_product (product_key, scene_id)
    SELECT product_key, 'stored' || i FROM scene_product, generate_series(1, ${count - 1}::int) AS i
    WHERE scene_id = 'stored0'`
  yield* sql`VACUUM ANALYZE scene, scene_product`
})
