/**
 * The routes of firmware and upgrades. See docs/api/firmware.md.
 */
import {
  DeviceStatus,
  DownloadProtocol,
  FirmwareDraft,
  maxFailureReasons,
  maxProgressPoints,
  SigningAlgorithm,
  SigningKeyDraft,
  Text,
  UpgradeTaskDraft,
  VerifyTaskDraft,
  Weekday
} from "@device-cloud/core"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { RequiredRole } from "../middleware/Authorization.ts"
import { DateText, Envelope, EnvelopeOnly, Paged, pageQuery } from "../Envelope.ts"
import * as PathParams from "../PathParams.ts"
import { toSnakeCase } from "../SnakeCase.ts"
import { NoSuchDevice } from "../device/DeviceFailures.ts"
import {
  DeviceIsUpgrading,
  DeviceNotInTask,
  FirmwareState,
  FirmwareVersionTaken,
  NoSuchFirmware,
  NoSuchTask,
  TaskState
} from "./OtaFailures.ts"
import { NoSuchProduct } from "../product/ProductFailures.ts"
import { NoSuchDeviceGroup } from "../group/DeviceGroupFailures.ts"
import { ExpensiveRead } from "../middleware/ExpensiveRead.ts"
import { IdempotencyMiddleware } from "../middleware/IdempotencyMiddleware.ts"
import {
  AlgorithmCode,
  PolicyCode,
  RecordCode,
  RecordCodeInQuery,
  ScopeCode,
  UpgradeTaskCode,
  UpgradeTaskCodeInQuery,
  UpgradeTypeCode,
  VerificationCode
} from "./OtaNumbers.ts"

const Empty = Envelope(Schema.Struct({}))

const module = Schema.optional(
  PathParams.property.property_id.annotate({ description: "Default, also of an empty name: `default`" })
)

export const FirmwareRecord = Schema.Struct({
  id: Schema.Int,
  name: Schema.String,
  version: Schema.String,
  oss_path: Schema.String,
  algorithms: AlgorithmCode,
  hash: Schema.String,
  sha256: Schema.String.annotate({ description: "Empty: none was given" }),
  signature: Schema.String.annotate({ description: "Base64; empty: the firmware is not signed" }),
  signing_key_id: Schema.String.annotate({ description: "The key that has signed it; empty: none" }),
  size: Schema.Int.annotate({ description: "Bytes; 0: not known" }),
  status: VerificationCode,
  ongoing: Schema.Boolean.annotate({ description: "Whether it has an unfinished task" }),
  remark: Schema.String,
  module: Schema.String,
  product_key: Schema.String,
  product_name: Schema.String,
  created_at: DateText,
  updated_at: DateText
}).annotate({ identifier: "Firmware" })

export const SigningKeyRecord = Schema.Struct({
  key_id: Schema.String.annotate({ description: "SHA-256 of the public key (DER), in hex" }),
  algorithm: SigningAlgorithm,
  public_key: Schema.String.annotate({ description: "PEM" }),
  created_at: DateText
}).annotate({ identifier: "SigningKey" })

const TaskSummary = Schema.Struct({
  pending: Schema.Int,
  upgrading: Schema.Int,
  succeeded: Schema.Int,
  failed: Schema.Int,
  cancelled: Schema.Int
}).annotate({ description: "Devices by their status" })

export const TaskRecord = Schema.Struct({
  task_id: Schema.Int,
  firmware_id: Schema.Int,
  upgrade_type: UpgradeTypeCode,
  upgrade_policy: PolicyCode,
  status: UpgradeTaskCode,
  scope_mode: ScopeCode,
  dynamic: Schema.Boolean.annotate({ description: "Whether devices that report an older version later join" }),
  need_app_confirm: Schema.Boolean,
  is_app_confirmed: Schema.Boolean,
  download_protocol: DownloadProtocol.annotate({ description: "How devices that are told fetch the firmware" }),
  stages: Schema.Array(Schema.Int).annotate({ description: "Percent of the devices in each stage; the last is 100" }),
  stage: Schema.Int.annotate({ description: "The stage that is open, from 1" }),
  stage_success_percent: Schema.Int.annotate({
    description: "At which success of a stage, in percent, the next one opens by itself; 0: you open it"
  }),
  start_window: Schema.NullOr(
    Schema.Struct({ start: Schema.String, end: Schema.String, days: Schema.Array(Weekday), time_zone: Schema.String })
  ).annotate({ description: "When devices may begin; null: at any time" }),
  created_at: DateText,
  updated_at: DateText,
  reason: Schema.String.annotate({ description: "Why the task has no device; empty: it has some" }),
  summary: TaskSummary
}).annotate({ identifier: "UpgradeTask" })

