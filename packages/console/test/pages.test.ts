/**
 * Every page of the console: readable for screen readers, without sideways
 * scrolling, in both themes and both languages; and what each role sees.
 */
import { DeviceName, ProductKey } from "@device-cloud/core"
import { ownerKey } from "@device-cloud/testing/http"
import { MqttDevice } from "@device-cloud/testing/mqtt"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { createRequire } from "node:module"
import { readFileSync } from "node:fs"
import type { Page } from "playwright-core"
import { share } from "../../../vitest.storages.ts"
import { freePort, hasBrowser, launch, open, serve, signIn } from "./ConsolePage.ts"

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")

const model = {
  properties: [
    { id: "Temperature", name: "Temperature", accessMode: "r", dataType: { type: "float", unit: "°C" } },
    { id: "PowerSwitch", name: "Power", accessMode: "rw", dataType: { type: "bool", specs: { 0: "off", 1: "on" } } },
    { id: "LastSeen", name: "Last seen", accessMode: "rw", dataType: { type: "date" } }
  ],
  events: [{ id: "Error", name: "Error", eventType: "error", outputData: [] }],
  services: [{ id: "Restart", name: "Restart", callType: "async", inputData: [], outputData: [] }]
}

/** The `data` of a response: a test looks into whatever came. */
// oxlint-disable-next-line typescript/no-explicit-any
type Answer = Readonly<Record<string, any>>

