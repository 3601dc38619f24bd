/**
 * Reads and compares thing models by the rules of the server: with its own code,
 * which is loaded when an editor opens.
 */
import { compatible, ModelFormat, type ProductKey } from "@device-cloud/core"
import { Effect, Exit } from "effect"

export type ModelForm = "metadata" | "tsl" | "sdf"

/** A place of a document, and what was expected there. */
export interface ModelIssue {
  readonly path: string
  readonly message: string
}

/** A model that is valid, or what is wrong with it. */
export type Checked =
  | { readonly isValid: true; readonly metadata: string; readonly warnings: ReadonlyArray<string> }
  | { readonly isValid: false; readonly issues: ReadonlyArray<ModelIssue> }

/** Reads a model in any form. What is valid comes back in the form `metadata`. */
export const check = (form: ModelForm, text: string): Checked => {
  const exit = Effect.runSyncExit(Effect.result(ModelFormat.decodeText(form, text)))
  if (Exit.isFailure(exit)) return { isValid: false, issues: [{ path: "", message: String(exit.cause) }] }
  const result = exit.value
  if (result._tag === "Failure") {
    return {
      isValid: false,
      issues: result.failure.issues.map(({ message, path }) => ({ path: path.join("."), message }))
    }
  }
  const { model, warnings } = result.success
  return { isValid: true, metadata: pretty(withoutDerived(write("metadata", model, "", 0))), warnings }
}

/** Writes a valid model in another form. */
export const convert = (metadata: string, form: ModelForm, productKey: string, version: number): string =>
  pretty(write(form, read(metadata), productKey, version))

export interface Difference {
  readonly added: ReadonlyArray<string>
  readonly removed: ReadonlyArray<string>
  readonly changed: ReadonlyArray<string>
  readonly breaks: ReturnType<typeof compatible>
}

/** What changes between two valid models, and what that breaks. */
export const compare = (before: string, after: string): Difference => {
  const [old, now] = [read(before), read(after)]
  const elements = (model: Model) =>
    new Map(
      [...model.properties, ...model.events, ...model.services].map((element) => [element.id, JSON.stringify(element)])
    )
  const [was, is] = [elements(old), elements(now)]
  return {
    added: [...is.keys()].filter((id) => !was.has(id)),
    removed: [...was.keys()].filter((id) => !is.has(id)),
    changed: [...is.keys()].filter((id) => was.has(id) && was.get(id) !== is.get(id)),
    breaks: compatible(old, now)
  }
}

type Model = Parameters<typeof compatible>[0]

const read = (metadata: string): Model => Effect.runSync(ModelFormat.decodeText("metadata", metadata)).model

const write = (form: ModelForm, model: Model, productKey: string, version: number) =>
  ModelFormat.encode(form, { model, productKey: productKey as ProductKey, version })

const derived: ReadonlySet<unknown> = new Set(["post", "set", "get"])

/** Without the elements that follow from the properties: nobody edits them. */
const withoutDerived = (document: object) =>
  Object.fromEntries(
    Object.entries(document).map(([list, elements]: [string, unknown]) => [
      list,
      Array.isArray(elements) ? elements.filter(({ id }: { readonly id: unknown }) => !derived.has(id)) : elements
    ])
  )

export const pretty = (document: unknown): string => JSON.stringify(document, null, 2)
