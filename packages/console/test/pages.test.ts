/**
 * Every page of the console: readable for screen readers, without sideways
 * scrolling, in both themes and both languages, and as far as a key may read.
 */
import { ownerKey } from "@device-cloud/testing/http"
import { assert } from "@effect/vitest"
import { createRequire } from "node:module"
import { readFileSync } from "node:fs"
import type { Page } from "playwright-core"
import { share } from "../../../vitest.storages.ts"
import { signIn, signInAtForm } from "./ConsolePage.ts"
import { inBrowser, visit } from "./Windows.ts"

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")

/** What axe finds serious or worse, and headings that leave out a level, as text. */
const violations = (page: Page): Promise<ReadonlyArray<string>> =>
  page.evaluate(`axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) =>
    violations
      .filter(({ id, impact }) => impact === "serious" || impact === "critical" || id === "heading-order")
      .map(({ id, nodes }) => id + ": " + nodes[0].html))`)

/** Names of more than one button of the page itself. Those of a table tell by their row what they are about. */
const sharedNames = (page: Page): Promise<ReadonlyArray<string>> =>
  page.evaluate(`{
    const names = [...document.querySelectorAll("main button")]
      .filter((button) => button.closest("td") === null && button.checkVisibility())
      .map((button) => button.ariaLabel ?? button.textContent)
    names.filter((name, i) => names.indexOf(name) < i)
  }`)

const looks = [
  { viewport: { width: 1280, height: 900 }, colorScheme: "light", locale: "en-US" },
  { viewport: { width: 390, height: 844 }, colorScheme: "dark", locale: "zh-CN" }
] as const

/** `npm test` opens each page in one of two ways, `npm run fuzz` in both. */
const halfOf = (pages: ReadonlyArray<string>, half: number) =>
  share === 1 ? pages : pages.filter((_, i) => i % 2 === half)

/** Where the navigation leads. */
const placesOf = (page: Page) => page.getByRole("navigation", { name: "Main" }).getByRole("link").allTextContents()

/** Collects the addresses of what the server refuses from now on because of the access key. */
const refusals = (page: Page): ReadonlyArray<string> => {
  const refused: Array<string> = []
  page.on("response", (response) => {
    if (response.status() === 403) refused.push(response.url())
  })
  return refused
}

