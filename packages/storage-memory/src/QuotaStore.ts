/**
 * Quotas in memory.
 */
import {
  currentMinute,
  type ProductKey,
  type ProjectId,
  QuotaExceeded,
  type QuotaLimits,
  type QuotaName,
  QuotaStore
} from "@device-cloud/core"
import { Effect, Layer, Option, References } from "effect"
import { type ProjectQuotas, Tables } from "./Tables.ts"

/** Part of the group that is replaced together: it counts what other stores have. */
export const layer: Layer.Layer<QuotaStore, never, Tables> = Layer.effect(
  QuotaStore,
  Effect.map(Tables, (tables) => make(tables))
)

const make = (
  {
    accessKeys,
    deviceCounts,
    deviceGroups,
    jobs,
    onProductRemoved,
    products,
    projects,
    quotas,
    scenes,
    subscriptions
  }: Tables["Service"]
) => {
  /** Of each product. `minute`: Unix milliseconds / 60,000. */
  const registrations = new Map<string, { readonly minute: number; readonly count: number }>()
  onProductRemoved.push((productKey) => void registrations.delete(productKey))

  const of = (projectId: ProjectId): ProjectQuotas => {
    const known = quotas.get(projectId)
    if (known !== undefined) return known
    const made: ProjectQuotas = { limits: {}, objectBytes: 0 }
    if (projects.has(projectId)) quotas.set(projectId, made)
    return made
  }

  const count = (rows: Iterable<{ readonly projectId: ProjectId }>, projectId: ProjectId): number => {
    let found = 0
    for (const row of rows) if (row.projectId === projectId) found++
    return found
  }

  const used = (quota: QuotaName, projectId: ProjectId): number => {
    switch (quota) {
      case "products":
        return count(products.values(), projectId)
      case "devices":
        return deviceCounts.get(projectId) ?? 0
      case "deviceGroups":
        return count(deviceGroups.values(), projectId)
      case "accessKeys":
        return count(accessKeys.values(), projectId)
      case "scenes":
        return count(scenes.values(), projectId)
      case "jobs":
        return count([...jobs.values()].map(({ job }) => job), projectId)
      case "subscriptions":
        return count([...subscriptions.values()].map(({ subscription }) => subscription), projectId)
      case "objectBytes":
        return of(projectId).objectBytes
    }
  }

  /** Fails if `amount` more would be too many. */
  const check = (projectId: ProjectId, quota: QuotaName, amount: number, limit: number) =>
    Effect.suspend(() => {
      const maximum = of(projectId).limits[quota] ?? limit
      return amount > 0 && used(quota, projectId) + amount > maximum
        ? Effect.fail(new QuotaExceeded({ quota, limit: maximum }))
        : Effect.void
    })

  return QuotaStore.of({
    state: (projectId) =>
      Effect.sync(() =>
        projects.has(projectId)
          ? Option.some({
            limits: of(projectId).limits,
            used: {
              products: used("products", projectId),
              devices: used("devices", projectId),
              deviceGroups: used("deviceGroups", projectId),
              accessKeys: used("accessKeys", projectId),
              scenes: used("scenes", projectId),
              jobs: used("jobs", projectId),
              subscriptions: used("subscriptions", projectId),
              objectBytes: used("objectBytes", projectId)
            }
          })
          : Option.none()
      ),
    set: (projectId, change) =>
      Effect.sync(() => {
        if (!projects.has(projectId)) return false
        const limits: Record<string, number> = { ...of(projectId).limits }
        for (const [quota, limit] of Object.entries(change)) {
          if (limit === null) delete limits[quota]
          else if (limit !== undefined) limits[quota] = limit
        }
        quotas.set(projectId, { ...of(projectId), limits: limits as Partial<QuotaLimits> })
        return true
      }),
    within: ({ amount, limit, projectId, quota }, write) =>
      Effect.andThen(check(projectId, quota, amount, limit), write).pipe(
        // One turn: no other write comes between the check and this one.
        Effect.provideService(References.PreventSchedulerYield, true),
        Effect.uninterruptible
      ),
    take: (projectId, bytes, limit) =>
      Effect.andThen(
        check(projectId, "objectBytes", bytes, limit),
        Effect.sync(() => {
          const state = of(projectId)
          if (projects.has(projectId)) {
            quotas.set(projectId, { ...state, objectBytes: Math.max(0, state.objectBytes + bytes) })
          }
        })
      ).pipe(Effect.provideService(References.PreventSchedulerYield, true)),
    register: (projectId, productKey, minute, limit) =>
      Effect.sync(() => {
        const maximum = of(projectId).limits.registrationsPerMinute ?? limit
        const { count, minute: last } = registrations.get(productKey) ?? { count: 0, minute: 0 }
        const current = currentMinute(last, minute)
        const before = current === last ? count : 0
        if (before >= maximum) return Option.some(maximum)
        if (products.has(productKey as ProductKey)) {
          registrations.set(productKey, { minute: current, count: before + 1 })
        }
        return Option.none()
      })
  })
}
