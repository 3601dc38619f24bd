import type { Texts } from "../text.ts"

export const mesh: Texts["mesh"] = {}
