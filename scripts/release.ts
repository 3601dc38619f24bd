/**
 * `npm run release -- <version> [--dry-run]`: makes a release of all packages, as a
 * commit with a tag, ready to be pushed and published. With `--dry-run`, or when a
 * step fails, leaves the files as they were.
 */
import { execFileSync } from "node:child_process"
import { readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { packages, root } from "./Workspace.ts"

class Refused extends Error {}

const run = (program: string, ...args: ReadonlyArray<string>) => {
  execFileSync(program, args, { cwd: root, stdio: ["ignore", "ignore", "inherit"] })
}

const git = (...args: ReadonlyArray<string>) => execFileSync("git", args, { cwd: root, encoding: "utf8" }).trim()

/** Milestones on standard output. */
const say = (text: string) => process.stdout.write(`${text}\n`)

const edit = (file: string, change: (text: string) => string) => {
  const path = join(root, file)
  writeFileSync(path, change(readFileSync(path, "utf8")))
}

/** The numbers of a version, and what stands before a release: `1.2.0-rc.1`. */
const parse = (version: string) => {
  const [, major, minor, patch, before] = /^(\d+)\.(\d+)\.(\d+)(?:-([0-9a-z.-]+))?$/.exec(version) ?? []
  if (patch === undefined) throw new Refused(`expected a version such as 1.2.0 or 1.2.0-rc.1, not "${version}"`)
  return { numbers: [major, minor, patch].map(Number), before }
}

/** Whether `next` comes after `current`. */
const isLater = (next: string, current: string): boolean => {
  const [a, b] = [parse(next), parse(current)]
  const i = a.numbers.findIndex((number, place) => number !== b.numbers[place])
  if (i >= 0) return a.numbers[i]! > b.numbers[i]!
  if (a.before === undefined || b.before === undefined) return b.before !== undefined
  return a.before.localeCompare(b.before, "en", { numeric: true }) > 0
}

/** The manifests of all workspaces. */
const manifests = git("ls-files", ":(glob)packages/*/package.json", ":(glob)examples/*/package.json").split("\n")
  .concat("benchmarks/package.json")

/** Sets the version of a manifest, and of what it takes from this repository. */
const setVersion = (from: string, to: string) => (manifest: string): string =>
  manifest.replaceAll(
    /("(?:version|@device-cloud\/[\w-]+)": )"([^"]*)"/g,
    (field, name: string, version: string) => version === from ? `${name}"${to}"` : field
  )

/** Makes what is unreleased a release of today. */
const closeChangelog = (version: string, today: string) => (changelog: string): string => {
  const [, unreleased = ""] = /^## Unreleased\n([\s\S]*?)(?=^## |(?![\s\S]))/m.exec(changelog) ?? []
  if (unreleased.trim() === "") throw new Refused("CHANGELOG.md: expected changes under ## Unreleased")
  return changelog.replace("## Unreleased\n", `## Unreleased\n\n## ${version} - ${today}\n`)
}

const release = (version: string, dryRun: boolean) => {
  const current = packages[0]!.manifest.version
  const tag = `v${version}`
  const { before } = parse(version)
  if (!isLater(version, current)) throw new Refused(`expected a version after ${current}, not ${version}`)
  // What git does not know could be packed.
  const changes = git("status", "--porcelain", ...dryRun ? ["--untracked-files=no"] : [])
  if (changes !== "") throw new Refused("expected a clean working tree")
  if (git("tag", "--list", tag) !== "") throw new Refused(`the tag ${tag} exists`)

  try {
    for (const manifest of manifests) edit(manifest, setVersion(current, version))
    // Changes stay unreleased until the release that all versions like 1.2.0-rc.1 come before.
    if (before === undefined) edit("CHANGELOG.md", closeChangelog(version, new Date().toISOString().slice(0, 10)))
    run("npm", "install", "--package-lock-only", "--ignore-scripts")
    say(`${current} → ${version} in ${manifests.length} manifests and the lock file`)

    // Files of sources that are gone must not be published.
    for (const { directory } of packages) rmSync(join(directory, "dist"), { recursive: true, force: true })
    run("npm", "run", "build")
    run(process.execPath, "--import", "tsx", "scripts/check-packages.ts")
    say("Built and checked.")

    // A version before a release is not what `npm install` takes by itself.
    const publish = ["publish", "--workspace", "packages", ...before === undefined ? [] : ["--tag", "next"]]
    run("npm", ...publish, "--dry-run", "--ignore-scripts", "--loglevel=error")
    say(`${packages.length} packages can be published.`)
    if (dryRun) return
    git("commit", "--all", "--message", `chore: release ${version}`)
    git("tag", "--annotate", tag, "--message", tag)
    say(`Committed as ${tag}. Next: git push --follow-tags && npm ${publish.join(" ")}`)
  } finally {
    git("restore", ".")
  }
}

const { positionals: [version = ""], values: { "dry-run": dryRun = false } } = parseArgs({
  allowPositionals: true,
  options: { "dry-run": { type: "boolean" } }
})
try {
  release(version, dryRun)
} catch (error) {
  if (!(error instanceof Refused)) throw error
  say(`Not released: ${error.message}`)
  process.exitCode = 1
}
