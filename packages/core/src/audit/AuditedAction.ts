/**
 * The action on whose behalf a fiber works. The first write of the action takes
 * its entry of the audit log along, in the same transaction
 * (docs/decisions/0055-audit-log.md).
 */
import { Clock, Context, Effect } from "effect"
import type { StoreError } from "../kernel/StoreError.ts"
import type { AuditResource, AuditSubject, NewAuditEntry, RequestClaim } from "./AuditEntry.ts"
import type { AuditStore } from "./AuditStore.ts"

/**
 * What a write has changed: a resource, the resource that the action names
 * (true), or nothing (false).
 */
export type Changed = AuditResource | boolean

/** An action that may have to be told of. */
export class AuditedAction {
  readonly #subject: AuditSubject
  #state: "pending" | "storing" | "stored" = "pending"
  /** Of the request that the action carries out, if it has an idempotency key: the entry notes with it that it was. */
  claim: RequestClaim | undefined

  constructor(subject: AuditSubject) {
    this.#subject = subject
  }

  /** Whether no write has stored the entry yet. */
  get isPending(): boolean {
    return this.#state === "pending"
  }

  /**
   * Takes the entry from the action, for a caller that stores it with a write of
   * its own. Undefined: another write has it. Call `settle` afterwards.
   */
  take(at: number): NewAuditEntry | undefined {
    if (this.#state !== "pending") return undefined
    this.#state = "storing"
    return this.entry(at, 0)
  }

  /** Notes whether the entry that was taken is stored. If not, the next write takes it. */
  settle(isStored: boolean): void {
    this.#state = isStored ? "stored" : "pending"
  }

  /** The entry with a result. `resource`: of a write that knows it better than the action. */
  entry(at: number, result: number, resource?: AuditResource): NewAuditEntry {
    const subject = resource === undefined ? this.#subject : { ...this.#subject, resource }
    const { claim } = this
    // V8 copies a spread fast only when it stands last.
    return claim === undefined || result !== 0 ? { at, result, ...subject } : { at, result, claim, ...subject }
  }

  /** Runs a write. Stores the entry with it if the write has changed something and no earlier one has stored it. */
  write<A, E, R>(
    store: AuditStore["Service"],
    write: Effect.Effect<A, E, R>,
    changedBy: (result: A) => Changed
  ): Effect.Effect<A, E | StoreError, R> {
    return Effect.flatMap(Clock.currentTimeMillis, (at) => {
      if (this.take(at) === undefined) return write
      let isStored = false
      return store.commit(write, (result) => {
        const changed = changedBy(result)
        isStored = changed !== false
        return changed === false ? undefined : [this.entry(at, 0, typeof changed === "object" ? changed : undefined)]
      }).pipe(
        Effect.onExit((exit) => Effect.sync(() => this.settle(isStored && exit._tag === "Success")))
      )
    })
  }
}

/**
 * The action on whose behalf a fiber works; undefined: none that is told of, for
 * example what devices say. `AuditLog.carryOut` sets it.
 */
export const CurrentAction = Context.Reference<AuditedAction | undefined>("@device-cloud/core/audit/CurrentAction", {
  defaultValue: () => undefined
})
