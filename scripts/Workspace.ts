/**
 * The packages of this repository that are published.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

/** The root of the repository. */
export const root = fileURLToPath(new URL("..", import.meta.url)).replace(/[\\/]$/, "")

export interface Export {
  readonly "device-cloud-source"?: string
  readonly types?: string
  readonly default?: string
}

type Versions = Readonly<Record<string, string>>

/** What is read of a package.json. */
export interface Manifest {
  readonly name: string
  readonly version: string
  readonly private?: boolean
  readonly description?: string
  readonly keywords?: ReadonlyArray<string>
  readonly homepage?: string
  readonly bugs?: string
  readonly repository?: { readonly type?: string; readonly url?: string; readonly directory?: string }
  readonly license?: string
  readonly type?: string
  readonly sideEffects?: unknown
  readonly bin?: Versions
  readonly exports?: Readonly<Record<string, Export>>
  readonly files?: ReadonlyArray<string>
  readonly dependencies?: Versions
  readonly devDependencies?: Versions
  readonly peerDependencies?: Versions
  readonly engines?: { readonly node?: string }
  readonly publishConfig?: { readonly access?: string }
}

export interface Package {
  /** Of the folder in `packages/`. */
  readonly folder: string
  readonly directory: string
  readonly manifest: Manifest
}

export const readManifest = (directory: string): Manifest =>
  JSON.parse(readFileSync(join(directory, "package.json"), "utf8"))

/** Everything in `packages/`. */
export const packages: ReadonlyArray<Package> = readdirSync(join(root, "packages")).sort().map((folder) => {
  const directory = join(root, "packages", folder)
  return { folder, directory, manifest: readManifest(directory) }
})

/** The blocks of a Markdown text with this info: `ts`, `sh commands`. */
export const blocksOf = (markdown: string, info: string): ReadonlyArray<string> =>
  [...markdown.matchAll(/^```(.+)\n([\s\S]*?)^```$/gm)].flatMap(([, found, text]) =>
    found === info && text !== undefined ? [text] : []
  )
