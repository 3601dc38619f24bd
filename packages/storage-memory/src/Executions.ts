/**
 * The executions of all scenes, those that wait also by themselves.
 */
import {
  type Execution,
  hasFired,
  keptExecutions,
  type NewExecution,
  pendingExecution,
  type SceneId,
  type SceneStore
} from "@device-cloud/core"

type ById = Map<string, Execution>

type Claim = Parameters<SceneStore["Service"]["claim"]>[0]

export class Executions {
  /** By scene, the oldest first. */
  readonly #ofScene = new Map<SceneId, ById>()
  /** Due since they were stored, the oldest first. */
  readonly #fresh: ById = new Map()
  /** Due at their time. */
  readonly #later: ById = new Map()
  /** Nothing of `#later` is due before this. */
  #soonest = Number.POSITIVE_INFINITY

  add(fired: NewExecution): void {
    const ofScene = this.#ofScene.get(fired.sceneId) ?? new Map<string, Execution>()
    if (ofScene.has(fired.executionId)) return
    const execution = pendingExecution(fired)
    this.#ofScene.set(fired.sceneId, ofScene)
    ofScene.set(fired.executionId, execution)
    this.#fresh.set(fired.executionId, execution)
  }

  #put(execution: Execution): void {
    const { dueAt, executionId, sceneId } = execution
    this.#ofScene.get(sceneId)!.set(executionId, execution)
    this.#fresh.delete(executionId)
    if (dueAt === null) {
      this.#later.delete(executionId)
      return
    }
    this.#later.set(executionId, execution)
    this.#soonest = Math.min(this.#soonest, dueAt)
  }

  #due({ except, limit, now }: Claim): ReadonlyArray<Execution> {
    const due: Array<Execution> = []
    const isDue = ({ dueAt, projectId }: Execution) => dueAt! <= now && !except.includes(projectId)
    if (this.#soonest <= now) {
      this.#soonest = Number.POSITIVE_INFINITY
      for (const execution of this.#later.values()) {
        if (isDue(execution)) due.push(execution)
        this.#soonest = Math.min(this.#soonest, execution.dueAt!)
      }
      due.sort((a, b) => a.dueAt! - b.dueAt!)
    }
    for (const execution of this.#fresh.values()) {
      if (due.length >= limit) break
      if (isDue(execution)) due.push(execution)
    }
    return due.slice(0, limit)
  }

  claim(options: Claim): ReadonlyArray<Execution> {
    return this.#due(options).map((execution) => {
      const claimed: Execution = { ...execution, dueAt: options.again, revision: execution.revision + 1 }
      this.#put(claimed)
      return claimed
    })
  }

  save(execution: Execution, keepSince: number): boolean {
    const { executionId, revision, sceneId } = execution
    const ofScene = this.#ofScene.get(sceneId)
    if (ofScene?.get(executionId)?.revision !== revision) return false
    this.#put(execution)
    if (execution.dueAt === null) this.#forgetOldest(ofScene, keepSince)
    return true
  }

  #forgetOldest(ofScene: ById, keepSince: number): void {
    let surplus = -keptExecutions
    for (const { dueAt } of ofScene.values()) if (dueAt === null) surplus++
    for (const execution of ofScene.values()) {
      if (surplus <= 0) return
      if (execution.dueAt !== null) continue
      surplus--
      if (!hasFired(execution) || execution.at < keepSince) ofScene.delete(execution.executionId)
    }
  }

  countFired(sceneId: SceneId, since: number): number {
    let count = 0
    for (const execution of this.#ofScene.get(sceneId)?.values() ?? []) {
      if (execution.at >= since && hasFired(execution)) count++
    }
    return count
  }

  /** Oldest first. */
  of(sceneId: SceneId): ReadonlyArray<Execution> {
    return [...this.#ofScene.get(sceneId)?.values() ?? []]
  }

  removeScene(sceneId: SceneId): void {
    for (const executionId of this.#ofScene.get(sceneId)?.keys() ?? []) {
      this.#fresh.delete(executionId)
      this.#later.delete(executionId)
    }
    this.#ofScene.delete(sceneId)
  }
}
