/**
 * Scenes as their makers write them (docs/api/scenes.md). A draft is read in two
 * steps. Its schema checks the type of each parameter, whichever URI the
 * parameter stands beside. {@link readRules} then checks what each URI takes. An
 * empty text stands for a parameter that is left out, and parameters that no URI
 * has are dropped (docs/decisions/0033-scene-parts.md).
 */
import { Effect, Option, Result, Schema, SchemaAST } from "effect"
import { type InputIssue, InvalidInput } from "../../kernel/InvalidInput.ts"
import type { Json } from "../../kernel/Json.ts"
import { NonBlankText, Text } from "../../kernel/Text.ts"
import { type Action, actionParams, ActionUri, maxDelay, readAction } from "./Action.ts"
import { type Condition, conditionParams, ConditionUri, readCondition } from "./Condition.ts"
import { type CustomParams, type CustomPart, type CustomParts, refuseJson } from "./CustomPart.ts"
import { maxActions, maxConditions, maxTriggers, type SceneRules, SceneStatus } from "./Scene.ts"
import { OrEmpty, ParamsReader } from "./ScenePart.ts"
import { readTrigger, triggerParams, TriggerUri } from "./Trigger.ts"

type Params = Readonly<Record<string, Json | undefined>>

type Fields = Readonly<Record<string, Schema.Codec<unknown, unknown>>>

type FieldsOfKinds = Readonly<Record<string, Fields>>

/** The parameters of all kinds of parts that are built in, by list and URI. */
const kinds = { triggers: triggerParams, conditions: conditionParams, actions: actionParams }

const withoutUndefined = (params: Params): CustomParams =>
  Object.fromEntries(Object.entries(params).filter((entry): entry is [string, Json] => entry[1] !== undefined))

/** Makes a field that may be left out. A literal may also be an empty text, as all texts may. */
const leftOut = (field: Fields[string]): Fields[string] => {
  if (SchemaAST.isOptional(field.ast)) return field
  return "literals" in field ? OrEmpty(field) : Schema.optional(field)
}

/**
 * Makes a check of the types of all parameters that any of the kinds takes. It
 * drops all others. As everywhere in JSON, null stands for a parameter that is
 * left out.
 */
const makeTypeCheck = (kinds: FieldsOfKinds) => {
  const fields = Object.values(kinds).flatMap((of) => Object.entries(of))
    .map(([name, field]): [string, Fields[string]] => [name, leftOut(field)])
  const schema = Schema.Struct<Fields>({ type: Schema.optional(Text(64)), ...Object.fromEntries(fields) })
  const decode = Schema.decodeUnknownResult(Schema.toCodecJson(schema), { errors: "all" })
  return (params: Params) => decode(withoutUndefined(params))
}

const typeChecks = {
  triggers: makeTypeCheck(kinds.triggers),
  conditions: makeTypeCheck(kinds.conditions),
  actions: makeTypeCheck(kinds.actions)
}

/** Checks the types of the parameters of a part that is built in. */
const typesFit = (list: keyof SceneRules) =>
  Schema.makeFilter(({ URI, params }: { readonly URI: string; readonly params: Params }) => {
    if (!Object.hasOwn(kinds[list], URI)) return undefined
    const checked = typeChecks[list](params)
    return Result.isFailure(checked) ? { path: ["params"], issue: checked.failure.issue } : undefined
  })

const ParamsDraft = Schema.Record(Schema.String, Schema.UndefinedOr(Schema.Json))

export const TriggerDraft = Schema.Struct({ URI: TriggerUri, params: ParamsDraft }).check(typesFit("triggers"))
export type TriggerDraft = typeof TriggerDraft.Type

export const ConditionDraft = Schema.Struct({ URI: Text(128), params: ParamsDraft }).check(typesFit("conditions"))
export type ConditionDraft = typeof ConditionDraft.Type

export const ActionDraft = Schema.Struct({ URI: Text(128), params: ParamsDraft }).check(typesFit("actions"))
export type ActionDraft = typeof ActionDraft.Type

/** What the maker of a scene decides. */
export const SceneDraft = Schema.Struct({
  name: NonBlankText(128),
  desc: Schema.optional(Text(1024)),
  status: SceneStatus,
  triggers: Schema.optional(Schema.Array(TriggerDraft).check(Schema.isMaxLength(maxTriggers))),
  conditions: Schema.optional(Schema.Array(ConditionDraft).check(Schema.isMaxLength(maxConditions))),
  actions: Schema.optional(Schema.Array(ActionDraft).check(Schema.isMaxLength(maxActions)))
})
export interface SceneDraft extends Schema.Schema.Type<typeof SceneDraft> {}

