import type { Texts } from "../text.ts"

export const device: Texts["device"] = {}
