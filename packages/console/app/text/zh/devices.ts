import type { Texts } from "../text.ts"

export const devices: Texts["devices"] = {}
