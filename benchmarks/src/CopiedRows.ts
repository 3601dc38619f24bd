/**
 * The floor of the database for durable ingest: `psql` copies the rows of reports in
 * batches like those of `RawUpserts.ts`, a transaction each, four at a time. Shadows are
 * appended, for COPY updates no rows.
 */
import { spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { Latencies, measured, type Times } from "./Measurement.ts"

export interface CopiedRowsPlan extends Times {
  readonly databaseUrl: string
  readonly devices: number
}

const plan = JSON.parse(process.argv[2]!) as CopiedRowsPlan
const clients = 4

const tables = `
DROP TABLE IF EXISTS copied_shadow, copied_sample;
CREATE TABLE copied_shadow (device_id text COLLATE "C" NOT NULL, version bigint NOT NULL,
  reported json NOT NULL, desired json NOT NULL, updated_at timestamptz NOT NULL);
CREATE INDEX ON copied_shadow (device_id);
CREATE TABLE copied_sample (id bigint GENERATED ALWAYS AS IDENTITY, device_id text COLLATE "C" NOT NULL,
  property_id text COLLATE "C" NOT NULL, time timestamptz NOT NULL, value json NOT NULL,
  stored_at timestamptz NOT NULL DEFAULT now());
CREATE INDEX ON copied_sample (device_id, property_id, time, id);
CREATE INDEX ON copied_sample USING brin (stored_at);
`

const time = "2026-11-21 06:45:54.3+00"
const values = { temperature: "21.5", humidity: "48", mode: `"eco"` }
const reported = JSON.stringify(
  Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, { value: JSON.parse(value) as unknown, time: 1795231554300 }])
  )
)

/** A transaction with the rows of some devices. psql writes a line when it has ended. */
const transaction = (devices: ReadonlyArray<string>): string => {
  const samples = devices.flatMap((device) =>
    Object.entries(values).map(([name, value]) => [device, name, time, value].join("\t"))
  )
  const shadows = devices.map((device) => [device, "1", reported, "{}", time].join("\t"))
  return [
    "BEGIN;",
    "COPY copied_sample (device_id, property_id, time, value) FROM STDIN;",
    ...samples,
    "\\.",
    "COPY copied_shadow (device_id, version, reported, desired, updated_at) FROM STDIN;",
    ...shadows,
    "\\.",
    "COMMIT;",
    ""
  ].join("\n")
}

const psql = () => {
  const child = spawn("psql", ["-X", "-v", "ON_ERROR_STOP=1", plan.databaseUrl], {
    stdio: ["pipe", "pipe", "inherit"],
    env: { ...process.env, PGOPTIONS: "--client-min-messages=warning" }
  })
  child.once("exit", () => process.exit(1))
  return { stdin: child.stdin, lines: createInterface({ input: child.stdout }) }
}

const first = psql()
first.stdin.write(tables)
await new Promise<void>((resolve) => {
  first.lines.on("line", (line) => line === "READY" && resolve())
  first.stdin.write("\\echo READY\n")
})

let count = 0
const share = Math.floor(plan.devices / clients)
for (const [index, { lines, stdin }] of [first, psql(), psql(), psql()].entries()) {
  const own = Array.from({ length: share }, (_, i) => `loada1b2c3d4e5f${index * share + i}`)
  const bytes = Buffer.from(transaction(own))
  lines.on("line", (line) => {
    if (line !== "COMMIT") return
    count += share
    stdin.write(bytes)
  })
  stdin.write(bytes)
}
const result = await measured(plan, new Latencies(), () => count)
process.stdout.write(`${JSON.stringify(result)}\n`)
process.exit(0)
