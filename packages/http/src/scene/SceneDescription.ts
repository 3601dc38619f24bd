/**
 * How the OpenAPI document describes a draft of a scene. The routes read a draft
 * leniently, so that they can name every problem at once. The document says what
 * each URI takes, which is what the API returns
 * (docs/decisions/0033-scene-parts.md).
 */
type Json = Readonly<Record<string, unknown>>

const member = (of: unknown, name: string): Json => (of as Json)[name] as Json

/** Replaces what a list holds. A list that may be left out is described as a list or null. */
const listOf = (schema: string, list: Json): Json => {
  const [given, ...others] = list["anyOf"] as ReadonlyArray<Json>
  return { ...list, anyOf: [{ ...given, items: { $ref: `#/components/schemas/${schema}` } }, ...others] }
}

/** Puts the variants of triggers, conditions and actions into the body of an operation. */
export const describeDraft = (operation: Json): Json => {
  const body = member(operation, "requestBody")
  const media = member(body["content"], "application/json")
  const schema = member(media, "schema")
  const properties = member(schema, "properties")
  return {
    ...operation,
    requestBody: {
      ...body,
      content: {
        "application/json": {
          ...media,
          schema: {
            ...schema,
            properties: {
              ...properties,
              triggers: listOf("SceneTrigger", member(properties, "triggers")),
              conditions: listOf("SceneCondition", member(properties, "conditions")),
              actions: listOf("SceneAction", member(properties, "actions"))
            }
          }
        }
      }
    }
  }
}