/** A server with something on each page. */
const furnished = Effect.gen(function*() {
  const [http, mqtt] = [yield* freePort, yield* freePort]
  const site = `http://127.0.0.1:${http}`
  yield* serve({ STORAGE: "memory", HTTP_PORT: String(http), MQTT_PORT: String(mqtt) })
  const call = (method: string, path: string, body?: object) =>
    Effect.promise(async () => {
      const response = await fetch(`${site}/openapi/v1${path}`, {
        method,
        headers: { authorization: `Bearer ${ownerKey}`, "content-type": "application/json" },
        ...body === undefined ? {} : { body: JSON.stringify(body) }
      })
      const { code, data, message } = await response.json() as {
        readonly code: number
        readonly message: string
        readonly data: never
      }
      assert.strictEqual(code, 0, message)
      return data as Answer
    })
  const product = (name: string, node_type: string) =>
    Effect.map(
      call("POST", "/products", {
        name,
        node_type,
        network_type: "wifi",
        validate_type: "weak",
        data_format: "json",
        auth_type: "secret"
      }),
      ({ product_info }) => product_info.product_key as string
    )
  const key = yield* product("Thermostat", "direct")
  const gateways = yield* product("Hub", "gateway")
  yield* call("POST", `/products/${key}/thing-model`, { model_type: "metadata", model_data: JSON.stringify(model) })
  const hub = yield* call("POST", `/products/${gateways}/things`, { device_name: "hub01" })
  yield* call("POST", `/products/${key}/batch-things`, { num: 30, desc: "first" })
  const device = yield* call("POST", `/products/${key}/things`, { device_name: "thermostat01" })
  const scene = yield* call("POST", "/rule-engine/scenes", {
    name: "Too hot",
    status: "enable",
    triggers: [{
      URI: "trigger/device/property",
      params: { product_key: key, device_name: "*", property_id: "Temperature", compare_type: ">", compare_val: "30" }
    }, { URI: "trigger/cron", params: { cron: "0 0 7 * * *" } }],
    actions: [{ URI: "action/device/property", params: { device_id: device["device_id"], items: { PowerSwitch: 1 } } }]
  })
  const firmware = yield* call("POST", `/products/${key}/ota/firmwares`, {
    name: "Thermostat",
    version: "1.1.0",
    oss_path: "https://example.com/firmware.bin",
    algorithms: 1,
    hash: "93230c3bde425a9d7984a594ac55ea1e"
  })
  const { task_id } = yield* call("POST", `/ota/firmwares/${firmware["id"]}/upgrade-tasks`, { scope_mode: 0 })
  const network = yield* call("POST", "/mesh/networks")
  yield* call("PUT", `/products/${key}/configuration`, { format: "json", content: "{}" })
  const group = yield* call("POST", "/device-groups", { name: "Hall" })
  yield* call("POST", `/device-groups/${group["group_id"]}/things`, { device_ids: [device["device_id"]] })
  const certified = yield* call("POST", "/products", {
    name: "Lock",
    node_type: "direct",
    network_type: "wifi",
    validate_type: "none",
    data_format: "raw",
    auth_type: "certificate"
  })
  const lock = yield* call("POST", `/products/${certified["product_info"].product_key}/things`, {
    device_name: "lock01"
  })
  yield* call("POST", `/things/${lock["device_id"]}/certificates`, { valid_days: 30 })
  const pushed = yield* call("POST", "/subscriptions", { name: "Push", webhook: { url: "https://hooks.invalid/" } })
  const job = yield* call("POST", "/jobs", { name: "Calibrate", document: { zero: true }, product_key: key })
  const connected = yield* MqttDevice.connectTo({ url: `mqtt://127.0.0.1:${mqtt}` }, {
    productKey: ProductKey.make(key),
    deviceName: DeviceName.make("thermostat01"),
    deviceSecret: device["device_secret"]!
  })
  yield* connected.post({ Temperature: 31, PowerSwitch: 0 }, { qos: 1 })
  yield* connected.say("thing/ota/progress", { id: "1", params: { step: "-1", desc: "no space left" } })
  const post = (values: Readonly<Record<string, unknown>>) => connected.post(values, { qos: 1 })
  const keyOf = (name: string, scopes: object) =>
    Effect.map(call("POST", "/access-keys", { name, role: "operator", scopes }), (made) => made["key"] as string)
  const viewer = yield* call("POST", "/access-keys", { name: "dashboard", role: "viewer" })
  const at = (path: string) => `/console${path}`
  const d = `/devices/${device["device_id"]}`
  return {
    site,
    device: at(d),
    connect: at(`/devices/connect?product=${key}&device=${device["device_id"]}`),
    product: at(`/products/${key}`),
    hub: at(`/devices/${hub["device_id"]}`),
    scene: at(`/scenes/${scene["id"]}`),
    viewerKey: viewer["key"] as string,
    ofProductKey: yield* keyOf("product", { products: [key] }),
    ofProductsKey: yield* keyOf("products", { products: [certified["product_info"].product_key, key] }),
    withoutEventsKey: yield* keyOf("no events", { actions: ["devices:read", "thingModels:read"] }),
    post,
    report: (temperature: number) => post({ Temperature: temperature }),
    secret: device["device_secret"] as string,
    pages: [
      "",
      "/products",
      `/products/${key}`,
      `/products/${key}/model`,
      `/products/${key}/versions`,
      `/products/${key}/configuration`,
      `/products/${certified["product_info"].product_key}/codec`,
      "/devices",
      "/devices?view=groups",
      `/devices?view=groups&group=${group["group_id"]}`,
      `/devices?view=batches&product=${key}`,
      "/devices?view=bulk",
      "/devices?view=authorities",
      `/devices/connect?product=${key}&device=${device["device_id"]}`,
      ...["", "/data", "/shadow", "/control", "/commands", "/events", "/firmware", "/trace", "/diagnosis"].map((tab) =>
        `${d}${tab}`
      ),
      "/firmware",
      `/firmware/${firmware["id"]}`,
      `/firmware/${firmware["id"]}/campaigns/${task_id}`,
      "/scenes",
      "/scenes/new",
      ...["", "/dry", "/executions", "/picture"].map((tab) => `/scenes/${scene["id"]}${tab}`),
      `/gateways?product=${gateways}`,
      "/mesh",
      `/mesh/${network["network_key"]}`,
      "/jobs",
      `/jobs/${job["job_id"]}`,
      "/events",
      "/subscriptions",
      `/subscriptions/${pushed["subscription_id"]}`,
      "/keys",
      "/projects",
      "/audit",
      "/nowhere"
    ].map(at)
  }
})

