/**
 * Which transactions of the uplink have been stored: a server whose connection ends
 * before the answer looks here. Numbers are those of one writer.
 */
import { statements } from "./statements.ts"

export default statements([
  `CREATE TABLE uplink_receipt (
    writer uuid NOT NULL,
    number bigint NOT NULL,
    -- The devices whose shadows another writer had changed; null: the transaction was given up.
    passed_over text[],
    at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (writer, number)
  )`,
  `CREATE INDEX uplink_receipt_at ON uplink_receipt (at)`
])
