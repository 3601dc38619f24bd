import { connectText, type Device, DeviceAuthenticator, Mac } from "@device-cloud/core"
import { TestCloud } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { endOfAccessToken, makeAccessToken } from "../src/provisioning/AccessToken.ts"

const address = "192.0.2.1"

const issue = Effect.fnUntraced(function*({ deviceName, deviceSecret, productKey }: Device) {
  const text = connectText({ clientId: "lamp", deviceName, productKey })
  const signature = (yield* Mac).sign("hmacsha256", deviceSecret, text)
  const authenticator = yield* DeviceAuthenticator
  return yield* authenticator.issueAccessToken({
    productKey,
    deviceName,
    address,
    clientId: "lamp",
    signMethod: "hmacsha256",
    signature
  })
})

const outcome = ({ deviceName, productKey }: Device, token: string) =>
  Effect.flatMap(
    DeviceAuthenticator,
    (authenticator) => authenticator.authenticateAccessToken({ productKey, deviceName, address, token })
  ).pipe(
    Effect.map(({ deviceId }): string => deviceId),
    Effect.catch(({ _tag }) => Effect.succeed(_tag))
  )

it.effect("a token counts for seven days", () =>
  Effect.gen(function*() {
    const device = yield* (yield* TestCloud).createDevice()
    const token = yield* issue(device)
    const now = yield* Clock.currentTimeMillis
    assert.strictEqual(endOfAccessToken(token), now + 7 * 86_400_000)
    assert.strictEqual(yield* outcome(device, token), device.deviceId)
    const [over, last] = [now, now + 1000].map((end) => (mac: Mac["Service"]) =>
      makeAccessToken(mac, device.deviceSecret, device, end)
    )
    assert.strictEqual(yield* outcome(device, last!(yield* Mac)), device.deviceId)
    assert.strictEqual(yield* outcome(device, over!(yield* Mac)), "AccessTokenExpired")
  }).pipe(Effect.provide(TestCloud.layer)))

it.effect("a token with another end, or one that is none, is wrong", () =>
  Effect.gen(function*() {
    const device = yield* (yield* TestCloud).createDevice()
    const token = yield* issue(device)
    const later = (parseInt(token.slice(0, 8), 16) + 1_000_000).toString(16).padStart(8, "0") + token.slice(8)
    for (const wrong of [later, "", "x".repeat(62), `${token} `]) {
      assert.strictEqual(yield* outcome(device, wrong), "WrongSignature")
    }
  }).pipe(Effect.provide(TestCloud.layer)))
