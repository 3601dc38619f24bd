/**
 * What becomes of what is sent: when it fails, when its dialog is closed meanwhile, when it is sent again.
 */
import { assert } from "@effect/vitest"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Page, Route } from "playwright-core"
import { vi } from "vitest"
import { signIn } from "./ConsolePage.ts"
import { follow, inBrowser, twoFrames, visit } from "./Windows.ts"

/** Holds requests up until `release` says what becomes of them. */
const holdUp = async (page: Page, url: RegExp, method: string) => {
  const fits = (request: { readonly url: () => string; readonly method: () => string }) =>
    url.test(request.url()) && request.method() === method
  const arrived = page.waitForRequest(fits)
  let count = 0
  let release: (end: "continue" | "abort") => void
  const end = new Promise<"continue" | "abort">((resolve) => release = resolve)
  await page.route(url, async (route) => {
    if (!fits(route.request())) return route.fallback()
    count++
    return route[await end]()
  })
  return { arrived, count: () => count, release: release! }
}

/** Saves what is changed on a page. Who leaves it afterwards is not asked. */
const save = async (page: Page) => {
  await page.getByRole("button", { name: "Save", exact: true }).click()
  const isSaved = () => page.evaluate(`dispatchEvent(new Event("beforeunload", { cancelable: true }))`)
  await vi.waitFor(async () => assert.isTrue(await isSaved()), { timeout: 15_000 })
}

/** Fills in the dialog of a new firmware, but does not create it. */
const describeFirmware = async (page: Page, site: string, version: string, content: string) => {
  await visit(page, site, "/console/firmware")
  await page.getByRole("button", { name: "New firmware" }).click()
  const dialog = page.getByRole("dialog")
  await dialog.getByLabel("Product").selectOption({ label: "Thermostat" })
  const choose = (content: string) =>
    dialog.locator("input[type=file]").setInputFiles({
      name: "firmware.bin",
      mimeType: "application/octet-stream",
      buffer: Buffer.from(content)
    })
  await choose(content)
  await dialog.getByLabel("Name (required)").fill("Thermostat")
  await dialog.getByLabel("Version (required)").fill(version)
  return { dialog, choose }
}

