/**
 * The table of executions. Those that wait also stand in queues of their own.
 */
import {
  type Execution,
  type ExecutionStore,
  hasFired,
  keptExecutions,
  type NewExecution,
  pendingExecution,
  type SceneId
} from "@device-cloud/core"

type ById = Map<string, Execution>

interface OfScene {
  /** The oldest first. */
  readonly byId: ById
  /** How many of them have ended. */
  ended: number
  /** The times at which those fired that have run actions, Unix milliseconds. */
  readonly firedAt: Array<number>
}

type Claim = Parameters<ExecutionStore["Service"]["claim"]>[0]

export class Executions {
  readonly #ofScene = new Map<SceneId, OfScene>()
  /** Never claimed, and due since they were stored, the oldest first. */
  readonly #fresh: ById = new Map()
  /** Claimed or saved before, and due at their times. */
  readonly #later: ById = new Map()
  /** Nothing of `#later` is due before this time. */
  #soonest = Number.POSITIVE_INFINITY

  add(fired: NewExecution): void {
    const ofScene = this.#ofScene.get(fired.sceneId) ?? { byId: new Map(), ended: 0, firedAt: [] }
    if (ofScene.byId.has(fired.executionId)) return
    const execution = pendingExecution(fired)
    this.#ofScene.set(fired.sceneId, ofScene)
    ofScene.byId.set(fired.executionId, execution)
    this.#fresh.set(fired.executionId, execution)
  }

  #put(execution: Execution): void {
    const { dueAt, executionId, sceneId } = execution
    this.#ofScene.get(sceneId)!.byId.set(executionId, execution)
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
    const before = ofScene?.byId.get(executionId)
    if (ofScene === undefined || before?.revision !== revision) return false
    this.#put(execution)
    if (hasFired(execution) && !hasFired(before)) {
      ofScene.firedAt.push(execution.at)
    }
    if (execution.dueAt === null) {
      if (before.dueAt !== null) ofScene.ended++
      this.#forgetOldest(ofScene, keepSince)
    }
    return true
  }

  #forgetOldest(ofScene: OfScene, keepSince: number): void {
    let surplus = ofScene.ended - keptExecutions
    if (surplus <= 0) return
    for (const execution of ofScene.byId.values()) {
      if (surplus <= 0) return
      if (execution.dueAt !== null) continue
      surplus--
      if (hasFired(execution) && execution.at >= keepSince) continue
      ofScene.byId.delete(execution.executionId)
      ofScene.ended--
      if (hasFired(execution)) ofScene.firedAt.splice(ofScene.firedAt.indexOf(execution.at), 1)
    }
  }

  countFired(sceneId: SceneId, since: number): number {
    return this.#ofScene.get(sceneId)?.firedAt.filter((at) => at >= since).length ?? 0
  }

  /** Returns the executions of the scene, the oldest first. */
  of(sceneId: SceneId): ReadonlyArray<Execution> {
    return [...this.#ofScene.get(sceneId)?.byId.values() ?? []]
  }

  removeScene(sceneId: SceneId): void {
    for (const executionId of this.#ofScene.get(sceneId)?.byId.keys() ?? []) {
      this.#fresh.delete(executionId)
      this.#later.delete(executionId)
    }
    this.#ofScene.delete(sceneId)
  }
}
