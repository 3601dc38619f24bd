import type { Texts } from "../text.ts"

export const events: Texts["events"] = {}