/**
 * Opens a page: `npm test` by a link in the console, `npm run fuzz` by its address. It
 * is there when this returns.
 */
const visit = async (page: Page, site: string, path: string) => {
  if (share > 1 && page.url().startsWith(site)) await page.evaluate(follow(path))
  else await page.goto(`${site}${path}`)
  await page.locator("main:not([aria-busy=true]) h1").waitFor()
  await page.locator("main:not(:has(.loading))").waitFor()
}

/** Follows a link. Ends when the console has taken up the address, and has perhaps begun to load the page. */
const follow = (path: string) =>
  `new Promise((resolve) => {
    const link = document.createElement("a")
    link.href = ${JSON.stringify(path)}
    document.body.append(link)
    link.click()
    link.remove()
    requestAnimationFrame(() => requestAnimationFrame(resolve))
  })`

/** What axe finds serious or worse, as text. */
const violations = (page: Page): Promise<ReadonlyArray<string>> =>
  page.evaluate(`axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) =>
    violations
      .filter(({ impact }) => impact === "serious" || impact === "critical")
      .map(({ id, nodes }) => id + ": " + nodes[0].html))`)

const looks = [
  { viewport: { width: 1280, height: 900 }, colorScheme: "light", locale: "en-US" },
  { viewport: { width: 390, height: 844 }, colorScheme: "dark", locale: "zh-CN" }
] as const

/** `npm test` opens each page in one of two ways, `npm run fuzz` in both. */
const halfOf = (pages: ReadonlyArray<string>, half: number) =>
  share === 1 ? pages : pages.filter((_, i) => i % 2 === half)

it.live.runIf(hasBrowser)(
  "every page is accessible and fits its window, in both themes and languages",
  () =>
    Effect.gen(function*() {
      const { pages, site } = yield* furnished
      const browser = yield* launch
      const findings: Array<string> = []
      for (const [i, look] of looks.entries()) {
        // The policy of the page admits no script but its own; axe is one.
        const { context, errors, page } = yield* open(browser, { ...look, bypassCSP: true })
        yield* Effect.promise(async () => {
          await context.request.post(`${site}/openapi/v1/browser-sessions`, {
            headers: { "x-csrf-protection": "1" },
            data: { access_key: ownerKey }
          })
          for (const path of halfOf(pages, i)) {
            await visit(page, site, path)
            if (share === 1 || path === pages[i]) await page.evaluate(axe)
            const where = `${look.locale} ${path}`
            findings.push(...(await violations(page)).map((violation) => `${where}: ${violation}`))
            const isWide = await page.evaluate<boolean>(
              "document.documentElement.scrollWidth > document.documentElement.clientWidth"
            )
            if (isWide) findings.push(`${where}: scrolls sideways`)
            const [words, named] = look.locale === "zh-CN"
              ? ["时间", /：(最小|没有数据)/]
              : ["Time", /: (from|no values)/]
            for (const plot of await page.locator(".plot").all()) {
              assert.include(await plot.locator(".u-label").first().textContent(), words, where)
              assert.match((await plot.getAttribute("aria-label"))!, named, where)
            }
          }
        })
        findings.push(...errors)
      }
      assert.deepStrictEqual(findings, [])
    }).pipe(Effect.scoped),
  240_000
)

