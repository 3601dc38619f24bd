/**
 * Every `ts` block compiles against the packages as they are built. What a fragment does not declare itself comes from
 * `docs/examples/prelude.ts`; in a docstring, from the module that the docstring belongs to.
 */
import { execFile } from "node:child_process"
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Block } from "./Blocks.ts"
import { root } from "./Pages.ts"
import { moduleOf } from "./Reference.ts"

const directory = join(root, ".tsbuild/snippets")
const prelude = "docs/examples/prelude.ts"

/** Returns the names that statements declare; `statement` is `import`, or `export`. */
const names = (text: string, statement: string): ReadonlyArray<string> => [
  ...[...text.matchAll(new RegExp(`^${statement} (?:\\* as )?(\\w+) from`, "gm"))].map(([, name]) => name!),
  ...[...text.matchAll(new RegExp(`^${statement}(?: type)? \\{([^}]*)\\}`, "gm"))].flatMap(([, list]) =>
    list!.split(",").map((name) => name.trim().replace(/^type |.* as /g, ""))
  )
]

const declared = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(/^ *(?:export )?(?:declare )?(?:const|await using|class|function\*?|interface|type) (\w+)/gm)].map((
    [, name]
  ) => name!)

/** Returns the path of the file that holds a block, from the root. */
const path = ({ line, page }: Block) =>
  join(".tsbuild/snippets", `${page.replace(/\.md$/, "").replaceAll("/", "_")}_${line}.ts`)

/** Writes the blocks as files, each with the imports that it lacks on its first line. */
export const write = (blocks: ReadonlyArray<Block>): ReadonlyMap<Block, string> => {
  const given = readFileSync(join(root, prelude), "utf8")
  const offered = [...names(given, "export"), ...declared(given)]
  rmSync(directory, { recursive: true, force: true })
  mkdirSync(directory, { recursive: true })
  return new Map(blocks.map((block) => {
    const code = block.text.replaceAll(/(^|\s)\/\/.*$/gm, "")
    const isGenerator = /\byield\*/.test(code) && !/\bfunction\*/.test(code)
    const own = new Set([...names(code, "import"), ...declared(code)])
    const used = new Set(code.match(/[\w$]+/g))
    if (isGenerator) used.add("Effect")
    const lacks = (name: string) => used.has(name) && !own.has(name)
    const module = block.page.endsWith(".ts") ? moduleOf(block.page) : undefined
    const near = (module?.names ?? []).filter(lacks)
    const missing = offered.filter((name) => lacks(name) && !near.includes(name))
    const first = [
      "export {}",
      ...near.length === 0 ? [] : [`import { ${near.join(", ")} } from "${module!.specifier}"`],
      ...missing.length === 0 ? [] : [`import { ${missing.join(", ")} } from "../../${prelude}"`]
    ].join("; ")
    writeFileSync(
      join(root, path(block)),
      isGenerator
        ? `${first}; export const program = Effect.gen(function*() {\n${block.text}\n})\n`
        : `${first}\n${block.text}\n`
    )
    return [block, path(block)]
  }))
}

const options = {
  extends: "../../tsconfig.base.json",
  compilerOptions: {
    types: ["node"],
    lib: ["ES2023"],
    customConditions: [],
    composite: false,
    declaration: false,
    declarationMap: false,
    incremental: false,
    noEmit: true,
    rewriteRelativeImportExtensions: false,
    allowImportingTsExtensions: true,
    noUnusedLocals: false,
    noUnusedParameters: false,
    verbatimModuleSyntax: false
  },
  include: ["*.ts"]
}

/** Returns what the compiler says about the blocks, with the lines of their pages. */
export const broken = async (written: ReadonlyMap<Block, string>): Promise<ReadonlyArray<string>> => {
  writeFileSync(join(directory, "tsconfig.json"), JSON.stringify(options))
  const output = await new Promise<string>((resolve, reject) =>
    execFile(
      join(root, "node_modules/.bin/tsc"),
      ["--project", directory, "--pretty", "false"],
      { cwd: root },
      (failure, stdout) => failure !== null && stdout === "" ? reject(failure) : resolve(stdout)
    )
  )
  const blocks = new Map([...written].map(([block, file]) => [file, block]))
  return output.split("\n").filter((line) => line !== "" && !line.startsWith(" ")).map((line) => {
    const [, file = "", row = "0", rest = line] = /^(.*?)\((\d+),\d+\): (.*)$/.exec(line) ?? []
    const block = blocks.get(file)
    return block === undefined ? line : `${block.page}:${block.line + Number(row) - 1}: ${rest}`
  })
}
