/**
 * The handlers of the routes of firmware and upgrades.
 */
import {
  type Assignment,
  deviceCount,
  type DeviceId,
  type FirmwareDetail,
  Firmwares,
  type OtaTask,
  type Page,
  type PageRequest,
  type RecordDetail,
  type SigningKey,
  SigningKeys,
  type StartWindow,
  Text,
  Upgrades,
  type UpgradeTask,
  UpgradeTasks
} from "@device-cloud/core"
import { Effect, Option, Predicate, Schema } from "effect"
import { HttpServerRequest } from "effect/http"
import { CurrentPrincipal } from "../middleware/Authorization.ts"
import { Api } from "../DeviceCloudApi.ts"
import { dateText, done, pageRequest, respond, respondPage } from "../Envelope.ts"
import { failWith } from "../DomainFailures.ts"
import { BodyUnreadable, invalidParameter } from "../Failure.ts"
import { group } from "../ApiHandlers.ts"
import { toCamelCase } from "../SnakeCase.ts"
import type { DeviceTaskRecord, FirmwareRecord, SigningKeyRecord, TaskRecord, UpgradeInfo } from "./OtaApi.ts"

/** Implements the group `ota`. */
export const layer = group(
  Api,
  "ota",
  Effect.fnUntraced(function*(handlers) {
    const firmwares = yield* Firmwares
    const signingKeys = yield* SigningKeys
    const tasks = yield* UpgradeTasks
    const upgrades = yield* Upgrades
    const infoOf = (assignment: Assignment | undefined) => assignment === undefined ? {} : upgradeInfo(assignment)
    return handlers.handleAll({
      getUpgrade: ({ params, query }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(upgrades.availableFor(projectId, params.device_id, query.module), infoOf)
        ),
      startUpgrade: ({ params, payload }) =>
        CurrentPrincipal.use(({ projectId }) => done(upgrades.start(projectId, params.device_id, payload.task_id))),
      getUpgradeStep: ({ params, query }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(upgrades.step(projectId, params.device_id, query.task_id), (step) => ({ step }))
        ),
      getVersion: ({ params, query }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(upgrades.version(projectId, params.device_id, query.module), (version) => ({ version }))
        ),
      diagnoseUpgrade: ({ params, query }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(
            upgrades.diagnose(projectId, params.device_id, query.module),
            ({ assignment, currentVersion, message, reason }) => ({
              reason,
              message,
              current_version: currentVersion,
              task_id: assignment?.task.taskId ?? null,
              target_version: assignment?.task.version ?? null,
              status: assignment?.record.status ?? null,
              step: assignment?.record.step ?? null
            })
          )
        ),
      getUpgrades: ({ query }) =>
        Effect.gen(function*() {
          const { projectId } = yield* CurrentPrincipal
          const deviceIds = yield* readDeviceIds(query.device_ids)
          return yield* respond(
            upgrades.available(projectId, deviceIds as ReadonlyArray<DeviceId>, query.module),
            (assignments) => ({
              things_upgrade_job: Object.fromEntries(
                [...assignments].map(([deviceId, assignment]) => [deviceId, upgradeInfo(assignment)])
              )
            })
          )
        }),
      getFirmware: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) => respond(firmwares.get(projectId, params.firmware_id), firmwareRecord)),
      listFirmwares: ({ query }) =>
        CurrentPrincipal.use(({ projectId }) => {
          const filter = { productKey: query.product_key, name: query.name }
          return respondPage(query, (page) => firmwares.list(projectId, filter, page), firmwareRecord)
        }),
      createFirmware: ({ params, payload }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(firmwares.create(projectId, params.product_key, toCamelCase(payload)), firmwareRecord)
        ),
      getSigningKey: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(
            signingKeys.get(projectId, params.product_key),
            Option.match({ onNone: () => ({}), onSome: signingKeyRecord })
          )
        ),
      setSigningKey: ({ params, payload }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(signingKeys.set(projectId, params.product_key, toCamelCase(payload)), signingKeyRecord)
        ),
      removeSigningKey: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) => respond(signingKeys.remove(projectId, params.product_key), empty)),
      deleteFirmware: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) => respond(firmwares.remove(projectId, params.firmware_id), empty)),
      createVerifyTask: ({ params, payload }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(
            tasks.createVerifyTask(projectId, params.firmware_id, toCamelCase(payload)),
            (deviceIds) => deviceIds
          )
        ),
      createUpgradeTask: ({ params, payload }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(
            tasks.createUpgradeTask(projectId, params.firmware_id, toCamelCase(payload)),
            (task) => ({ task_id: task.taskId, device_count: deviceCount(task.counts), reason: reasonOf(task) })
          )
        ),
      getVerifyTask: ({ params, query }) =>
        CurrentPrincipal.use(({ projectId }) => {
          const request = pageRequest(query)
          return respond(
            Effect.gen(function*() {
              const task = Option.getOrUndefined(yield* tasks.newestVerifyTask(projectId, params.firmware_id))
              if (task === undefined) return { task_id: 0, ...pageOf(request, { items: [], total: 0 }) }
              const { items, total } = yield* tasks.records(
                projectId,
                task.taskId,
                { rejected: query.rejected_thing_status },
                request
              )
              return { task_id: task.taskId, ...pageOf(request, { items: items.map(deviceRecord(task)), total }) }
            }),
            (data) => data
          )
        }),
      getUpgradeTask: ({ params, query }) =>
        Effect.gen(function*() {
          const { projectId } = yield* CurrentPrincipal
          const task = yield* tasks.get(projectId, params.task_id).pipe(Effect.catch(failWith))
          const filter = { rejected: query.rejected_thing_status, status: query.status, failure: query.failure }
          return yield* respondPage(
            query,
            (page) => tasks.records(projectId, task.taskId, filter, page),
            deviceRecord(task)
          )
        }),
      getTaskProgress: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(tasks.progress(projectId, params.task_id), ({ interval, points, ...period }) => ({
            ...period,
            interval: interval / 1000,
            points: points.map(({ counts, time }) => ({ time, summary: counts }))
          }))
        ),
      getTaskFailures: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(tasks.failures(projectId, params.task_id), (failures) => failures)
        ),
      listUpgradeTasks: ({ params, query }) =>
        CurrentPrincipal.use(({ projectId }) => {
          const filter = {
            firmwareId: params.firmware_id,
            status: query.status,
            taskId: query.task_id,
            productKey: query.product_key,
            name: query.name
          }
          return respondPage(query, (page) => tasks.list(projectId, filter, page), taskRecord)
        }),
      cancelTask: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) => respond(tasks.remove(projectId, params.task_id), empty)),
      decideVerifyTask: ({ params, payload }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(tasks.decide(projectId, params.task_id, payload.result), empty)
        ),
      cancelUpgradeTask: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) => respond(tasks.cancel(projectId, params.task_id), empty)),
      cancelDeviceUpgrade: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(upgrades.cancelDevice(projectId, params.task_id, params.device_id), empty)
        ),
      confirmUpgradeTask: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) => respond(tasks.confirm(projectId, params.task_id), empty)),
      openUpgradeStage: ({ params, payload }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(tasks.openStage(projectId, params.task_id, payload.stage), empty)
        ),
      confirmDeviceUpgrade: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(upgrades.confirmDevice(projectId, params.task_id, params.device_id), empty)
        )
    })
  })
)

