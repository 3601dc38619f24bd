/**
 * The operations of the API, as its OpenAPI document has them.
 */
import * as JsonSchema from "./JsonSchema.ts"

export interface Parameter {
  readonly name: string
  readonly in: string
  readonly required: boolean
  readonly schema: JsonSchema.JsonSchema
}

export interface Operation {
  readonly method: string
  /** With `{parameters}`. */
  readonly path: string
  /** Whether it needs an access key. */
  readonly secured: boolean
  readonly parameters: ReadonlyArray<Parameter>
  /** The bodies that it takes, by media type. */
  readonly bodies: Readonly<Record<string, JsonSchema.JsonSchema>>
  readonly needsBody: boolean
  /** The JSON that it responds with, by status. */
  readonly responses: Readonly<Record<string, JsonSchema.JsonSchema | undefined>>
}

/** Whether an operation declares a response: its status, its code and what it carries. */
export const declares = ({ responses }: Operation, status: number, body: unknown): boolean => {
  const schema = responses[status]
  return schema !== undefined && JsonSchema.fits(schema, body)
}

interface DescribedOperation {
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly schema: JsonSchema.JsonSchema }>> }>
  >
  readonly security: ReadonlyArray<unknown>
  readonly parameters: ReadonlyArray<Parameter>
  readonly requestBody?: {
    readonly required?: boolean
    readonly content: Readonly<Record<string, { readonly schema: JsonSchema.JsonSchema }>>
  }
}

interface ApiDescription {
  readonly paths: Readonly<Record<string, Readonly<Record<string, DescribedOperation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, JsonSchema.JsonSchema>> }
}

/** All operations of an OpenAPI document. */
export const operationsOf = ({ components, paths }: ApiDescription): ReadonlyArray<Operation> => {
  const resolve = (schema: JsonSchema.JsonSchema) => JsonSchema.resolve(schema, components.schemas)
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { parameters, requestBody, responses, security }]) => ({
      method: method.toUpperCase(),
      path,
      secured: security.length > 0,
      parameters: parameters.map((parameter) => ({ ...parameter, schema: resolve(parameter.schema) })),
      bodies: Object.fromEntries(
        Object.entries(requestBody?.content ?? {}).map(([mediaType, { schema }]) => [mediaType, resolve(schema)])
      ),
      needsBody: requestBody?.required === true,
      responses: Object.fromEntries(
        Object.entries(responses).map(([status, { content }]) => {
          const schema = content?.["application/json"]?.schema
          return [status, schema === undefined ? undefined : resolve(schema)]
        })
      )
    }))
  )
}
