/**
 * The API reference: for each entry of a package, what its `index.ts` exports, with docstrings and types as they stand
 * in the sources. Read without a type checker, so that it takes a second.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import ts from "typescript"
import { root, target } from "./Pages.ts"

interface Entry {
  readonly name: string
  readonly file: string
  readonly node: ts.Statement
}

const parsed = new Map<string, ts.SourceFile>()

const source = (file: string): ts.SourceFile => {
  const known = parsed.get(file)
  if (known !== undefined) return known
  const made = ts.createSourceFile(file, readFileSync(join(root, file), "utf8"), ts.ScriptTarget.ES2023, true)
  parsed.set(file, made)
  return made
}

const isExported = (node: ts.Statement) =>
  ts.canHaveModifiers(node) && ts.getModifiers(node)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) === true

const declaredNames = (node: ts.Statement): ReadonlyArray<string> => {
  if (ts.isVariableStatement(node)) return node.declarationList.declarations.map(({ name }) => name.getText())
  const { name } = node as ts.DeclarationStatement
  return name === undefined ? [] : [name.getText()]
}

/** Returns what a module exports, under the names by which it does. */
const exportsOf = (file: string): ReadonlyArray<Entry> =>
  source(file).statements.flatMap((node): ReadonlyArray<Entry> => {
    if (isExported(node)) return declaredNames(node).map((name) => ({ name, file, node }))
    if (!ts.isExportDeclaration(node) || node.moduleSpecifier === undefined) return []
    const from = join(dirname(file), (node.moduleSpecifier as ts.StringLiteral).text)
    if (!existsSync(join(root, from))) return []
    const all = exportsOf(from)
    const clause = node.exportClause
    if (clause === undefined) return all
    if (ts.isNamespaceExport(clause)) {
      return all.map((entry) => ({ ...entry, name: `${clause.name.getText()}.${entry.name}` }))
    }
    return clause.elements.flatMap(({ name, propertyName }) =>
      all.filter((entry) => entry.name === (propertyName ?? name).getText())
        .map((entry) => ({ ...entry, name: name.getText() }))
    )
  })

/** Returns the Markdown of a docstring, with its links as they lead from the reference. */
const docs = (node: ts.Node, page: string, file: string): string => {
  const text = ts.getJSDocCommentsAndTags(node).findLast(ts.isJSDoc)?.getText() ?? ""
  return text.replace(/^\/\*\*/, "").replace(/\*\/$/, "").replaceAll(/^ *\* ?/gm, "").trim()
    .replaceAll(/\{@link (\w+)\}/g, "`$1`")
    .replaceAll(/\]\(([^)\s]+)\)/g, (whole, href) => {
      const to = target(file, href)
      return to === undefined ? whole : `](${relative(dirname(page), to.file)}${to.fragment && `#${to.fragment}`})`
    })
    .replaceAll(/^@(\w+) ?/gm, "*$1* ")
    .replaceAll(/(?<!`)<(?=\w)/g, "&lt;")
}

/** Returns a declaration without the bodies of its functions. */
const signature = (node: ts.Statement): string => {
  const text = node.getFullText().slice(node.getStart(undefined, false) - node.getFullStart())
  const offset = node.getStart(undefined, false)
  const cuts: Array<readonly [number, number, string]> = []
  const visit = (inner: ts.Node): void => {
    const body = ts.isFunctionLike(inner) ? (inner as ts.FunctionLikeDeclaration).body : undefined
    if (body !== undefined) cuts.push([body.getStart(), body.getEnd(), "…"])
    else if (
      (ts.isPropertyDeclaration(inner) || ts.isVariableDeclaration(inner)) && inner.type !== undefined &&
      inner.initializer !== undefined
    ) cuts.push([inner.type.getEnd(), inner.initializer.getEnd(), ""])
    else ts.forEachChild(inner, visit)
  }
  visit(node)
  const short = cuts.reduceRight(
    (result, [begin, end, by]) => result.slice(0, begin - offset) + by + result.slice(end - offset),
    text
  )
  const lines = short.split("\n")
  return lines.length > 60 ? [...lines.slice(0, 60), "…"].join("\n") : short
}

const pageOf = (title: string, head: string, entries: ReadonlyArray<Entry>, page: string): string => {
  const seen = new Set<ts.Node>()
  let before = ""
  return [
    `# ${title}`,
    head,
    ...[...entries].sort((left, right) => left.name.localeCompare(right.name)).flatMap(({ file, name, node }) => {
      if (seen.has(node)) return []
      seen.add(node)
      const heading = name === before ? "" : `## ${name}`
      before = name
      return [heading, docs(node, page, file), `\`\`\`ts\n${signature(node)}\n\`\`\``, `[${file}](../../${file})`]
    })
  ].filter((part) => part !== "").join("\n\n") + "\n"
}

/** Returns the pages of one entry: those of the core by concept, of others a single one. */
const pagesOf = (name: string, path: string, index: string, directory: string) => {
  const file = `${name}${path.slice(1).replaceAll("/", "-")}.md`
  const title = `@device-cloud/${name}${path.slice(1)}`
  const entries = exportsOf(index)
  const head = docs(source(index).statements[0] ?? source(index), join(directory, file), index)
  if (name !== "core") return [[file, pageOf(title, head, entries, join(directory, file))] as const]
  const conceptOf = (entry: Entry) => relative("packages/core/src", entry.file).split("/")[0]!
  return [...new Set(entries.map(conceptOf))].sort().map((concept) => {
    const some = entries.filter((entry) => conceptOf(entry) === concept)
    const page = concept.endsWith(".ts") ? file : `core-${concept}.md`
    return [
      page,
      pageOf(concept.endsWith(".ts") ? title : `core: ${concept}`, "", some, join(directory, page))
    ] as const
  })
}

/** Returns the entries of a package: how programs import them, and the file of each. */
const entriesOf = (name: string) => {
  const { exports } = JSON.parse(readFileSync(join(root, "packages", name, "package.json"), "utf8"))
  return Object.entries<Record<string, string>>(exports ?? {}).flatMap(([path, { "device-cloud-source": index }]) =>
    index === undefined ? [] : [{ path, index: join("packages", name, index) }]
  )
}

const packages = () => readdirSync(join(root, "packages")).sort()

/** Returns the files of the packages with something that is exported, and the files of the entries. */
export const publicFiles = (): ReadonlyArray<string> => [
  ...new Set(
    packages().flatMap(entriesOf).flatMap(({ index }) => [index, ...exportsOf(index).map(({ file }) => file)])
  )
]

/** Returns the module that a file of a package belongs to, as programs import it, and the names that it exports. */
export const moduleOf = (file: string): { readonly specifier: string; readonly names: ReadonlyArray<string> } => {
  const [, name = ""] = file.split("/")
  const entries = entriesOf(name)
  const { index, path } = entries.find(({ index }) => index === file) ?? entries[0]!
  return {
    specifier: `@device-cloud/${name}${path.slice(1)}`,
    names: [...new Set(exportsOf(index).map((entry) => entry.name.split(".")[0]!))]
  }
}

/** Returns the pages of the reference by their names. */
export const pages = (directory: string): ReadonlyMap<string, string> =>
  new Map(
    packages().flatMap((name) => entriesOf(name).flatMap(({ index, path }) => pagesOf(name, path, index, directory)))
  )
