/**
 * The arguments of `npm run bench`.
 */
import { parseArgs } from "node:util"
import { profiled } from "../profile/Operations.ts"
import { benchmarks, usualNames } from "./Benchmarks.ts"

/** Runs by its name alone, and prints a table of its own. */
export const fairnessName = "fairness"

export interface Arguments {
  /** The benchmarks to run, in their order. */
  readonly names: ReadonlyArray<string>
  /** Whether to hold the rows against the committed ones. */
  readonly compare: boolean
  /** Whether to put the rows in the place of the committed ones. */
  readonly save: boolean
  /** Whether to profile instead of comparing. */
  readonly profile: boolean
}

/** An argument that cannot be used. */
export class InvalidArgument extends Error {}

/** Reads names and options. Throws `InvalidArgument`. */
export const read = (args: ReadonlyArray<string>): Arguments => {
  const { positionals, values } = parse(args)
  const known = values.profile ? profiled : [...Object.keys(benchmarks), fairnessName]
  const unknown = positionals.filter((name) => !known.includes(name))
  if (unknown.length > 0) {
    throw new InvalidArgument(`There is no benchmark ${unknown.join(", ")}. There are ${known.join(", ")}.`)
  }
  return {
    names: positionals.length > 0
      ? known.filter((name) => positionals.includes(name))
      : values.profile
      ? profiled
      : usualNames,
    ...values
  }
}

const parse = (args: ReadonlyArray<string>) => {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        compare: { type: "boolean", default: false },
        save: { type: "boolean", default: false },
        profile: { type: "boolean", default: false }
      }
    })
  } catch (error) {
    throw new InvalidArgument((error as Error).message)
  }
}
