/**
 * The story of somebody who is new: from signing in to a device that obeys, an
 * upgrade and a scene, with a real device on MQTT.
 */
import { DeviceName, ProductKey } from "@device-cloud/core"
import { ownerKey } from "@device-cloud/testing/http"
import { MqttDevice } from "@device-cloud/testing/mqtt"
import { assert, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { freePort } from "../../../vitest.ports.ts"
import { hasBrowser, launch, open, serve, signIn, signInAtForm, streamed } from "./ConsolePage.ts"

const directory = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "device-cloud-console-"))),
  (path) => Effect.promise(() => rm(path, { recursive: true, force: true }))
)

const start = Effect.gen(function*() {
  const http = yield* freePort
  const mqtt = yield* freePort
  const variables = {
    STORAGE: "sqlite",
    DATA_DIR: yield* directory,
    HTTP_PORT: String(http),
    MQTT_PORT: String(mqtt)
  }
  return { site: `http://127.0.0.1:${http}`, mqtt: `mqtt://127.0.0.1:${mqtt}`, variables }
})

const api = (site: string, path: string, init: RequestInit = {}) =>
  Effect.promise(async () => {
    const response = await fetch(`${site}/openapi/v1${path}`, {
      ...init,
      headers: { authorization: `Bearer ${ownerKey}`, "content-type": "application/json" }
    })
    // A test looks into whatever came.
    // oxlint-disable-next-line typescript/no-explicit-any
    return (await response.json() as { readonly data: any }).data
  })

it.live.runIf(hasBrowser)(
  "somebody who is new gets from signing in to a device that obeys",
  () =>
    Effect.gen(function*() {
      const { mqtt, site, variables } = yield* start
      yield* serve(variables)
      const { errors, page } = yield* open(yield* launch)

      yield* Effect.promise(async () => {
        await signInAtForm(page, site)

        // A product with its model.
        await page.getByRole("link", { name: "Products", exact: true }).click()
        await page.getByRole("button", { name: "New product" }).click()
        await page.getByLabel("Name (required)").fill("Thermostat")
        await page.getByRole("button", { name: "Create" }).click()
        await page.getByRole("button", { name: "Add a property" }).click()
        await page.getByLabel("Id (required)").fill("Temperature")
        await page.getByLabel("Name (required)").fill("Temperature")
        await page.getByRole("button", { name: "Save", exact: true }).click()
        await page.getByText("The model is valid.").waitFor()
        await page.getByRole("button", { name: "Save the model" }).click()
        await page.getByText("Saved as version 1").waitFor()

        // A device, which waits for its first message.
        await page.getByRole("link", { name: "Overview", exact: true }).first().click()
        await page.getByRole("link", { name: "Devices", exact: true }).click()
        await page.getByRole("link", { name: "Connect a device" }).first().click()
        await page.getByLabel("Product").selectOption({ label: "Thermostat" })
        await page.getByLabel("Device name").fill("thermostat01")
        await page.getByRole("button", { name: "Create", exact: true }).click()
        await page.getByText("Waiting for the first message of this device…").waitFor()
      })

      const { results: [device] } = yield* api(site, "/things")
      const connected = yield* MqttDevice.connectTo({ url: mqtt }, {
        productKey: ProductKey.make(device!["product_key"]!),
        deviceName: DeviceName.make("thermostat01"),
        deviceSecret: device!["device_secret"]!
      })
      connected.client.on("message", (topic, payload) => {
        if (!topic.endsWith("/thing/service/property/set")) return
        const { id, params } = JSON.parse(payload.toString())
        connected.client.publish(`${topic}_reply`, JSON.stringify({ id, code: 200, data: {} }), { qos: 1 })
        connected.client.publish(
          connected.topic("thing/event/property/post"),
          JSON.stringify({ id: "9", version: "1.0", params }),
          { qos: 1 }
        )
      })
      yield* connected.post({ Temperature: 21.5 }, { qos: 1 })

      yield* Effect.promise(async () => {
        await page.getByText("It works: the first message is here.").waitFor()

        // Its value, live, and its plot.
        await page.getByRole("link", { name: "To the device" }).click()
        await page.getByText("21.5").first().waitFor()
        await page.getByRole("link", { name: "Data", exact: true }).click()
        await page.locator(".plot canvas").first().waitFor()

        // What one sets, the device confirms and reports.
        await page.getByRole("link", { name: "Control", exact: true }).click()
        await page.getByLabel("Temperature", { exact: true }).fill("25")
        await page.getByRole("button", { name: "Set 1 property" }).click()
        await page.getByText("succeeded").first().waitFor()
        await page.getByRole("link", { name: "Overview", exact: true }).last().click()
        await page.getByText("25", { exact: true }).first().waitFor()

        // A scene, tried before anything happens.
        await page.getByRole("link", { name: "Scenes", exact: true }).click()
        await page.getByRole("link", { name: "New scene" }).click()
        await page.getByLabel("Name (required)").fill("Too hot")
        await page.getByLabel("Add a trigger").selectOption("trigger/device/property")
        await page.getByRole("button", { name: "Add: Triggers" }).click()
        await page.getByLabel("Product", { exact: true }).selectOption({ label: "Thermostat" })
        await page.getByLabel("Property", { exact: true }).selectOption("Temperature")
        await page.getByLabel("Comparison").selectOption(">")
        await page.getByLabel("Value", { exact: true }).fill("30")
        await page.getByRole("button", { name: "Save", exact: true }).click()
        await page.getByText("The scene is saved").waitFor()
        await page.getByRole("link", { name: "Dry run" }).click()
        await page.getByLabel("Device name").fill("thermostat01")
        await page.getByLabel("Reported values as JSON").fill(`{"Temperature": 31}`)
        await page.getByRole("button", { name: "Try it" }).click()
        await page.getByText("The scene would fire.").waitFor()
        await page.getByRole("link", { name: "Executions" }).click()
        await page.getByText("The scene has not been carried out yet").waitFor()
      })
      yield* connected.post({ Temperature: 31 }, { qos: 1, id: "10" })
      yield* Effect.promise(() => page.getByText("succeeded").first().waitFor())

      // An upgrade, from the file to the device that runs it.
      yield* connected.say("thing/ota/inform", { id: "11", params: { version: "1.0.0" } })
      yield* Effect.promise(async () => {
        await page.getByRole("link", { name: "Firmware", exact: true }).click()
        await page.getByRole("button", { name: "New firmware" }).click()
        await page.getByRole("dialog").getByLabel("Product").selectOption({ label: "Thermostat" })
        await page.getByLabel("File").setInputFiles({
          name: "firmware.bin",
          mimeType: "application/octet-stream",
          buffer: Buffer.from("firmware")
        })
        await page.getByRole("dialog").getByLabel("Name (required)").fill("Thermostat")
        await page.getByLabel("Version (required)").fill("1.1.0")
        await page.getByRole("button", { name: "Create" }).click()
        await page.getByRole("button", { name: "New campaign" }).click()
        await page.getByText("All have been told after about 1 minute, 1,000 a minute.").waitFor()
        await page.getByLabel("Tries again after a failure").fill("0")
        await page.getByRole("button", { name: "Start the campaign" }).click()
        await page.getByRole("heading", { name: /^Campaign \d+$/ }).waitFor()
        await page.getByRole("link", { name: "thermostat01" }).waitFor()
      })

      // It fails: from the reason to the device is a click, and one more.
      yield* connected.say("thing/ota/progress", { id: "12", params: { step: "-1", desc: "no space left" } })
      yield* Effect.promise(async () => {
        await page.getByRole("link", { name: "no space left" }).click()
        await page.getByText("Devices that have failed for this reason: no space left").waitFor()
        await page.locator(".progress rect.bad").waitFor({ state: "attached" })
        await page.getByText("The numbers as a table").click()
        // It may have two rows: the campaign began in another span.
        await page.getByRole("region", { name: "Over time" }).getByRole("cell", { name: "1", exact: true }).first()
          .waitFor()
        await page.getByRole("link", { name: "thermostat01" }).click()
        await page.getByRole("heading", { name: "thermostat01" }).waitFor()
      })
      assert.deepStrictEqual(errors, [])
    }).pipe(Effect.scoped),
  120_000
)

