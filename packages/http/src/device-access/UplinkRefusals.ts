/**
 * How the HTTP uplink says that a message of a device was refused: the device
 * protocol's code becomes a code of the API, and stands in `data.device_code`
 * (docs/protocol/codes.md).
 */
import type { DeviceReply } from "@device-cloud/core"
import { identity, Schema } from "effect"
import { HttpApiSchema } from "effect/http-api"
import { Code, statusOf } from "../Code.ts"
import { issuesData, withIssues } from "../Failure.ts"

/** The failures with the codes of one status that a refused message can become. */
const refusals = <const Codes extends ReadonlyArray<Code>>(codes: Codes) => {
  const status = statusOf(codes[0]!)
  return Schema.Struct({
    code: Schema.Literals(codes),
    message: Schema.String,
    data: Schema.Struct({
      device_code: Schema.Int.annotate({ description: "What the device protocol calls it" }),
      issues: Schema.optionalKey(issuesData.issues),
      version: Schema.optionalKey(Schema.Int.annotate({ description: "The current version of the shadow" })),
      retry_after: Schema.optionalKey(Schema.Int.annotate({ description: "Seconds after which it may succeed" }))
    })
  }).annotate({ description: "The message of the device was refused", identifier: `MessageRefused${status}` })
    .pipe(HttpApiSchema.status(status))
}

/** All failures that a refused message can become. */
export const uplinkRefusals = [
  refusals([Code.invalidParameter, Code.invalidValue, Code.operationUnfit]),
  refusals([Code.wrongSignature]),
  refusals([Code.deviceDisabled, Code.registrationOff]),
  refusals([Code.noSuchProduct, Code.noSuchDevice]),
  refusals([Code.stateForbids, Code.shadowVersionConflict, Code.alreadyActive, Code.otherGateway]),
  refusals([Code.tooMany]),
  refusals([Code.internal]),
  refusals([Code.storageUnreachable])
] as const

type UplinkRefusal = typeof uplinkRefusals[number]["Type"]

/** Seconds after which a message that came too often may succeed: wrong signatures count for a minute. */
const retryAfter = 60

/** What the refusal of a message becomes. `method` is the method of the message. */
export const uplinkRefusal = (reply: DeviceReply.DeviceReply, method: string): UplinkRefusal => {
  const { code: device_code, data, issues = [{ path: [], message: reply.message }], message } = reply
  const code = codeOf(device_code, method)
  const details = (): object => {
    if (hasIssues(code)) return withIssues(issues, identity).data
    if (code === Code.shadowVersionConflict && method === "thing.shadow") return data as { readonly version: number }
    return code === Code.tooMany ? { retry_after: retryAfter } : {}
  }
  return { code, message, data: { device_code, ...details() } } as UplinkRefusal
}

/** The codes of failures that carry issues, as those of the management API do. */
const hasIssues = (code: Code): boolean => code === Code.invalidParameter || code === Code.invalidValue

/** The protocol's codes that say more than that a parameter is wrong. */
const codes: Readonly<Record<number, UplinkRefusal["code"]>> = {
  409: Code.shadowVersionConflict,
  428: Code.tooMany,
  429: Code.tooMany,
  500: Code.internal,
  503: Code.storageUnreachable,
  520: Code.stateForbids,
  521: Code.noSuchDevice,
  522: Code.deviceDisabled,
  6100: Code.noSuchDevice,
  6204: Code.deviceDisabled,
  6250: Code.noSuchProduct,
  6287: Code.wrongSignature,
  6288: Code.registrationOff,
  6289: Code.alreadyActive,
  6400: Code.stateForbids,
  6401: Code.stateForbids,
  6402: Code.operationUnfit,
  6600: Code.wrongSignature,
  6619: Code.otherGateway
}

/** Codes that mean something else in messages about the shadow. */
const codesBesideShadows: Readonly<Record<number, UplinkRefusal["code"]>> = {
  401: Code.wrongSignature,
  403: Code.operationUnfit
}

const codeOf = (code: number, method: string): UplinkRefusal["code"] =>
  (method === "thing.shadow" ? undefined : codesBesideShadows[code]) ?? codes[code] ??
    (isMisfit(code) ? Code.invalidValue : Code.invalidParameter)

/** Whether a value does not fit the thing model. */
const isMisfit = (code: number): boolean => code >= 6300 && code <= 6328
