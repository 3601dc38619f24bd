/**
 * Checks what each package says of itself, and ends with code 1 if something lacks.
 */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { type Package, packages, readManifest, root } from "./Workspace.ts"

const repository = "https://github.com/device-cloud/device-cloud"
const { engines } = readManifest(root)
const license = readFileSync(join(root, "LICENSE"), "utf8")
const { version } = packages[0]!.manifest
/** The range of Effect, the same for all, so that one installation fits. */
const effect = ">=4.0.6 <4.2.0"

const read = ({ directory }: Package, file: string): string => {
  const path = join(directory, file)
  return existsSync(path) ? readFileSync(path, "utf8") : ""
}

/** What is expected, and whether it is so. */
const expectations = (pkg: Package): ReadonlyArray<readonly [string, boolean]> => {
  const { directory, folder, manifest } = pkg
  const { dependencies = {}, devDependencies = {}, peerDependencies = {} } = manifest
  const exported = Object.entries(manifest.exports ?? {})
  const readme = read(pkg, "README.md")
  const same = (actual: unknown, expected: unknown) => JSON.stringify(actual) === JSON.stringify(expected)
  return [
    [`name: @device-cloud/${folder}`, manifest.name === `@device-cloud/${folder}`],
    [`version: ${version}, as all packages`, manifest.version === version],
    ["no private", manifest.private === undefined],
    ["description: a sentence", manifest.description?.endsWith(".") === true],
    ["keywords: iot and more", manifest.keywords?.includes("iot") === true && manifest.keywords.length > 1],
    [
      `homepage: ${repository}/tree/main/packages/${folder}#readme`,
      manifest.homepage === `${repository}/tree/main/packages/${folder}#readme`
    ],
    [`bugs: ${repository}/issues`, manifest.bugs === `${repository}/issues`],
    [
      `repository: git+${repository}.git, directory packages/${folder}`,
      same(manifest.repository, { type: "git", url: `git+${repository}.git`, directory: `packages/${folder}` })
    ],
    ["license: MIT", manifest.license === "MIT"],
    ["type: module", manifest.type === "module"],
    ["sideEffects: false", manifest.sideEffects === false],
    [`files: dist, src, !dist/.tsbuildinfo`, same(manifest.files, ["dist", "src", "!dist/.tsbuildinfo"])],
    [`engines: node ${engines?.node}`, same(manifest.engines, engines)],
    ["publishConfig: access public", same(manifest.publishConfig, { access: "public" })],
    ["exports or bin", exported.length > 0 || manifest.bin !== undefined],
    ...exported.map(([path, entry]): readonly [string, boolean] => {
      const source = entry["device-cloud-source"] ?? ""
      const built = source.replace(/^\.\/src\/(.*)\.ts$/, "./dist/$1")
      const expected = { "device-cloud-source": source, types: `${built}.d.ts`, default: `${built}.js` }
      return [
        `exports ${path}: device-cloud-source in src, types and default in dist`,
        existsSync(join(directory, source)) && same(entry, expected)
      ]
    }),
    ...Object.entries({ ...dependencies, ...devDependencies }).map(([name, wanted]): readonly [string, boolean] =>
      name.startsWith("@device-cloud/")
        ? [`dependency ${name}: ${version}`, wanted === version]
        : [`dependency ${name}: an exact version`, /^\d+\.\d+\.\d+(-[\w.]+)?$/.test(wanted)]
    ),
    ["effect: a peer dependency alone", dependencies["effect"] === undefined],
    ...["effect", "@effect/platform-node"].filter((name) => name in peerDependencies).map((
      name
    ): readonly [string, boolean] => [
      `peer dependency ${name}: ${effect}`,
      peerDependencies[name] === effect
    ]),
    ["LICENSE: that of the repository", read(pkg, "LICENSE") === license],
    [`README.md: begins with # ${manifest.name}`, readme.startsWith(`# ${manifest.name}\n`)],
    ["README.md: says how to install it", /^npm install /m.test(readme)],
    ["README.md: links to docs", readme.includes("](../../docs/")]
  ]
}

const lacks = packages.flatMap((pkg) =>
  expectations(pkg).filter(([, met]) => !met).map(([expected]) => `packages/${pkg.folder}: expected ${expected}\n`)
)
process.stdout.write(lacks.length === 0 ? `${packages.length} packages are complete.\n` : lacks.join(""))
process.exitCode = lacks.length === 0 ? 0 : 1
