/**
 * The codes that a failure has in its envelope.
 */

/** Each code by its name. The first three digits are the HTTP status. */
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
  secureWayNeeded: 40303,
  forgedRequest: 40304,
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
  noSuchCertificate: 40414,
  noSuchJob: 40415,
  noSuchDeviceGroup: 40420,
  noSuchBulkCommand: 40421,
  noSuchSubscription: 40422,
  methodNotAllowed: 40500,
  stateForbids: 40900,
  taken: 40901,
  productHasDevices: 40902,
  deviceIsUpgrading: 40903,
  shadowVersionConflict: 40904,
  alreadyActive: 40905,
  otherGateway: 40906,
  leaseLost: 40907,
  randomNotReported: 40910,
  deviceNotConnected: 40911,
  noReply: 40920,
  tooLarge: 41300,
  mediaType: 41500,
  rangeUnsatisfiable: 41600,
  tooMany: 42900,
  internal: 50000,
  storageUnreachable: 50300
} as const

/** Any of the codes. */
export type Code = typeof Code[keyof typeof Code]

/** The HTTP status that goes with a code. */
export const statusOf = (code: number): number => Math.floor(code / 100)
