import type { Texts } from "../text.ts"

export const firmware: Texts["firmware"] = {}
