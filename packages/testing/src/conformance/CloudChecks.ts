/**
 * Simulated devices against a real cloud: what of the protocol it does.
 */
import { Effect, Queue, Schedule, type Scope } from "effect"
import { type ApiResponse, type CallOptions, callTo, productBody } from "../http/TestApi.ts"
import * as SimulatedDevice from "../SimulatedDevice.ts"
import { check, expectSame, type Report, skip, Unexpected } from "./Check.ts"

export interface CloudOptions {
  /** Where devices connect, for example `mqtts://localhost:8883`. */
  readonly url: string
  /** The authority of its certificate as PEM. */
  readonly ca?: string
  /** The address of the HTTP API; undefined: what needs it is skipped. */
  readonly httpUrl?: string | undefined
  /** A key of the API. With it the checks make a device of their own and see what applications see. */
  readonly accessKey?: string | undefined
  /** The device to check with; it needs no thing model. Needed without an access key. */
  readonly device?: SimulatedDevice.DeviceTriple | undefined
}

/** Asks the API as an application does. Fails with what it says unless the code is 0, and if nothing comes back. */
const ask = (
  { accessKey, httpUrl }: CloudOptions,
  method: string,
  path: string,
  body?: CallOptions["body"]
): Effect.Effect<ApiResponse["body"]["data"], Unexpected> =>
  callTo(httpUrl!, method, path, { key: accessKey!, ...body === undefined ? {} : { body } }).pipe(
    Effect.flatMap(({ body: { code, data, message } }) =>
      code === 0
        ? Effect.succeed(data)
        : Effect.fail(new Unexpected({ message: `${method} ${path}: ${code} ${message}` }))
    ),
    Effect.catchDefect((error) =>
      Effect.fail(new Unexpected({ message: `${method} ${path}: ${error instanceof Error ? error.message : error}` }))
    )
  )

/** Returns members of what the API has said. Fails unless all of them are texts. */
const texts = <Name extends string>(
  said: Readonly<Record<string, unknown>> | undefined,
  names: ReadonlyArray<Name>
): Effect.Effect<Readonly<Record<Name, string>>, Unexpected> => {
  const missing = names.filter((name) => typeof said?.[name] !== "string")
  return missing.length === 0
    ? Effect.succeed(said as Readonly<Record<Name, string>>)
    : Effect.fail(new Unexpected({ message: `the API has told no ${missing.join(", no ")}` }))
}

/** A device for the checks, and its id for the API. Both are removed with the scope. */
const makeDevice = Effect.fnUntraced(function*(options: CloudOptions) {
  const product = yield* ask(options, "POST", "/products", {
    ...productBody,
    name: "Conformance",
    validate_type: "none"
  })
  const { product_key } = yield* texts(product?.product_info, ["product_key"])
  yield* Effect.addFinalizer(() => Effect.ignore(ask(options, "DELETE", `/products/${product_key}`)))
  const device = yield* ask(options, "POST", `/products/${product_key}/things`)
  const { device_id, device_name, device_secret } = yield* texts(device, ["device_id", "device_name", "device_secret"])
  yield* Effect.addFinalizer(() => Effect.ignore(ask(options, "DELETE", `/things/${device_id}`)))
  return {
    id: device_id,
    triple: { productKey: product_key, deviceName: device_name, deviceSecret: device_secret }
  }
})

/** A reply that says yes. */
const accepted = (what: string, sent: ReturnType<SimulatedDevice.SimulatedDevice["send"]>) =>
  Effect.tap(
    sent,
    ({ code, message }) =>
      code === 200 ? Effect.void : Effect.fail(new Unexpected({ message: `${what}: ${code} ${message}` }))
  )

