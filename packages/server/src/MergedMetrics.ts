/**
 * The metrics of several workers as one text.
 */

/** Metrics of one worker in the text format of Prometheus. */
export interface WorkerMetrics {
  readonly worker: number
  readonly text: string
}

/** The samples of one metric, with the comments about it. */
interface Family {
  readonly comments: Set<string>
  readonly samples: Array<string>
}

const comment = /^# (?:HELP|TYPE) (\S+)/
const sample = /^([^{\s]+)(?:\{(.*)\})? (\S+)$/

/** Gives each sample the label `worker`, and puts the samples of a metric together. */
export const mergeMetrics = (metrics: ReadonlyArray<WorkerMetrics>): string => {
  const families = new Map<string, Family>()
  for (const { text, worker } of metrics) {
    let family: Family | undefined
    for (const line of text.split("\n")) {
      const about = comment.exec(line)?.[1]
      if (about !== undefined) {
        family = families.get(about) ?? { comments: new Set(), samples: [] }
        families.set(about, family)
        family.comments.add(line)
        continue
      }
      const [, name, labels = "", value] = sample.exec(line) ?? []
      if (name === undefined) continue
      const all = [...labels === "" ? [] : [labels], `worker="${worker}"`].join(",")
      family?.samples.push(`${name}{${all}} ${value}`)
    }
  }
  return [...families.values()].flatMap(({ comments, samples }) => [...comments, ...samples, ""]).join("\n")
}
