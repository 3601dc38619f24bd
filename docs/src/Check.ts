/** `npm run docs -- check`: links and anchors, every block of code, and that the site loads nothing from elsewhere. */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Code } from "@device-cloud/http"
import { type Page, read } from "./Blocks.ts"
import * as Commands from "./Commands.ts"
import * as Docstrings from "./Docstrings.ts"
import * as Examples from "./Examples.ts"
import * as ExampleServer from "./ExampleServer.ts"
import * as Links from "./Links.ts"
import { generated, root, written } from "./Pages.ts"
import * as Queries from "./Queries.ts"
import * as Snippets from "./Snippets.ts"
import * as Vectors from "./Vectors.ts"

/** Pages whose examples are carried out at the same time: much of it is waiting for messages. */
const atOnce = 8

/** Returns the built files that ask a browser for something of another host. */
const foreign = (): ReadonlyArray<string> => {
  const site = join(root, "docs/.vitepress/dist")
  return readdirSync(site, { recursive: true, encoding: "utf8" }).filter((file) => /\.(html|css|svg)$/.test(file))
    .filter((file) => {
      const text = readFileSync(join(site, file), "utf8")
      return /<(script|img|iframe|source)[^>]*\ssrc="(\w+:)?\/\/|<link[^>]*\shref="(\w+:)?\/\/|@import|url\(['"]?\w+:\/\//
        .test(text) || file.endsWith(".html") && !text.includes("Content-Security-Policy")
    }).map((file) => `docs/.vitepress/dist/${file}: loads from another host, or may`)
}

const sources = (directory: string): string =>
  readdirSync(join(root, directory), { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"))
    .map((file) => readFileSync(join(root, directory, file), "utf8")).join("\n")

/** Returns the metrics that a page, the dashboard or an alert names and no server has, and codes that no page explains. */
const unknown = (pages: ReadonlyArray<Page>): ReadonlyArray<string> => {
  const known = readdirSync(join(root, "packages")).map((name) => sources(`packages/${name}/src`)).join("\n")
  const errors = readFileSync(join(root, "docs/api/errors.md"), "utf8")
  const named = [
    ...pages.map(({ file }) => file).filter((file) => /^docs\/(api\/)?operations/.test(file)),
    "docs/operations/dashboard.json",
    "docs/operations/alerts.yml"
  ]
  return [
    ...named.flatMap((file) =>
      [...new Set(readFileSync(join(root, file), "utf8").match(/device_cloud_[a-z_]*[a-z]/g))]
        .filter((name) => !known.includes(`"${name.replace(/_(bucket|count|sum)$/, "")}"`))
        .map((name) => `${file}: no server has the metric ${name}`)
    ),
    ...Object.entries(Code).filter(([name, code]) => !errors.includes(`| ${code} | \`${name}\``))
      .map(([name, code]) => `docs/api/errors.md: does not explain ${code} ${name}`)
  ]
}

/** Blocks that need no word: they compile, and the site draws them. */
const bare: ReadonlySet<string> = new Set(["ts", "mermaid"])

/** Returns the blocks that do not say what carries them out, or why nothing does. */
const unclassified = (pages: ReadonlyArray<Page>): ReadonlyArray<string> =>
  pages.flatMap(({ blocks, file, mistaken }) => [
    ...mistaken.map((line) => `${file}:${line}: the comment is no example`),
    ...blocks.flatMap(({ does, language, line, page, text }) => {
      const [verb, argument = ""] = does.split(" ")
      if (language === "") return [`${page}:${line}: the block names no language`]
      if (does === "" && !bare.has(language)) {
        return [`${page}:${line}: the block does not say what carries it out`]
      }
      if (verb === "unchecked" && does.split(" ").length < 4) {
        return [`${page}:${line}: the block does not say why nothing can carry it out`]
      }
      if (verb === "tested" && !isRead(page, language, argument)) {
        return [`${page}:${line}: ${argument} does not read the block`]
      }
      if (text.trim() === "") return []
      return [["commands", "sh"], ["vectors", "text"], ["session", "text"]].flatMap(([name, only]) =>
        verb === name && language !== only ? [`${page}:${line}: ${name} are ${only}`] : []
      )
    })
  ])

/** Whether a test reads the block of a language from a page. */
const isRead = (page: string, language: string, test: string): boolean => {
  if (!existsSync(join(root, test))) return false
  const text = readFileSync(join(root, test), "utf8")
  return text.includes(page) && text.includes(`\`\`\`${language}`)
}

/** Pages that tell how a server, or the command line, is configured. */
const configures = /^(README|docs\/(operations\/)?[\w-]+|packages\/(server|cli)\/README)\.md$/

/** Returns the settings that pages name and no program knows, and those of the server that no page explains. */
const unknownSettings = (pages: ReadonlyArray<Page>): ReadonlyArray<string> => {
  const known = ["server", "cli", "nats", "events-nats", "testing"].map((name) => sources(`packages/${name}/src`))
    .join()
  const operations = readFileSync(join(root, "docs/operations/README.md"), "utf8")
  return [
    ...pages.filter(({ file }) => configures.test(file)).flatMap(({ file }) => {
      const named = readFileSync(join(root, file), "utf8").matchAll(/`([A-Z][A-Z0-9]*_[A-Z0-9_]*[A-Z0-9])(?:=[^`]*)?`/g)
      return [...new Set([...named].map(([, name]) => name!))].filter((name) =>
        !known.includes(`"${name}"`) && !name.startsWith("NODE_")
      )
        .map((name) => `${file}: no program knows the setting ${name}`)
    }),
    ...[...Commands.settings].filter((name) => !operations.includes(`\`${name}\``))
      .map((name) => `docs/operations/README.md: does not explain ${name}`)
  ]
}

/**
 * Returns what is wrong, one sentence each, and what was looked at.
 *
 * @param only carry out the examples of these pages alone, from the root; none: of all
 */
export const check = async (only: ReadonlyArray<string>) => {
  const pages = [...written(), `${generated}/operations.md`].map(read)
  const blocks = pages.flatMap((page) => page.blocks)
  const docstrings = Docstrings.blocks()
  const snippets = Snippets.write([...blocks, ...docstrings].filter(({ language }) => language === "ts"))
  const problems = [
    ...Links.broken(pages),
    ...unclassified(pages),
    ...docstrings.filter(({ language }) => language !== "ts").map(({ line, page }) =>
      `${page}:${line}: a docstring has code in TypeScript alone`
    ),
    ...Commands.broken(blocks),
    ...Vectors.broken(blocks),
    ...await Snippets.broken(snippets),
    ...foreign(),
    ...unknown(pages),
    ...unknownSettings(pages)
  ]
  const server = await ExampleServer.start()
  try {
    const waiting = pages.filter((page) =>
      page.blocks.some(Examples.isExample) && (only.length === 0 || only.includes(page.file))
    )
    const work = async () => {
      for (let page = waiting.shift(); page !== undefined; page = waiting.shift()) {
        problems.push(...await Examples.broken(page, server, snippets))
      }
    }
    await Promise.all(Array.from({ length: atOnce }, work))
    problems.push(...Queries.broken(await (await fetch(`${server.http}/metrics`)).text()))
  } finally {
    await server.stop()
  }
  const examples = blocks.filter(Examples.isExample)
  const links = pages.flatMap((page) => page.links)
  return {
    problems,
    looked: `${pages.length} pages, ${links.length} links, ${blocks.length} blocks of code, ${docstrings.length} in ` +
      `docstrings, ${examples.length} steps of examples`
  }
}