const firmwareRecord = ({ firmware, ongoing, productName }: FirmwareDetail): typeof FirmwareRecord.Type => ({
  id: firmware.firmwareId,
  name: firmware.name,
  version: firmware.version,
  oss_path: firmware.ossPath,
  algorithms: firmware.algorithms,
  hash: firmware.hash,
  sha256: firmware.sha256,
  signature: firmware.signed?.signature ?? "",
  signing_key_id: firmware.signed?.keyId ?? "",
  size: firmware.size,
  status: firmware.status,
  ongoing,
  remark: firmware.remark,
  module: firmware.module,
  product_key: firmware.productKey,
  product_name: productName,
  created_at: dateText(firmware.createdAt),
  updated_at: dateText(firmware.updatedAt)
})

const signingKeyRecord = (
  { algorithm, createdAt, keyId, publicKey }: SigningKey
): typeof SigningKeyRecord.Type => ({
  key_id: keyId,
  algorithm,
  public_key: publicKey,
  created_at: dateText(createdAt)
})

/** An upgrade task on the wire. */
export const taskRecord = (task: UpgradeTask): typeof TaskRecord.Type => ({
  task_id: task.taskId,
  firmware_id: task.firmwareId,
  upgrade_type: task.upgradeType,
  upgrade_policy: task.upgradePolicy,
  status: task.status,
  scope_mode: task.scopeMode,
  dynamic: task.isDynamic,
  need_app_confirm: task.needAppConfirm,
  is_app_confirmed: task.isAppConfirmed,
  download_protocol: task.downloadProtocol,
  stages: [...task.stages, 100],
  stage: task.stage,
  stage_success_percent: task.stageSuccessPercent,
  start_window: task.startWindow === null ? null : windowRecord(task.startWindow),
  created_at: dateText(task.createdAt),
  updated_at: dateText(task.updatedAt),
  reason: reasonOf(task),
  summary: task.counts
})

