import type { Texts } from "../text.ts"

export const products: Texts["products"] = {}
