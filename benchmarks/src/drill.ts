/**
 * `npm run drill`: carries out the attacks of the benchmark `fairness`, all or
 * the named ones, and exits with code 1 if a bar is missed. `memory` or
 * `PostgreSQL` among the names keeps to one storage.
 */
import { attackNames, fairness, storages } from "./fairness/Fairness.ts"
import { head, rowOf } from "./fairness/Report.ts"

const args: ReadonlyArray<string> = process.argv.slice(2)
const known: ReadonlyArray<string> = [...attackNames, ...storages]
const unknown = args.filter((arg) => !known.includes(arg))
if (unknown.length > 0) {
  process.stderr.write(`No attack ${unknown.join(", ")}. There are ${known.join(", ")}.\n`)
  process.exit(2)
}

/** Those of `all` that the arguments name; all if they name none. */
const chosen = <A extends string>(all: ReadonlyArray<A>): ReadonlyArray<A> => {
  const named = all.filter((name) => args.includes(name))
  return named.length > 0 ? named : all
}

process.stdout.write(head)
const findings = await fairness(
  chosen(attackNames),
  chosen(storages),
  (finding) => process.stdout.write(rowOf(finding))
)
const passed = findings.filter(({ missed }) => missed.length === 0).length
process.stdout.write(`${passed} of ${findings.length} drills passed.\n`)
process.exit(passed === findings.length ? 0 : 1)
