/**
 * How the HTTP uplink says that a message of a device was refused.
 */
import type { DeviceReply } from "@device-cloud/core"
import { Code, type Failure, failure } from "../Failure.ts"

/** The protocol's codes that say more than that a parameter is wrong (alink-facts, section 7). */
const codes: Readonly<Record<number, Code>> = {
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

/** Those that mean something else in messages about the shadow. */
const codesBesideShadows: Readonly<Record<number, Code>> = {
  401: Code.wrongSignature,
  403: Code.operationUnfit
}

/** Codes of values that do not fit the thing model. */
const isMisfit = (code: number): boolean => code >= 6300 && code <= 6328

/** `method`: of the message that was refused. */
export const deviceFailure = ({ code, message }: DeviceReply.DeviceReply, method: string): Failure =>
  failure(
    (method === "thing.shadow" ? undefined : codesBesideShadows[code]) ?? codes[code] ??
      (isMisfit(code) ? Code.invalidValue : Code.invalidParameter),
    message,
    { device_code: code }
  )
