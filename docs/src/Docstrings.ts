/** Blocks of code in the docstrings of the packages: those with fences, and what follows `@example`. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import type { Block } from "./Blocks.ts"
import { root } from "./Pages.ts"
import { publicFiles } from "./Reference.ts"

const begin = /^\s*\* (?:```(\w+)|@example)$/
const end = /^\s*\* (?:```|@\w)|\*\/$/

/** Returns the blocks of all modules that have something which a package exports. */
export const blocks = (): ReadonlyArray<Block> =>
  publicFiles().flatMap((page) => {
    const lines = readFileSync(join(root, page), "utf8").split("\n")
    const found: Array<Block> = []
    for (let index = 0; index < lines.length; index++) {
      const opened = begin.exec(lines[index]!)
      // A fence that follows `@example` is the block.
      if (opened === null || opened[1] === undefined && begin.exec(lines[index + 1]!)?.[1] !== undefined) continue
      const last = lines.findIndex((line, at) => at > index && end.test(line))
      const text = lines.slice(index + 1, last).map((line) => line.replace(/^\s*\* ?/, "")).join("\n")
      found.push({ page, line: index + 1, language: opened[1] ?? "ts", does: "", text })
      index = last - (opened[1] === undefined ? 1 : 0)
    }
    return found
  })
