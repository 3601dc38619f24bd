/**
 * Writes a stored thing model as TypeScript.
 */
import * as Metadata from "./formats/Metadata.ts"
import type { ThingModel } from "./ThingModel.ts"

/** What a definition need not say: it follows from the rest, or is the default. */
const isImplied = (name: string, value: unknown): boolean =>
  name === "funcType" || name === "method" || value === false || (name === "desc" && value === "")

const withoutImplied = (element: object): object =>
  Object.fromEntries(Object.entries(element).filter(([name, value]) => !isImplied(name, value)))

/** What no constant of a module may be called, and what the source imports. */
const reserved = new Set(
  (`arguments await break case catch class const continue debugger default delete do else enum eval export extends \
false finally for function if implements import in instanceof interface let new null package private protected public \
return static super switch this throw true try typeof var void while with yield defineThingModel`).split(" ")
)

/** A name that JavaScript takes for a constant. */
const constantName = (name: string): string => {
  const cleaned = name.replace(/[^\p{ID_Continue}$]/gu, "_")
  return /^[\p{ID_Start}_$]/u.test(cleaned) && !reserved.has(cleaned) ? cleaned : `_${cleaned}`
}

/**
 * TypeScript source that defines the model with `defineThingModel`, as the constant
 * `name`. Characters that a name cannot have become `_`, which also stands before a word that is reserved.
 */
export const modelTypes = (model: ThingModel, name: string): string => {
  const { events, properties, services } = Metadata.write(model)
  const own = (elements: ReadonlyArray<object>, ids: ReadonlyArray<{ readonly id: string }>) =>
    elements.slice(elements.length - ids.length).map(withoutImplied)
  const definition = {
    properties: own(properties, model.properties),
    events: own(events, model.events),
    services: own(services, model.services)
  }
  return [
    `import { defineThingModel } from "@device-cloud/core"`,
    "",
    `export const ${constantName(name)} = defineThingModel(${JSON.stringify(definition, null, 2)})`,
    ""
  ].join("\n")
}