const time = Schema.Int.annotate({ description: "Unix milliseconds" })

export const TaskProgressInfo = Schema.Struct({
  from: time.annotate({ description: "When the task was created, Unix milliseconds" }),
  to: time.annotate({ description: "Now; of a task that has ended: its latest change. Unix milliseconds" }),
  interval: Schema.Int.annotate({ description: "The length of the intervals, seconds" }),
  points: Schema.Array(Schema.Struct({
    time: time.annotate({ description: "The start of the interval, Unix milliseconds" }),
    summary: TaskSummary.annotate({ description: "Devices by their status at the end of the interval, or at `to`" })
  }))
}).annotate({ identifier: "UpgradeTaskProgress" })

export const TaskFailuresInfo = Schema.Struct({
  devices: Schema.Int.annotate({ description: "Devices that have failed" }),
  reasons: Schema.Array(Schema.Struct({ reason: Schema.String, devices: Schema.Int })).annotate({
    description: `The most frequent reasons first, at most ${maxFailureReasons}`
  })
}).annotate({ identifier: "UpgradeTaskFailures" })

export const DeviceTaskRecord = Schema.Struct({
  device_id: Schema.String,
  device_name: Schema.String,
  version: Schema.String.annotate({ description: "The version that it runs now" }),
  step: Schema.Int.annotate({ description: "Percent; -1: failed" }),
  status: RecordCode,
  reason: Schema.String,
  updated_at: DateText,
  thing_status: DeviceStatus,
  need_app_confirm: Schema.Boolean,
  is_app_confirm: Schema.Boolean
}).annotate({ identifier: "DeviceTaskRecord" })

export const UpgradeInfo = Schema.Struct({
  size: Schema.Int,
  sign: Schema.String,
  sign_method: Schema.String,
  version: Schema.String,
  url: Schema.optionalKey(
    Schema.String.annotate({ description: "Left out until the upgrade is confirmed and its stage is open" })
  ),
  module: Schema.String,
  task_id: Schema.Int,
  description: Schema.String,
  need_app_confirm: Schema.Boolean,
  is_app_confirmed: Schema.Boolean
}).annotate({ identifier: "UpgradeInfo" })

const VerifyRecords = Envelope(
  Schema.Struct({
    task_id: Schema.Int.annotate({ description: "0: the firmware has no verify task" }),
    ...Paged(DeviceTaskRecord).fields.data.fields
  })
)

const rejected = { ...pageQuery, rejected_thing_status: Schema.optional(DeviceStatus) }

/** The body is optional. */
const Cancel = [Schema.Struct({ action: Schema.optional(Schema.Literals(["cancel"])) }), Schema.Null] as const

const firmwareDraft = Schema.Struct({ ...toSnakeCase(FirmwareDraft).fields, algorithms: AlgorithmCode })

const upgradeType = { upgrade_type: Schema.optional(UpgradeTypeCode) }
const verifyTaskDraft = Schema.Struct({ ...toSnakeCase(VerifyTaskDraft).fields, ...upgradeType })
const upgradeTaskDraft = Schema.Struct({
  ...toSnakeCase(UpgradeTaskDraft).fields,
  ...upgradeType,
  scope_mode: ScopeCode
})

