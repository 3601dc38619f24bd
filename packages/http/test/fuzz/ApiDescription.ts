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
}

interface DescribedOperation {
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
    Object.entries(methods).map(([method, { parameters, requestBody, security }]) => ({
      method: method.toUpperCase(),
      path,
      secured: security.length > 0,
      parameters: parameters.map((parameter) => ({ ...parameter, schema: resolve(parameter.schema) })),
      bodies: Object.fromEntries(
        Object.entries(requestBody?.content ?? {}).map(([mediaType, { schema }]) => [mediaType, resolve(schema)])
      ),
      needsBody: requestBody?.required === true
    }))
  )
}