it.live.runIf(hasBrowser)(
  "a viewer sees no secrets, and no buttons that would be refused",
  () =>
    Effect.gen(function*() {
      const { device, pages, scene, secret, site, viewerKey } = yield* furnished
      const { page } = yield* open(yield* launch)
      const refused: Array<string> = []
      page.on("response", (response) => {
        if (response.status() === 403) refused.push(response.url())
      })
      yield* Effect.promise(async () => {
        await signIn(page, site, viewerKey)
        for (const path of halfOf(pages, 1)) {
          await visit(page, site, path)
          assert.notInclude(await page.content(), secret, path)
        }
        await visit(page, site, device)
        assert.strictEqual(await page.getByRole("button", { name: /Delete|Disable|Enable|New / }).count(), 0)
        await visit(page, site, "/console/products")
        assert.strictEqual(await page.getByRole("button", { name: "New product" }).count(), 0)
        await visit(page, site, `${scene}/dry`)
        await page.getByText("This needs the role operator").waitFor()
        assert.strictEqual(await page.getByRole("button", { name: "Try it" }).count(), 0)
      })
      assert.deepStrictEqual(refused, [])
    }).pipe(Effect.scoped),
  120_000
)

it.live.runIf(hasBrowser)(
  "a key of some products sees them, their devices and their firmware",
  () =>
    Effect.gen(function*() {
      const { ofProductsKey, site } = yield* furnished
      const { errors, page } = yield* open(yield* launch)
      const refused: Array<string> = []
      page.on("response", (response) => {
        if (response.status() === 403) refused.push(response.url())
      })
      const link = (name: string) => page.locator("main").getByRole("link", { name, exact: true })
      yield* Effect.promise(async () => {
        await signIn(page, site, ofProductsKey)
        for (const path of ["", "/products"]) {
          await visit(page, site, `/console${path}`)
          await link("Thermostat").waitFor()
          assert.deepStrictEqual([await link("Lock").count(), await link("Hub").count()], [1, 0])
        }
        assert.strictEqual(await page.getByRole("button", { name: "New product" }).count(), 0)
        // One product at a time: the first, until another is chosen.
        await visit(page, site, "/console/devices")
        await link("lock01").waitFor()
        await page.getByLabel("Product", { exact: true }).selectOption({ label: "Thermostat" })
        await link("thermostat01").waitFor()
        await visit(page, site, "/console/events")
        await visit(page, site, "/console/firmware")
        await page.getByLabel("Product", { exact: true }).selectOption({ label: "Thermostat" })
        await page.getByText("1.1.0").waitFor()
      })
      assert.deepStrictEqual([...refused, ...errors], [])
    }).pipe(Effect.scoped),
  120_000
)

it.live.runIf(hasBrowser)(
  "a key of some products sees their devices live; one that reads no events is not told that the server is away",
  () =>
    Effect.gen(function*() {
      const { connect, device, ofProductKey, ofProductsKey, report, site, withoutEventsKey } = yield* furnished
      const browser = yield* launch
      const { errors, page } = yield* open(browser)
      const streamed = (page: Page) =>
        page.waitForResponse((response) => response.url().includes("/openapi/v1/events?"))
      yield* Effect.promise(async () => {
        await signIn(page, site, ofProductKey)
        const opened = streamed(page)
        await visit(page, site, device)
        assert.strictEqual((await opened).status(), 200)
      })
      yield* report(17.25)
      yield* Effect.promise(() => page.getByText(/17\.25/).first().waitFor())

      const several = yield* open(browser)
      yield* Effect.promise(async () => {
        await signIn(several.page, site, ofProductsKey)
        for (const path of [connect, device, `${device}/data`]) {
          const opened = streamed(several.page)
          await visit(several.page, site, "/console/keys")
          await visit(several.page, site, path)
          assert.strictEqual((await opened).status(), 200, path)
        }
        await visit(several.page, site, device)
      })
      yield* report(18.25)
      yield* Effect.promise(() => several.page.getByText(/18\.25/).first().waitFor())

      const other = yield* open(browser)
      yield* Effect.promise(async () => {
        await signIn(other.page, site, withoutEventsKey)
        const banner = other.page.getByText(/^The connection to the server is lost/).waitFor().then(() => "lost")
        banner.catch(() => undefined)
        // The stream is refused, and so is the request that asks why.
        const refused = streamed(other.page).then(() => streamed(other.page)).then((response) => response.finished())
        await visit(other.page, site, device)
        assert.strictEqual(await Promise.race([banner, refused]), null)
        await other.page.evaluate(
          "new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))"
        )
        assert.strictEqual(await other.page.getByText(/^The connection to the server is lost/).count(), 0)
      })
      assert.deepStrictEqual([...errors, ...several.errors, ...other.errors], [])
    }).pipe(Effect.scoped),
  120_000
)

