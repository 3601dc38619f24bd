/** The side bar: the pages in the order in which a newcomer reads them. */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { generated, place, root, written } from "./Pages.ts"

interface Group {
  readonly text: string
  readonly files: ReadonlyArray<string>
  readonly collapsed?: boolean
}

const inDocs = (directory: string, names: string): ReadonlyArray<string> =>
  names.split(" ").map((name) => join("docs", directory, `${name}.md`))

/** Returns the README.md of each workspace in a directory. */
const workspaces = (directory: string): ReadonlyArray<string> =>
  readdirSync(join(root, directory)).sort().map((name) => `${directory}/${name}/README.md`)

/** Returns the groups of the side bar, with the files of those pages that exist. */
export const groups = (): ReadonlyArray<Group> => {
  const references = existsSync(join(root, generated)) ? readdirSync(join(root, generated)).sort() : []
  const all: ReadonlyArray<Group> = [
    { text: "Start", files: ["README.md", ...inDocs("", "what-it-is tutorial comparison migration README")] },
    { text: "Concepts", files: inDocs("", "concepts ownership security") },
    {
      text: "Devices",
      files: inDocs(
        "protocol",
        "README by-example connecting signatures certificates topics reports raw shadow commands upgrades jobs " +
          "gateways mesh provisioning http-uplink codes thing-models"
      ),
      collapsed: true
    },
    {
      text: "API",
      files: [
        ...inDocs("api", "README"),
        `${generated}/operations.md`,
        ...inDocs(
          "api",
          "errors products thing-models codecs configurations devices device-groups certificates commands " +
            "bulk-commands traces shadows history events subscriptions firmware jobs scenes gateways mesh provisioning " +
            "objects projects quotas overview audit browser-sessions operations"
        )
      ],
      collapsed: true
    },
    { text: "Embedding", files: inDocs("", "embedding without-effect typed-models cli console") },
    {
      text: "Extending",
      files: inDocs("", "adapters writing-a-store writing-a-transport clickhouse nats mqtt-bridge")
    },
    { text: "Testing", files: inDocs("", "testing simulation") },
    {
      text: "Operations",
      files: inDocs(
        "operations",
        "README sizing scale backup upgrades monitoring rolling-restarts troubleshooting"
      )
    },
    { text: "Examples", files: workspaces("examples"), collapsed: true },
    {
      text: "Reference",
      files: [
        ...references.filter((name) => name !== "operations.md").map((name) => `${generated}/${name}`),
        "benchmarks/README.md",
        "docs/performance.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md"
      ],
      collapsed: true
    },
    { text: "Packages", files: workspaces("packages"), collapsed: true },
    {
      text: "Decisions",
      files: ["docs/decisions/README.md", ...written().filter((file) => /^docs\/decisions\/\d/.test(file)).sort()],
      collapsed: true
    }
  ]
  return all.map((group) => ({ ...group, files: group.files.filter((file) => existsSync(join(root, file))) }))
}

const title = (file: string): string =>
  /^# (.+)$/m.exec(readFileSync(join(root, file), "utf8"))?.[1]?.replaceAll("`", "") ?? file

/** The side bar in VitePress's form. */
export const sidebar = () =>
  groups().map(({ files, ...group }) => ({
    ...group,
    items: files.map((file) => ({
      text: title(file),
      link: `/${place(file).replace(/(^|\/)index\.md$/, "$1").replace(/\.md$/, "")}`
    }))
  }))
