/**
 * Who is on duty in which team.
 */
import { Context, Layer } from "effect"

export interface Shift {
  readonly person: string
  /** Hours of the day in UTC, from `from` up to but not including `until`. */
  readonly from: number
  readonly until: number
}

export class Roster extends Context.Service<Roster, {
  readonly teams: ReadonlyMap<string, ReadonlyArray<Shift>>
}>()("own-scene-action/Roster") {
  static readonly layer = (teams: Readonly<Record<string, ReadonlyArray<Shift>>>): Layer.Layer<Roster> =>
    Layer.succeed(Roster, { teams: new Map(Object.entries(teams)) })
}

/** Returns who of the team is on duty at the time, Unix milliseconds. */
export const onDuty = (roster: Roster["Service"], team: string, at: number): string | undefined => {
  const hour = new Date(at).getUTCHours()
  return roster.teams.get(team)?.find(({ from, until }) => from <= hour && hour < until)?.person
}