it.live.runIf(hasBrowser)(
  "a window notices who signs in and out in another one",
  () =>
    Effect.gen(function*() {
      const { site, viewerKey } = yield* furnished
      const { context, errors, page } = yield* open(yield* launch)
      yield* Effect.promise(async () => {
        const create = page.getByRole("button", { name: "New product" })
        const ended = page.getByText(/^Your session has ended/)
        const other = await context.newPage()
        await other.goto(`${site}/console/products`)
        await other.getByLabel("Access key").waitFor()
        await signIn(page, site)
        await visit(page, site, "/console/products")
        await create.waitFor()
        // The other one asked for a key, and needs none any more.
        await other.getByRole("button", { name: "Sign out" }).click()
        await ended.waitFor()
        await other.getByLabel("Access key").fill(viewerKey)
        await other.getByRole("button", { name: "Sign in" }).click()
        await page.getByText("dashboard (viewer)").waitFor()
        assert.deepStrictEqual([await ended.count(), await create.count()], [0, 0])
      })
      assert.deepStrictEqual(errors, [])
    }).pipe(Effect.scoped),
  120_000
)

it.live.runIf(hasBrowser)(
  "a scene takes the days of a window as they are typed, and a dry run names values that are not JSON",
  () =>
    Effect.gen(function*() {
      const { errors, page } = yield* open(yield* launch)
      const { scene, site } = yield* furnished
      yield* Effect.promise(async () => {
        await signIn(page, site)
        await visit(page, site, scene)
        await page.getByLabel("Add a condition").selectOption("condition/time/window")
        await page.getByRole("button", { name: "Add", exact: true }).nth(1).click()
        await page.getByLabel("Days").focus()
        await page.keyboard.type("mon, tue,fri")
        assert.strictEqual(await page.getByLabel("Days").inputValue(), "mon, tue,fri")
        await page.getByRole("button", { name: "Save", exact: true }).click()
        await page.getByText("The scene is saved").waitFor()
        await page.reload()
        await page.getByLabel("Days").waitFor()
        assert.strictEqual(await page.getByLabel("Days").inputValue(), "mon, tue, fri")

        await visit(page, site, `${scene}/dry`)
        await page.getByLabel("Reported values as JSON").fill("{Temperature: 31}")
        await page.getByText("This is not a JSON object").waitFor()
        assert.strictEqual(await page.getByRole("button", { name: "Try it" }).getAttribute("aria-disabled"), "true")
      })
      assert.deepStrictEqual(errors, [])
    }).pipe(Effect.scoped),
  120_000
)

it.live.runIf(hasBrowser)(
  "the events page takes a type that there is not for none, and filters that are refused for no lost connection",
  () =>
    Effect.gen(function*() {
      const { errors, page } = yield* open(yield* launch)
      const { report, site } = yield* furnished
      const lost = page.getByText(/^The connection to the server is lost/)
      yield* Effect.promise(async () => {
        await signIn(page, site)
        const opened = page.waitForResponse((response) => response.url().includes("/openapi/v1/events?"))
        await visit(page, site, "/console/events?type=unknown")
        assert.strictEqual((await opened).status(), 200)
      })
      yield* report(19.25)
      yield* Effect.promise(async () => {
        await page.getByText("19.25").waitFor()

        const refused = page.waitForResponse((response) => response.status() === 400)
          .then(() => page.waitForResponse((response) => response.status() === 400))
          .then((response) => response.finished())
        await page.getByLabel("Device id").fill("d".repeat(129))
        const banner = lost.waitFor().then(() => "lost")
        banner.catch(() => undefined)
        assert.strictEqual(await Promise.race([banner, refused]), null)
        await page.evaluate("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))")
        assert.strictEqual(await lost.count(), 0)
      })
      assert.deepStrictEqual(errors, [])
    }).pipe(Effect.scoped),
  120_000
)

