/** The queries of the dashboard and of the alerts, held against the metrics of a server at work. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { root } from "./Pages.ts"

interface Query {
  readonly file: string
  readonly text: string
}

const dashboard = "docs/operations/dashboard.json"
const alerts = "docs/operations/alerts.yml"

const queries = (): ReadonlyArray<Query> => {
  const textOf = (file: string) => readFileSync(join(root, file), "utf8")
  return [
    ...[...textOf(dashboard).matchAll(/"expr": (".*")/g)].map(([, text]) => ({
      file: dashboard,
      text: JSON.parse(text!) as string
    })),
    ...[...textOf(alerts).matchAll(/^ *expr: (.*)$/gm)].map(([, text]) => ({ file: alerts, text: text! }))
  ]
}

/** Prometheus itself adds it to each series. */
const added: ReadonlySet<string> = new Set(["instance"])

/** The labels that a query asks for: those in braces, and those it groups by. */
const labelsOf = (text: string): ReadonlyArray<string> => [
  ...[...text.matchAll(/(\w+)\s*(?:=~|!~|!=|=)\s*"/g)].map(([, label]) => label!),
  ...[...text.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, labels]) => labels!.split(/,\s*/))
]

/** The series of the metric that a server gives. */
const seriesOf = (metrics: string, name: string): ReadonlyArray<string> =>
  metrics.split("\n").filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))

/**
 * Returns the labels that a query asks for and no series has. A metric of what has
 * not happened yet has no series, and says nothing.
 *
 * @param metrics what a server gives at `/metrics`
 */
export const broken = (metrics: string): ReadonlyArray<string> =>
  queries().flatMap(({ file, text }) => {
    const series = (text.match(/device_cloud_\w+/g) ?? []).flatMap((name) => seriesOf(metrics, name))
    if (series.length === 0) return []
    return labelsOf(text).filter((label) => !added.has(label) && !series.some((each) => each.includes(`${label}="`)))
      .map((label) => `${file}: no series of ${text} has the label ${label}`)
  })
