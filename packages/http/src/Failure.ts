/**
 * How the API says that something failed (decisions, section 3): an HTTP status
 * and an envelope with a code.
 */
import { maxSubDevices, maxWaiting } from "@device-cloud/core"
import type {
  AccessKeyExpired,
  AccessKeyNotFound,
  AccessKeyNotRemovable,
  AddSessionEnded,
  AddSessionNotFound,
  AlreadyActive,
  BatchNotFound,
  BelongsToOtherGateway,
  CommandNotFound,
  CommandNotQueued,
  DeviceDisabled,
  DeviceIsUpgrading,
  DeviceNotFound,
  DevicesNotOfProduct,
  ElementNotFound,
  FirmwareNotFound,
  FirmwareState,
  FirmwareVersionTaken,
  InputIssue,
  InvalidInput,
  InvalidThingModel,
  InvalidValues,
  MeshAddressTaken,
  MeshNetworkFull,
  MeshNetworkNotFound,
  MeshNodeExists,
  MeshNodeNotFound,
  NetworkKeyTaken,
  NoDeviceLeft,
  NoGatewayOnline,
  NotACloudGateway,
  NotAGateway,
  NotASubDevice,
  NotInTopology,
  ObjectNotFound,
  ObjectTooLarge,
  ProductHasDevices,
  ProductNotFound,
  ProjectNotFound,
  ProjectNotRemovable,
  RandomNotReported,
  RandomUsed,
  RecordNotFound,
  RegistrationOff,
  SceneNameTaken,
  SceneNotFound,
  ServiceIsSync,
  ShadowVersionConflict,
  StoreError,
  TaskNotFound,
  TaskState,
  TooManyCommands,
  TooManySubDevices,
  TooManyWrongSignatures,
  UnknownAccessKey,
  WrongCipher,
  WrongSignature
} from "@device-cloud/core"
import { Effect, Schema } from "effect"
import { HttpApiSchema } from "effect/http-api"
import { snakeCase } from "./SnakeCase.ts"

/** The codes of failures; the first three digits are the HTTP status. */
export const Code = {
  bodyUnreadable: 40000,
  invalidParameter: 40001,
  invalidThingModel: 40002,
  invalidValue: 40003,
  operationUnfit: 40004,
  unauthorized: 40100,
  accessKeyExpired: 40101,
  wrongSignature: 40110,
  roleTooLow: 40300,
  deviceDisabled: 40301,
  registrationOff: 40302,
  noSuchRoute: 40400,
  noSuchProduct: 40401,
  noSuchDevice: 40402,
  noSuchBatch: 40403,
  noSuchFirmware: 40404,
  noSuchTask: 40405,
  noSuchScene: 40406,
  noSuchMeshNetwork: 40407,
  noSuchMeshNode: 40408,
  noSuchObject: 40409,
  noSuchAddSession: 40410,
  noSuchElement: 40411,
  noSuchAccessKeyOrProject: 40412,
  noSuchMessage: 40413,
  methodNotAllowed: 40500,
  stateForbids: 40900,
  taken: 40901,
  productHasDevices: 40902,
  deviceIsUpgrading: 40903,
  shadowVersionConflict: 40904,
  alreadyActive: 40905,
  otherGateway: 40906,
  randomNotReported: 40910,
  tooLarge: 41300,
  mediaType: 41500,
  rangeUnsatisfiable: 41600,
  tooMany: 42900,
  internal: 50000,
  storageUnreachable: 50300
} as const
export type Code = typeof Code[keyof typeof Code]

const FailureData = Schema.Struct({
  issues: Schema.optionalKey(
    Schema.Record(Schema.String, Schema.Array(Schema.String)).annotate({
      description: "Path of each refused field to what was expected of it"
    })
  ),
  version: Schema.optionalKey(Schema.Int.annotate({ description: "The current version of the shadow" })),
  retry_after: Schema.optionalKey(Schema.Int.annotate({ description: "Seconds after which it may succeed" })),
  device_code: Schema.optionalKey(
    Schema.Int.annotate({ description: "What the device protocol calls it; of messages of devices" })
  ),
  request_id: Schema.optionalKey(Schema.String.annotate({ description: "Names this request in the log of the server" }))
})

/** What a handler fails with. */
export interface Failure {
  readonly code: Code
  /** A sentence that a developer can act on. */
  readonly message: string
  readonly data?: typeof FailureData.Type
}

