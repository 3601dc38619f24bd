/**
 * Conditions and actions that an application adds to those of Device Cloud, as
 * far as the definition of a scene is concerned: which URIs there are and which
 * parameters each one takes. What they do stands in `evaluation/SceneCondition`
 * and `execution/SceneAction`.
 */
import { Effect, Result, Schema } from "effect"
import { type InputIssue, inputIssues } from "../../kernel/InvalidInput.ts"
import { isFiniteJson, type Json } from "../../kernel/Json.ts"
import { keptBeginning } from "../../kernel/Text.ts"
import type { ProjectId } from "../../project/Project.ts"
import type { SceneId } from "./SceneId.ts"

/** The parameters of a custom part as JSON, which is how they are stored. */
export type CustomParams = Readonly<Record<string, Json>>

/** A condition or action that is not built in, in a scene. */
export const customFields = {
  uri: Schema.String,
  params: Schema.Record(Schema.String, Schema.Json)
}

/** The scene that a custom part belongs to. */
export interface CustomPartOwner {
  readonly projectId: ProjectId
  readonly sceneId: SceneId
}

/** A kind of condition or action that an application adds. */
export interface CustomPart {
  readonly uri: string
  /** Returns the parameters as they are stored, or each issue with its path from the parameters. */
  readonly accept: (params: CustomParams) => Result.Result<CustomParams, ReadonlyArray<InputIssue>>
  /** Returns what of the parameters does not fit the project, with paths from the parameters. */
  readonly check: (params: CustomParams, owner: CustomPartOwner) => Effect.Effect<ReadonlyArray<InputIssue>>
}

/** The kinds of conditions and actions that an application adds, by URI. */
export interface CustomParts {
  readonly conditions: ReadonlyMap<string, CustomPart>
  readonly actions: ReadonlyMap<string, CustomPart>
}

/** Objects and arrays inside each other in the JSON that a part carries. */
export const maxNesting = 16
/** Length of the JSON that a part carries, in UTF-16 code units. */
export const maxLength = 64 * 1024

/** Returns why a part cannot carry the JSON. */
export const refuseJson = (json: CustomParams): string | undefined =>
  !isFiniteJson(json, maxNesting) || JSON.stringify(json).length > maxLength
    ? `Expected JSON of at most ${maxNesting} levels and ${maxLength} characters`
    : undefined

/** How much an execution shows of a sentence of a part, in UTF-16 code units. */
const maxSentence = 1024

/** A sentence of a custom part, as an execution shows it. */
export const shownSentence = (text: string): string => keptBeginning(text, maxSentence)

/** The schema of a custom part's parameters. Its decoded form may be any value. */
export type ParamsSchema<Params> = Schema.Codec<Params, unknown>

/** What conditions and actions that an application adds declare alike. */
export interface CustomKind<Params, R> {
  readonly uri: string
  /** The parameters. Scenes are stored with their encoded form. */
  readonly params: ParamsSchema<Params>
  /** Returns what of the parameters does not fit the project, with paths from the parameters. */
  readonly check?: (params: Params, owner: CustomPartOwner) => Effect.Effect<ReadonlyArray<InputIssue>, never, R>
}

/** Makes what is the same for each kind. `run` gives `check` what it needs. */
export const customPart = <Params, R>({ check, params: schema, uri }: CustomKind<Params, R>) => {
  const json = Schema.toCodecJson(schema)
  const decodeUnknown = Schema.decodeUnknownResult(json, { errors: "all" })
  const encode = Schema.encodeResult(json)
  const decode = (params: CustomParams): Result.Result<Params, ReadonlyArray<InputIssue>> =>
    Result.mapError(decodeUnknown(params), inputIssues)
  const accept: CustomPart["accept"] = (params) =>
    Result.flatMap(decode(params), (decoded) => Result.mapError(encode(decoded), inputIssues)).pipe(
      Result.map((encoded) => encoded as CustomParams)
    )
  return {
    part: (run: <A>(effect: Effect.Effect<A, never, R>) => Effect.Effect<A>): CustomPart => ({
      uri,
      accept,
      check: (params, owner) =>
        check === undefined ? Effect.succeed([]) : run(check(Result.getOrThrow(decode(params)), owner))
    }),
    /** Reads stored parameters. Fails with a sentence that names the first of them that does not fit. */
    read: (params: CustomParams): Result.Result<Params, string> =>
      Result.mapError(
        decode(params),
        ([issue]) => `The stored parameters no longer fit: ${issue?.path.join(".")}: ${issue?.message}`
      )
  }
}

/** Declares how custom parts look on the wire: any URI of the kind that is not built in. */
export const customRecord = (kind: "action" | "condition", builtIn: ReadonlyArray<string>) =>
  Schema.Struct({
    URI: Schema.String.check(
      Schema.isMaxLength(128),
      Schema.isPattern(new RegExp(`^(?!(?:${builtIn.join("|")})$)${kind}/`, "u"))
    ).annotate({ description: `A custom ${kind} that the application has registered` }),
    params: Schema.Record(Schema.String, Schema.Json)
  })
