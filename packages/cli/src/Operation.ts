/**
 * The operations of the management API, as its OpenAPI description has them: what
 * the commands of the command line are derived from.
 */
import { Api, type DeviceCloudClient } from "@device-cloud/http"
import { Option, Schema } from "effect"
import { HttpApi, type HttpApiEndpoint, type HttpApiGroup, OpenApi } from "effect/http-api"
import type { Envelope } from "./Server.ts"

type Client = DeviceCloudClient["Service"]

/** The name of an operation, such as `devices.listDevices`. */
export type OperationId = {
  [Group in keyof Client & string]: `${Group}.${keyof Client[Group] & string}`
}[keyof Client & string]

/** A JSON Schema without references and without the alternative null. */
export interface JsonSchema {
  readonly type?: string
  readonly description?: string
  readonly enum?: ReadonlyArray<unknown>
  readonly items?: JsonSchema
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: ReadonlyArray<string>
  readonly additionalProperties?: JsonSchema | boolean
  readonly anyOf?: ReadonlyArray<JsonSchema>
}

/** A parameter of the path or of the query, or a member of the body. */
export interface Parameter {
  readonly name: string
  readonly schema: JsonSchema
  readonly required: boolean
  readonly description: string
}

/** One operation. */
export interface Operation {
  readonly method: string
  /** Below `/openapi/v1`, such as `/things/{device_id}/detail`. */
  readonly path: string
  readonly summary: string
  readonly description: string
  readonly pathParameters: ReadonlyArray<Parameter>
  readonly query: ReadonlyArray<Parameter>
  /** The members of its body. */
  readonly members: ReadonlyArray<Parameter>
  readonly takesBody: boolean
  /** Whether it returns a list by pages. */
  readonly isPaged: boolean
}

interface Described {
  readonly operationId?: string
  readonly summary?: string
  readonly description?: string
  readonly parameters?: ReadonlyArray<
    {
      readonly name: string
      readonly in: string
      readonly required?: boolean
      readonly description?: string
      readonly schema: JsonSchema
    }
  >
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: JsonSchema }>> }
}

const prefix = "/openapi/v1"

/**
 * Reads operations of the API by their names. To describe all of them takes a third
 * of a second, which nobody wants to wait for; so it describes their groups alone.
 */
export const read = (ids: ReadonlyArray<OperationId>): ReadonlyMap<string, Operation> => {
  const names = new Set(ids.map((id) => id.slice(0, id.indexOf("."))))
  const groups = Object.values(Api.groups).filter(({ identifier }) => names.has(identifier))
  const spec = OpenApi.fromApi(
    HttpApi.make("command-line").add(...groups as unknown as [HttpApiGroup.Top]).annotateMerge(Api.annotations)
  )
  const schemas = spec.components.schemas as Readonly<Record<string, JsonSchema>>

  const resolve = (schema: JsonSchema & { readonly $ref?: string }): JsonSchema => {
    if (schema.$ref !== undefined) {
      const target = schemas[schema.$ref.slice(schema.$ref.lastIndexOf("/") + 1)]!
      return { ...resolve(target), ...schema.description === undefined ? {} : { description: schema.description } }
    }
    const alternatives = schema.anyOf?.filter(({ type }) => type !== "null")
    return alternatives?.length === 1 ? { ...schema, ...resolve(alternatives[0]!) } : schema
  }

  const parameter = (
    name: string,
    schema: JsonSchema,
    required: boolean,
    description: string | undefined
  ): Parameter => {
    const resolved = resolve(schema)
    return { name, schema: resolved, required, description: description ?? resolved.description ?? "" }
  }

  const operation = (method: string, path: string, of: Described): Operation => {
    const parameters = (of.parameters ?? []).map((each) => ({
      in: each.in,
      parameter: parameter(each.name, each.schema, each.required === true, each.description)
    }))
    const within = (place: string) => parameters.flatMap((each) => each.in === place ? [each.parameter] : [])
    const query = within("query")
    const content = of.requestBody?.content["application/json"]?.schema
    const body = content === undefined ? undefined : resolve(content)
    return {
      method: method.toUpperCase(),
      path: path.slice(prefix.length),
      summary: of.summary ?? "",
      description: of.description ?? "",
      pathParameters: within("path"),
      query,
      members: Object.entries(body?.properties ?? {}).map(([name, member]) =>
        parameter(name, member, body?.required?.includes(name) === true, undefined)
      ),
      takesBody: body !== undefined,
      isPaged: query.some(({ name }) => name === "page")
    }
  }

  const operations = new Map<string, Operation>()
  for (const [path, methods] of Object.entries(spec.paths)) {
    for (const [method, of] of Object.entries(methods as Readonly<Record<string, Described>>)) {
      operations.set(of.operationId ?? "", operation(method, path, of))
    }
  }
  return operations
}

/**
 * A response for a reader: with the names that the domain has for the numbers of
 * the API. A response that this version does not know stays as it is.
 */
export const readable = (id: OperationId, envelope: Envelope): unknown => {
  const [group, name] = id.split(".") as [keyof typeof Api.groups, string]
  const endpoint = (Api.groups[group].endpoints as unknown as Readonly<Record<string, HttpApiEndpoint.Top>>)[name]!
  for (const schema of endpoint.success) {
    const decoded = Schema.decodeOption(schema as Schema.Codec<Envelope>)(envelope)
    if (Option.isSome(decoded)) return decoded.value.data
  }
  return envelope.data
}