type PartDraft = TriggerDraft | ConditionDraft | ActionDraft

const isConditionUri = Schema.is(ConditionUri)
const isActionUri = Schema.is(ActionUri)

/** Reads the parts of a draft, and collects everything that is wrong with them. */
class DraftReader {
  readonly issues: Array<InputIssue> = []

  #refuse(list: keyof SceneRules, position: number, path: InputIssue["path"], message: string): void {
    this.issues.push({ path: [list, position, ...path], message })
  }

  builtIn<Part>(
    list: keyof SceneRules,
    position: number,
    draft: PartDraft,
    read: (params: ParamsReader) => Part
  ): Part {
    const taken: FieldsOfKinds = kinds[list]
    const params = new ParamsReader(draft.URI, taken[draft.URI]!, Result.getOrThrow(typeChecks[list](draft.params)))
    const part = read(params)
    for (const { message, path } of params.issues) this.#refuse(list, position, ["params", ...path], message)
    return part
  }

  /** Refuses the first action with which the delays of the scene become too long together. */
  checkDelays(actions: SceneRules["actions"]): void {
    let together = 0
    for (const [position, action] of actions.entries()) {
      if (action._tag !== "Delay") continue
      together += action.seconds
      if (together <= maxDelay) continue
      const message = `Expected delays of at most ${maxDelay} seconds together`
      return this.#refuse("actions", position, ["params", "seconds"], message)
    }
  }

  /** None: there is something wrong with it. */
  custom(
    list: "conditions" | "actions",
    position: number,
    draft: PartDraft,
    registered: CustomParts
  ): Option.Option<{ readonly _tag: "Custom"; readonly uri: string; readonly params: CustomParams }> {
    const { URI: uri } = draft
    const kind: CustomPart | undefined = registered[list].get(uri)
    if (kind === undefined) {
      const known = [...Object.keys(kinds[list]), ...registered[list].keys()].join(", ")
      this.#refuse(list, position, ["URI"], `Expected one of ${known}`)
      return Option.none()
    }
    const params = withoutUndefined(draft.params)
    const refused = refuseJson(params)
    if (refused !== undefined) {
      this.#refuse(list, position, ["params"], refused)
      return Option.none()
    }
    const accepted = kind.accept(params)
    if (Result.isSuccess(accepted)) return Option.some({ _tag: "Custom", uri, params: accepted.success })
    for (const { message, path } of accepted.failure) this.#refuse(list, position, ["params", ...path], message)
    return Option.none()
  }
}

/**
 * Reads the rules of a draft. Cron triggers have no ids yet. Fails with
 * everything that is wrong with the draft by itself: whether it fits the project
 * is the question of `SceneCheck`.
 */
export const readRules = (draft: SceneDraft, registered: CustomParts): Effect.Effect<SceneRules, InvalidInput> =>
  Effect.suspend(() => {
    const reader = new DraftReader()
    const readOneCondition = (draft: ConditionDraft, position: number): ReadonlyArray<Condition> => {
      const { URI } = draft
      return isConditionUri(URI)
        ? [reader.builtIn("conditions", position, draft, (params) => readCondition(URI, params))]
        : Option.toArray(reader.custom("conditions", position, draft, registered))
    }
    const readOneAction = (draft: ActionDraft, position: number): ReadonlyArray<Action> => {
      const { URI } = draft
      return isActionUri(URI)
        ? [reader.builtIn("actions", position, draft, (params) => readAction(URI, params))]
        : Option.toArray(reader.custom("actions", position, draft, registered))
    }
    const rules: SceneRules = {
      triggers: (draft.triggers ?? []).map((draft, position) =>
        reader.builtIn("triggers", position, draft, (params) => readTrigger(draft.URI, params))
      ),
      conditions: (draft.conditions ?? []).flatMap(readOneCondition),
      actions: (draft.actions ?? []).flatMap(readOneAction)
    }
    if (reader.issues.length === 0) reader.checkDelays(rules.actions)
    const [first, ...rest] = reader.issues
    return first === undefined ? Effect.succeed(rules) : Effect.fail(new InvalidInput({ issues: [first, ...rest] }))
  })