it.live.runIf(hasBrowser)(
  "a server that is away, and a session that ends, lose nothing",
  () =>
    Effect.gen(function*() {
      const { site, variables } = yield* start
      const first = yield* Scope.make()
      yield* Scope.provide(serve(variables), first)
      const { context, page } = yield* open(yield* launch)
      const answered = (status: number) =>
        page.waitForResponse((response) => response.url().includes("/openapi/") && response.status() === status)
      yield* Effect.promise(async () => {
        await signIn(page, site)
        await page.goto(`${site}/console/products`)
        await page.getByRole("button", { name: "New product" }).click()
        await page.getByLabel("Name (required)").fill("Lamp")
      })
      yield* Scope.close(first, Exit.void)
      yield* Effect.promise(async () => {
        await page.getByRole("button", { name: "Create" }).click()
        await page.getByText("The server cannot be reached").waitFor()
      })
      const second = yield* Scope.make()
      yield* Scope.provide(serve(variables), second)
      yield* Effect.promise(async () => {
        await context.clearCookies()
        const refused = answered(401)
        await page.getByRole("button", { name: "Create" }).click()
        await refused
        await page.getByText(/^Your session has ended/).waitFor()
        await page.getByLabel("Access key").fill(ownerKey)
        await page.getByRole("button", { name: "Sign in" }).click()
        await page.getByText(/^Your session has ended/).waitFor({ state: "hidden" })
        assert.strictEqual(await page.getByLabel("Name (required)").inputValue(), "Lamp")
        // The server creates the product, and its response is lost.
        await page.route("**/openapi/v1/products", async (route) => {
          await route.fetch()
          await route.abort()
        }, { times: 1 })
        await page.getByRole("button", { name: "Create" }).click()
        await page.getByText("The server cannot be reached").waitFor()
        await page.getByRole("button", { name: "Create" }).click()
        await page.getByRole("heading", { name: "Lamp" }).waitFor()
        const opened = streamed(page)
        await page.goto(`${site}/console/events?type=lifecycle`)
        await opened
      })
      const { results: [product, ...others] } = yield* api(site, "/products")
      assert.deepStrictEqual(others, [])
      const create = (name: string) =>
        api(site, `/products/${product!["product_key"]}/things`, {
          method: "POST",
          body: JSON.stringify({ device_name: name })
        })
      const row = (name: string) => page.getByRole("row").filter({ hasText: name })
      yield* create("before")
      yield* Effect.promise(() => row("before").waitFor())
      yield* Scope.close(second, Exit.void)
      yield* Effect.promise(() => page.getByText(/^The connection to the server is lost/).waitFor())
      // What happens before the page is back is in it all the same.
      yield* serve(variables)
      yield* create("meanwhile")
      yield* Effect.promise(async () => {
        await page.getByText(/^The connection to the server is lost/).waitFor({ state: "hidden" })
        await row("meanwhile").waitFor()
        assert.strictEqual(await row("before").count(), 1)
      })
      assert.include(page.url(), "type=lifecycle")
    }).pipe(Effect.scoped),
  120_000
)
