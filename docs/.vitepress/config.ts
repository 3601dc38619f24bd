import { readFileSync } from "node:fs"
import { join } from "node:path"
import { defineConfig } from "vitepress"
import { svg } from "../src/Mermaid.ts"
import { sidebar } from "../src/Navigation.ts"
import { pages, place, root, slug, target } from "../src/Pages.ts"

/** Where the sources are, if the packages say so. */
const { repository } = JSON.parse(readFileSync(join(root, "packages/core/package.json"), "utf8")) as {
  readonly repository?: { readonly url: string }
}
const sources = repository?.url.replace(/^git\+/, "").replace(/\.git$/, "")

const files = new Set(pages())

/** The browser itself refuses what a page would load from another host. */
const policy = "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; " +
  "img-src 'self' data:"

export default defineConfig({
  title: "Device Cloud",
  description: "The cloud side of connected products, as a TypeScript library",
  srcDir: "..",
  srcExclude: ["**/node_modules/**", "**/dist/**"],
  rewrites: place,
  head: [["meta", { "http-equiv": "Content-Security-Policy", content: policy }]],
  lastUpdated: false,
  markdown: {
    anchor: { slugify: slug },
    toc: { slugify: slug },
    languageAlias: { haproxy: "nginx" },
    config: (markdown) => {
      const fence = markdown.renderer.rules.fence!
      markdown.renderer.rules.fence = (tokens, index, options, env, self) => {
        const token = tokens[index]!
        return token.info === "mermaid"
          ? `<div class="diagram" v-pre>${svg(token.content)}</div>`
          : fence(tokens, index, options, env, self)
      }
      markdown.core.ruler.push("places", ({ env, tokens }) => {
        for (const token of tokens.flatMap((token) => token.children ?? [])) {
          const href = token.attrGet("href")
          if (token.type !== "link_open" || href === null) continue
          const to = target(env.realPath ?? env.relativePath, href)
          if (to === undefined) continue
          if (files.has(to.file)) {
            token.attrSet("href", `/${place(to.file)}${to.fragment === "" ? "" : `#${to.fragment}`}`)
          } else if (sources !== undefined) {
            token.attrSet("href", `${sources}/blob/main/${to.file}`)
          } else {
            token.attrs = []
          }
        }
      })
    }
  },
  themeConfig: {
    search: { provider: "local" },
    sidebar: sidebar(),
    outline: [2, 3]
  }
})
