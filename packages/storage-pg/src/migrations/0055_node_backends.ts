/**
 * The process of PostgreSQL that has taken the latest heartbeat of a node: it ends
 * with the node (docs/decisions/0132-nodes-that-have-ended.md). Null: a version
 * that does not say so.
 */
import { statements } from "./statements.ts"

export default statements([
  `ALTER TABLE node ADD backend integer`
])