const failuresOf = (status: number, description: string) =>
  Schema.Struct({
    code: Schema.Literals(Object.values(Code).filter((code) => Math.floor(code / 100) === status)),
    message: Schema.String,
    data: Schema.optionalKey(FailureData)
  }).annotate({ description, identifier: `Failure${status}` }).pipe(HttpApiSchema.status(status))

/** Every failure that any route may answer with, by HTTP status. */
export const failureSchemas = [
  failuresOf(400, "The request is not well formed, or a parameter is invalid"),
  failuresOf(401, "The access key is missing, unknown or expired; or the device's signature is wrong"),
  failuresOf(403, "The role of the access key is too low; or the device may not do this"),
  failuresOf(404, "There is no such resource in the project of the access key"),
  failuresOf(409, "The state of the resource does not allow it"),
  failuresOf(413, "The body is too large"),
  failuresOf(415, "The media type of the body is not supported"),
  failuresOf(429, "Too many requests; try again later"),
  failuresOf(500, "Internal error"),
  failuresOf(503, "The storage cannot be reached; try again later")
] as const

export const failure = (code: Code, message: string, data?: Failure["data"]): Failure =>
  data === undefined ? { code, message } : { code, message, data }

export const statusOf = ({ code }: Failure): number => Math.floor(code / 100)

/** Issues by path, for example `{"network_type": ["Expected …"]}`; the empty path is the whole input. */
export const issuesByPath = (
  issues: ReadonlyArray<InputIssue>,
  /** From the name of a field in the domain to that on the wire. */
  nameOf: (name: string) => string = snakeCase
): Readonly<Record<string, ReadonlyArray<string>>> => {
  const byPath = new Map<string, Array<string>>()
  for (const { message, path } of issues) {
    const key = path.map((segment, i) =>
      typeof segment === "number" ? `[${segment}]` : i === 0 ? nameOf(segment) : `.${segment}`
    ).join("")
    byPath.set(key, [...byPath.get(key) ?? [], message])
  }
  return Object.fromEntries(byPath)
}

/** A failure whose message repeats the first issue. */
const withIssues = (code: Code, byPath: Readonly<Record<string, ReadonlyArray<string>>>): Failure => {
  const [[path, [message]] = ["", ["Invalid input"]]] = Object.entries(byPath)
  return failure(code, path === "" ? `${message}` : `${path}: ${message}`, { issues: byPath })
}

export const invalidParameter = (issues: ReadonlyArray<InputIssue>): Failure =>
  withIssues(Code.invalidParameter, issuesByPath(issues))

/** Names in documents of the caller are told as they are. */
const asIs = (name: string): string => name

/** Seconds after which a device may have taken one of its commands. */
const commandRetryAfter = 10

/** What the domain's services fail with. */
export type DomainError =
  | AccessKeyExpired
  | AccessKeyNotFound
  | AccessKeyNotRemovable
  | AddSessionEnded
  | AddSessionNotFound
  | AlreadyActive
  | BatchNotFound
  | BelongsToOtherGateway
  | CommandNotFound
  | CommandNotQueued
  | DeviceDisabled
  | DeviceIsUpgrading
  | DevicesNotOfProduct
  | FirmwareNotFound
  | FirmwareState
  | FirmwareVersionTaken
  | RecordNotFound
  | TaskNotFound
  | TaskState
  | DeviceNotFound
  | ElementNotFound
  | InvalidInput
  | InvalidThingModel
  | InvalidValues
  | MeshAddressTaken
  | MeshNetworkFull
  | MeshNetworkNotFound
  | MeshNodeExists
  | MeshNodeNotFound
  | NetworkKeyTaken
  | NoDeviceLeft
  | NoGatewayOnline
  | NotACloudGateway
  | NotAGateway
  | NotASubDevice
  | NotInTopology
  | ObjectNotFound
  | ObjectTooLarge
  | ProductHasDevices
  | ProductNotFound
  | ProjectNotFound
  | ProjectNotRemovable
  | RandomNotReported
  | RandomUsed
  | RegistrationOff
  | SceneNameTaken
  | SceneNotFound
  | ServiceIsSync
  | ShadowVersionConflict
  | StoreError
  | TooManyCommands
  | TooManySubDevices
  | TooManyWrongSignatures
  | UnknownAccessKey
  | WrongCipher
  | WrongSignature

