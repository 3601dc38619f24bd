/**
 * How the OpenAPI document describes a draft of a scene. The routes read a draft
 * leniently, so that they can name every problem at once. The document says what
 * each URI takes, which is what the API returns
 * (docs/decisions/0025-scene-parts.md).
 */
type Json = Readonly<Record<string, unknown>>

const member = (of: unknown, name: string): Json => (of as Json)[name] as Json

const refer = (list: Json, schema: string): Json => ({ ...list, items: { $ref: `#/components/schemas/${schema}` } })

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
              triggers: refer(member(properties, "triggers"), "SceneTrigger"),
              conditions: refer(member(properties, "conditions"), "SceneCondition"),
              actions: refer(member(properties, "actions"), "SceneAction")
            }
          }
        }
      }
    }
  }
}