it.live.runIf(hasBrowser)(
  "the form of a model stands beside labels that are half written",
  () =>
    Effect.gen(function*() {
      const { errors, page } = yield* open(yield* launch)
      const { product, site } = yield* furnished
      yield* Effect.promise(async () => {
        await signIn(page, site)
        await visit(page, site, `${product}/model`)
        const source = {
          properties: [{ id: "Mode", name: "Mode", accessMode: "rw", dataType: { type: "enum", specs: null } }]
        }
        await page.getByLabel("The model as JSON").fill(JSON.stringify(source))
        await page.getByRole("button", { name: "Edit Mode" }).click()
        await page.getByRole("dialog").getByLabel("Name (required)").fill("Way")
        await page.getByRole("dialog").getByRole("button", { name: "Save" }).click()
        await page.getByText("Way", { exact: true }).waitFor()
      })
      assert.deepStrictEqual(errors, [])
    }).pipe(Effect.scoped),
  120_000
)

it.live.runIf(hasBrowser)(
  "a firmware that is refused is corrected without another upload",
  () =>
    Effect.gen(function*() {
      const { errors, page } = yield* open(yield* launch)
      const { site } = yield* furnished
      const uploads: Array<string> = []
      page.on("request", (request) => {
        if (request.url().includes("/oss/ota/")) uploads.push(request.url())
      })
      yield* Effect.promise(async () => {
        await signIn(page, site)
        await visit(page, site, "/console/firmware")
        await page.getByRole("button", { name: "New firmware" }).click()
        const dialog = page.getByRole("dialog")
        const file = (text: string) =>
          dialog.locator("input[type=file]").setInputFiles({
            name: "firmware.bin",
            mimeType: "application/octet-stream",
            buffer: Buffer.from(text)
          })
        await dialog.getByLabel("Product").selectOption({ label: "Thermostat" })
        await file("first")
        await dialog.getByLabel("Name (required)").fill("Thermostat")
        await dialog.getByLabel("Version (required)").fill("two")
        const create = dialog.getByRole("button", { name: "Create" })
        const refusal = () => page.waitForResponse((response) => response.status() === 400)
        await Promise.all([refusal(), create.click()])
        await dialog.getByRole("alert").waitFor()
        await Promise.all([refusal(), create.click()])
        assert.strictEqual(uploads.length, 1)
        // Another file is another upload.
        await file("second")
        await dialog.getByLabel("Version (required)").fill("2.0.0")
        await create.click()
        await page.getByRole("button", { name: "New campaign" }).waitFor()
        assert.strictEqual(uploads.length, 2)
      })
      assert.deepStrictEqual(errors, [])
    }).pipe(Effect.scoped),
  120_000
)

it.live.runIf(hasBrowser)(
  "a scene that is disabled while it is edited stays disabled when it is saved",
  () =>
    Effect.gen(function*() {
      const { errors, page } = yield* open(yield* launch)
      const { scene, site } = yield* furnished
      yield* Effect.promise(async () => {
        await signIn(page, site)
        await visit(page, site, scene)
        await page.getByLabel("Description").fill("Cools the hall")
        await page.getByRole("button", { name: "Disable", exact: true }).click()
        const enable = page.getByRole("button", { name: "Enable", exact: true })
        await enable.waitFor()
        await page.getByRole("button", { name: "Save", exact: true }).click()
        await page.getByText("The scene is saved").waitFor()
        await page.reload()
        await enable.waitFor()
        assert.strictEqual(await page.getByLabel("Description").inputValue(), "Cools the hall")
      })
      assert.deepStrictEqual(errors, [])
    }).pipe(Effect.scoped),
  120_000
)

