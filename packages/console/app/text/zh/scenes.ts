import type { Texts } from "../text.ts"

export const scenes: Texts["scenes"] = {}
