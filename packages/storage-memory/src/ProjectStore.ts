/**
 * Projects in memory.
 */
import { ProjectStore } from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { paginate, removeAccessKey, Tables } from "./Tables.ts"

/** Part of the group that is replaced together. */
export const layer: Layer.Layer<ProjectStore, never, Tables> = Layer.effect(
  ProjectStore,
  Effect.map(Tables, (tables) => make(tables))
)

const make = (tables: Tables["Service"]) => {
  const {
    accessKeys,
    activity,
    authorities,
    bulkCommands,
    deviceCounts,
    deviceGroups,
    executions,
    jobs,
    meshNetworks,
    products,
    projects,
    quotas,
    scenes,
    subscriptions,
    timers,
    troubles,
    webhookKeys
  } = tables
  return ProjectStore.of({
    insert: (project) =>
      Effect.sync(() => {
        if (projects.has(project.id)) return false
        projects.set(project.id, project)
        return true
      }),
    get: (id) => Effect.sync(() => Option.fromUndefinedOr(projects.get(id))),
    list: (page) => Effect.sync(() => paginate([...projects.values()], page)),
    remove: (id) =>
      Effect.sync(() => {
        if (!projects.has(id)) return "not-found"
        if ([...products.values()].some(({ projectId }) => projectId === id)) return "has-products"
        projects.delete(id)
        for (const key of accessKeys.values()) {
          if (key.projectId === id) removeAccessKey(tables, key.id)
        }
        for (const [networkId, { network }] of meshNetworks) {
          if (network.projectId === id) meshNetworks.delete(networkId)
        }
        for (const [jobId, { job }] of jobs) if (job.projectId === id) jobs.delete(jobId)
        for (const [subscriptionId, { subscription }] of subscriptions) {
          if (subscription.projectId === id) subscriptions.delete(subscriptionId)
        }
        for (const scene of scenes.values()) {
          if (scene.projectId !== id) continue
          scenes.delete(scene.sceneId)
          executions.removeScene(scene.sceneId)
        }
        for (const timer of timers.values()) if (timer.projectId === id) timers.delete(timer.cronId)
        for (const { bulk } of bulkCommands.values()) if (bulk.projectId === id) bulkCommands.delete(bulk.bulkId)
        for (const { groupId, projectId } of deviceGroups.values()) {
          if (projectId === id) deviceGroups.delete(groupId)
        }
        for (const [authorityId, { authority }] of authorities) {
          if (authority.projectId === id) authorities.delete(authorityId)
        }
        webhookKeys.delete(id)
        quotas.delete(id)
        activity.delete(id)
        for (const [key, { projectId }] of troubles) if (projectId === id) troubles.delete(key)
        deviceCounts.delete(id)
        return "removed"
      })
  })
}