it.live.runIf(hasBrowser)(
  "the latest time that a device or a scene can name breaks no form, east of Greenwich either",
  () =>
    Effect.gen(function*() {
      const { errors, page } = yield* open(yield* launch, { timezoneId: "Asia/Shanghai" })
      const { device, post, scene, site } = yield* furnished
      yield* post({ LastSeen: "8640000000000000" })
      yield* Effect.promise(async () => {
        await signIn(page, site)
        await visit(page, site, `${device}/control`)
        assert.strictEqual(await page.getByLabel("Last seen", { exact: true }).inputValue(), "")
        await page.route(/\/rule-engine\/scenes\/\w+$/, async (route) => {
          const response = await route.fetch()
          const body = await response.json()
          const time_range = { start_timestamp: 0, end_timestamp: 8_640_000_000_000 }
          body.data.conditions = [{ URI: "condition/time/range", params: { time_range } }]
          await route.fulfill({ response, json: body })
        })
        await visit(page, site, scene)
        assert.strictEqual(await page.getByLabel("Until").inputValue(), "")
      })
      assert.deepStrictEqual(errors, [])
    }).pipe(Effect.scoped),
  120_000
)

it.live.runIf(hasBrowser)(
  "what is desired as JSON is what one types: what is left out goes",
  () =>
    Effect.gen(function*() {
      const { errors, page } = yield* open(yield* launch)
      const { hub, site } = yield* furnished
      yield* Effect.promise(async () => {
        await signIn(page, site)
        await visit(page, site, `${hub}/shadow`)
        const dialog = page.getByRole("dialog")
        const desire = async (text: string) => {
          await page.getByRole("button", { name: "Edit what is desired" }).click()
          await dialog.locator("textarea").fill(text)
          await dialog.getByRole("button", { name: "Save" }).click()
          await dialog.waitFor({ state: "detached" })
        }
        await desire(`{"Speed": 1, "Mode": 2}`)
        await page.getByRole("row").filter({ hasText: "Mode" }).waitFor()
        await desire(`{"Speed": 1}`)
        await page.getByRole("row").filter({ hasText: "Mode" }).waitFor({ state: "detached" })
        assert.strictEqual(await page.getByRole("row").filter({ hasText: "Speed" }).count(), 1)

        await page.getByRole("button", { name: "Edit what is desired" }).click()
        const values = dialog.locator("textarea")
        await values.fill(`{"Speed": 3}`)
        await values.press("End")
        await values.press("ArrowLeft")
        await page.keyboard.type(`, "Mode": 2`)
        assert.strictEqual(await values.inputValue(), `{"Speed": 3, "Mode": 2}`)
        const save = dialog.getByRole("button", { name: "Save" })
        for (const none of ["[]", "[5]", "null", ""]) {
          await values.fill(none)
          assert.strictEqual(await values.inputValue(), none)
          assert.strictEqual(await save.getAttribute("aria-disabled"), "true", none)
        }
        await dialog.getByText("This is not a JSON object").waitFor()

        // What somebody else desires meanwhile stays, also when one types after hearing of it.
        await values.fill(`{"Speed": 3}`)
        await fetch(`${site}/openapi/v1/things/${hub.split("/").at(-1)}/shadow`, {
          method: "PUT",
          headers: { authorization: `Bearer ${ownerKey}`, "content-type": "application/json" },
          body: JSON.stringify({ state: { desired: { Speed: 2, Fan: 7 } } })
        })
        await save.click()
        await dialog.getByRole("alert").waitFor()
        assert.deepStrictEqual(JSON.parse(await values.inputValue()), { Speed: 3, Fan: 7 })
        await values.fill((await values.inputValue()).replace("3", "4"))
        await save.click()
        await dialog.waitFor({ state: "detached" })
        await page.getByRole("row").filter({ hasText: "Fan" }).waitFor()
      })
      assert.deepStrictEqual(errors, [])
    }).pipe(Effect.scoped),
  120_000
)

