import type { Texts } from "../text.ts"

export const audit: Texts["audit"] = {}
