/**
 * Whatever is sent, the API answers, as it always does; and what it refuses
 * changes nothing. Each storage has a test file, so that they run beside each other.
 */
import { call, testApi } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { share, type storages } from "../../../../vitest.storages.ts"
import {
  assertNone,
  caseOf,
  complaintsOf,
  concurrency,
  differences,
  seed,
  snapshot,
  undeclaredBy
} from "./Complaints.ts"
import { givenFor, goesOnWorking, makeGiven, newTenant, operations } from "./FuzzedTenant.ts"
import { encode, texts } from "./OddValues.ts"
import * as RawRequest from "./RawRequest.ts"
import { hopelessCases, uncertainCases, wrongSignatureCases } from "./RequestCases.ts"
import { type Case, describe } from "./RequestWriter.ts"
import * as SeededRandom from "./SeededRandom.ts"

/** Milliseconds; for slow machines. */
const timeout = 600_000

/** An address of its own, where the machine has them: many wrong signatures from one are not looked at. */
const addressOf = (i: number): string | undefined =>
  process.platform === "linux" ? `127.1.${i >> 8}.${i & 255}` : undefined

/** Which of the operations, or of other cases, run. */
const isChosen = (_: unknown, i: number): boolean => i % share === 0

/** The tests of the operations on one storage: of cases that may succeed, each runs on one of the storages at most. */
export const testDescribedOperations = ([name, storage]: (typeof storages)[number]): void => {
  const isOurs = (_: Case, i: number) => (i % 2 === 0) === (name === "memory")
  layer(testApi(storage), { excludeTestServices: true })(`fuzzed operations on ${name}`, (it) => {
    it.effect("answers whatever it is asked, and what it refuses changes nothing", () =>
      Effect.gen(function*() {
        const send = yield* RawRequest.make
        const tenant = yield* newTenant
        const complaints: Array<string> = []
        const refused: Array<Case> = []
        const described = new Map((yield* operations).map((of) => [`${of.method} ${of.path}`, of]))
        const ask = Effect.fnUntraced(function*(made: Case) {
          const answer = yield* send(made.request)
          complaints.push(...complaintsOf(made, answer), ...undeclaredBy(described.get(made.operation), made, answer))
          return answer
        })
        const shared = yield* makeGiven(tenant, true)
        const chosen = (yield* operations).filter(isChosen)
        const blocks = yield* Effect.forEach(chosen, (operation) =>
          Effect.gen(function*() {
            const { method, path } = operation
            const givens = [method === "GET" ? shared : yield* makeGiven(tenant, true)]
            // What a model refuses is taken without one.
            if (method === "POST" && /thing-uplink|device_id/.test(path)) givens.push(yield* makeGiven(tenant, false))
            const random = SeededRandom.make(seed)
            return givens.map((given) => uncertainCases(operation, givenFor(operation, given), random).filter(isOurs))
          }), { concurrency })
        yield* Effect.forEach(blocks.flat(), (cases) =>
          Effect.gen(function*() {
            for (const made of cases) {
              const { status, text } = yield* ask(made)
              if (status >= 400) refused.push(made)
              if (status === 200 && made.operation.startsWith("POST") && made.operation.endsWith("/batch-things")) {
                // Not to be read again with each snapshot.
                const path = made.request.path.split("?")[0]!.replace("/openapi/v1", "")
                yield* call("DELETE", `${path}/${JSON.parse(text).data.batch_id}`, { key: tenant.keys.admin })
              }
            }
          }), { concurrency })
        assertNone(complaints)
        assert.isAbove(blocks.flat(2).length, 4000 / share)

        // What was refused once is mostly refused again. Operations of which a request is not are left out.
        const refuse = Effect.fnUntraced(function*(cases: ReadonlyArray<Case>) {
          const accepted = new Set<string>()
          yield* Effect.forEach(
            cases,
            (made) => Effect.map(ask(made), ({ status }) => void (status < 400 && accepted.add(made.operation))),
            { concurrency }
          )
          return cases.filter(({ operation }) => !accepted.has(operation))
        })
        let again = yield* refuse(refused)
        let changes: ReadonlyArray<string> = []
        for (let round = 0; round < 3; round++) {
          const before = yield* snapshot(send, tenant.keys)
          const stillRefused = yield* refuse(again)
          changes = differences(before, yield* snapshot(send, tenant.keys))
          if (stillRefused.length === again.length) break
          again = stillRefused
        }
        assertNone([...complaints, ...changes])
        assert.isAbove(again.length, 1000 / share)
      }).pipe(Effect.scoped), timeout)

    it.effect("refuses what it does not describe, and that changes nothing", () =>
      Effect.gen(function*() {
        const send = yield* RawRequest.make
        const tenant = yield* newTenant
        const given = yield* makeGiven(tenant, true)
        const cases = (yield* operations).flatMap((operation) =>
          hopelessCases(operation, givenFor(operation, given), SeededRandom.make(seed)).filter(isChosen)
        )
        assert.isAbove(cases.length, 4000 / share)
        const before = yield* snapshot(send, tenant.keys)
        const complaints = yield* Effect.forEach(
          cases,
          (made) => Effect.map(send(made.request), (answer) => complaintsOf(made, answer)),
          { concurrency }
        )
        assertNone([...complaints.flat(), ...differences(before, yield* snapshot(send, tenant.keys))])
      }).pipe(Effect.scoped), timeout)

    it.effect("refuses the same at once, and that changes nothing", () =>
      Effect.gen(function*() {
        const send = yield* RawRequest.make
        const tenant = yield* newTenant
        const { values } = yield* makeGiven(tenant, true)
        const { device_id, id, product_key } = values as Readonly<Record<string, string>>
        const { firmware_id, task_id } = values as Readonly<Record<string, ReadonlyArray<number>>>
        const key = { authorization: `Bearer ${tenant.keys.admin}`, "content-type": "application/json" }
        const foreign = { ...key, authorization: `Bearer ${tenant.keys.foreign}` }
        const cases = [
          caseOf("DELETE", `/openapi/v1/products/${product_key}`, key),
          caseOf("DELETE", `/openapi/v1/things/${device_id}`, foreign),
          caseOf("DELETE", `/openapi/v1/access-keys/${id}`, foreign),
          caseOf("PUT", `/openapi/v1/things/${device_id}/shadow`, key, "{\"state\":{\"desired\":{\"unknown\":1}}}"),
          caseOf("POST", `/openapi/v1/things/${device_id}/properties`, key, "{\"params\":{\"power\":5}}"),
          caseOf("POST", `/openapi/v1/things/${device_id}/upgrade`, key, `{"task_id":${task_id![0]}}`),
          caseOf("PUT", `/openapi/v1/ota/verify-tasks/${task_id![0]}`, key, "{\"result\":true}"),
          ...firmware_id!.map((firmware) =>
            caseOf("POST", `/openapi/v1/ota/firmwares/${firmware}/verify-task`, key, "{\"device_ids\":[\"unknown\"]}")
          )
        ]
        const before = yield* snapshot(send, tenant.keys)
        const complaints = yield* Effect.forEach(
          Array.from({ length: 10 }, () => cases).flat(),
          (made) => Effect.map(send(made.request), (answer) => complaintsOf({ ...made, hopeless: true }, answer)),
          { concurrency: "unbounded" }
        )
        assertNone([...complaints.flat(), ...differences(before, yield* snapshot(send, tenant.keys))])
      }).pipe(Effect.scoped))

    it.effect("goes on working", () => goesOnWorking)

    // After this, the address of the test is not looked at for a minute.
    it.effect("refuses wrong signatures, and they change nothing", () =>
      Effect.gen(function*() {
        const send = yield* RawRequest.make
        const tenant = yield* newTenant
        const given = yield* makeGiven(tenant, true)
        const cases = (yield* operations).filter(({ secured }) => !secured).flatMap((operation) =>
          wrongSignatureCases(operation, givenFor(operation, given), SeededRandom.make(seed)).filter(isChosen)
        )
        const { device_name, product_key } = given.values as Readonly<Record<string, string>>
        const fields = { productKey: product_key!, deviceName: device_name!, random: "abcdefgh", sign: "00" }
        const forms = Object.keys({ ...fields, signMethod: "" }).flatMap((name) =>
          texts.map((text) => {
            const form = { ...fields, signMethod: "hmacsha1", [name]: text }
            const body = Object.entries(form).map(([name, value]) => `${name}=${encode(value)}`).join("&")
            const headers = { "content-type": "application/x-www-form-urlencoded" }
            return caseOf("POST", "/auth/register/device", headers, body)
          })
        )
        const before = yield* snapshot(send, tenant.keys)
        const complaints = yield* Effect.forEach(
          cases,
          (made, i) =>
            Effect.map(send({ ...made.request, from: addressOf(i) }), (answer) => complaintsOf(made, answer)),
          { concurrency }
        )
        const told = yield* Effect.forEach(
          forms,
          (made, i) =>
            Effect.map(send({ ...made.request, from: addressOf(cases.length + i) }), ({ status, text }) => {
              const { code, message } = JSON.parse(text)
              const isRefusal = status === 200 && Number.isInteger(code) && code !== 200 && typeof message === "string"
              return isRefusal ? [] : [`${status} ${text} TO ${describe(made)}`]
            }),
          { concurrency }
        )
        assertNone([...complaints.flat(), ...told.flat(), ...differences(before, yield* snapshot(send, tenant.keys))])
      }).pipe(Effect.scoped))
  })
}