export class OtaApi extends HttpApiGroup.make("ota").add(
  HttpApiEndpoint.get("getUpgrade", "/things/:device_id/upgrade", {
    params: PathParams.deviceId,
    query: { module },
    success: Envelope(Schema.Union([UpgradeInfo, Schema.Struct({})])),
    error: NoSuchDevice
  }).annotate(OpenApi.Summary, "Read what a device can be upgraded to")
    .annotate(OpenApi.Description, "If there is nothing for the device, `data` is empty."),
  HttpApiEndpoint.post("startUpgrade", "/things/:device_id/upgrade", {
    params: PathParams.deviceId,
    payload: Schema.Struct({ task_id: Schema.Int }),
    success: EnvelopeOnly,
    error: [NoSuchDevice, NoSuchTask, DeviceNotInTask, TaskState]
  }).middleware(IdempotencyMiddleware).annotate(OpenApi.Summary, "Tell a connected device of its upgrade now"),
  HttpApiEndpoint.get("getUpgradeStep", "/things/:device_id/upgrade-step", {
    params: PathParams.deviceId,
    query: { task_id: Schema.optional(PathParams.task.task_id) },
    success: Envelope(Schema.Struct({ step: Schema.Int })),
    error: [NoSuchDevice, NoSuchTask]
  }).annotate(OpenApi.Summary, "Read how far a device is")
    .annotate(OpenApi.Description, "Percent, or -1: failed. Without `task_id`, of the newest task."),
  HttpApiEndpoint.get("getVersion", "/things/:device_id/version", {
    params: PathParams.deviceId,
    query: { module },
    success: Envelope(Schema.Struct({ version: Schema.String })),
    error: NoSuchDevice
  }).annotate(OpenApi.Summary, "Read the version that a device has reported"),
  HttpApiEndpoint.get("diagnoseUpgrade", "/things/:device_id/upgrade-diagnosis", {
    params: PathParams.deviceId,
    query: { module },
    success: Envelope(
      Schema.Struct({
        reason: Schema.String,
        message: Schema.String,
        current_version: Schema.String,
        task_id: Schema.NullOr(Schema.Int),
        target_version: Schema.NullOr(Schema.String),
        status: Schema.NullOr(RecordCode),
        step: Schema.NullOr(Schema.Int)
      })
    ),
    error: NoSuchDevice
  }).annotate(OpenApi.Summary, "Find out why a device is or is not being upgraded"),
  HttpApiEndpoint.get("getUpgrades", "/things/upgrade", {
    query: {
      module,
      device_ids: Schema.optional(Schema.Union([Text(128), Schema.Array(Text(128))]))
    },
    success: Envelope(Schema.Struct({ things_upgrade_job: Schema.Record(Schema.String, UpgradeInfo) }))
  }).annotate(OpenApi.Summary, "Read what devices can be upgraded to")
    .annotate(
      OpenApi.Description,
      "`device_ids` names the devices: an array in a JSON body, or repeated in the query. `data` has only those that " +
        "can be upgraded, by their ids."
    ),
  HttpApiEndpoint.get("getFirmware", "/ota/firmwares/:firmware_id", {
    params: PathParams.firmware,
    success: Envelope(FirmwareRecord),
    error: NoSuchFirmware
  }).annotate(OpenApi.Summary, "Read a firmware"),
  HttpApiEndpoint.get("listFirmwares", "/ota/firmwares", {
    query: {
      ...pageQuery,
      product_key: Schema.optional(PathParams.productKey.product_key),
      name: Schema.optional(PathParams.property.property_id.annotate({ description: "A part of the name" }))
    },
    success: Paged(FirmwareRecord)
  }).middleware(ExpensiveRead).annotate(OpenApi.Summary, "List the firmware of the project"),
  HttpApiEndpoint.post("createFirmware", "/products/:product_key/ota/firmwares", {
    params: PathParams.productKey,
    payload: firmwareDraft.pipe(Schema.annotateEncoded({
      examples: [{
        name: "Thermostat",
        version: "1.1.0",
        oss_path: "https://cloud.example.com/objects/…/firmware.bin",
        algorithms: 1,
        hash: "93230c3bde425a9d7984a594ac55ea1e"
      }]
    })),
    success: Envelope(FirmwareRecord),
    error: [NoSuchProduct, NoSuchFirmware, FirmwareVersionTaken]
  }).middleware(IdempotencyMiddleware).annotate(OpenApi.Summary, "Create a firmware"),
  HttpApiEndpoint.get("getSigningKey", "/products/:product_key/ota/signing-key", {
    params: PathParams.productKey,
    success: Envelope(Schema.Union([SigningKeyRecord, Schema.Struct({})])),
    error: NoSuchProduct
  }).annotate(OpenApi.Summary, "Read the key that signs the firmware of a product")
    .annotate(OpenApi.Description, "If the product has none, `data` is empty."),
  HttpApiEndpoint.put("setSigningKey", "/products/:product_key/ota/signing-key", {
    params: PathParams.productKey,
    payload: Schema.Struct(toSnakeCase(SigningKeyDraft).fields).pipe(Schema.annotateEncoded({
      examples: [{ public_key: "-----BEGIN PUBLIC KEY-----\n…\n-----END PUBLIC KEY-----\n" }]
    })),
    success: Envelope(SigningKeyRecord),
    error: NoSuchProduct
  }).annotate(OpenApi.Summary, "Set the key that signs the firmware of a product")
    .annotate(OpenApi.Description, "New firmware of the product needs a signature by this key.")
    .annotate(RequiredRole, "admin"),
  HttpApiEndpoint.delete("removeSigningKey", "/products/:product_key/ota/signing-key", {
    params: PathParams.productKey,
    success: Empty,
    error: NoSuchProduct
  }).annotate(OpenApi.Summary, "Remove the key: new firmware needs no signature")
    .annotate(RequiredRole, "admin"),
  HttpApiEndpoint.delete("deleteFirmware", "/ota/firmwares/:firmware_id", {
    params: PathParams.firmware,
    success: Empty,
    error: [NoSuchFirmware, FirmwareState]
  }).annotate(OpenApi.Summary, "Delete a firmware that has no unfinished task"),
  HttpApiEndpoint.post("createVerifyTask", "/ota/firmwares/:firmware_id/verify-task", {
    params: PathParams.firmware,
    payload: verifyTaskDraft,
    success: Envelope(Schema.Array(Schema.String)),
    error: [NoSuchFirmware, FirmwareState, DeviceIsUpgrading]
  }).middleware(IdempotencyMiddleware).annotate(OpenApi.Summary, "Try a firmware on a few devices")
    .annotate(OpenApi.Description, "Returns the devices that do not run the version yet."),
  HttpApiEndpoint.post("createUpgradeTask", "/ota/firmwares/:firmware_id/upgrade-tasks", {
    params: PathParams.firmware,
    payload: upgradeTaskDraft.pipe(Schema.annotateEncoded({
      examples: [
        { scope_mode: 0, cloud_push: true, timeout: 3600 },
        { scope_mode: 0, cloud_push: true, dynamic: true, stages: [10, 50], stage_success_percent: 90 },
        {
          scope_mode: 0,
          cloud_push: true,
          start_window: { start: "01:00", end: "05:00", days: ["sat", "sun"] },
          time_zone: "Europe/Berlin"
        }
      ]
    })),
    success: Envelope(
      Schema.Struct({
        task_id: Schema.Int,
        device_count: Schema.Int.annotate({ description: "Devices of the task" }),
        reason: Schema.String.annotate({ description: "Why the task has no device; empty: it has some" })
      })
    ),
    error: [NoSuchFirmware, NoSuchDeviceGroup, FirmwareState, DeviceIsUpgrading]
  }).middleware(IdempotencyMiddleware).annotate(OpenApi.Summary, "Upgrade devices to a firmware")
    .annotate(OpenApi.Description, "A task for which no device is left has failed from the start, and says why."),
  HttpApiEndpoint.get("getVerifyTask", "/ota/firmwares/:firmware_id/verify-task", {
    params: PathParams.firmware,
    query: rejected,
    success: VerifyRecords,
    error: [NoSuchFirmware, NoSuchTask]
  }).annotate(OpenApi.Summary, "List the devices of the newest verify task of a firmware"),
  HttpApiEndpoint.get("getUpgradeTask", "/ota/upgrade-tasks/:task_id", {
    params: PathParams.task,
    query: {
      ...rejected,
      status: Schema.optional(RecordCodeInQuery),
      failure: Schema.optional(
        Text(256).annotate({ description: "Only devices that have failed for this reason" })
      )
    },
    success: Paged(DeviceTaskRecord),
    error: NoSuchTask
  }).middleware(ExpensiveRead).annotate(OpenApi.Summary, "List the devices of an upgrade task"),
  HttpApiEndpoint.get("getTaskProgress", "/ota/tasks/:task_id/progress", {
    params: PathParams.task,
    success: Envelope(TaskProgressInfo),
    error: NoSuchTask
  }).annotate(OpenApi.Summary, "Read the progress of a verify or upgrade task over time")
    .annotate(
      OpenApi.Description,
      `A point for each interval since the task was created, the oldest first, at most ${maxProgressPoints}. ` +
        "Intervals have 10 seconds or more."
    ),
  HttpApiEndpoint.get("getTaskFailures", "/ota/tasks/:task_id/failures", {
    params: PathParams.task,
    success: Envelope(TaskFailuresInfo),
    error: NoSuchTask
  }).middleware(ExpensiveRead).annotate(
    OpenApi.Summary,
    "Count the devices of a verify or upgrade task that have failed, by reason"
  ),
  HttpApiEndpoint.get("listUpgradeTasks", "/ota/firmwares/:firmware_id/upgrade-tasks", {
    params: PathParams.firmware,
    query: {
      ...pageQuery,
      status: Schema.optional(UpgradeTaskCodeInQuery),
      task_id: Schema.optional(PathParams.task.task_id),
      product_key: Schema.optional(PathParams.productKey.product_key),
      name: Schema.optional(PathParams.property.property_id)
    },
    success: Paged(TaskRecord),
    error: NoSuchFirmware
  }).middleware(ExpensiveRead).annotate(OpenApi.Summary, "List the upgrade tasks of a firmware"),
  HttpApiEndpoint.delete("cancelTask", "/ota/tasks/:task_id", {
    params: PathParams.task,
    success: Empty,
    error: [NoSuchTask, TaskState]
  })
    .annotate(OpenApi.Summary, "Cancel a verify or upgrade task, or delete one that has ended"),
  HttpApiEndpoint.put("decideVerifyTask", "/ota/verify-tasks/:task_id", {
    params: PathParams.task,
    payload: Schema.Struct({ result: Schema.Boolean }),
    success: Empty,
    error: [NoSuchTask, TaskState]
  }).annotate(OpenApi.Summary, "Say whether a verification has passed"),
  HttpApiEndpoint.put("cancelUpgradeTask", "/ota/upgrade-tasks/:task_id/status", {
    params: PathParams.task,
    payload: Cancel,
    success: Empty,
    error: [NoSuchTask, TaskState]
  }).annotate(OpenApi.Summary, "Cancel an upgrade task"),
  HttpApiEndpoint.put("cancelDeviceUpgrade", "/ota/upgrade-tasks/:task_id/things/:device_id/status", {
    params: PathParams.deviceOfTask,
    payload: Cancel,
    success: Empty,
    error: [NoSuchTask, DeviceNotInTask, TaskState]
  }).annotate(OpenApi.Summary, "Cancel one device of an upgrade task"),
  HttpApiEndpoint.put("confirmUpgradeTask", "/ota/upgrade-tasks/:task_id/confirmation", {
    params: PathParams.task,
    success: Empty,
    error: [NoSuchTask, TaskState]
  }).annotate(OpenApi.Summary, "Confirm an upgrade task"),
  HttpApiEndpoint.put("openUpgradeStage", "/ota/upgrade-tasks/:task_id/stage", {
    params: PathParams.task,
    payload: Schema.Struct({
      stage: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 11 })).annotate({
        description: "The stage after the open one, from 1. The open one again: nothing happens"
      })
    }).annotate({ examples: [{ stage: 2 }] }),
    success: Empty,
    error: [NoSuchTask, TaskState]
  }).annotate(OpenApi.Summary, "Go on to the next stage of an upgrade task"),
  HttpApiEndpoint.put("confirmDeviceUpgrade", "/ota/upgrade-tasks/:task_id/things/:device_id/confirmation", {
    params: PathParams.deviceOfTask,
    success: Empty,
    error: [NoSuchTask, DeviceNotInTask, TaskState]
  }).annotate(OpenApi.Summary, "Confirm one device of an upgrade task")
).annotate(OpenApi.Title, "Firmware and upgrades") {}
