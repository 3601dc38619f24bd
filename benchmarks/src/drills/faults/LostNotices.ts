/**
 * All notices between nodes are lost: that costs seconds, never a message.
 */
import { endOthers } from "../../Database.ts"
import type { Drill, Result } from "../Drill.ts"
import { withLab } from "../Lab.ts"
import { move } from "./Moves.ts"

/** Stands before the function of PostgreSQL that the nodes call, and does nothing. */
const mute = [
  "CREATE FUNCTION public.pg_notify(text, text) RETURNS void LANGUAGE sql AS ''",
  "ALTER DATABASE postgres SET search_path = public, pg_catalog"
]

export const lostNotices: Drill = {
  name: "lost-notices",
  does: "all notices between nodes are lost, while devices move and both nodes take commands",
  forms: ["short", "long"],
  run: (form) =>
    withLab({ nodes: 2, devices: 20 }, async (lab): Promise<Result> => {
      for (const statement of mute) await lab.database.query(statement)
      // New connections of the nodes find it.
      await endOthers(lab.database.query)
      await lab.visit()
      lab.report()
      lab.command()
      await move(lab, form === "short" ? 3000 : 30_000)
      return lab.settle(1000)
    })
}