inBrowser((inWindow) => {
  inWindow("a product whose model comes from a template is created once, whatever fails", async ({ page, site }) => {
    await signIn(page, site)
    await visit(page, site, "/console/products")
    await page.getByRole("button", { name: "New product" }).click()
    const dialog = page.getByRole("dialog")
    await dialog.getByLabel("Begin with").selectOption({ index: 1 })
    await dialog.getByLabel("Name (required)").fill("From a template")
    await page.route("**/thing-model", (route) => route.abort(), { times: 1 })
    await dialog.getByRole("button", { name: "Create" }).click()
    await dialog.getByText("The server cannot be reached").waitFor()
    await dialog.getByRole("button", { name: "Create" }).click()
    await page.getByText("The model is valid.").waitFor()
    await visit(page, site, "/console/products")
    assert.strictEqual(await page.getByRole("link", { name: "From a template" }).count(), 1)
  })

  inWindow(
    "a product that is written anew once its model has failed takes the place of the one before",
    async (window) => {
      const { call, page, site } = window
      await signIn(page, site)
      await visit(page, site, "/console/products")
      await page.getByRole("button", { name: "New product" }).click()
      const dialog = page.getByRole("dialog")
      await dialog.getByLabel("Begin with").selectOption({ index: 1 })
      await dialog.getByLabel("Name (required)").fill("Anew, first")
      await page.route("**/thing-model", (route) => route.abort(), { times: 1 })
      await dialog.getByRole("button", { name: "Create" }).click()
      await dialog.getByText("The server cannot be reached").waitFor()
      await dialog.getByLabel("Name (required)").fill("Anew, second")
      await dialog.getByRole("button", { name: "Create" }).click()
      await page.getByText("The model is valid.").waitFor()
      const { results } = await call("GET", "/products?page_size=100")
      const names = results.map(({ name }: { readonly name: string }) => name)
      assert.deepStrictEqual(names.filter((name: string) => name.startsWith("Anew")), ["Anew, second"])
    }
  )

  inWindow(
    "what is sent again because its response got lost on the way is carried out once",
    async ({ page, site }) => {
      await signIn(page, site)
      const dialog = page.getByRole("dialog")
      const address = /\/v1\/products$/
      for (
        const [name, said, answer] of [
          ["Refused", "The server answered with status 502", { status: 502, json: { error: "Bad gateway" } }],
          ["Coded", "The server answered with status 502", {
            status: 502,
            json: { code: 502, message: "Bad gateway" }
          }],
          ["Cut off", "The response of the server cannot be read", {
            contentType: "application/json",
            body: `{"code":0,"da`
          }],
          ["Replaced", "The response of the server cannot be read", {
            contentType: "text/html",
            body: "<h1>Sign in</h1>"
          }]
        ] as const
      ) {
        await visit(page, site, "/console/products")
        await page.getByRole("button", { name: "New product" }).click()
        await dialog.getByLabel("Name (required)").fill(name)
        await page.route(address, async (route) => {
          if (route.request().method() !== "POST") return route.fallback()
          await route.fetch()
          await route.fulfill(answer)
        })
        await dialog.getByRole("button", { name: "Create" }).click()
        await dialog.getByText(said).waitFor()
        await page.unroute(address)
        await dialog.getByRole("button", { name: "Create" }).click()
        await page.waitForURL(/\/model$/)
        await visit(page, site, "/console/products")
        assert.strictEqual(await page.getByRole("link", { name }).count(), 1, name)
      }
    }
  )

  inWindow("what is not answered within its time has failed, and is tried again", async ({ call, page, site }) => {
    await page.addInitScript(`{
      globalThis.limits = []
      AbortSignal.timeout = (milliseconds) => {
        const limit = new AbortController()
        limits.push({ milliseconds, end: () => limit.abort(new DOMException("", "TimeoutError")) })
        return limit.signal
      }
    }`)
    await signIn(page, site)
    await visit(page, site, "/console/scenes")
    const address = /\/v1\/products(\?|$)/
    const endLimits = () =>
      page.evaluate("limits.splice(0).map(({ end, milliseconds }) => (end(), milliseconds)).at(-1)")
    const unanswered = async (method: string) => {
      const arrived = page.waitForRequest((request) => address.test(request.url()) && request.method() === method)
      await page.route(address, async (route) => {
        if (route.request().method() !== method) return route.fallback()
        if (method === "POST") await route.fetch()
      })
      return arrived
    }
    const reading = unanswered("GET")
    await page.evaluate(follow("/console/products"))
    await reading
    assert.strictEqual(await endLimits(), 30_000)
    await page.getByText("The server cannot be reached").waitFor()
    await page.unroute(address)
    await page.getByRole("button", { name: "Try again" }).click()
    await page.getByRole("button", { name: "New product" }).click()
    const dialog = page.getByRole("dialog")
    await dialog.getByLabel("Name (required)").fill("Unanswered")
    const named = async () => {
      const { results } = await call("GET", "/products?page_size=100")
      return results.filter(({ name }: { readonly name: string }) => name === "Unanswered").length
    }
    void unanswered("POST")
    await dialog.getByRole("button", { name: "Create" }).click()
    await vi.waitFor(async () => assert.strictEqual(await named(), 1), { timeout: 15_000 })
    await endLimits()
    await dialog.getByText("The server cannot be reached").waitFor()
    await page.unroute(address)
    await dialog.getByRole("button", { name: "Create" }).click()
    await page.waitForURL(/\/model$/)
    assert.strictEqual(await named(), 1)
  })

  inWindow("a call has the time for which it waits for the device, too", async ({ device, page, site }) => {
    await page.addInitScript(`{
      const { timeout } = AbortSignal
      globalThis.limits = []
      AbortSignal.timeout = (milliseconds) => {
        limits.push(milliseconds)
        return timeout.call(AbortSignal, milliseconds)
      }
    }`)
    await signIn(page, site)
    await visit(page, site, `${device}/control`)
    const properties = page.locator("section", { has: page.getByRole("heading", { name: "Set properties" }) })
    await properties.getByLabel("Wait for the device").selectOption("30")
    await properties.getByLabel("Target", { exact: true }).fill("7")
    await page.route(/\/properties$/, (route) => route.abort())
    await properties.getByRole("button", { name: "Set 1 property" }).click()
    await properties.getByText("The server cannot be reached").waitFor()
    assert.include(await page.evaluate<ReadonlyArray<number>>("limits"), 60_000)
  })

  inWindow(
    "what is sent again without a body because its response got lost is carried out once, too",
    async ({ page, scene, site }) => {
      await signIn(page, site)
      const dialog = page.getByRole("dialog")
      for (
        const [path, button, address] of [
          [scene, "Run now", /\/scenes\/[^/]+\/actions$/],
          ["/console/subscriptions", "New key", /\/webhook-key$/]
        ] as const
      ) {
        await visit(page, site, path)
        let lost: unknown
        await page.route(address, async (route) => {
          lost = await (await route.fetch()).json()
          await route.abort()
        }, { times: 1 })
        await page.getByRole("button", { name: button, exact: true }).click()
        const send = dialog.getByRole("button", { name: button, exact: true })
        await send.click()
        await dialog.getByText("The server cannot be reached").waitFor()
        const answered = page.waitForResponse((response) => response.request().method() === "POST")
        await send.click()
        assert.deepStrictEqual(await (await answered).json(), lost, path)
      }
    }
  )

  inWindow(
    "what is sent again while the first time still runs, or is refused then, is carried out once",
    async ({ call, page, site }) => {
      await signIn(page, site)
      const dialog = page.getByRole("dialog")
      const create = dialog.getByRole("button", { name: "Create" })
      const address = /\/v1\/products$/
      const answers = (refusal: { readonly status: number; readonly code: number }) => [
        async (route: Route) => {
          await route.fetch()
          await route.fulfill({ status: 503, json: { code: 50300, message: "It took too long" } })
        },
        (route: Route) => route.fulfill({ status: refusal.status, json: { code: refusal.code, message: "Not now" } })
      ]
      for (const [name, refusal] of [["Runs", [409, 40900]], ["Too many", [429, 42900]]] as const) {
        await visit(page, site, "/console/products")
        await page.getByRole("button", { name: "New product" }).click()
        await dialog.getByLabel("Name (required)").fill(name)
        const [status, code] = refusal
        const left = answers({ status, code })
        await page.route(address, async (route) => {
          const answer = route.request().method() === "POST" ? left.shift() : undefined
          return answer === undefined ? route.fallback() : answer(route)
        })
        for (const said of ["It took too long", "Not now"]) {
          await create.click()
          await dialog.getByText(said).waitFor()
        }
        await create.click()
        await page.waitForURL(/\/model$/)
        await page.unroute(address)
        const { results } = await call("GET", "/products?page_size=100")
        assert.strictEqual(
          results.filter((product: { readonly name: string }) => product.name === name).length,
          1,
          name
        )
      }
    }
  )

  inWindow("a firmware that is refused is corrected without another upload", async ({ page, site }) => {
    const uploads: Array<string> = []
    page.on("request", (request) => {
      if (request.url().includes("/oss/ota/")) uploads.push(request.url())
    })
    await signIn(page, site)
    const { choose, dialog } = await describeFirmware(page, site, "two", "first")
    const create = dialog.getByRole("button", { name: "Create" })
    const refusal = () => page.waitForResponse((response) => response.status() === 400)
    await Promise.all([refusal(), create.click()])
    await dialog.getByRole("alert").waitFor()
    await Promise.all([refusal(), create.click()])
    assert.strictEqual(uploads.length, 1)
    // Another file is another upload.
    await choose("second")
    await dialog.getByLabel("Version (required)").fill("2.0.0")
    await create.click()
    await page.getByRole("button", { name: "New campaign" }).waitFor()
    assert.strictEqual(uploads.length, 2)
  })

  inWindow(
    "the file of a firmware that is refused goes with its dialog, or with another file",
    async ({ page, site }) => {
      await signIn(page, site)
      const { choose, dialog } = await describeFirmware(page, site, "two", "first")
      const create = dialog.getByRole("button", { name: "Create" })
      const refuse = async () => {
        const uploaded = page.waitForResponse((response) => response.url().includes("/oss/ota/"))
        await Promise.all([page.waitForResponse((response) => response.status() === 400), create.click()])
        await dialog.getByRole("alert").waitFor()
        return (await (await uploaded).json()).data.filename as string
      }
      const removal = () => page.waitForResponse((response) => response.request().method() === "DELETE")
      const first = await refuse()
      await choose("second")
      const [removed, second] = await Promise.all([removal(), refuse()])
      assert.deepStrictEqual([removed.url(), removed.status()], [first, 200])
      const [last] = await Promise.all([removal(), dialog.getByRole("button", { name: "Cancel" }).click()])
      assert.deepStrictEqual([last.url(), last.status()], [second, 200])
    }
  )

  inWindow("the file of a firmware that may be there stays", async ({ call, page, site }) => {
    await signIn(page, site)
    const { dialog } = await describeFirmware(page, site, "6.0.0", "there")
    const requests: Array<string> = []
    page.on("request", (request) => requests.push(request.method()))
    await page.route(/\/ota\/firmwares$/, async (route) => {
      await route.fetch()
      await route.abort()
    })
    await dialog.getByRole("button", { name: "Create" }).click()
    await dialog.getByRole("alert").waitFor()
    await dialog.getByRole("button", { name: "Cancel" }).click()
    await twoFrames(page)
    assert.notInclude(requests, "DELETE")
    const { results } = await call("GET", "/ota/firmwares?page_size=100")
    assert.include(results.map(({ version }: { readonly version: string }) => version), "6.0.0")
  })

  inWindow("what is saved without a response is one's own when it is saved again", async ({ call, page, site }) => {
    const { id } = await call("POST", "/rule-engine/scenes", {
      name: "Lost response",
      status: "enable",
      triggers: [{ URI: "trigger/cron", params: { cron: "0 0 7 * * *" } }],
      actions: [{ URI: "action/webhook", params: { URL: "https://a.invalid/", method: "POST" } }]
    })
    const stored = async () => (await call("GET", `/rule-engine/scenes/${id}`))["desc"]
    await signIn(page, site)
    await visit(page, site, `/console/scenes/${id}`)
    const description = page.getByLabel("Description")
    const save = page.getByRole("button", { name: "Save", exact: true })
    const loseResponse = () =>
      page.route(/\/rule-engine\/scenes\/\w+$/, async (route) => {
        if (route.request().method() !== "PUT") return route.fallback()
        await route.fetch()
        await route.abort()
      })
    for (const [lost, again] of [["first", "first"], ["second", "second and more"]] as const) {
      await loseResponse()
      await description.fill(lost)
      await save.click()
      await page.getByText("The server cannot be reached").waitFor()
      assert.strictEqual(await stored(), lost)
      await page.unrouteAll()
      await description.fill(again)
      await save.click()
      await page.getByText("The scene is saved").last().waitFor()
      assert.deepStrictEqual([await page.getByRole("alert").count(), await stored()], [0, again])
      await visit(page, site, `/console/scenes/${id}`)
    }
    await call("DELETE", `/rule-engine/scenes/${id}`)
  })

  inWindow(
    "what is desired without a response is one's own when it is saved again",
    async ({ batched, page, site }) => {
      await signIn(page, site)
      await visit(page, site, `${batched}/shadow`)
      await page.getByRole("button", { name: "Edit what is desired" }).click()
      const dialog = page.getByRole("dialog")
      await dialog.getByLabel("Target").fill("7")
      await page.route(/\/shadow$/, async (route) => {
        if (route.request().method() === "GET") return route.fallback()
        await route.fetch()
        await route.abort()
      })
      await dialog.getByRole("button", { name: "Save" }).click()
      await dialog.getByText("The server cannot be reached").waitFor()
      await page.unrouteAll()
      await dialog.getByRole("button", { name: "Save" }).click()
      await dialog.waitFor({ state: "detached" })
    }
  )

  inWindow("a scene that one writes on while it is saved is not saved", async ({ page, scene, site }) => {
    await signIn(page, site)
    await visit(page, site, scene)
    const saving = await holdUp(page, /\/rule-engine\/scenes\/\w+$/, "PUT")
    const description = page.getByLabel("Description")
    await description.fill("For the hall")
    await page.getByRole("button", { name: "Save", exact: true }).click()
    await saving.arrived
    await description.fill("For the hall and the stairs")
    saving.release("continue")
    await page.getByText("The scene is saved").waitFor()
    await page.getByRole("link", { name: "Executions" }).click()
    await page.getByRole("dialog", { name: "Leave without saving?" }).waitFor()
  })

  inWindow("a property that is changed while others are set is kept", async ({ device, page, site }) => {
    await signIn(page, site)
    await visit(page, site, `${device}/control`)
    const properties = page.locator("section", { has: page.getByRole("heading", { name: "Set properties" }) })
    await properties.getByLabel("Wait for the device").selectOption("0")
    const target = properties.getByLabel("Target", { exact: true })
    await properties.getByLabel("Power", { exact: true }).selectOption({ label: "on" })
    await target.fill("7")
    const setting = await holdUp(page, /\/properties$/, "POST")
    await properties.getByRole("button", { name: "Set 2 properties" }).click()
    await setting.arrived
    await target.fill("70")
    setting.release("continue")
    await properties.getByText(/^Command/).waitFor()
    await properties.getByRole("button", { name: "Set 1 property" }).waitFor()
    assert.strictEqual(await target.inputValue(), "70")
    assert.isFalse(await properties.getByRole("checkbox", { name: "Power" }).isChecked())
  })

  inWindow("a model is saved once, however often one clicks", async ({ page, product, site }) => {
    await signIn(page, site)
    await visit(page, site, `${product}/model`)
    const source = page.getByLabel("The model as JSON")
    const model = JSON.parse(await source.inputValue())
    model.properties[0].name = "Warmth"
    await source.fill(JSON.stringify(model))
    const saving = await holdUp(page, /\/thing-model$/, "POST")
    const save = page.getByRole("button", { name: "Save the model" })
    await save.click()
    await saving.arrived
    await save.dispatchEvent("click")
    await twoFrames(page)
    saving.release("continue")
    await page.getByText(/^Saved as version/).waitFor()
    assert.strictEqual(saving.count(), 1)
  })

  inWindow("an upload that is cut off goes on no more", async ({ page, site }) => {
    await signIn(page, site)
    const { dialog } = await describeFirmware(page, site, "3.1.0", "cut off")
    await page.route(/\/v1\/oss\/ota\//, (route) => route.abort("connectionreset"))
    await dialog.getByRole("button", { name: "Create" }).click()
    await dialog.getByText("The server cannot be reached").waitFor()
    assert.strictEqual(await dialog.getByText(/^Uploading/).count(), 0)
    await page.unrouteAll()
    await dialog.getByRole("button", { name: "Create" }).click()
    await page.waitForURL(/\/firmware\/\d+$/)
  })

  inWindow("a file that is gone since it was chosen is not taken for a server that is away", async ({ page, site }) => {
    const directory = await mkdtemp(join(tmpdir(), "device-cloud-"))
    const file = join(directory, "firmware.bin")
    await writeFile(file, "gone")
    await signIn(page, site)
    const { dialog } = await describeFirmware(page, site, "8.0.0", "in memory")
    await dialog.locator("input[type=file]").setInputFiles(file)
    await rm(directory, { recursive: true })
    await dialog.getByRole("button", { name: "Create" }).click()
    await dialog.getByText("The file cannot be read any more. Choose it again.").waitFor()
  })

  inWindow("who closes the dialog breaks off the upload, and gets no firmware", async ({ page, site }) => {
    await signIn(page, site)
    const { dialog } = await describeFirmware(page, site, "3.0.0", "too early")
    const uploading = await holdUp(page, /\/oss\/ota\//, "POST")
    const brokenOff = page.waitForEvent("requestfailed", (request) => request.url().includes("/oss/ota/"))
    await dialog.getByRole("button", { name: "Create" }).click()
    await uploading.arrived
    await dialog.getByRole("button", { name: "Cancel" }).click()
    await brokenOff
  })

  inWindow("what fails after its dialog was closed is told all the same", async ({ page, scene, site }) => {
    await signIn(page, site)
    await visit(page, site, scene)
    const running = await holdUp(page, /\/rule-engine\/scenes\//, "POST")
    const dialog = page.getByRole("dialog")
    await page.getByRole("button", { name: "Run now" }).click()
    await dialog.getByRole("button", { name: "Run now" }).click()
    await running.arrived
    await page.keyboard.press("Escape")
    await dialog.waitFor({ state: "detached" })
    running.release("abort")
    await page.getByRole("status").getByText("The server cannot be reached").waitFor()
  })

  inWindow(
    "who has closed a form stays where they are when it has been carried out",
    async ({ call, page, product, scene, site }) => {
      await signIn(page, site)
      const dialog = page.getByRole("dialog")
      for (
        const [path, open, address, told] of [
          ["/console/products", "New product", /\/v1\/products$/, "The product is created"],
          ["/console/jobs", "New job", /\/v1\/jobs$/, "The job has started"]
        ] as const
      ) {
        await visit(page, site, path)
        const creating = await holdUp(page, address, "POST")
        await page.getByRole("button", { name: open }).click()
        await dialog.getByLabel("Name (required)").fill("Closed")
        if (path === "/console/jobs") {
          await dialog.getByLabel("Devices", { exact: true }).selectOption("allOf")
          await dialog.getByLabel("Product", { exact: true }).selectOption({ label: "Thermostat" })
        }
        await dialog.getByRole("button", { name: "Create" }).click()
        await creating.arrived
        await dialog.getByRole("button", { name: "Cancel" }).click()
        await page.evaluate(follow(scene))
        const description = page.getByLabel("Description")
        await description.fill(told)
        creating.release("continue")
        // It is there all the same, which is said.
        await page.getByRole("status").getByText(told).waitFor()
        await twoFrames(page)
        assert.deepStrictEqual([new URL(page.url()).pathname, await description.inputValue()], [scene, told])
        await save(page)
      }
      const { subscription_id } = await call("POST", "/subscriptions", { name: `Closed ${Date.now()}` })
      const firmware = await call("POST", `/products/${product.split("/").at(-1)}/ota/firmwares`, {
        name: "Closed",
        version: `9.0.${Date.now()}`,
        oss_path: "https://example.com/firmware.bin",
        algorithms: 1,
        hash: "93230c3bde425a9d7984a594ac55ea1e"
      })
      const { task_id } = await call("POST", `/ota/firmwares/${firmware["id"]}/upgrade-tasks`, { scope_mode: 0 })
      await call("PUT", `/ota/upgrade-tasks/${task_id}/status`, { action: "cancel" })
      for (
        const [path, address] of [
          [`/subscriptions/${subscription_id}`, /\/v1\/subscriptions\/\d+$/],
          [`/firmware/${firmware["id"]}/campaigns/${task_id}`, /\/ota\/tasks\/\d+$/]
        ] as const
      ) {
        await visit(page, site, `/console${path}`)
        const deleting = await holdUp(page, address, "DELETE")
        await page.getByRole("button", { name: /^Delete/ }).click()
        await dialog.getByRole("button", { name: "Delete" }).click()
        await deleting.arrived
        await dialog.getByRole("button", { name: "Cancel" }).click()
        await page.evaluate(follow(scene))
        await page.getByLabel("Description").fill(path)
        const deleted = page.waitForResponse((response) => response.request().method() === "DELETE")
        deleting.release("continue")
        await deleted
        await page.getByRole("status").getByText("Deleted").last().waitFor()
        await twoFrames(page)
        assert.deepStrictEqual(
          [new URL(page.url()).pathname, await page.getByLabel("Description").inputValue()],
          [scene, path]
        )
        await save(page)
      }
    }
  )

  inWindow(
    "a form that is opened anew stays when the one before it has been carried out",
    async ({ page, product, site }) => {
      await signIn(page, site)
      const dialog = page.getByRole("dialog")
      for (
        const [path, open, field, submit, method, address] of [
          ["/console/devices?view=groups", "New group", "Name (required)", "Create", "POST", /\/device-groups$/],
          [product, "Edit", "Description", "Save", "PUT", /\/products\/\w+$/]
        ] as const
      ) {
        await visit(page, site, path)
        const sending = await holdUp(page, address, method)
        await page.getByRole("button", { name: open, exact: true }).click()
        await dialog.getByLabel(field).fill("First")
        await dialog.getByRole("button", { name: submit }).click()
        await sending.arrived
        await dialog.getByRole("button", { name: "Cancel" }).click()
        await page.getByRole("button", { name: open, exact: true }).click()
        await dialog.getByLabel(field).fill("Second")
        const answered = page.waitForResponse((response) => response.request().method() === method)
        sending.release("continue")
        await answered
        await dialog.getByRole("status").getByText("Saved").last().waitFor()
        await twoFrames(page)
        assert.strictEqual(await dialog.getByLabel(field).inputValue(), "Second", path)
      }
    }
  )

  inWindow(
    "a form that is filled in anew with the same while the one before is carried out makes one thing",
    async ({ call, page, site }) => {
      await signIn(page, site)
      await visit(page, site, "/console/products")
      const dialog = page.getByRole("dialog")
      const twice = `Twice ${Date.now()}`
      const create = async () => {
        await page.getByRole("button", { name: "New product" }).click()
        await dialog.getByLabel("Name (required)").fill(twice)
        await dialog.getByRole("button", { name: "Create" }).click()
      }
      const creating = await holdUp(page, /\/v1\/products$/, "POST")
      await create()
      await creating.arrived
      await dialog.getByRole("button", { name: "Cancel" }).click()
      await create()
      await twoFrames(page)
      creating.release("continue")
      await page.waitForURL(/\/model$/)
      const { results } = await call("GET", "/products?page_size=100")
      const names = results.map(({ name }: { readonly name: string }) => name)
      assert.strictEqual(names.filter((name: string) => name === twice).length, 1)
    }
  )

  inWindow(
    "an access key of a form that is filled in anew with the same is not the one that goes with the form before",
    async ({ call, page, site }) => {
      await signIn(page, site)
      await visit(page, site, "/console/keys")
      const dialog = page.getByRole("dialog")
      const twice = `Twice ${Date.now()}`
      const create = async () => {
        await page.getByRole("button", { name: "New access key" }).click()
        await dialog.getByLabel("Name (required)").fill(twice)
        await dialog.getByRole("button", { name: "Create" }).click()
      }
      const creating = await holdUp(page, /\/access-keys$/, "POST")
      await create()
      await creating.arrived
      await dialog.getByRole("button", { name: "Cancel" }).click()
      const removed = page.waitForResponse((response) => response.request().method() === "DELETE")
      await create()
      await twoFrames(page)
      creating.release("continue")
      assert.strictEqual((await removed).status(), 200)
      await dialog.getByText("the only time that the key is shown").waitFor()
      const { results } = await call("GET", "/access-keys?page_size=100")
      const names = results.map(({ name }: { readonly name: string }) => name)
      assert.strictEqual(names.filter((name: string) => name === twice).length, 1)
    }
  )

  inWindow("who cancels while a batch is created gets no more of it", async ({ page, product, site }) => {
    await signIn(page, site)
    await visit(page, site, `/console/devices?view=batches&product=${product.split("/").at(-1)}`)
    await page.getByRole("button", { name: "New batch" }).click()
    const dialog = page.getByRole("dialog")
    let release: () => void
    const released = new Promise<void>((resolve) => release = resolve)
    let count = 0
    await page.route(/\/batch-things$/, async (route) => {
      if (route.request().method() !== "POST") return route.fallback()
      count++
      await released
      await route.fulfill({ json: { code: 0, message: "success", data: { batch_id: 1 } } })
    })
    const arrived = page.waitForRequest((request) =>
      request.url().endsWith("/batch-things") && request.method() === "POST"
    )
    // More than the API creates at once.
    await dialog.getByLabel("How many devices (required)").fill("10001")
    await dialog.getByRole("button", { name: "Create" }).click()
    await arrived
    await dialog.getByRole("button", { name: "Cancel" }).click()
    release!()
    await page.getByRole("status").getByText("10,000 of 10,001 devices created").waitFor()
    assert.strictEqual(count, 1)
  })

  inWindow("a question stays when the one before it has been carried out", async ({ page, scene, site }) => {
    await signIn(page, site)
    await visit(page, site, scene)
    const running = await holdUp(page, /\/rule-engine\/scenes\//, "POST")
    await page.getByRole("button", { name: "Run now" }).click()
    await page.getByRole("dialog").getByRole("button", { name: "Run now" }).click()
    await running.arrived
    await page.keyboard.press("Escape")
    await page.getByRole("button", { name: /^Delete the scene/ }).click()
    const question = page.getByRole("dialog", { name: /^Delete the scene/ })
    await question.waitFor()
    running.release("continue")
    await question.getByRole("status").getByText(/./).waitFor()
    await twoFrames(page)
    assert.strictEqual(await question.count(), 1)
  })

  inWindow(
    "devices for which an action has failed stay selected, and it is tried again for them alone",
    async ({ page, site }) => {
      await signIn(page, site)
      await visit(page, site, "/console/devices")
      const boxes = page.locator("tbody input[type=checkbox]")
      await boxes.nth(0).check()
      await boxes.nth(1).check()
      const asked: Array<string> = []
      await page.route(/\/openapi\/v1\/things\/\w+\/status/, (route) => {
        asked.push(route.request().url())
        return asked.length === 1 ? route.abort() : route.continue()
      })
      const enable = page.getByRole("toolbar").getByRole("button", { name: "Enable" })
      await enable.click()
      await page.getByText(/^1 done, 1 failed: The server cannot be reached/).waitFor()
      await page.getByText("1 selected").waitFor()
      await enable.click()
      await page.getByRole("toolbar").waitFor({ state: "detached" })
      assert.deepStrictEqual(asked.slice(2), [asked[0]])
    }
  )

  inWindow(
    "a device that somebody else has deleted is not selected any more",
    async ({ call, page, product, site }) => {
      const { device_id } = await call("POST", `/products/${product.split("/").at(-1)}/things`, {
        device_name: "gone01"
      })
      await signIn(page, site)
      await visit(page, site, "/console/devices")
      await page.getByRole("checkbox", { name: /gone01/ }).check()
      await page.getByRole("checkbox", { name: /thermostat01/ }).check()
      await page.getByText("2 selected").waitFor()
      await call("DELETE", `/things/${device_id}`)
      await page.getByRole("button", { name: "Show them" }).click()
      await page.getByText("1 selected").waitFor()
      await page.getByRole("toolbar").getByRole("button", { name: "Enable" }).click()
      await page.getByRole("toolbar").waitFor({ state: "detached" })
    }
  )

  inWindow("who cancels while a firmware is created gets none", async ({ page, site }) => {
    await signIn(page, site)
    const { dialog } = await describeFirmware(page, site, "4.0.0", "too early")
    const creating = await holdUp(page, /\/ota\/firmwares$/, "POST")
    await dialog.getByRole("button", { name: "Create" }).click()
    await creating.arrived
    await dialog.getByRole("button", { name: "Cancel" }).click()
    const removed = page.waitForResponse((response) => response.request().method() === "DELETE")
    creating.release("continue")
    assert.strictEqual((await removed).status(), 200)
    const file = await page.waitForResponse((response) => response.request().method() === "DELETE")
    assert.match(new URL(file.url()).pathname, /^\/objects\//)
    assert.strictEqual(file.status(), 200)
    await twoFrames(page)
    assert.strictEqual(new URL(page.url()).pathname, "/console/firmware")
    await visit(page, site, "/console/products")
    await visit(page, site, "/console/firmware")
    await page.getByLabel("Product", { exact: true }).selectOption({ label: "Thermostat" })
    await page.getByText("1.1.0").waitFor()
    assert.strictEqual(await page.getByText("4.0.0").count(), 0)
  })

  inWindow("who cancels while an access key is created gets none", async ({ call, page, site }) => {
    await signIn(page, site)
    await visit(page, site, "/console/keys")
    await page.getByRole("button", { name: "New access key" }).click()
    const dialog = page.getByRole("dialog")
    await dialog.getByLabel("Name (required)").fill("too early")
    const creating = await holdUp(page, /\/access-keys$/, "POST")
    await dialog.getByRole("button", { name: "Create" }).click()
    await creating.arrived
    await dialog.getByRole("button", { name: "Cancel" }).click()
    const removed = page.waitForResponse((response) => response.request().method() === "DELETE")
    creating.release("continue")
    assert.strictEqual((await removed).status(), 200)
    const { results } = await call("GET", "/access-keys?page_size=100")
    assert.notInclude(results.map(({ name }: { readonly name: string }) => name), "too early")
  })

  inWindow("a certificate whose dialog was closed is revoked, and told", async ({ call, lock, page, site }) => {
    await signIn(page, site)
    await visit(page, site, lock)
    await page.getByRole("button", { name: "Issue a certificate" }).click()
    const dialog = page.getByRole("dialog")
    const issuing = await holdUp(page, /\/certificates$/, "POST")
    await dialog.getByRole("button", { name: "Issue a certificate" }).click()
    await issuing.arrived
    await dialog.getByRole("button", { name: "Cancel" }).click()
    issuing.release("continue")
    await page.getByRole("status").getByText("The certificate is revoked").waitFor()
    const { results } = await call("GET", `/things/${lock.split("/").at(-1)}/certificates`)
    assert.strictEqual(results[0].status, "revoked")
  })

  inWindow("what is told while a dialog is open is in the dialog, not behind it", async ({ page, scene, site }) => {
    await signIn(page, site)
    await visit(page, site, scene)
    const running = await holdUp(page, /\/rule-engine\/scenes\//, "POST")
    const dialog = page.getByRole("dialog")
    const run = page.getByRole("button", { name: "Run now" })
    await run.click()
    await dialog.getByRole("button", { name: "Run now" }).click()
    await running.arrived
    await page.keyboard.press("Escape")
    await dialog.waitFor({ state: "detached" })
    await run.click()
    running.release("abort")
    await dialog.getByRole("status").getByText("The server cannot be reached").waitFor()
  })

  inWindow("a mesh network that is there although its dialog was closed is told", async ({ page, site }) => {
    await signIn(page, site)
    await visit(page, site, "/console/mesh")
    await page.getByRole("button", { name: "New mesh network" }).click()
    const dialog = page.getByRole("dialog")
    const creating = await holdUp(page, /\/mesh\/networks$/, "POST")
    await dialog.getByRole("button", { name: "Create" }).click()
    await creating.arrived
    await dialog.getByRole("button", { name: "Cancel" }).click()
    creating.release("continue")
    await page.getByRole("status").getByText("The mesh network is created").waitFor()
    assert.strictEqual(new URL(page.url()).pathname, "/console/mesh")
  })

  inWindow("what is gone when it is deleted again after a lost response is deleted", async ({ call, page, site }) => {
    await signIn(page, site)
    const dialog = page.getByRole("dialog")
    const { subscription_id } = await call("POST", "/subscriptions", { name: `Gone ${Date.now()}` })
    const remove = async () => {
      await visit(page, site, `/console/subscriptions/${subscription_id}`)
      await page.getByRole("button", { name: /^Delete/ }).click()
    }
    await remove()
    await page.route(/\/v1\/subscriptions\/\d+$/, async (route) => {
      if (route.request().method() !== "DELETE") return route.fallback()
      await route.fetch()
      await route.abort()
    }, { times: 1 })
    await dialog.getByRole("button", { name: "Delete" }).click()
    await dialog.getByText("The server cannot be reached").waitFor()
    // What is refused meanwhile says nothing of the first time.
    await page.route(/\/v1\/subscriptions\/\d+$/, (route) =>
      route.request().method() === "DELETE"
        ? route.fulfill({ status: 429, json: { code: 42900, message: "Not now" } })
        : route.fallback(), { times: 1 })
    await dialog.getByRole("button", { name: "Delete" }).click()
    await dialog.getByText("Not now").waitFor()
    await dialog.getByRole("button", { name: "Delete" }).click()
    await page.getByRole("status").getByText("Deleted").waitFor()
    await page.waitForURL(/\/subscriptions$/)
  })

  inWindow("a page of something in between does not say that what is deleted again is gone", async (window) => {
    const { call, page, site } = window
    await signIn(page, site)
    const dialog = page.getByRole("dialog")
    const name = `Stays ${Date.now()}`
    const { subscription_id } = await call("POST", "/subscriptions", { name })
    await visit(page, site, `/console/subscriptions/${subscription_id}`)
    await page.getByRole("button", { name: /^Delete/ }).click()
    for (const status of [502, 404]) {
      await page.route(/\/v1\/subscriptions\/\d+$/, (route) =>
        route.request().method() === "DELETE"
          ? route.fulfill({ status, contentType: "text/html", body: "<h1>No server</h1>" })
          : route.fallback(), { times: 1 })
      await dialog.getByRole("button", { name: "Delete" }).click()
      await dialog.getByText(`The server answered with status ${status}`).waitFor()
    }
    assert.strictEqual((await call("GET", `/subscriptions/${subscription_id}`))["name"], name)
  })

  inWindow("what came of a call does not stand beside the failure of the next", async ({ lock, page, scene, site }) => {
    await signIn(page, site)
    const main = page.locator("main")
    await visit(page, site, `${lock}/control`)
    await main.getByLabel(/^Bytes/).fill("00")
    await main.getByRole("textbox", { name: /^Service/ }).fill("Restart")
    const succeedsAndFails = async (name: RegExp) => {
      const form = main.locator("form").filter({ has: page.getByRole("button", { name }) })
      const outcomes = main.getByRole("status")
      const before = await outcomes.count()
      await form.getByRole("button", { name }).click()
      await outcomes.nth(before).waitFor()
      await page.route(/\/v1\//, (route) => route.request().method() === "POST" ? route.abort() : route.fallback())
      await form.getByRole("button", { name }).click()
      await form.getByText("The server cannot be reached").waitFor()
      await page.unroute(/\/v1\//)
      assert.strictEqual(await outcomes.count(), before, String(name))
    }
    await succeedsAndFails(/^Call/)
    await succeedsAndFails(/^Send the bytes/)
    await visit(page, site, `${scene}/dry`)
    await main.getByRole("combobox").first().selectOption("cron")
    await succeedsAndFails(/^Try it/)
  })

  inWindow("what somebody else has deleted is missing", async ({ call, page, site }) => {
    await signIn(page, site)
    const { subscription_id } = await call("POST", "/subscriptions", { name: `Theirs ${Date.now()}` })
    await visit(page, site, `/console/subscriptions/${subscription_id}`)
    await page.getByRole("button", { name: /^Delete/ }).click()
    await call("DELETE", `/subscriptions/${subscription_id}`)
    const dialog = page.getByRole("dialog")
    await dialog.getByRole("button", { name: "Delete" }).click()
    await dialog.getByText(/^There is no subscription/).waitFor()
  })

  inWindow("an upload that something in between answers is none", async ({ page, site }) => {
    await signIn(page, site)
    const { dialog } = await describeFirmware(page, site, "5.0.0", "between")
    for (
      const [status, said] of [
        [200, "The response of the server cannot be read"],
        [413, "The server answered with status 413"]
      ] as const
    ) {
      await page.route(
        /\/v1\/oss\/ota\//,
        (route) => route.fulfill({ status, contentType: "text/html", body: "<h1>Sign in</h1>" }),
        { times: 1 }
      )
      await dialog.getByRole("button", { name: "Create" }).click()
      await dialog.getByText(said).waitFor()
    }
    await dialog.getByRole("button", { name: "Create" }).click()
    await page.waitForURL(/\/firmware\/\d+$/)
  })
})
