/**
 * The elements of a model while they are written.
 */
import type { DataType } from "../../../parts/model/Model.ts"

export const lists = ["properties", "events", "services"] as const
export type List = (typeof lists)[number]

/** An element in the form `metadata`, as far as it has been written. */
export interface ModelElement {
  readonly id: string
  readonly name: string
  readonly desc?: string
  readonly accessMode?: string
  readonly dataType?: DataType
  readonly eventType?: string
  readonly callType?: string
  readonly inputData?: ReadonlyArray<unknown>
  readonly outputData?: ReadonlyArray<unknown>
}
