/**
 * The name by which the API and other scenes refer to a scene.
 */
import { Schema } from "effect"

export const SceneId = Schema.String.pipe(Schema.brand("SceneId"))
export type SceneId = typeof SceneId.Type
