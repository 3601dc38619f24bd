/**
 * A condition and an action that Device Cloud does not have: whether somebody of
 * a team is on duty, and to page that person.
 */
import { SceneAction, SceneCondition, SceneExtensions } from "@device-cloud/core"
import { Clock, Effect, Schema } from "effect"
import { Pager } from "./Pager.ts"
import { onDuty, Roster } from "./Roster.ts"

/** Refuses a team that the roster does not have, when a scene is created. */
const checkTeam = ({ team }: { readonly team: string }) =>
  Roster.use((roster) =>
    Effect.succeed(
      roster.teams.has(team)
        ? []
        : [{ path: ["team"], message: `Expected one of the teams ${[...roster.teams.keys()].join(", ")}` }]
    )
  )

/** Holds while somebody of the team is on duty. */
export const teamOnDuty = SceneCondition.make({
  uri: "condition/acme/on-duty",
  params: Schema.Struct({ team: Schema.NonEmptyString }),
  check: checkTeam,
  judge: ({ team }, { now }) =>
    Roster.use((roster) => {
      const person = onDuty(roster, team, now)
      return Effect.succeed({
        verdict: person === undefined ? "fails" as const : "holds" as const,
        value: person ?? null,
        source: "roster",
        time: now,
        reason: `On duty in the team ${team}: ${person ?? "nobody"}`
      })
    })
})

/** Pages whoever of the team is on duty. */
export const pageTeam = SceneAction.make({
  uri: "action/acme/page",
  params: Schema.Struct({ team: Schema.NonEmptyString, text: Schema.NonEmptyString }),
  check: checkTeam,
  attempt: Effect.fnUntraced(function*({ team, text }, { id, scene }) {
    const person = onDuty(yield* Roster, team, yield* Clock.currentTimeMillis)
    if (person === undefined) return SceneAction.skipped(`Nobody of the team ${team} is on duty`)
    // The id is the same when the action is attempted again: the person is paged once.
    return yield* (yield* Pager).send(id, { to: person, text: `${scene.name}: ${text}` }).pipe(
      Effect.as(SceneAction.succeeded(`Paged ${person}`)),
      Effect.catchTag("PagerIsBusy", () => Effect.succeed(SceneAction.tryAgain("All lines are busy")))
    )
  })
})

/** Both, for `DeviceCloud.layer`. */
export const layer = SceneExtensions.layer([teamOnDuty, pageTeam])
