import type { Texts } from "../text.ts"

export const gateways: Texts["gateways"] = {}
