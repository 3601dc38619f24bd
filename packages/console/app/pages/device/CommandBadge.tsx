import { Badge, type Mood } from "../../parts/Small.tsx"
import { useTexts } from "../../text/text.ts"

const moods: Readonly<Record<string, Mood>> = {
  queued: "warn",
  sent: "busy",
  acked: "busy",
  succeeded: "good",
  failed: "bad",
  expired: "bad",
  cancelled: "plain"
}

/** How far a command is. */
export const CommandBadge = ({ state }: { readonly state: string }) => {
  const { commands } = useTexts().device
  return <Badge mood={moods[state] ?? "plain"}>{commands.states[state] ?? state}</Badge>
}

/** Whether a command goes on. */
export const isUnderWay = (state: string): boolean => state === "queued" || state === "sent" || state === "acked"
