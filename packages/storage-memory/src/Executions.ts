/**
 * The table of executions. Those that wait also stand in queues of their own.
 */
import {
  type Execution,
  type ExecutionStore,
  growTree,
  hasFired,
  keptExecutions,
  type NewExecution,
  pendingExecution,
  type ProjectId,
  type SceneId,
  type SceneTree,
  type TreeEnd,
  type TreeGrowth,
  treeKeptMillis
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

/** The executions of a project that have not ended. */
interface Waiting {
  /** Never claimed, the longest due first. */
  readonly fresh: ById
  /** Nothing of `fresh` is due after this time, Unix milliseconds. */
  latest: number
  /** Claimed or saved before, or due before one that was stored earlier. */
  readonly later: ById
  /** Nothing of `later` is due before this time, Unix milliseconds. */
  soonest: number
}

/** Returns up to `limit` of those that are due, the longest due first. */
const dueOf = (waiting: Waiting, now: number, limit: number): ReadonlyArray<Execution> => {
  const due: Array<Execution> = []
  for (const execution of waiting.fresh.values()) {
    if (due.length >= limit || execution.dueAt! > now) break
    due.push(execution)
  }
  if (waiting.soonest <= now) {
    waiting.soonest = Number.POSITIVE_INFINITY
    for (const execution of waiting.later.values()) {
      if (execution.dueAt! <= now) due.push(execution)
      waiting.soonest = Math.min(waiting.soonest, execution.dueAt!)
    }
    due.sort((a, b) => a.dueAt! - b.dueAt!)
  }
  return due.slice(0, limit)
}

export class Executions {
  readonly #ofScene = new Map<SceneId, OfScene>()
  /** The project that was served last comes last. */
  readonly #waiting = new Map<ProjectId, Waiting>()
  /** By root, the oldest first. */
  readonly #trees = new Map<string, SceneTree>()

  add(fired: NewExecution, rootId: string | null = null): void {
    const ofScene = this.#sceneOf(fired.sceneId)
    if (ofScene.byId.has(fired.executionId)) return
    const execution = pendingExecution(fired, rootId)
    const waiting = this.#waitingOf(fired.projectId)
    if (waiting.fresh.size > 0 && fired.at < waiting.latest) {
      this.#put(execution)
      return
    }
    ofScene.byId.set(fired.executionId, execution)
    waiting.fresh.set(fired.executionId, execution)
    waiting.latest = fired.at
  }

  /** Stores nothing if there is no such scene. */
  addChild(fired: NewExecution, rootId: string, growth: TreeGrowth, isScene: boolean): TreeEnd | null {
    if (this.#ofScene.get(fired.sceneId)?.byId.has(fired.executionId) === true) return null
    for (const [id, { startedAt }] of this.#trees) {
      if (startedAt >= growth.at - treeKeptMillis) break
      this.#trees.delete(id)
    }
    const tree = growTree(this.#trees.get(rootId), growth)
    this.#trees.set(rootId, tree)
    if (tree.ended === null && isScene) this.add(fired, rootId)
    return tree.ended
  }

  endedTrees(rootIds: ReadonlyArray<string>): ReadonlyMap<string, TreeEnd> {
    const ended = new Map<string, TreeEnd>()
    for (const rootId of rootIds) {
      const end = this.#trees.get(rootId)?.ended
      if (end !== undefined && end !== null) ended.set(rootId, end)
    }
    return ended
  }

  countPending(projectId: ProjectId, limit: number): number {
    const waiting = this.#waiting.get(projectId)
    return waiting === undefined ? 0 : Math.min(limit, waiting.fresh.size + waiting.later.size)
  }

  /** Stores an entry of the log as the newest of its scene. */
  note(execution: Execution): void {
    const ofScene = this.#sceneOf(execution.sceneId)
    if (!ofScene.byId.delete(execution.executionId)) ofScene.ended++
    ofScene.byId.set(execution.executionId, execution)
  }

  #sceneOf(sceneId: SceneId): OfScene {
    const known = this.#ofScene.get(sceneId)
    if (known !== undefined) return known
    const ofScene: OfScene = { byId: new Map(), ended: 0, firedAt: [] }
    this.#ofScene.set(sceneId, ofScene)
    return ofScene
  }

  #waitingOf(projectId: ProjectId): Waiting {
    const known = this.#waiting.get(projectId)
    if (known !== undefined) return known
    const waiting: Waiting = { fresh: new Map(), latest: 0, later: new Map(), soonest: Number.POSITIVE_INFINITY }
    this.#waiting.set(projectId, waiting)
    return waiting
  }

  #put(execution: Execution): void {
    const { dueAt, executionId, projectId, sceneId } = execution
    this.#ofScene.get(sceneId)!.byId.set(executionId, execution)
    if (dueAt === null) {
      this.#forget(projectId, executionId)
      return
    }
    const waiting = this.#waitingOf(projectId)
    waiting.fresh.delete(executionId)
    waiting.later.set(executionId, execution)
    waiting.soonest = Math.min(waiting.soonest, dueAt)
  }

  #forget(projectId: ProjectId, executionId: string): void {
    const waiting = this.#waiting.get(projectId)
    if (waiting === undefined) return
    waiting.fresh.delete(executionId)
    waiting.later.delete(executionId)
    if (waiting.fresh.size + waiting.later.size === 0) this.#waiting.delete(projectId)
  }

  claim({ again, except, limit, now }: Claim): ReadonlyArray<Execution> {
    const served = [...this.#waiting].filter(([projectId, waiting]) =>
      !except.includes(projectId) && dueOf(waiting, now, 1).length > 0
    )
    const share = Math.ceil(limit / served.length)
    const claimed: Array<Execution> = []
    for (const [projectId, waiting] of served) {
      if (claimed.length >= limit) break
      this.#waiting.delete(projectId)
      this.#waiting.set(projectId, waiting)
      for (const execution of dueOf(waiting, now, Math.min(share, limit - claimed.length))) {
        const next: Execution = { ...execution, dueAt: again, revision: execution.revision + 1 }
        this.#put(next)
        claimed.push(next)
      }
    }
    return claimed
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
      this.#remove(ofScene, execution)
    }
  }

  /** Removes executions that ended before `before`, Unix milliseconds, at most `limit`. Returns how many. */
  prune(before: number, limit: number): number {
    let count = 0
    for (const ofScene of this.#ofScene.values()) {
      for (const execution of ofScene.byId.values()) {
        if (count === limit) return count
        if (execution.dueAt !== null || execution.updatedAt >= before) continue
        this.#remove(ofScene, execution)
        count++
      }
    }
    return count
  }

  #remove(ofScene: OfScene, execution: Execution): void {
    ofScene.byId.delete(execution.executionId)
    ofScene.ended--
    if (hasFired(execution)) ofScene.firedAt.splice(ofScene.firedAt.indexOf(execution.at), 1)
  }

  countFired(sceneId: SceneId, since: number, until: number): number {
    return this.#ofScene.get(sceneId)?.firedAt.filter((at) => at >= since && at <= until).length ?? 0
  }

  /** Returns the executions of the scene, the oldest first. */
  of(sceneId: SceneId): ReadonlyArray<Execution> {
    return [...this.#ofScene.get(sceneId)?.byId.values() ?? []]
  }

  removeScene(sceneId: SceneId): void {
    for (const { executionId, projectId } of this.#ofScene.get(sceneId)?.byId.values() ?? []) {
      this.#forget(projectId, executionId)
    }
    this.#ofScene.delete(sceneId)
  }
}
