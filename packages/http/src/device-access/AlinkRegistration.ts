/**
 * `POST /auth/register/device` with a form: the registration that public device
 * SDKs use (docs/protocol/provisioning.md).
 */
import { DeviceName, ProductKey, Provisioning, SignMethod } from "@device-cloud/core"
import { Effect, Schema } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { failWith } from "../DomainFailures.ts"
import { clientAddress } from "../middleware/ClientAddress.ts"
import { toResponse } from "../middleware/ErrorEnvelope.ts"

/** The path of the route. */
export const path = "/auth/register/device"

/** Serves the route. */
export const layer = HttpRouter.use(Effect.fnUntraced(function*(router) {
  const provisioning = yield* Provisioning

  const register = Effect.gen(function*() {
    const request = yield* HttpServerRequest.HttpServerRequest
    const form = yield* request.urlParamsBody
    const field = (name: string): string => String(form.params.findLast(([key]) => key === name)?.[1] ?? "")
    const signMethod = field("signMethod").toLowerCase() || "hmacsha1"
    if (!isSignMethod(signMethod)) return refuse(6292, "sign method not supported")
    const { deviceName, deviceSecret, productKey } = yield* provisioning.registerNamed({
      productKey: ProductKey.make(field("productKey")),
      deviceName: DeviceName.make(field("deviceName")),
      random: field("random"),
      signMethod,
      sign: field("sign")
    }, clientAddress(request))
    return HttpServerResponse.jsonUnsafe({
      code: 200,
      message: "success",
      data: { productKey, deviceName, deviceSecret }
    })
  })

  yield* router.add(
    "POST",
    path,
    register.pipe(Effect.catch((error) => {
      if (error._tag === "StoreError") {
        return failWith(error).pipe(Effect.catch((unreachable) => Effect.succeed(toResponse(unreachable))))
      }
      if (error._tag === "HttpServerError") return Effect.succeed(refuse(460, "request parameter error"))
      if (error._tag === "InvalidInput") {
        const [{ message, path: [name = ""] }] = error.issues
        return Effect.succeed(refuse(460, `${name}: ${message}`))
      }
      const [code, message] = codes[error._tag]
      return Effect.succeed(refuse(code, message))
    }))
  )
}))

const refuse = (code: number, message: string) => HttpServerResponse.jsonUnsafe({ code, message, data: {} })

const isSignMethod = Schema.is(SignMethod)

/** Codes and messages that these SDKs know. */
const codes = {
  AlreadyActive: [6289, "device already active"],
  DeviceDisabled: [6204, "device disabled"],
  DeviceNotFound: [6100, "device not found"],
  ProductNotFound: [6250, "product not found"],
  RegistrationOff: [6288, "dynamic registration disabled"],
  TooManyRegistrations: [429, "too many requests"],
  TooManyWrongSignatures: [429, "too many requests"],
  WrongSignature: [6600, "sign check failed"]
} as const
