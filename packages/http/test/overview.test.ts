import { ActivityStore, ProjectId } from "@device-cloud/core"
import { call, testApi } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { everyStorage } from "../../../vitest.storages.ts"
import { newTenant } from "./fuzz/FuzzedTenant.ts"

for (const [name, stores] of everyStorage) {
  layer(testApi(stores), { excludeTestServices: true })(`the overview on ${name}`, (it) => {
    it.effect("shows a viewer the activity of the own project over time", () =>
      Effect.gen(function*() {
        const [tenant, other] = [yield* newTenant, yield* newTenant]
        const minute = Math.floor(Date.now() / 60_000) - 30
        const counts = [
          { measure: "online", code: "", count: 40 },
          { measure: "accepted", code: "", count: 12 },
          { measure: "refused", code: "460", count: 3 },
          { measure: "failed", code: "no_reply", count: 2 },
          { measure: "execution-failed", code: "", count: 1 }
        ] as const
        const projectId = ProjectId.make(tenant.project_id)
        yield* (yield* ActivityStore).add(counts.map((count) => ({ ...count, projectId, minute })))
        const from = minute * 60_000
        const read = (key: string, query = `?from=${from}&to=${from + 600_000}`) =>
          Effect.map(call("GET", `/activity${query}`, { key }), ({ body }) => body)
        const nothing = {
          devices_online: 0,
          messages: { accepted: 0, refused: {} },
          commands: { replied: 0, failed: {}, expired: 0 },
          executions: { succeeded: 0, failed: 0 }
        }
        const points = Array.from({ length: 10 }, (_, i) => ({ time: from + i * 60_000, ...nothing }))
        const period = { from, to: from + 600_000, interval: 60 }
        assert.deepStrictEqual((yield* read(other.keys.viewer)).data, { ...period, points })
        assert.deepStrictEqual((yield* read(tenant.keys.viewer)).data, {
          ...period,
          points: [{
            time: from,
            devices_online: 40,
            messages: { accepted: 12, refused: { "460": 3 } },
            commands: { replied: 0, failed: { no_reply: 2 }, expired: 0 },
            executions: { succeeded: 0, failed: 1 }
          }, ...points.slice(1)]
        })
        assert.lengthOf((yield* read(tenant.keys.viewer, "")).data.points, 180)
        for (const query of ["?from=yesterday", `?from=${from}&to=${from - 1}`, "?to=-1"]) {
          assert.strictEqual((yield* read(tenant.keys.viewer, query)).code, 40_001, query)
        }
      }))
  })
}