const windowRecord = ({ days, end, start, timeZone }: StartWindow) => ({ start, end, days, time_zone: timeZone })

/** Why the task has failed although no device has: it has none. Empty otherwise. */
const reasonOf = ({ counts, isDynamic, module, version }: OtaTask): string =>
  deviceCount(counts) > 0 || isDynamic
    ? ""
    : `No device is left to upgrade: each runs version ${version} of module ${module} already, or is in another task`

const deviceRecord =
  (task: OtaTask) => ({ currentVersion, deviceStatus, record }: RecordDetail): typeof DeviceTaskRecord.Type => ({
    device_id: record.deviceId,
    device_name: record.deviceName,
    version: currentVersion,
    step: record.step,
    status: record.status,
    reason: record.reason,
    updated_at: dateText(record.updatedAt),
    thing_status: deviceStatus,
    need_app_confirm: task.needAppConfirm,
    is_app_confirm: task.isAppConfirmed || record.isConfirmed
  })

const upgradeInfo = ({ firmware, record, task }: Assignment): typeof UpgradeInfo.Type => {
  const isConfirmed = task.isAppConfirmed || record.isConfirmed
  return {
    size: firmware.size,
    sign: firmware.hash,
    sign_method: "md5",
    version: firmware.version,
    ...(task.needAppConfirm && !isConfirmed) || record.isHeld ? {} : { url: firmware.ossPath },
    module: firmware.module,
    task_id: task.taskId,
    description: firmware.remark,
    need_app_confirm: task.needAppConfirm,
    is_app_confirmed: isConfirmed
  }
}

const pageOf = (request: PageRequest, { items, total }: Page<typeof DeviceTaskRecord.Type>) => ({
  results: items,
  total,
  page: request.page,
  page_size: request.pageSize,
  pages: Math.ceil(total / request.pageSize)
})

const empty = () => ({})

const isDeviceIds = Schema.is(Schema.Array(Text(128)))

/** Devices of one request at most. */
const maxDevices = 1000

/** The device ids of the query or of the JSON body, which this GET may have. */
const readDeviceIds = Effect.fnUntraced(function*(query: string | ReadonlyArray<string> | undefined) {
  const asked = query === undefined ? yield* bodyDeviceIds : typeof query === "string" ? [query] : query
  if (!isDeviceIds(asked) || asked.length === 0 || asked.length > maxDevices) {
    return yield* Effect.fail(
      invalidParameter([{ path: ["device_ids"], message: `Expected an array of 1 to ${maxDevices} device ids` }])
    )
  }
  return asked
})

const bodyDeviceIds = Effect.gen(function*() {
  const request = yield* HttpServerRequest.HttpServerRequest
  const unreadable = BodyUnreadable.make({
    message: "The body is not valid JSON; send {\"device_ids\": [\"…\"]}"
  })
  const text = yield* Effect.mapError(request.text, () => unreadable)
  const body = yield* Effect.try({ try: (): unknown => JSON.parse(text === "" ? "{}" : text), catch: () => unreadable })
  return Predicate.hasProperty(body, "device_ids") ? body.device_ids : undefined
})
