/**
 * The pages of the site are the Markdown files of the repository. They link to each other as files, so that they also
 * read well where the repository is browsed.
 */
import { execFileSync } from "node:child_process"
import { existsSync, readdirSync } from "node:fs"
import { join, posix } from "node:path"
import { fileURLToPath } from "node:url"

/** The directory of the repository. */
export const root = fileURLToPath(new URL("../../", import.meta.url))

/** Where generated pages stand, from the root. */
export const generated = "docs/reference"

/** Returns the Markdown files that are written by hand, from the root. */
export const written = (): ReadonlyArray<string> =>
  execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate", "*.md"], {
    cwd: root,
    encoding: "utf8"
  }).split("\n").filter((file) => file !== "" && existsSync(join(root, file)) && !file.includes("/test/"))

/** Returns all pages: those that are written, and those that are generated. */
export const pages = (): ReadonlyArray<string> => [
  ...written(),
  ...(existsSync(join(root, generated)) ? readdirSync(join(root, generated)) : []).map((name) => `${generated}/${name}`)
]

/** Returns where a file stands on the site: `docs/api/README.md` is `api/index.md`. */
export const place = (file: string): string => {
  const path = file.replace(/^docs\//, "")
  if (file === "README.md") return "index.md"
  if (file === "docs/README.md") return "contents.md"
  if (/^[A-Z]+\.md$/.test(file)) return `project/${file.toLowerCase()}`
  if (file === path) return path.replace(/\/README\.md$/, ".md")
  return path.replace(/README\.md$/, "index.md")
}

/**
 * Returns the file that a link of a page leads to, and its fragment. A link to a directory leads to its README.md.
 * Returns undefined for a link to another site.
 */
export const target = (
  page: string,
  href: string
): { readonly file: string; readonly fragment: string } | undefined => {
  if (/^(\w+:|\/\/)/.test(href)) return undefined
  const [path = "", fragment = ""] = decodeURI(href).split("#")
  const file = path === "" ? page : posix.normalize(posix.join(posix.dirname(page), path)).replace(/\/$/, "")
  const index = posix.join(file, "README.md")
  return { file: existsSync(join(root, index)) ? index : file, fragment }
}

/** Returns the anchor of a heading, as GitHub makes it. */
export const slug = (heading: string): string =>
  heading.trim().toLowerCase().replace(/[^\p{L}\p{N}\p{M}\p{Pc}\- ]/gu, "").replaceAll(" ", "-")