it.live.runIf(hasBrowser)(
  "a list goes back to its last page, and says what could not be done",
  () =>
    Effect.gen(function*() {
      const { errors, page } = yield* open(yield* launch)
      const { site } = yield* furnished
      yield* Effect.promise(async () => {
        await signIn(page, site)
        await visit(page, site, "/console/devices?page=99")
        await page.getByText(/^Page 2 of 2$/).waitFor()
        assert.isAbove(await page.locator("tbody tr").count(), 0)
        assert.strictEqual(new URL(page.url()).searchParams.get("page"), "2")

        await page.locator("tbody input[type=checkbox]").first().check()
        await page.route(/\/openapi\/v1\/things\//, (route) => route.abort())
        await page.getByRole("toolbar").getByRole("button", { name: "Enable" }).click()
        await page.getByText(/^0 done, 1 failed: The server cannot be reached/).waitFor()
      })
      assert.deepStrictEqual(errors, [])
    }).pipe(Effect.scoped),
  120_000
)

it.live.runIf(hasBrowser)(
  "a form does not send a time or a number that is half typed",
  () =>
    Effect.gen(function*() {
      const { errors, page } = yield* open(yield* launch)
      const { product, site } = yield* furnished
      const sent: Array<string> = []
      page.on("request", (request) => {
        if (request.method() !== "GET") sent.push(`${request.method()} ${request.url()}`)
      })
      yield* Effect.promise(async () => {
        await signIn(page, site)
        await page.waitForLoadState("networkidle")
        sent.length = 0
        const dialog = page.getByRole("dialog")

        await visit(page, site, "/console/keys")
        await page.getByRole("button", { name: "New access key" }).click()
        await dialog.getByLabel("Name").fill("half")
        await dialog.getByLabel("Ends").focus()
        await page.keyboard.type("12")
        await dialog.getByRole("button", { name: "Create" }).click()
        assert.strictEqual(await dialog.count(), 1)
        // A year has four digits.
        await dialog.getByLabel("Ends").fill("")
        await dialog.getByLabel("Ends").focus()
        await page.keyboard.type("123120261130AM")
        assert.strictEqual(await dialog.getByLabel("Ends").inputValue(), "2026-12-31T11:30")

        await visit(page, site, product)
        const history = page.locator(".card").filter({ has: page.getByRole("heading", { name: "History" }) })
        await history.getByRole("button", { name: "Edit" }).click()
        await dialog.locator("input[type=number]").focus()
        await page.keyboard.type("3e")
        await dialog.getByRole("button", { name: "Save" }).click()
        assert.strictEqual(await dialog.count(), 1)
      })
      assert.deepStrictEqual([...sent, ...errors], [])
    }).pipe(Effect.scoped),
  120_000
)

it.live.runIf(hasBrowser)(
  "a subscription that begins at a time is not created without one",
  () =>
    Effect.gen(function*() {
      const { errors, page } = yield* open(yield* launch)
      const { site } = yield* furnished
      yield* Effect.promise(async () => {
        await signIn(page, site)
        await visit(page, site, "/console/subscriptions")
        await page.getByRole("button", { name: "New subscription" }).click()
        const dialog = page.getByRole("dialog")
        await dialog.getByLabel("Name").fill("reader")
        await dialog.locator("select").first().selectOption("time")
        const create = dialog.getByRole("button", { name: "Create" })
        assert.strictEqual(await create.getAttribute("aria-disabled"), "true")
        await dialog.locator("input[type=datetime-local]").fill("2026-01-01T00:00")
        await create.click()
        await page.getByText("Saved").waitFor()
      })
      assert.deepStrictEqual(errors, [])
    }).pipe(Effect.scoped),
  120_000
)
