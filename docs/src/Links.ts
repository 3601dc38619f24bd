/** Links between the files of the repository lead to files and headings that exist. */
import { existsSync } from "node:fs"
import { join } from "node:path"
import type { Page } from "./Blocks.ts"
import { groups } from "./Navigation.ts"
import { root, target } from "./Pages.ts"

/** Returns a sentence for each link that leads nowhere, and for each page of `docs/` that the side bar lacks. */
export const broken = (pages: ReadonlyArray<Page>): ReadonlyArray<string> => {
  const byFile = new Map(pages.map((page) => [page.file, page]))
  const listed = new Set(groups().flatMap(({ files }) => files))
  return [
    ...pages.flatMap(({ file, links }) =>
      links.flatMap(({ href, line }) => {
        const to = target(file, href)
        if (to === undefined) return []
        if (!existsSync(join(root, to.file))) return [`${file}:${line}: ${href}: there is no ${to.file}`]
        if (to.fragment === "" || byFile.get(to.file)?.anchors.has(to.fragment) !== false) return []
        return [`${file}:${line}: ${href}: ${to.file} has no heading for #${to.fragment}`]
      })
    ),
    ...pages.filter(({ file }) => file.startsWith("docs/") && !listed.has(file))
      .map(({ file }) => `${file}: docs/src/Navigation.ts does not name it`)
  ]
}
