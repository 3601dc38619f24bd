/**
 * The reference for campaigns: one statement writes the records of a task once
 * more, as another task.
 */
import { PgClient } from "@effect/sql-pg"
import { Effect, Redacted } from "effect"

const [url = "", taskId = ""] = process.argv.slice(2)

const program = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient
  const [task] = yield* sql<{ readonly task_id: bigint }>`
    INSERT INTO ota_task (kind, project_id, product_key, firmware_id, module, version, status, upgrade_policy,
      scope_mode, timeout, need_app_confirm, is_app_confirmed, maximum_per_minute, retry_count, retry_interval,
      abort_threshold_percent, abort_min_executed, created_at, updated_at)
    SELECT kind, project_id, product_key, firmware_id, 'raw' || task_id, version, 4, upgrade_policy, scope_mode, timeout,
      need_app_confirm, is_app_confirmed, maximum_per_minute, retry_count, retry_interval, abort_threshold_percent,
      abort_min_executed, created_at, updated_at
    FROM ota_task WHERE task_id = ${Number(taskId)} RETURNING task_id`
  const from = performance.now()
  yield* sql`INSERT INTO ota_record (task_id, place, device_id, device_name, module, created_at, updated_at)
    SELECT ${Number(task!.task_id)}::bigint, place, device_id, device_name, ${`raw${taskId}`}, created_at, updated_at
    FROM ota_record WHERE task_id = ${Number(taskId)}`
  process.stdout.write(`${JSON.stringify({ millis: performance.now() - from })}\n`)
})

await Effect.runPromise(program.pipe(Effect.provide(PgClient.layer({ url: Redacted.make(url) }))))
process.exit(0)