/** Fails as the API does. An error of the storage that will not pass is a defect: nobody outside can act on it. */
export const failWith = (error: DomainError | Failure): Effect.Effect<never, Failure> => {
  if (!("_tag" in error)) return Effect.fail(error)
  if (error._tag !== "StoreError") return Effect.fail(fromDomain(error))
  return error.retryable
    ? Effect.andThen(
      Effect.logWarning(`${error.operation}: the storage cannot be reached`, error.cause),
      Effect.fail(failure(Code.storageUnreachable, "The storage cannot be reached; try again later"))
    )
    : Effect.die(error)
}

const fromDomain = (error: Exclude<DomainError, StoreError>): Failure => {
  switch (error._tag) {
    case "AccessKeyExpired":
      return failure(Code.accessKeyExpired, "The access key has expired; ask for a new one")
    case "AccessKeyNotFound":
      return failure(Code.noSuchAccessKeyOrProject, `There is no access key ${error.accessKeyId} in this project`)
    case "AccessKeyNotRemovable":
      return failure(Code.stateForbids, `Access key ${error.accessKeyId} is the owner's; it can only be replaced`)
    case "AddSessionEnded":
      return failure(Code.stateForbids, `Add-session ${error.sessionId} has ended; start another one`)
    case "AddSessionNotFound":
      return failure(Code.noSuchAddSession, `Gateway ${error.gatewayId} has no add-session ${error.sessionId}`)
    case "AlreadyActive":
      return failure(Code.alreadyActive, `Device ${error.device} has been active; its triple is not told again`)
    case "BatchNotFound":
      return failure(Code.noSuchBatch, `Product ${error.productKey} has no batch ${error.batchId}`)
    case "BelongsToOtherGateway":
      return failure(Code.otherGateway, `Device ${error.device} belongs to another gateway; remove it there first`)
    case "CommandNotFound":
      return failure(Code.noSuchMessage, `There is no message ${error.messageId} for this device`)
    case "CommandNotQueued":
      return failure(
        Code.stateForbids,
        `Message ${error.messageId} is ${error.state}; only a queued one can be cancelled`
      )
    case "DeviceDisabled":
      return failure(Code.deviceDisabled, `Device ${error.productKey}/${error.deviceName} is disabled`)
    case "DeviceIsUpgrading":
      return failure(
        Code.deviceIsUpgrading,
        `Device ${error.deviceId} has an unfinished task for this module; cancel it first`
      )
    case "DevicesNotOfProduct":
      return invalidParameter(error.deviceIds.map((deviceId) => ({
        path: ["device_ids"],
        message: `${deviceId} is no device of product ${error.productKey}`
      })))
    case "FirmwareNotFound":
      return failure(Code.noSuchFirmware, `There is no firmware ${error.firmwareId} in this project`)
    case "FirmwareState":
      return failure(Code.stateForbids, `Firmware ${error.firmwareId}: ${error.reason}`)
    case "FirmwareVersionTaken":
      return failure(
        Code.taken,
        `version: product ${error.productKey} has a firmware ${error.version} for module ${error.module}`
      )
    case "RecordNotFound":
      return failure(Code.noSuchTask, `Device ${error.deviceId} is not in task ${error.taskId}`)
    case "TaskNotFound":
      return failure(Code.noSuchTask, `There is no task ${error.taskId} in this project`)
    case "TaskState":
      return failure(Code.stateForbids, `Task ${error.taskId}: ${error.reason}`)
    case "DeviceNotFound":
      return failure(Code.noSuchDevice, `There is no device ${error.device}`)
    case "ElementNotFound":
      return failure(
        Code.noSuchElement,
        `The thing model of product ${error.productKey} has no ${error.type} ${error.id}`
      )
    case "InvalidInput":
      return invalidParameter(error.issues)
    case "InvalidThingModel":
      return withIssues(Code.invalidThingModel, issuesByPath(error.issues, asIs))
    case "InvalidValues":
      return withIssues(Code.invalidValue, issuesByPath(error.issues, asIs))
    case "MeshAddressTaken":
      return failure(Code.taken, `mesh_addr: another node of the network has address ${error.meshAddr}`)
    case "MeshNetworkFull":
      return failure(
        Code.stateForbids,
        `mesh_addr: no address for a node of type ${error.nodeType} is left in network ${error.networkKey}; ` +
          "remove nodes first"
      )
    case "MeshNetworkNotFound":
      return failure(Code.noSuchMeshNetwork, `There is no mesh network ${error.networkKey} in this project`)
    case "MeshNodeExists":
      return failure(
        Code.stateForbids,
        `Device ${error.deviceName} is a node of network ${error.networkKey} already, with address ${error.meshAddr}`
      )
    case "MeshNodeNotFound":
      return failure(Code.noSuchMeshNode, `Device ${error.deviceId} is no node of network ${error.networkKey}`)
    case "NetworkKeyTaken":
      return failure(Code.taken, `network_key: there is a mesh network ${error.networkKey} in this project`)
    case "NoDeviceLeft":
      return failure(
        Code.alreadyActive,
        `Product ${error.productKey} has no device left that was created beforehand and is not registered; create more`
      )
    case "NotACloudGateway":
      return failure(
        Code.operationUnfit,
        `${error.fields.map(snakeCase).join(", ")}: only a cloud-gateway product takes this, and product ` +
          `${error.productKey} is none`
      )
    case "NotAGateway":
      return failure(Code.operationUnfit, `Device ${error.deviceId} is no gateway: its product is of another node type`)
    case "NotASubDevice":
      return failure(
        Code.operationUnfit,
        `Product ${error.productKey} is not of node type gateway-sub: its devices join no gateway`
      )
    case "NotInTopology":
      return failure(Code.noSuchDevice, `Device ${error.device} is no sub-device of gateway ${error.gatewayId}`)
    case "NoGatewayOnline":
      return failure(Code.stateForbids, `No gateway of mesh network ${error.networkKey} is connected`)
    case "ObjectNotFound":
      return failure(Code.noSuchObject, `There is no object ${error.objectId}`)
    case "ObjectTooLarge":
      return failure(Code.tooLarge, `The file is larger than ${error.maximum} bytes`)
    case "ProductHasDevices":
      return failure(Code.productHasDevices, `Product ${error.productKey} still has devices; delete them first`)
    case "ProductNotFound":
      return failure(Code.noSuchProduct, `There is no product ${error.productKey}`)
    case "ProjectNotFound":
      return failure(Code.noSuchAccessKeyOrProject, `There is no project ${error.projectId}`)
    case "ProjectNotRemovable":
      return failure(
        Code.stateForbids,
        error.reason === "is-default"
          ? "The default project cannot be deleted"
          : `Project ${error.projectId} still has products; delete them first`
      )
    case "RandomNotReported":
      return failure(Code.randomNotReported, `Device ${error.device} has not reported its random yet; ask again later`)
    case "RandomUsed":
      return failure(
        Code.wrongSignature,
        `random: ${error.random} was used within the last five minutes; send another one`
      )
    case "RegistrationOff":
      return failure(Code.registrationOff, `Dynamic registration of product ${error.productKey} is off`)
    case "SceneNameTaken":
      return failure(Code.taken, `name: the project has another scene called ${error.name}`)
    case "SceneNotFound":
      return failure(Code.noSuchScene, `There is no scene ${error.sceneId} in this project`)
    case "ServiceIsSync":
      return failure(
        Code.operationUnfit,
        `Service ${error.serviceId} is synchronous; only asynchronous ones are called`
      )
    case "ShadowVersionConflict":
      return failure(
        Code.shadowVersionConflict,
        `The shadow of device ${error.deviceId} is in version ${error.version}`,
        { version: error.version }
      )
    case "TooManyCommands":
      return failure(
        Code.tooMany,
        `Device ${error.deviceId} has ${maxWaiting} messages that wait; cancel some or let them expire`,
        { retry_after: commandRetryAfter }
      )
    case "TooManySubDevices":
      return failure(Code.stateForbids, `Gateway ${error.gatewayId} would have more than ${maxSubDevices} sub-devices`)
    case "TooManyWrongSignatures":
      return failure(Code.tooMany, "Too many wrong signatures from this device or address; try again later", {
        retry_after: error.retryAfter
      })
    case "WrongCipher":
      return failure(
        Code.wrongSignature,
        `cipher: it is not what ${error.deviceName} of product ${error.productKey} would make of random`
      )
    case "WrongSignature":
      return failure(
        Code.wrongSignature,
        `sign: it is not what ${error.deviceName} of product ${error.productKey} would sign`
      )
    case "UnknownAccessKey":
      return failure(Code.unauthorized, "Send a valid access key: Authorization: Bearer dck_…")
  }
}