/** Makes all checks that the options allow. Fails if there is no device to check with. */
export const checkCloud = Effect.fnUntraced(function*(
  options: CloudOptions,
  report: Report
): Effect.fn.Return<void, Unexpected, Scope.Scope> {
  const { accessKey, ca, httpUrl, url } = options
  const hasApi = accessKey !== undefined && httpUrl !== undefined
  const { id, triple } = options.device !== undefined
    ? { id: undefined, triple: options.device }
    : hasApi
    ? yield* makeDevice(options)
    : yield* Effect.fail(new Unexpected({ message: "Expected a device, or the address of the API and an access key" }))
  const endpoint = { ...triple, url, ...ca === undefined ? {} : { ca } }
  const works = (name: string, run: Effect.Effect<string | void, unknown, Scope.Scope>) => check(report, name, run)

  yield* works(
    "refuses a wrong signature",
    Effect.matchEffect(Effect.scoped(SimulatedDevice.connectMqtt({ ...endpoint, deviceSecret: "wrong" })), {
      onSuccess: () => Effect.fail(new Unexpected({ message: "expected a CONNACK with 4, got one with 0" })),
      onFailure: ({ reason, returnCode }) =>
        returnCode === 4
          ? Effect.void
          : Effect.fail(
            new Unexpected({ message: `expected a CONNACK with 4, got ${returnCode ?? `none: ${reason}`}` })
          )
    })
  )
  for (const signMethod of ["hmacmd5", "hmacsha1", "hmacsha256"] as const) {
    yield* works(
      `admits ${signMethod}`,
      Effect.asVoid(Effect.scoped(SimulatedDevice.connectMqtt({ ...endpoint, signMethod })))
    )
  }

  const connected = yield* Effect.result(SimulatedDevice.connectMqtt({
    ...endpoint,
    on: {
      set: () => Effect.void,
      services: { conform: ({ value }) => Effect.succeed({ value: value! }) },
      userMessage: ({ payload }) => Effect.succeed(payload)
    }
  }))
  if (connected._tag === "Failure") return yield* skip(report, "everything else", connected.failure.message)
  const device = connected.success
  yield* works("takes a report of properties", Effect.asVoid(accepted("post", device.postProperties({ power: 1 }))))
  yield* works("takes an event", Effect.asVoid(accepted("post", device.postEvent("alarm", { code: 1 }))))
  yield* works(
    "takes a batch",
    Effect.asVoid(accepted("batch", device.postBatch({ properties: { level: [{ value: 2 }] } })))
  )
  yield* works(
    "keeps the shadow",
    Effect.gen(function*() {
      yield* accepted("update", device.reportShadow({ mode: "eco" }))
      const { data } = yield* accepted("get", device.getShadow)
      const { state, version } = (data ?? {}) as {
        readonly state?: { readonly reported?: object }
        readonly version?: number
      }
      const reported = state?.reported
      yield* expectSame("reported", reported, { ...reported, mode: "eco" })
      yield* expectSame("an old version", (yield* device.reportShadow({ mode: "off" }, version)).code, 409)
    })
  )
  yield* works(
    "keeps tags",
    Effect.gen(function*() {
      yield* accepted("update", device.setTags({ conform: "yes" }))
      const { data } = yield* accepted("get", device.getTags(["conform"]))
      yield* expectSame("tags", data, [{ attrKey: "conform", attrValue: "yes" }])
      yield* accepted("delete", device.deleteTags(["conform"]))
    })
  )
  yield* works("tells the time", Effect.map(device.syncTime, (wrong) => `the clocks differ by ${wrong} ms`))
  yield* works(
    "takes a firmware version, and says whether there is an upgrade",
    Effect.andThen(device.inform("1.0.0"), Effect.asVoid(accepted("firmware/get", device.checkUpgrade())))
  )
  yield* works("takes a user message", Effect.asVoid(device.sendUserMessage("conform", "hello")))
  yield* works(
    "refuses an unknown method",
    Effect.flatMap(device.send("thing.no.such", {}), ({ code }) => expectSame("code", code, 6203))
  )

  if (id === undefined) yield* skip(report, "what applications ask of devices", "it needs --http-url and --access-key")
  else {
    const things = `/things/${id}`
    yield* works(
      "sets properties, and shows what the device then reports",
      Effect.gen(function*() {
        const { state } = yield* ask(options, "POST", `${things}/properties`, { params: { power: 0 }, wait: 20 })
        yield* expectSame("state", state, "succeeded")
        yield* ask(options, "GET", `${things}/shadow`).pipe(
          Effect.flatMap((data) => expectSame("reported power", data.thing_shadow.state.reported.power, 0)),
          Effect.retry({ times: 20, schedule: Schedule.spaced("250 millis") })
        )
      })
    )
    yield* works(
      "calls services",
      Effect.flatMap(
        ask(options, "POST", `${things}/services/conform`, { params: { value: 7 }, wait: 20 }),
        ({ data }) => expectSame("outputs", data, { value: 7 })
      )
    )
    yield* works(
      "calls on user topics",
      Effect.flatMap(
        ask(options, "POST", `${things}/user-messages`, { topic: "echo", payload: "hello", wait: 20 }),
        ({ data }) => expectSame("payload", data.payload, "hello")
      )
    )
    yield* works(
      "tells the device what is desired",
      Effect.gen(function*() {
        yield* ask(options, "PUT", `${things}/shadow`, { state: { desired: { power: 1 } } })
        let method = ""
        while (method !== "thing.shadow") ({ method } = yield* Queue.take(device.received))
      })
    )
  }
  yield* device.disconnect
  if (httpUrl === undefined) return yield* skip(report, "messages over HTTP", "it needs --http-url")
  const overHttp = yield* SimulatedDevice.connectHttp({ ...triple, url: httpUrl })
  yield* works(
    "takes reports over HTTP",
    Effect.asVoid(accepted("PostProperty", overHttp.postProperties({ power: 1 })))
  )
  yield* works("reads the shadow over HTTP", Effect.asVoid(accepted("PostShadow", overHttp.getShadow)))
  yield* works("tells the time over HTTP", Effect.map(overHttp.syncTime, (wrong) => `the clocks differ by ${wrong} ms`))
})
