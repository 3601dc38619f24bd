import { ActivityStore, Nodes, ProjectId, SubscriptionStore, TroubleStore } from "@device-cloud/core"
import { eventually } from "@device-cloud/testing"
import { call, createProduct, testApi } from "@device-cloud/testing/http"
import { assert, it, layer } from "@effect/vitest"
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

    it.effect("shows what a project has, and what needs attention, to the roles that may read it", () =>
      Effect.gen(function*() {
        const { keys, project_id } = yield* newTenant
        const projectId = ProjectId.make(project_id)
        const key = keys.admin
        const { product_key } = yield* createProduct({}, { key })
        const { body: { data: { device_id, device_name } } } = yield* call("POST", `/products/${product_key}/things`, {
          key
        })
        const { body: { data: { id: scene_id } } } = yield* call("POST", "/rule-engine/scenes", {
          key,
          body: { name: "Night", status: "enable" }
        })
        const { body: { data: { subscription_id } } } = yield* call("POST", "/subscriptions", {
          key,
          body: { name: "Billing", webhook: { url: "https://example.com/secret" } }
        })
        yield* call("PUT", `/projects/${project_id}/quotas`, { body: { devices: 1 } })
        const now = Date.now()
        yield* call("POST", "/access-keys", {
          key,
          body: { name: "Short", role: "viewer", expires_at: new Date(now + 86_400_000).toISOString() }
        })
        const trouble = { projectId, times: 12, since: now - 60_000, at: now }
        yield* (yield* TroubleStore).note([
          { ...trouble, kind: "flapping", subject: device_id, detail: "" },
          { ...trouble, kind: "refused", subject: device_id, detail: "460" },
          { ...trouble, kind: "refused", subject: "gone", detail: "460" },
          { ...trouble, kind: "execution-failed", subject: scene_id, detail: "failed" }
        ])
        const failure = { since: now, attempts: 3, nextAt: now, pausedAt: now, reason: "Status 500: at /secret" }
        yield* (yield* SubscriptionStore).modify([{
          projectId,
          subscriptionId: subscription_id,
          step: ({ progress }) => [undefined, { ...progress, failure }]
        }])
        const read = (role: "viewer" | "admin") =>
          Effect.map(call("GET", "/overview", { key: keys[role] }), ({ body }) => body.data)
        const { at, attention, ...counts } = yield* read("viewer")
        assert.isTrue(at >= now && at <= Date.now())
        assert.deepStrictEqual(counts, {
          devices: { total: 1, online: 0, offline: 0, unactive: 1, disabled: 0 },
          products: 1,
          upgrades: { total: 0, tasks: [] },
          jobs: 0,
          bulk_commands: 0,
          scenes: { enabled: 1, executions: 0 }
        })
        const device = { device_id, product_key, device_name }
        const often = { since: now - 60_000, at: now, count: 12 }
        const subscription = { kind: "subscription_failing", subject: { subscription_id, name: "Billing" } }
        const forViewers = [
          { kind: "device_flapping", subject: device, ...often, details: {} },
          { kind: "device_refused", subject: device, ...often, details: { code: "460" } },
          {
            kind: "scene_failing",
            subject: { scene_id, name: "Night" },
            ...often,
            details: { status: "failed", has_webhook: false }
          },
          { ...subscription, since: now, at: null, count: 3, details: { reason: "Status 500", is_paused: true } },
          {
            kind: "quota_nearly_used",
            subject: { quota: "devices" },
            since: null,
            at: null,
            count: 1,
            details: { used: 1, limit: 1 }
          }
        ]
        assert.sameDeepMembers(attention, forViewers)
        const forAdmins = (yield* read("admin")).attention
        assert.lengthOf(forAdmins, forViewers.length + 1)
        const expiring = forAdmins.find(({ kind }: { readonly kind: string }) => kind === "access_key_expires")
        assert.strictEqual(expiring.subject.name, "Short")
        const failing = forAdmins.find(({ kind }: { readonly kind: string }) => kind === subscription.kind)
        assert.strictEqual(failing.details.reason, failure.reason)
      }))

    it.effect("shows troubles with what is there, however many others are gone", () =>
      Effect.gen(function*() {
        const { keys, project_id } = yield* newTenant
        const key = keys.admin
        const { product_key } = yield* createProduct({}, { key })
        const { body: { data: { device_id } } } = yield* call("POST", `/products/${product_key}/things`, { key })
        const { body: { data: { id: scene_id } } } = yield* call("POST", "/rule-engine/scenes", {
          key,
          body: { name: "Night", status: "enable" }
        })
        const gone = Array.from({ length: 50 }, (_, i) => `gone${i}`)
        const now = Date.now()
        const there = { flapping: device_id, refused: device_id, "execution-failed": scene_id }
        const kinds = ["flapping", "refused", "execution-failed"] as const
        const troubles = kinds.flatMap((kind) =>
          [...gone, there[kind]].map((subject, i) => ({
            projectId: ProjectId.make(project_id),
            kind,
            subject,
            times: 100 - i,
            detail: "",
            since: now,
            at: now
          }))
        )
        yield* (yield* TroubleStore).note(troubles)
        const { body: { data: { attention } } } = yield* call("GET", "/overview", { key })
        assert.deepStrictEqual(
          attention.map(({ count, kind }: { readonly kind: string; readonly count: number }) => [kind, count]),
          [["device_flapping", 50], ["device_refused", 50], ["scene_failing", 50]]
        )
      }))
  })

  // A cloud of its own: in some seconds, its node is steady.
  it.live(`shows the nodes of the cloud and the health of its storage on ${name}`, () =>
    Effect.gen(function*() {
      const { keys } = yield* newTenant
      const read = Effect.map(call("GET", "/nodes", { key: keys.viewer }), ({ body }) => body.data)
      const { nodes: [node, ...others], storage } = yield* eventually(read, {
        until: ({ nodes }) => nodes[0]?.connections === 0
      })
      assert.deepStrictEqual(others, [])
      assert.deepStrictEqual([node.status, storage.reachable], ["starting", true])
      assert.isTrue(node.started_at <= node.heartbeat_at && storage.latency >= 0)
      if (name === "memory") assert.isNull(storage.migration)
      else assert.match(storage.migration, /^\d{4}_[a-z_]+$/)
      yield* (yield* Nodes).drain
      assert.strictEqual((yield* read).nodes[0].status, "draining")
    }).pipe(Effect.provide(testApi(stores))))
}
