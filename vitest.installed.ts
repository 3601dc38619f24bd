/**
 * Programs that tests need and npm does not carry.
 */
import { existsSync } from "node:fs"
import { delimiter, join } from "node:path"

/** Debian has servers among the programs of the system, which are not on every path. */
const path = `${process.env["PATH"] ?? ""}${delimiter}/usr/sbin`

/** The environment in which they are found. */
export const environment = { ...process.env, PATH: path }

/** Looks for it and does not run it: some take two seconds to say who they are, and their test file waits. */
export const program = (name: string) => {
  const isInstalled = path.split(delimiter).some((directory) => existsSync(join(directory, name)))
  return {
    isInstalled,
    /** The name of a test or suite, which says so when it is left out. */
    named: (test: string): string => isInstalled ? test : `${test} (SKIPPED: ${name} is not installed)`
  }
}