inBrowser((inWindow) => {
  for (const [i, look] of looks.entries()) {
    inWindow(
      `every page is accessible and fits its window: ${look.locale}, ${look.colorScheme}`,
      async ({ context, page, pages, site }) => {
        const findings: Array<string> = []
        await context.request.post(`${site}/openapi/v1/browser-sessions`, {
          headers: { "x-csrf-protection": "1" },
          data: { access_key: ownerKey }
        })
        for (const path of halfOf(pages, i)) {
          await visit(page, site, path)
          if (share === 1 || path === pages[i]) await page.evaluate(axe)
          const where = `${look.locale} ${path}`
          await page.evaluate("for (const details of document.querySelectorAll('main details')) details.open = true")
          findings.push(...(await violations(page)).map((violation) => `${where}: ${violation}`))
          findings.push(...(await sharedNames(page)).map((name) => `${where}: more than one button "${name}"`))
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
        assert.deepStrictEqual(findings, [])
      },
      // The policy of the page admits no script but its own; axe is one.
      { ...look, bypassCSP: true }
    )
  }

  inWindow(
    "the longest names fit a narrow window",
    async ({ call, page, site }) => {
      const long = `${Date.now()}`.padEnd(128, "W")
      const title = "W".repeat(30)
      const { product_info } = await call("POST", "/products", {
        name: long,
        node_type: "direct",
        network_type: "wifi",
        validate_type: "weak",
        data_format: "json",
        auth_type: "secret"
      })
      const products = `/products/${product_info.product_key}`
      const flag = { id: "Flag", name: title, dataType: { type: "bool", specs: { 0: "off", 1: "on" } } }
      await call("POST", `${products}/thing-model`, {
        model_type: "metadata",
        model_data: JSON.stringify({
          properties: [
            { id: "Level", name: title, desc: long, accessMode: "rw", dataType: { type: "int" } },
            { ...flag, accessMode: "rw" },
            { id: "State", name: title, accessMode: "rw", dataType: { type: "struct", specs: [flag] } }
          ],
          events: [],
          services: [{ id: "Restart", name: title, callType: "async", inputData: [], outputData: [] }]
        })
      })
      const { device_id } = await call("POST", `${products}/things`, { device_name: "narrow01", nickname: long })
      const { group_id } = await call("POST", "/device-groups", { name: long, desc: long })
      const { id: project } = await call("POST", "/projects", { name: long })
      const { id: scene } = await call("POST", "/rule-engine/scenes", {
        name: long,
        status: "disable",
        triggers: [{ URI: "trigger/cron", params: { cron: "0 0 7 * * *" } }],
        actions: [{ URI: "action/device/property", params: { device_id, items: { Level: 1 } } }]
      })
      const places: Readonly<Record<string, RegExp | undefined>> = {
        [products]: /^Delete/,
        [`/devices/${device_id}/data`]: undefined,
        [`/devices/${device_id}/control`]: undefined,
        [`/devices/${device_id}/shadow`]: /^Edit/,
        [`/devices?view=groups&group=${group_id}`]: /^Delete/,
        [`/projects?project=${project}`]: undefined,
        [`/scenes/${scene}`]: /^Delete/
      }
      const isWide = (element: string) =>
        page.evaluate<boolean>(`{ const element = ${element}; element.scrollWidth > element.clientWidth }`)
      await signIn(page, site)
      await page.setViewportSize({ width: 320, height: 640 })
      const wide: Array<string> = []
      for (const [place, button] of Object.entries(places)) {
        await visit(page, site, `/console${place}`)
        if (place.endsWith("/data")) await page.locator(".u-legend").waitFor()
        if (await isWide("document.documentElement")) wide.push(place)
        if (button === undefined) continue
        await page.locator("main").getByRole("button", { name: button }).first().click()
        await page.locator("dialog form").waitFor()
        if (await isWide("document.querySelector('dialog')")) wide.push(`${place}, dialog`)
        await page.keyboard.press("Escape")
      }
      assert.deepStrictEqual(wide, [])
    }
  )

  inWindow(
    "a viewer sees no secrets, and no buttons that would be refused",
    async ({ device, page, pages, scene, secret, site, viewerKey }) => {
      const refused = refusals(page)
      await signIn(page, site, viewerKey)
      for (const path of halfOf(pages, 1)) {
        await visit(page, site, path)
        assert.notInclude(await page.content(), secret, path)
      }
      await visit(page, site, device)
      assert.strictEqual(await page.getByRole("button", { name: /Delete|Disable|Enable|New / }).count(), 0)
      await visit(page, site, "/console/products")
      assert.strictEqual(await page.getByRole("button", { name: "New product" }).count(), 0)
      assert.notIncludeMembers(await placesOf(page), ["Access keys", "Audit log"])
      await visit(page, site, `${scene}/dry`)
      await page.getByText("This needs the role operator").waitFor()
      assert.strictEqual(await page.getByRole("button", { name: "Try it" }).count(), 0)
      assert.deepStrictEqual(refused, [])
    }
  )

  inWindow(
    "a key of some products sees them, their devices and their firmware",
    async ({ ofProductsKey, page, site }) => {
      const refused = refusals(page)
      const link = (name: string) => page.locator("main").getByRole("link", { name, exact: true })
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
      assert.deepStrictEqual(
        await page.getByRole("navigation", { name: "Devices" }).getByRole("link").allTextContents(),
        ["Devices", "Batches"]
      )
      await page.getByRole("checkbox", { name: /thermostat01/ }).check()
      assert.deepStrictEqual(
        await page.getByRole("toolbar").getByRole("button").allTextContents(),
        ["Enable", "Disable", "Delete"]
      )
      await visit(page, site, "/console/events")
      await visit(page, site, "/console/firmware")
      await page.getByLabel("Product", { exact: true }).selectOption({ label: "Thermostat" })
      await page.getByText("1.1.0").waitFor()
      assert.deepStrictEqual(await placesOf(page), ["Overview", "Products", "Devices", "Firmware", "Events"])
      assert.deepStrictEqual(refused, [])
    }
  )

  inWindow(
    "a key of some products is offered no topologies and no actions on upgrade tasks",
    async ({ call, hub, page, site }) => {
      const refused = refusals(page)
      const { device_info: { device_id, product_key } } = await call("GET", `/things/${hub.split("/").at(-1)}/detail`)
      const { id } = await call("POST", `/products/${product_key}/ota/firmwares`, {
        name: "Hub",
        version: "9.0.0",
        oss_path: "https://example.com/hub.bin",
        algorithms: 1,
        hash: "93230c3bde425a9d7984a594ac55ea1e"
      })
      const { task_id } = await call("POST", `/ota/firmwares/${id}/upgrade-tasks`, {
        scope_mode: 1,
        device_ids: [device_id],
        need_app_confirm: true
      })
      const scopes = { products: [product_key] }
      const { key } = await call("POST", "/access-keys", { name: "hubs", role: "operator", scopes })
      await signIn(page, site, key)
      await visit(page, site, `${hub}/firmware`)
      await page.getByText("9.0.0").first().waitFor()
      assert.deepStrictEqual(await page.locator("main .card").getByRole("button").allTextContents(), [])
      assert.strictEqual(await page.getByRole("link", { name: /^Topology$|^Hub, / }).count(), 0)
      await call("DELETE", `/ota/tasks/${task_id}`)
      await call("DELETE", `/ota/firmwares/${id}`)
      assert.deepStrictEqual(refused, [])
    }
  )

  inWindow(
    "a key of some operations sees no actions that are refused to it",
    async ({ call, device, page, product, scene, site }) => {
      const refused = refusals(page)
      const reads = ["devices", "products", "thingModels", "scenes", "deviceGroups", "history", "events", "ota"]
      const actions = [...reads.map((group) => `${group}:read`), "commands:write", "jobs:write"]
      const { key } = await call("POST", "/access-keys", {
        name: "some operations",
        role: "operator",
        scopes: { actions }
      })
      await signIn(page, site, key)
      const buttons = page.getByRole("button", { name: /Delete|Disable|Enable|New |Edit|Rotate|Save|Run|Try/ })
      await visit(page, site, device)
      await page.getByRole("button", { name: "Copy the secret" }).waitFor()
      assert.strictEqual(await buttons.count(), 0)
      await visit(page, site, `${device}/control`)
      await page.getByRole("button", { name: "Set" }).waitFor()
      await visit(page, site, "/console/devices")
      await page.getByRole("checkbox", { name: /thermostat01/ }).check()
      assert.deepStrictEqual(
        await page.getByRole("toolbar").getByRole("button").allTextContents(),
        ["New job"]
      )
      await visit(page, site, `${product}/model`)
      await page.getByText("Your access key is limited to other operations").waitFor()
      assert.strictEqual(await buttons.count(), 0)
      await visit(page, site, `${scene}/dry`)
      await page.getByText("Your access key is limited to other operations").waitFor()
      assert.strictEqual(await buttons.count(), 0)
      assert.deepStrictEqual(refused, [])
    }
  )

  inWindow("a key of one group sees no actions that need another one", async ({ call, page, site }) => {
    const keyOf = async (group: string) => {
      const actions = [`${group}:read`, `${group}:write`]
      return (await call("POST", "/access-keys", { name: group, role: "admin", scopes: { actions } }))["key"] as string
    }
    const buttons = page.locator("main").getByRole("button")
    await signIn(page, site, await keyOf("ota"))
    await visit(page, site, "/console/firmware")
    assert.deepStrictEqual(await buttons.allTextContents(), [])
    await page.context().clearCookies()
    await signIn(page, site, await keyOf("subscriptions"))
    await page.goto(`${site}/console/subscriptions`)
    await page.getByRole("button", { name: "New subscription" }).waitFor()
    assert.deepStrictEqual(await buttons.allTextContents(), ["New subscription"])
    await page.context().clearCookies()
    await signIn(page, site, await keyOf("products"))
    await page.goto(`${site}/console/products`)
    await page.getByRole("button", { name: "New product" }).click()
    await page.getByLabel("Name (required)").waitFor()
    assert.strictEqual(await page.getByLabel("Begin with").count(), 0)
  })

  inWindow("a key that may read no page is told so", async ({ call, page, site }) => {
    const refused = refusals(page)
    const { key } = await call("POST", "/access-keys", {
      name: "no page",
      role: "viewer",
      scopes: { actions: ["history:read"] }
    })
    await signIn(page, site, key)
    await visit(page, site, "/console")
    await page.getByText("Your access key is limited to other operations").waitFor()
    assert.deepStrictEqual(refused, [])
  })

  inWindow(
    "each action asks for the operations that it calls",
    async ({ call, page, pages, product, site }) => {
      const signInWith = async (role: string, actions: ReadonlyArray<string>) => {
        const { key } = await call("POST", "/access-keys", { name: "one action", role, scopes: { actions } })
        await signIn(page, site, key)
        // A page that is open goes on with the key before.
        await page.goto("about:blank")
      }
      const group = pages.find((path) => path.includes("group="))!
      const buttons = (name: RegExp) => page.locator("main").getByRole("button", { name }).allTextContents()
      const properties = page.getByRole("button", { name: "Set properties" })
      const edit = page.getByRole("button", { name: "Edit" })
      const connect = page.locator("main").getByRole("link", { name: "Connect a device" })

      await signInWith("operator", ["mesh:read", "deviceGroups:read", "deviceGroups:write", "products:write"])
      await visit(page, site, "/console/mesh")
      assert.match((await page.locator("main td a").first().textContent())!, /^[0-9a-f]{32}$/)
      await visit(page, site, group)
      assert.strictEqual(await properties.count(), 0)
      await edit.waitFor()

      await signInWith("admin", ["subscriptions:read", "subscriptions:write", "ota:read", "ota:write", "products:read"])
      await visit(page, site, "/console/subscriptions")
      assert.deepStrictEqual(await buttons(/key/), [])
      await visit(page, site, "/console/firmware")
      assert.deepStrictEqual(await buttons(/^New/), [])

      await signInWith("operator", ["deviceGroups:read", "bulkCommands:write", "products:read", "devices:write"])
      await visit(page, site, group)
      await properties.waitFor()
      assert.strictEqual(await edit.count(), 0)
      await visit(page, site, product)
      await connect.waitFor()

      await signInWith("operator", ["products:read", "products:write"])
      await visit(page, site, product)
      await edit.waitFor()
      assert.strictEqual(await connect.count(), 0)
      await visit(page, site, "/console/products")
      await page.getByRole("button", { name: "New product" }).first().click()
      await page.getByRole("dialog").getByLabel("Name").waitFor()
      assert.strictEqual(await page.getByRole("dialog").getByLabel("Begin with").count(), 0)
    }
  )

  inWindow(
    "a key that may not read the overview begins at the first page that it may",
    async ({ ofProductsAloneKey, page, site }) => {
      const refused = refusals(page)
      await signInAtForm(page, site, ofProductsAloneKey)
      await page.getByRole("heading", { name: "Products", level: 1 }).waitFor()
      await page.getByRole("link", { name: "Thermostat" }).waitFor()
      assert.strictEqual(new URL(page.url()).pathname, "/console/products")
      await page.getByRole("link", { name: "Device Cloud" }).click()
      await page.waitForURL(/products$/)
      assert.deepStrictEqual(refused, [])
    }
  )
})
