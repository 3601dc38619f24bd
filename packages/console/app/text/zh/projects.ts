import type { Texts } from "../text.ts"

export const projects: Texts["projects"] = {}
