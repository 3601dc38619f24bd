/**
 * `npm run drill`: carries out drills, and prints a row for each; exits with code
 * 1 if a bar is missed. Names choose drills, or attacks of the benchmark
 * `fairness` (`fairness`: all of them; `memory` or `PostgreSQL` keeps to one
 * storage). `--short` takes seconds for each drill, `--list` tells the names.
 */
import { type Form, head, judge, rowOf } from "./drills/Drill.ts"
import { drills } from "./drills/Drills.ts"
import { attackNames, fairness, storages } from "./fairness/Fairness.ts"
import { head as attackHead, rowOf as attackRowOf } from "./fairness/Report.ts"

const args: ReadonlyArray<string> = process.argv.slice(2)
const drillNames = drills.map(({ name }) => name)
const options = ["--short", "--list", "fairness", ...storages]
const unknown = args.filter((arg) => ![...options, ...drillNames, ...attackNames].includes(arg))
if (unknown.length > 0) {
  process.stderr.write(`No drill ${unknown.join(", ")}. npm run drill -- --list tells all.\n`)
  process.exit(2)
}
if (args.includes("--list")) {
  for (const { does, forms, name } of drills) process.stdout.write(`${name} (${forms.join(", ")}): ${does}\n`)
  process.stdout.write(`Attacks on one node: ${attackNames.join(", ")}\n`)
  process.exit(0)
}

/** Those of `all` that the arguments name. */
const named = <A extends string>(all: ReadonlyArray<A>): ReadonlyArray<A> => all.filter((name) => args.includes(name))

const form: Form = args.includes("--short") ? "short" : "long"
const attacks = args.includes("fairness") ? attackNames : named(attackNames)
const chosen = attacks.length > 0 || named(drillNames).length > 0 ? named(drillNames) : drillNames
/** What is wrong in a drill is told on standard error, so much of it. */
const maxSentences = 20
let missed = 0

if (chosen.length > 0) process.stdout.write(head)
for (const { forms, name, run } of drills) {
  if (!chosen.includes(name) || !forms.includes(form)) continue
  const result = await run(form)
  if (result === undefined) {
    process.stderr.write(`${name} is left out: it is not possible here.\n`)
    continue
  }
  process.stdout.write(rowOf(name, result))
  const sentences = judge(result)
  for (const sentence of sentences.slice(0, maxSentences)) process.stderr.write(`${sentence}\n`)
  if (sentences.length > 0) missed++
}
if (attacks.length > 0) {
  process.stdout.write(attackHead)
  const of = named(storages).length > 0 ? named(storages) : storages
  await fairness(attacks, of, (finding) => {
    process.stdout.write(attackRowOf(finding))
    if (finding.missed.length > 0) missed++
  })
}
process.stdout.write(missed === 0 ? "All bars hold.\n" : `${missed} missed a bar.\n`)
process.exit(missed === 0 ? 0 : 1)
