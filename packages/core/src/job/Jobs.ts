/**
 * Manages jobs (docs/api/jobs.md). `JobDelivery` tells devices of them, and
 * `JobMethods` has what devices say.
 */
import { Clock, Context, Effect, Layer, Option } from "effect"
import { decodeInput, InvalidInput } from "../kernel/InvalidInput.ts"
import { type Page, paged, type PageRequest } from "../kernel/Page.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import { ProductNotFound } from "../product/Product.ts"
import { ProductStore } from "../product/ProductStore.ts"
import type { ProjectId } from "../project/Project.ts"
import type { QuotaExceeded } from "../project/Quota.ts"
import { Quotas } from "../project/Quotas.ts"
import {
  type Job,
  type JobDetail,
  JobDevicesNotFound,
  JobDraft,
  JobNotFound,
  JobStateForbids,
  type JobTask,
  type JobTaskState,
  type NewJob
} from "./Job.ts"
import { type JobScope, JobStore } from "./JobStore.ts"

export class Jobs extends Context.Service<Jobs, {
  /**
   * Creates a job for the named devices, each at most once, or for all devices that
   * the product has now. Connected devices are told of it, 200 in a second; others
   * when they come back.
   */
  readonly create: (
    projectId: ProjectId,
    draft: JobDraft
  ) => Effect.Effect<Job, InvalidInput | ProductNotFound | JobDevicesNotFound | QuotaExceeded | StoreError>
  /** Returns the job with its counts. */
  readonly get: (projectId: ProjectId, jobId: number) => Effect.Effect<JobDetail, JobNotFound | StoreError>
  /** Returns the jobs of the project, newest first. */
  readonly list: (projectId: ProjectId, page: PageRequest) => Effect.Effect<Page<Job>, InvalidInput | StoreError>
  /** Returns the tasks of the job, by device id. `state`: only those. */
  readonly tasks: (
    projectId: ProjectId,
    jobId: number,
    state: JobTaskState | undefined,
    page: PageRequest
  ) => Effect.Effect<Page<JobTask>, InvalidInput | JobNotFound | StoreError>
  /** Cancels the tasks that have not ended. A cancelled job stays cancelled; fails with `JobStateForbids` for a completed one. */
  readonly cancel: (
    projectId: ProjectId,
    jobId: number
  ) => Effect.Effect<void, JobNotFound | JobStateForbids | StoreError>
  /** Removes a job with its tasks. Fails with `JobStateForbids` while one has not ended. */
  readonly remove: (
    projectId: ProjectId,
    jobId: number
  ) => Effect.Effect<void, JobNotFound | JobStateForbids | StoreError>
}>()("@device-cloud/core/job/Jobs") {
  static readonly layer: Layer.Layer<Jobs, never, JobStore | ProductStore | Quotas> = Layer.effect(
    Jobs,
    Effect.suspend(() => make)
  )
}

/** Milliseconds between two devices that are told of a new job. */
const pace = 5

const decodeDraft = decodeInput(JobDraft)

const make = Effect.gen(function*() {
  const store = yield* JobStore
  const products = yield* ProductStore
  const quotas = yield* Quotas

  const scopeOf = Effect.fnUntraced(function*(projectId: ProjectId, { deviceIds, productKey }: JobDraft) {
    if ((deviceIds === undefined) === (productKey === undefined)) {
      return yield* new InvalidInput({
        issues: [{ path: ["deviceIds"], message: "Expected either the ids of devices or a product" }]
      })
    }
    if (deviceIds !== undefined) return { _tag: "Named", deviceIds: [...new Set(deviceIds)] } satisfies JobScope
    const found = yield* products.get(projectId, productKey!)
    if (Option.isNone(found)) return yield* new ProductNotFound({ productKey: productKey! })
    return { _tag: "Product", productKey: productKey! } satisfies JobScope
  })

  const find = Effect.fnUntraced(function*(projectId: ProjectId, jobId: number) {
    return yield* Effect.fromOption(yield* store.get(projectId, jobId), () => new JobNotFound({ jobId }))
  })

  return Jobs.of({
    create: Effect.fn("Jobs.create")(function*(projectId, input) {
      const draft = yield* decodeDraft(input)
      const scope: JobScope = yield* scopeOf(projectId, draft)
      const { description = "", document, name, productKey = null, timeout = 0 } = draft
      const createdAt = yield* Clock.currentTimeMillis
      const job: NewJob = { projectId, name, description, document, timeout, productKey, createdAt }
      const created = yield* quotas.within(projectId, "jobs", 1, store.create(job, scope, pace))
      switch (created._tag) {
        case "Created":
          return created.job
        case "Unknown":
          return yield* new JobDevicesNotFound({ deviceIds: created.deviceIds })
        case "NoProject":
          // It was deleted after its product.
          return yield* scope._tag === "Product"
            ? new ProductNotFound({ productKey: scope.productKey })
            : new JobDevicesNotFound({ deviceIds: scope.deviceIds })
      }
    }),
    get: Effect.fn("Jobs.get")(find),
    list: Effect.fn("Jobs.list")(paged(store.list)),
    tasks: Effect.fn("Jobs.tasks")(function*(projectId, jobId, state, page) {
      yield* find(projectId, jobId)
      return yield* paged(store.tasks)(jobId, state, page)
    }),
    cancel: Effect.fn("Jobs.cancel")(function*(projectId, jobId) {
      yield* find(projectId, jobId)
      if (yield* store.cancel(jobId, yield* Clock.currentTimeMillis)) return
      const { job: { status } } = yield* find(projectId, jobId)
      if (status === "completed") return yield* new JobStateForbids({ jobId, status })
    }),
    remove: Effect.fn("Jobs.remove")(function*(projectId, jobId) {
      yield* find(projectId, jobId)
      if (yield* store.remove(jobId)) return
      const { job: { status } } = yield* find(projectId, jobId)
      return yield* new JobStateForbids({ jobId, status })
    })
  })
})
