/**
 * The reference for batches: one `unnest` statement writes the rows of the devices
 * into the same table. It runs twice and the second run is measured, with warm
 * connections and plans like those of the server.
 */
import { PgClient, PgTypes } from "@effect/sql-pg"
import { Effect, Redacted, Result } from "effect"
import { randomBytes } from "node:crypto"

const [url = "", productKey = "", count = "0"] = process.argv.slice(2)

const array = (values: ReadonlyArray<string>) => Result.getOrThrow(PgTypes.array(values, PgTypes.OID.text))
const texts = (length: number) => Array.from({ length: Number(count) }, () => randomBytes(length).toString("hex"))

const program = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient
  let millis = 0
  for (let i = 0; i < 2; i++) {
    const [ids, names, secrets] = [texts(10), texts(10), texts(16)]
    const from = performance.now()
    yield* sql`INSERT INTO device (project_id, product_key, device_id, device_name, device_secret, nickname, batch_id,
        created_at, updated_at)
      SELECT 'default', ${productKey}, id, name, secret, '', 1, now(), now()
      FROM unnest(${array(ids)}, ${array(names)}, ${array(secrets)}) AS new (id, name, secret)`
    millis = performance.now() - from
  }
  process.stdout.write(`${JSON.stringify({ millis })}\n`)
})

await Effect.runPromise(program.pipe(Effect.provide(PgClient.layer({ url: Redacted.make(url) }))))
process.exit(0)
