/**
 * All benchmarks by name.
 */
import { batchThings } from "../BatchThings.ts"
import type { Part } from "../Comparison.ts"
import { consoleHour, consolePages } from "../ConsolePages.ts"
import { downlink } from "../Downlink.ts"
import { fleetSim } from "../FleetSim.ts"
import { historyBytes } from "../HistoryBytes.ts"
import { historyGrowth } from "../HistoryGrowth.ts"
import { historyRead } from "../HistoryRead.ts"
import { httpRead } from "../HttpRead.ts"
import { httpUplink } from "../HttpUplink.ts"
import { million } from "../Million.ts"
import { modelCheck } from "../ModelCheck.ts"
import { mqttConnect } from "../MqttConnect.ts"
import { feed, mqttIngestDurable, mqttIngestMemory, mqttIngestSqlite, sceneIngest } from "../MqttIngest.ts"
import { mqttLatency, tails } from "../MqttLatency.ts"
import { mqttMemory } from "../MqttMemory.ts"
import { otaCampaign } from "../OtaCampaign.ts"
import { scaleOut } from "../ScaleOut.ts"
import { sceneMatch } from "../SceneMatch.ts"
import { firstStarts, restart } from "../Start.ts"

/** Those that run without being named: a quarter of an hour. */
const usual: Readonly<Record<string, ReadonlyArray<Part>>> = {
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
  "model-check": modelCheck,
  "scale-out": scaleOut,
  "scene-match": sceneMatch,
  "scene-ingest": sceneIngest,
  "start": firstStarts
}

export const usualNames: ReadonlyArray<string> = Object.keys(usual)

/** The parts of each benchmark. Those that are not usual fill a large storage first, or last for minutes. */
export const benchmarks: Readonly<Record<string, ReadonlyArray<Part>>> = {
  ...usual,
  "history-growth": historyGrowth,
  "history-read": historyRead,
  "million": million,
  "restart": restart,
  "tails": tails,
  "fleet-sim": fleetSim,
  "console": consolePages,
  "console-hour": consoleHour
}
