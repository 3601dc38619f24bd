/** The page of all operations of the management API, made from the OpenAPI description that a server gives. */
interface Schema {
  readonly $ref?: string
  readonly type?: string
  readonly anyOf?: ReadonlyArray<Schema>
  readonly enum?: ReadonlyArray<unknown>
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: ReadonlyArray<string>
  readonly description?: string
}

interface Operation {
  readonly tags?: ReadonlyArray<string>
  readonly operationId: string
  readonly summary?: string
  readonly description?: string
  readonly security?: ReadonlyArray<object>
  readonly parameters?: ReadonlyArray<{ readonly name: string; readonly in: string; readonly required?: boolean }>
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> }
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly schema: Schema }>> }>
  >
}

export interface Description {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

const prefix = "/openapi/v1"

/** Returns a schema in a few words: `text`, `number`, `a \| b`, `{id, name, note?}`. */
const inWords = (schema: Schema | undefined, all: Description, depth = 0): string => {
  if (schema === undefined) return ""
  if (schema.$ref !== undefined) return inWords(all.components.schemas[schema.$ref.split("/").at(-1)!], all, depth)
  if (schema.anyOf !== undefined) return [...new Set(schema.anyOf.map((one) => inWords(one, all, depth)))].join(" | ")
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(" | ")
  if (schema.type === "array") return `${inWords(schema.items, all, depth)}[]`
  if (schema.properties === undefined) return schema.type ?? "any"
  if (depth > 1) return "{…}"
  const required = new Set(schema.required)
  return `{ ${
    Object.entries(schema.properties).map(([name, one]) =>
      `${name}${required.has(name) ? "" : "?"}: ${inWords(one, all, depth + 1)}`
    ).join(", ")
  } }`
}

const jsonOf = (content: Readonly<Record<string, { readonly schema: Schema }>> | undefined) =>
  content?.["application/json"]?.schema

/** The same request with curl, TypeScript and Python. */
const snippets = (path: string, { operationId, parameters = [] }: Operation): string => {
  const names = parameters.filter((one) => one.in === "path").map((one) => one.name)
  const shell = names.reduce((text, name) => text.replace(`{${name}}`, `$${name.toUpperCase()}`), path)
  const python = names.reduce(
    (text, name) => text.replace(`{${name}}`, `{os.environ['${name.toUpperCase()}']}`),
    path
  )
  const params = names.length === 0
    ? ""
    : `{ params: { ${names.map((name) => `${name}: process.env["${name.toUpperCase()}"] ?? ""`).join(", ")} } }`
  return `\`\`\`sh run
curl -sf -H "Authorization: Bearer $KEY" "$API${shell}"
\`\`\`

\`\`\`ts
import { connect } from "@device-cloud/promise"

const api = connect({ baseUrl: "http://127.0.0.1:8080", accessKey: process.env["KEY"] ?? "" })
const data = await api.${operationId}(${params === "" ? "{}" : params})
\`\`\`

\`\`\`python run
import json, os, urllib.request

request = urllib.request.Request(
    f"{os.environ['API']}${python}", headers={"Authorization": f"Bearer {os.environ['KEY']}"}
)
print(json.load(urllib.request.urlopen(request))["data"])
\`\`\``
}

/** Whether an operation can be shown with what every project has. */
const isShown = (method: string, { parameters = [] }: Operation) =>
  method === "get" &&
  parameters.every((one) => one.in === "path" ? ["product_key", "device_id"].includes(one.name) : one.required !== true)

/** Returns the page. */
export const page = (all: Description): string => {
  const operations = Object.entries(all.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path: path.replace(prefix, ""), method, operation }))
  )
  const groups = [...new Set(operations.map(({ operation }) => operation.tags?.[0] ?? "Others"))]
  return [
    "# Operations of the API",
    "Every operation of the [management API](../api/README.md), from its OpenAPI description. A running server shows the same under `/docs`, to try it. `?` marks what may be left out.",
    "The requests are carried out with each change of this repository, with `API` as `http://127.0.0.1:8080/openapi/v1` and `KEY` as an access key.",
    ...groups.flatMap((group) => {
      const own = operations.filter(({ operation }) => (operation.tags?.[0] ?? "Others") === group)
      const example = own.find(({ method, operation, path }) =>
        isShown(method, operation) &&
        !/events|retention|configuration|codec|mesh|quota|certificat|random|topo|export|projects|browser-sessions/.test(
          path
        )
      )
      return [
        `## ${group}`,
        ...example === undefined ? [] : [snippets(example.path, example.operation)],
        ...own.flatMap(({ method, operation, path }) => {
          const query = (operation.parameters ?? []).filter((one) => one.in === "query")
          const body = inWords(jsonOf(operation.requestBody?.content), all)
          const data = jsonOf(operation.responses["200"]?.content)?.properties?.["data"]
          return [
            `### ${operation.summary ?? operation.operationId}`,
            [
              `\`${method.toUpperCase()} ${path}\` · TypeScript \`${operation.operationId}\``,
              ...operation.description === undefined ? [] : [operation.description],
              ...query.length === 0
                ? []
                : [`Query: ${query.map((one) => `\`${one.name}${one.required === true ? "" : "?"}\``).join(", ")}.`],
              ...body === "" ? [] : [`Body: \`${body}\``],
              ...data === undefined ? [] : [`\`data\`: \`${inWords(data, all)}\``]
            ].join("\n\n")
          ]
        })
      ]
    })
  ].join("\n\n") + "\n"
}
