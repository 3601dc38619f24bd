import type { Texts } from "../text.ts"

export const overview: Texts["overview"] = {}
