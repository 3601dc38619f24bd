/**
 * Stores that break a promise: each is there for an invariant of the simulation to find.
 */
import {
  CommandStore,
  defaultProjectId,
  DeviceStore,
  emptyShadow,
  FeedStore,
  finalRank,
  OtaStore,
  PresenceStore,
  rankOf,
  StoreError,
  UplinkStore
} from "@device-cloud/core"
import type { StoreChange } from "@device-cloud/testing/simulation"
import { Effect, Layer, Option } from "effect"

/** Changes a store. Each node has a changed store of its own. */
const changed = <I, S extends object>(
  tag: { readonly of: (service: S) => S } & Effect.Effect<S, never, I>,
  change: (store: S) => Partial<S>
): StoreChange =>
  Layer.effect(tag as never, Effect.map(tag, (store) => tag.of({ ...store, ...change(store) }))) as never

/** Returns true once in so many calls. */
const onceIn = (times: number) => {
  let calls = 0
  return () => ++calls % times === 0
}

/** Says of every tenth batch of reports that it is stored, and stores nothing. */
export const losesReports: StoreChange = changed(UplinkStore, (store) => {
  const isLost = onceIn(10)
  return {
    commit: (batch) =>
      isLost()
        ? Effect.sync(() => batch.devices.map(({ deviceId, update }) => Option.some(update(emptyShadow(deviceId))[0])))
        : store.commit(batch)
  }
})

/** Forgets how commands have ended. */
export const forgetsAnswers: StoreChange = changed(UplinkStore, (store) => ({
  commit: (batch) =>
    store.commit({ ...batch, commands: batch.commands.filter(({ state }) => rankOf(state) < finalRank) })
}))

/** Takes each success of a command for a failure. */
export const turnsAnswers: StoreChange = changed(UplinkStore, (store) => ({
  commit: (batch) =>
    store.commit({
      ...batch,
      commands: batch.commands.map((step) => step.code === 200 ? { ...step, state: "failed", code: 500 } : step)
    })
}))

/** Forgets that scenes were fired. */
export const forgetsReactions: StoreChange = changed(UplinkStore, (store) => ({
  commit: (batch) =>
    store.commit({
      ...batch,
      devices: batch.devices.map((device) => ({
        ...device,
        update: (shadow) => {
          const [result, after, facts] = device.update(shadow)
          return [result, after, { ...facts, reactions: [] }] as const
        }
      }))
    })
}))

/** Lets shadows go back in time. */
export const turnsVersionsBack: StoreChange = changed(UplinkStore, (store) => {
  const goesBack = onceIn(20)
  return {
    commit: (batch) =>
      store.commit({
        ...batch,
        devices: batch.devices.map((device) => ({
          ...device,
          update: (shadow) => {
            const [result, after, facts] = device.update(shadow)
            return [result, goesBack() ? { ...after, version: 0 } : after, facts] as const
          }
        }))
      })
  }
})

/** Finds commands that have ended among those that wait. */
export const revivesCommands: StoreChange = Layer.merge(
  changed(CommandStore, (store) => ({
    unfinished: ({ after, deviceId }) =>
      Effect.map(
        store.list(deviceId, { page: 1, pageSize: 20 }),
        ({ items }) =>
          items.filter(({ messageId }) => messageId > after).toReversed().map((command) => ({
            ...command,
            state: "queued"
          }))
      )
  })),
  changed(PresenceStore, (store) => ({
    record: (changes, reactTo) =>
      Effect.map(
        store.record(changes, reactTo),
        (outcomes) =>
          outcomes.map((outcome) =>
            outcome._tag === "Ignored" || outcome.claim === undefined
              ? outcome
              : { ...outcome, claim: { ...outcome.claim, waiting: true } }
          )
      )
  }))
)

/** Finds each command that waits twice. */
export const doublesCommands: StoreChange = changed(CommandStore, (store) => ({
  unfinished: (options) => Effect.map(store.unfinished(options), (commands) => [...commands, ...commands])
}))

/** Does not hear that devices leave. */
export const forgetsOffline: StoreChange = changed(PresenceStore, (store) => ({
  record: (changes, reactTo) =>
    changes.every(({ _tag }) => _tag === "Offline")
      ? Effect.succeed(changes.map(() => ({ _tag: "Ignored" as const })))
      : store.record(changes, reactTo)
}))

/** Counts each change of a status twice. */
export const skipsVersions: StoreChange = changed(PresenceStore, (store) => ({
  record: (changes, reactTo) =>
    Effect.map(
      store.record(changes, reactTo),
      (outcomes) =>
        outcomes.map((outcome) => outcome._tag === "Changed" ? { ...outcome, version: 2 * outcome.version } : outcome)
    )
}))

/** Hears only the first heartbeat of the second node. */
export const forgetsHeartbeats: StoreChange = changed(PresenceStore, (store) => {
  const heard = new Set<string>()
  return {
    heartbeat: (nodeId, limits) => {
      if (nodeId.startsWith("node-1") && heard.has(nodeId)) return Effect.succeed({ wasSilent: false })
      heard.add(nodeId)
      return store.heartbeat(nodeId, limits)
    }
  }
})

/** Says of upgrades that they have ended, and forgets it. */
export const forgetsUpgrades: StoreChange = changed(OtaStore, (store) => ({
  save: (changes) =>
    changes.some(({ after }) => after.status === "succeeded")
      ? Effect.succeed({ saved: changes.map(() => true), tasks: [] })
      : store.save(changes)
}))

/** Records that each step of an upgrade is its success. */
export const praisesUpgrades: StoreChange = changed(FeedStore, (store) => ({
  commit: (write, eventsOf) =>
    store.commit(
      write,
      (result) =>
        eventsOf(result).map((event) => event._tag === "UpgradeProgressed" ? { ...event, status: "succeeded" } : event)
    )
}))

/** Counts one more device in each campaign than there is, whoever reads it: counts are made within the store. */
export const miscountsCampaigns: StoreChange = Layer.effectDiscard(Effect.map(OtaStore, (store) => {
  const { task } = store
  Object.assign(store, {
    task: ((projectId, taskId) =>
      Effect.map(
        task(projectId, taskId),
        Option.map((found) => ({ ...found, counts: { ...found.counts, failed: found.counts.failed + 1 } }))
      )) satisfies typeof task
  })
}))

/** Cannot store that devices leave, and will not. */
export const refusesOffline: StoreChange = changed(PresenceStore, (store) => ({
  record: (changes, reactTo) =>
    changes.some(({ _tag }) => _tag === "Offline")
      ? Effect.fail(new StoreError({ operation: "PresenceStore.record", retryable: false, cause: "refused" }))
      : store.record(changes, reactTo)
}))

/** Finds devices of the default project whoever asks. */
export const mixesProjects: StoreChange = changed(DeviceStore, (store) => ({
  get: (projectId, reference) =>
    Effect.flatMap(
      store.get(projectId, reference),
      (found) => Option.isSome(found) ? Effect.succeed(found) : store.get(defaultProjectId, reference)
    )
}))
