/** What is in a page: its headings, links and blocks of code. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { root, slug } from "./Pages.ts"

/** A block of code, or an example that stands in a comment because readers do not need it. */
export interface Block {
  readonly page: string
  readonly line: number
  /** The first word of its info. */
  readonly language: string
  /** The words after it: what an example does. */
  readonly does: string
  readonly text: string
}

export interface Page {
  readonly file: string
  /** Comments that begin as an example and are none, by their lines. */
  readonly mistaken: ReadonlyArray<number>
  readonly anchors: ReadonlySet<string>
  readonly links: ReadonlyArray<{ readonly line: number; readonly href: string }>
  readonly blocks: ReadonlyArray<Block>
}

const fence = /^( *)(`{3,}|~{3,})(\S*) ?(.*)$/
/** An example in a comment: its language, its verb with what it is about, its text. */
const hidden = /^ *<!-- example: (\w+) (run|\S+ \S+) ?(.*?) -->$/

/** Reads a page. */
export const read = (file: string): Page => {
  const anchors = new Set<string>()
  const links: Array<{ readonly line: number; readonly href: string }> = []
  const blocks: Array<Block> = []
  const mistaken: Array<number> = []
  const lines = readFileSync(join(root, file), "utf8").split("\n")
  for (let index = 0; index < lines.length; index++) {
    const line = lines[index]!
    const opened = fence.exec(line)
    const comment = hidden.exec(line)
    const heading = /^#{1,6} (.+)$/.exec(line)
    if (opened !== null) {
      const [, indent = "", ticks = "", language = "", does = ""] = opened
      const end = lines.indexOf(indent + ticks, index + 1)
      const text = lines.slice(index + 1, end).map((row) => row.slice(indent.length)).join("\n")
      blocks.push({ page: file, line: index + 1, language, does, text })
      index = end
    } else if (comment !== null) {
      const [, language = "", does = "", text = ""] = comment
      blocks.push({ page: file, line: index + 1, language, does, text })
    } else if (/^ *<!-- *example\b/.test(line)) {
      mistaken.push(index + 1)
    } else if (heading !== null) {
      const base = slug(heading[1]!.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1"))
      let anchor = base
      for (let count = 1; anchors.has(anchor); count++) anchor = `${base}-${count}`
      anchors.add(anchor)
    }
    if (opened === null) {
      for (const match of line.replaceAll(/`[^`]*`/g, "").matchAll(/\]\(([^)\s]+)\)/g)) {
        links.push({ line: index + 1, href: match[1]! })
      }
    }
  }
  return { file, anchors, links, blocks, mistaken }
}
