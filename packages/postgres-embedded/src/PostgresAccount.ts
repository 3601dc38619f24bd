/**
 * PostgreSQL refuses to run as root. When this process is root, its programs
 * run under an account that exists on every Linux system.
 */
import { Effect, Schema } from "effect"
import { spawnSync } from "node:child_process"
import { readFileSync, statSync } from "node:fs"
import { dirname } from "node:path"

/** How to start a program under the account. */
export interface PostgresAccount {
  /** The owner of the data directory; undefined: this process's own. */
  readonly owner: { readonly uid: number; readonly gid: number } | undefined
  /** The words that go before a command, none in most cases. */
  readonly prefix: ReadonlyArray<string>
}

/** The account that PostgreSQL runs as cannot reach a directory that it needs. */
export class UnreachableForPostgres extends Schema.TaggedError<UnreachableForPostgres>()("UnreachableForPostgres", {
  directory: Schema.String,
  account: Schema.String
}) {
  override get message(): string {
    return `PostgreSQL does not run as root, and the account ${this.account} has no access to ${this.directory}. ` +
      `Start this program as a normal user, place it and its data in directories that everyone may enter, ` +
      `or install setpriv (package util-linux).`
  }
}

const accounts = ["postgres", "nobody"]

/**
 * Finds the account, the owner of `data` if that is there, and makes sure that
 * it can reach `paths`.
 */
export const resolve = (
  data: string,
  paths: ReadonlyArray<string>
): Effect.Effect<PostgresAccount, UnreachableForPostgres> =>
  Effect.suspend((): Effect.Effect<PostgresAccount, UnreachableForPostgres> => {
    if (process.getuid?.() !== 0) return Effect.succeed({ owner: undefined, prefix: [] })
    const users = readFileSync("/etc/passwd", "utf8").split("\n").map((line) => line.split(":"))
    const [name = "nobody", , uid = "65534", gid = "65534"] = accounts.flatMap((account) =>
      users.filter(([user]) => user === account)
    )[0] ?? []
    const existing = statSync(data, { throwIfNoEntry: false })
    const owner = existing === undefined || existing.uid === 0
      ? { uid: Number(uid), gid: Number(gid) }
      : { uid: existing.uid, gid: existing.gid }
    const closed = paths.flatMap(ancestors).find((path) => !mayEnter(path, owner))
    if (closed === undefined) return Effect.succeed({ owner, prefix: [] })
    return spawnSync("setpriv", ["--version"]).status === 0
      ? Effect.succeed({ owner, prefix: readingPastPermissions(owner) })
      : Effect.fail(new UnreachableForPostgres({ directory: closed, account: name }))
  })

const ancestors = (path: string): ReadonlyArray<string> => {
  const parent = dirname(path)
  return parent === path ? [path] : [...ancestors(parent), path]
}

const mayEnter = (path: string, owner: { readonly uid: number; readonly gid: number }): boolean => {
  const status = statSync(path, { throwIfNoEntry: false })
  if (status === undefined) return true
  const bit = status.uid === owner.uid ? 0o100 : status.gid === owner.gid ? 0o010 : 0o001
  return (status.mode & bit) !== 0
}

/** The account with the one right of root to read files and search directories whatever their permissions. */
const readingPastPermissions = (owner: { readonly uid: number; readonly gid: number }): ReadonlyArray<string> => [
  "setpriv",
  `--reuid=${owner.uid}`,
  `--regid=${owner.gid}`,
  "--clear-groups",
  "--securebits=+no_setuid_fixup",
  "--inh-caps=-all,+dac_read_search",
  "--ambient-caps=-all,+dac_read_search"
]
