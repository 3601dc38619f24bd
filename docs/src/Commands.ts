/**
 * `sh commands`: command lines that are not run, because they install, or go on for long. What they name is held
 * against what there is: scripts and their options, packages and their programs, files, settings of the server.
 */
import { spawnSync } from "node:child_process"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import type { Block } from "./Blocks.ts"
import { root } from "./Pages.ts"

interface Manifest {
  readonly name: string
  readonly private?: boolean
  readonly scripts?: Readonly<Record<string, string>>
  readonly bin?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
}

const textOf = (file: string): string => readFileSync(join(root, file), "utf8")
const manifestOf = (directory: string): Manifest => JSON.parse(textOf(join(directory, "package.json")))

const packages = readdirSync(join(root, "packages")).map((name) => manifestOf(`packages/${name}`))
const packageOf = (name: string) => packages.find((one) => one.name === name && one.private !== true)

const commandLine = join(root, "packages/cli/dist/main.js")

/** The settings of the server by their names. */
export const settings: ReadonlySet<string> = new Set(
  [...textOf("packages/server/src/ServerConfig.ts").matchAll(/"([A-Z][A-Z0-9_]+)"/g)].map(([, name]) => name!)
)

/** Returns the source of the program that a script, or a command, runs with Node.js. */
const sourceOf = (command: string): string | undefined =>
  /(\S+)\.(?:ts|js)(?=\s|$)/.exec(command)?.[0].replace("/dist/", "/src/").replace(
    /\.js$/,
    command.includes("scripts/") ? ".js" : ".ts"
  )

/** Returns the options that no source beside that of a program knows. */
const unknownOptions = (source: string, words: ReadonlyArray<string>): ReadonlyArray<string> => {
  const directory = join(source, "..")
  const texts = readdirSync(join(root, directory)).filter((name) => name.endsWith(".ts"))
    .map((name) => textOf(join(directory, name))).join("\n")
  return words.flatMap((word) => /^--([a-z-]+)/.exec(word)?.[1] ?? [])
    .filter((option) => !new RegExp(`--${option}\\b|"${option}"|\\b${option}: \\{ type:`).test(texts))
    .map((option) => `${source} knows no option --${option}`)
}

const ofScript = (script: string, words: ReadonlyArray<string>): ReadonlyArray<string> => {
  const [, workspace] = /--workspace (\S+)/.exec(words.join(" ")) ?? []
  const command = (workspace === undefined ? manifestOf(".") : packageOf(workspace))?.scripts?.[script]
  if (command === undefined) return [`${workspace ?? "the repository"} has no script ${script}`]
  const source = sourceOf(command)
  return source === undefined || !words.includes("--")
    ? []
    : unknownOptions(source, words.slice(words.indexOf("--") + 1))
}

const ofInstallation = (words: ReadonlyArray<string>): ReadonlyArray<string> => {
  const names = words.filter((word) => !word.startsWith("-")).map((word) => word.replace(/(?<=.)@.*/, ""))
  const own = names.filter((name) => name.startsWith("@device-cloud/"))
  const peers = new Set(packages.flatMap(({ peerDependencies = {} }) => Object.keys(peerDependencies)))
  return [
    ...own.filter((name) => packageOf(name) === undefined).map((name) => `there is no package ${name}`),
    ...names.filter((name) => !own.includes(name) && !peers.has(name)).map((name) => `no package here asks for ${name}`)
  ]
}

/** Returns what is wrong with one command. */
const wrongOf = (command: string): ReadonlyArray<string> => {
  const words = command.split(/\s+/)
  const variables = words.slice(0, words.findIndex((word) => !/^[A-Z]\w*=/.test(word)))
  const [program = "", first = "", ...rest] = words.slice(variables.length)
  const unknown = variables.map((word) => word.replace(/=.*/, "")).filter((name) => !settings.has(name))
    .map((name) => `the server has no setting ${name}`)
  switch (program) {
    case "npm": {
      if (first === "ci") return unknown
      if (first === "install") return [...unknown, ...ofInstallation(rest)]
      const [script = "", ...others] = first === "run" ? rest : [first, ...rest]
      return [...unknown, ...ofScript(script, others)]
    }
    case "npx": {
      const found = packageOf(first) ?? packages.find(({ bin = {} }) => first in bin)
      const [file] = Object.values(found?.bin ?? {})
      if (file === undefined) return [...unknown, `no package has a program ${first}`]
      const source = `packages/${found!.name.replace("@device-cloud/", "")}/${file.replace("dist/", "src/")}`
      return [...unknown, ...unknownOptions(source.replace(/\.js$/, ".ts"), rest)]
    }
    case "device-cloud": {
      const path = [first, ...rest].slice(0, rest.findIndex((word) => !/^[a-z][a-z-]+$/.test(word)) + 1)
      const help = spawnSync(process.execPath, [commandLine, ...path, "--help"], { encoding: "utf8" })
      if (!help.stdout.includes(`device-cloud ${path.join(" ")} `)) return [`there is no command ${path.join(" ")}`]
      return rest.flatMap((word) => /^--(?:no-)?([a-z-]+)/.exec(word)?.[1] ?? [])
        .filter((option) => !help.stdout.includes(`--${option}`)).map((option) =>
          `${path.join(" ")} has no --${option}`
        )
    }
    case "node": {
      const source = sourceOf(command)
      if (source === undefined || !existsSync(join(root, source))) return [`there is no file ${source ?? command}`]
      const example = join(source, "../..")
      const isRun = existsSync(join(root, example, "expected.txt")) || textOf(".ci/examples").includes(example.slice(9))
      return isRun ? unknown : [`.ci/examples does not run ${source}`]
    }
    default: {
      return [`${program} cannot be looked up: run it, or say why not`]
    }
  }
}

/** Returns what is wrong with the blocks, with the lines of their pages. */
export const broken = (blocks: ReadonlyArray<Block>): ReadonlyArray<string> =>
  blocks.filter(({ does, language }) => language === "sh" && does === "commands").flatMap((block) =>
    block.text.split("\n").flatMap((row, index) =>
      row.replace(/\s+# .*/, "").split(" && ").flatMap(wrongOf).map((text) =>
        `${block.page}:${block.line + 1 + index}: ${text}`
      )
    )
  )
