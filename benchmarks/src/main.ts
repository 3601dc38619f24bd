/**
 * `npm run bench`: runs all benchmarks but `fairness` and `console-hour`, or the named
 * ones, and prints their ratios to the references.
 */
import { execFileSync } from "node:child_process"
import { mkdir, writeFile } from "node:fs/promises"
import { arch, cpus, platform, totalmem } from "node:os"
import { fileURLToPath } from "node:url"
import type { Comparison } from "./Comparison.ts"
import { consoleHour, consolePages } from "./ConsolePages.ts"
import { batchThings } from "./BatchThings.ts"
import { otaCampaign } from "./OtaCampaign.ts"
import { downlink } from "./Downlink.ts"
import { attackNames, fairness, storages } from "./fairness/Fairness.ts"
import { head, rowOf } from "./fairness/Report.ts"
import { fleetSim } from "./FleetSim.ts"
import { historyBytes } from "./HistoryBytes.ts"
import { historyGrowth } from "./HistoryGrowth.ts"
import { historyRead } from "./HistoryRead.ts"
import { httpRead } from "./HttpRead.ts"
import { httpUplink } from "./HttpUplink.ts"
import { million } from "./Million.ts"
import { modelCheck } from "./ModelCheck.ts"
import { mqttConnect } from "./MqttConnect.ts"
import { feed, mqttIngestDurable, mqttIngestMemory, mqttIngestSqlite, sceneIngest } from "./MqttIngest.ts"
import { mqttMemory } from "./MqttMemory.ts"
import { mqttLatency } from "./MqttLatency.ts"
import { scaleOut } from "./ScaleOut.ts"
import { sceneMatch } from "./SceneMatch.ts"

const benchmarks: Readonly<Record<string, () => Promise<ReadonlyArray<Comparison>>>> = {
  "mqtt-ingest-memory": mqttIngestMemory,
  "mqtt-ingest-durable": mqttIngestDurable,
  "mqtt-ingest-sqlite": mqttIngestSqlite,
  "feed": feed,
  "mqtt-connect": mqttConnect,
  "mqtt-latency": mqttLatency,
  "mqtt-memory": mqttMemory,
  "downlink": downlink,
  "batch-things": batchThings,
  "ota-campaign": otaCampaign,
  "http-uplink": httpUplink,
  "http-read": httpRead,
  "history-bytes": historyBytes,
  "history-growth": historyGrowth,
  "history-read": historyRead,
  "million": million,
  "fleet-sim": fleetSim,
  "model-check": modelCheck,
  "scale-out": scaleOut,
  "scene-match": sceneMatch,
  "scene-ingest": sceneIngest,
  "console": consolePages,
  "console-hour": consoleHour
}

const byDefault = Object.keys(benchmarks).filter((name) => name !== "console-hour")

const names = process.argv.slice(2)
const known = [...Object.keys(benchmarks), "fairness"]
const unknown = names.filter((name) => !known.includes(name))
if (unknown.length > 0) {
  process.stderr.write(`No benchmark ${unknown.join(", ")}. There are ${known.join(", ")}.\n`)
  process.exit(2)
}

const machine = {
  cpu: cpus()[0]?.model ?? "unknown",
  cores: cpus().length,
  memoryGiB: Math.round(totalmem() / 2 ** 30),
  system: `${platform()} ${arch()}`,
  node: process.version,
  commit: execFileSync("git", ["rev-parse", "--short", "HEAD"], { encoding: "utf8" }).trim()
}

const row = (cells: ReadonlyArray<string>): string => `| ${cells.join(" | ")} |\n`

const results = fileURLToPath(new URL("../results/", import.meta.url))
await mkdir(results, { recursive: true })
const keep = (name: string, measured: object): Promise<void> =>
  writeFile(`${results}${name}.json`, `${JSON.stringify({ machine, ...measured }, undefined, 2)}\n`)

process.stdout.write(`${machine.cpu}, ${machine.cores} cores, ${machine.memoryGiB} GiB, Node ${machine.node}\n\n`)
const compared = names.length > 0 ? names.filter((name) => name !== "fairness") : byDefault
if (compared.length > 0) {
  process.stdout.write(row(["benchmark", "scenario", "per second", "p50/p99 ms", "reference", "its", "ratio", "bar"]))
  process.stdout.write(row(Array.from({ length: 8 }, () => "---")))
}
for (const name of compared) {
  const comparisons = await benchmarks[name]!()
  for (const { bar, benchmark, ours, ratio, reference, scenario, theirs } of comparisons) {
    process.stdout.write(row([
      benchmark,
      scenario,
      String(ours.perSecond),
      `${ours.p50.toFixed(1)} / ${ours.p99.toFixed(1)}`,
      reference,
      String(theirs.perSecond),
      ratio.toFixed(2),
      `${ratio >= bar ? "≥" : "below"} ${Number(bar.toFixed(2))}`
    ]))
  }
  await keep(name, { comparisons })
}
if (names.includes("fairness")) {
  process.stdout.write(head)
  await keep("fairness", {
    findings: await fairness(attackNames, storages, (finding) => process.stdout.write(rowOf(finding)))
  })
}
