/**
 * The columns with secrets, and the places to which their sealed texts are bound.
 */
import type { PreviousSecret } from "@device-cloud/core"
import type { SealedSecrets } from "./SealedSecrets.ts"

/** The place of a secret: table, row and column. */
export const placeOf = (table: string, id: string, column: string): string => `${table} ${id} ${column}`

/** The row of a network by which its secrets are bound: its number does not exist before it is stored. */
export const networkRow = (projectId: string, fingerprint: string): string => `${projectId} ${fingerprint}`

/** The secret before the current one, of a row of `device` or `product`. */
export const previousSecretFromRow = (
  { open }: SealedSecrets["Service"],
  sealedWith: number,
  text: string | null,
  until: Date | null,
  table: "device" | "product",
  id: string
): PreviousSecret | null =>
  text === null || until === null
    ? null
    : { secret: open(sealedWith, text, placeOf(table, id, "previous_secret")), until: until.getTime() }
