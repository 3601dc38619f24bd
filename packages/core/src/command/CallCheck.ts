/**
 * Whether a call may be made to devices of a product: its form, the thing model,
 * the codec.
 */
import { Effect, Option, Result } from "effect"
import { CodecCache } from "../codec/CodecCache.ts"
import * as ProductCodec from "../codec/ProductCodec.ts"
import { expectObject, InvalidInput } from "../kernel/InvalidInput.ts"
import { isFiniteJson, type Json } from "../kernel/Json.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProductKey } from "../product/Product.ts"
import { type IsModelled, refusePropertyId } from "../shadow/Shadow.ts"
import { Misfit } from "../thing-model/DataType.ts"
import { isUsableId } from "../thing-model/formats/Elements.ts"
import { checkValues, InvalidValues } from "../thing-model/InvalidValues.ts"
import { ModelCache } from "../thing-model/ModelCache.ts"
import { ElementNotFound } from "../thing-model/ThingModel.ts"
import { methodOf, type NewCommand, rawTopic } from "./Command.ts"

/** What a command carries. */
export type Call = Pick<NewCommand, "serviceId" | "userTopic" | "params" | "synchronous">

type Params = Readonly<Record<string, Json>>

/** Properties in one call. */
const maxProperties = 200
/** The parameters of one call as JSON, in UTF-16 code units. */
const maxParamsLength = 128 * 1024
/** Levels of objects and arrays in the parameters. */
const maxParamsNesting = 16

/** Fails because a field of the input is not as it should be. */
export const refuse = (field: string, message: string) =>
  Effect.fail(new InvalidInput({ issues: [{ path: [field], message }] }))

/** The values of properties that no thing model names. */
const checkIds = (params: Params): Effect.Effect<Params, InvalidInput> => {
  for (const id of Object.keys(params)) {
    const message = refusePropertyId(id)
    if (message !== undefined) return Effect.fail(new InvalidInput({ issues: [{ path: ["params", id], message }] }))
  }
  return Effect.succeed(params)
}

/**
 * Without a product, the checks leave out the thing model and the codec. They run when they are made, not as steps of
 * a fiber, if model and codec are at hand.
 */
export const make = Effect.gen(function*() {
  const models = yield* ModelCache
  const codecs = yield* CodecCache

  const modelOf = (productKey: ProductKey | undefined) =>
    productKey === undefined
      ? Effect.undefined
      : Effect.mapEager(models.ofProduct(productKey), Option.getOrUndefined)

  /** The call that sets properties, with the values as they are stored. */
  const toSetProperties = Effect.fnUntracedEager(function*(productKey: ProductKey | undefined, params: Params) {
    yield* expectObject(params, ["params"])
    const count = Object.keys(params).length
    if (count === 0 || count > maxProperties) {
      return yield* refuse("params", `Expected 1 to ${maxProperties} properties`)
    }
    const validator = yield* modelOf(productKey)
    const admitted = validator === undefined
      ? yield* checkIds(params)
      : yield* checkValues(params, (id, value) => validator.desired(id, value))
    const call: Call = { serviceId: null, userTopic: null, params: admitted }
    const isModelled: IsModelled | undefined = validator?.hasProperty
    return { call, isModelled }
  })

  /** The call of a service, with the inputs as they are stored. */
  const toCallService = Effect.fnUntracedEager(
    function*(productKey: ProductKey | undefined, serviceId: string, params: Params) {
      yield* expectObject(params, ["params"])
      const validator = yield* modelOf(productKey)
      if (validator === undefined) {
        if (!isUsableId(serviceId)) {
          return yield* refuse("service_id", "Expected 1 to 50 letters, digits and _, no reserved word")
        }
        const call: Call = { serviceId, userTopic: null, params }
        return call
      }
      const service = validator.service(serviceId)
      if (service === undefined) {
        return yield* new ElementNotFound({ productKey: productKey ?? "", type: "service", id: serviceId })
      }
      const checked = service.input(params)
      if (checked instanceof Misfit) {
        const { message, path } = checked.issue
        return yield* new InvalidValues({ issues: [{ path: ["params", ...path], message }] })
      }
      const synchronous = service.element.callType === "sync"
      const call: Call = { serviceId, userTopic: null, params: checked, synchronous }
      return call
    }
  )

  /** Fails with `InvalidInput` if the params are too large, and with `InvalidValues` if the codec cannot write the call. */
  const fits = Effect.fnUntracedEager(function*(
    productKey: ProductKey | undefined,
    call: Call
  ): Effect.fn.Return<void, InvalidInput | InvalidValues | StoreError> {
    // `RawBytes` has its own bound.
    if (call.userTopic === rawTopic) return
    if (!isFiniteJson(call.params, maxParamsNesting)) {
      return yield* refuse("params", `Expected JSON of at most ${maxParamsNesting} levels`)
    }
    if (JSON.stringify(call.params).length > maxParamsLength) {
      const field = call.userTopic === null ? "params" : "payload"
      return yield* refuse(field, `Expected at most ${maxParamsLength} characters of JSON`)
    }
    if (productKey === undefined || call.userTopic !== null) return
    const codec = yield* codecs.ofProduct(productKey)
    if (Option.isNone(codec)) return
    const written = ProductCodec.encode(codec.value, "commands", { method: methodOf(call), id: 0, params: call.params })
    if (Result.isSuccess(written)) return
    const { expected, path } = written.failure
    return yield* new InvalidValues({ issues: [{ path: path.split("."), message: expected }] })
  })

  return { toSetProperties, toCallService, fits }
})
