/**
 * Every page of the console: readable for screen readers, without sideways
 * scrolling, in both themes and both languages; what each role sees; and what its forms do.
 */
import { ownerKey } from "@device-cloud/testing/http"
import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import { createRequire } from "node:module"
import { readFileSync } from "node:fs"
import type { BrowserContext, Locator, Page } from "playwright-core"
import { vi } from "vitest"
import { share } from "../../../vitest.storages.ts"
import { hasBrowser, open, signIn } from "./ConsolePage.ts"
import { Furnished } from "./Furnished.ts"

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")

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

/** The next stream of events that the page opens. */
const streamed = (page: Page) => page.waitForResponse((response) => response.url().includes("/openapi/v1/events?"))

const lost = (page: Page) => page.getByText(/^The connection to the server is lost/)

const twoFrames = (page: Page) =>
  page.evaluate("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))")

/** Presses a button with the keyboard. */
const press = async (page: Page, name: string) => {
  await page.getByRole("button", { name, exact: true }).focus()
  await page.keyboard.press("Enter")
}

/** The name of what has the focus. */
const focused = (page: Page) =>
  page.evaluate<string>("(document.activeElement.ariaLabel ?? document.activeElement.textContent).trim()")

/** Waits until a field has a value. */
const shows = (field: Locator, value: string) =>
  vi.waitFor(async () => assert.strictEqual(await field.inputValue(), value), { timeout: 15_000 })

/** Where the navigation leads. */
const placesOf = (page: Page) => page.getByRole("navigation", { name: "Main" }).getByRole("link").allTextContents()

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

/** Lets a project have more of something than one can choose from in a list. */
const many = (page: Page, url: RegExp) =>
  page.route(url, async (route) => {
    const response = await route.fetch()
    const body = await response.json()
    body.data.total = 101
    await route.fulfill({ response, json: body })
  })

/** Collects the addresses of what the server refuses from now on because of the access key. */
const refusals = (page: Page): ReadonlyArray<string> => {
  const refused: Array<string> = []
  page.on("response", (response) => {
    if (response.status() === 403) refused.push(response.url())
  })
  return refused
}

interface Window extends Readonly<Furnished["Service"]> {
  readonly context: BrowserContext
  readonly page: Page
}

describe.runIf(hasBrowser)("the console", () => {
  layer(Furnished.layer, { excludeTestServices: true, timeout: "120 seconds" })("in a browser", (it) => {
    /** Runs a test in a window of its own, whose page may throw nothing. */
    const inWindow = (
      name: string,
      test: (window: Window) => Promise<void>,
      options: Parameters<typeof open>[1] = {}
    ) =>
      it.effect(name, () =>
        Effect.gen(function*() {
          const furnished = yield* Furnished
          const { context, errors, page } = yield* open(furnished.browser, options)
          yield* Effect.promise(() => test({ ...furnished, context, page })).pipe(
            Effect.ensuring(Effect.promise(async () => {
              // Requests may be under way.
              await page.unrouteAll({ behavior: "ignoreErrors" })
              await context.close()
            }))
          )
          assert.deepStrictEqual(errors, [])
        }), 240_000)

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
          assert.deepStrictEqual(findings, [])
        },
        // The policy of the page admits no script but its own; axe is one.
        { ...look, bypassCSP: true }
      )
    }

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
        await visit(page, site, "/console/events")
        await visit(page, site, "/console/firmware")
        await page.getByLabel("Product", { exact: true }).selectOption({ label: "Thermostat" })
        await page.getByText("1.1.0").waitFor()
        assert.deepStrictEqual(await placesOf(page), ["Overview", "Products", "Devices", "Firmware", "Events"])
        assert.deepStrictEqual(refused, [])
      }
    )

    inWindow("a key of one product sees its devices live", async ({ device, ofProductKey, page, report, site }) => {
      await signIn(page, site, ofProductKey)
      const opened = streamed(page)
      await visit(page, site, device)
      assert.strictEqual((await opened).status(), 200)
      await report(17.25)
      await page.getByText(/17\.25/).first().waitFor()
      // What it may not read would be refused again.
      await visit(page, site, "/console/scenes")
      await page.getByText("limited to products may not call this").waitFor()
      assert.strictEqual(await page.getByRole("button", { name: "Try again" }).count(), 0)
    })

    inWindow(
      "a key of several products sees their devices live",
      async ({ connect, device, ofProductsKey, page, report, site }) => {
        await signIn(page, site, ofProductsKey)
        for (const path of [connect, device, `${device}/data`]) {
          const opened = streamed(page)
          await visit(page, site, "/console/keys")
          await visit(page, site, path)
          assert.strictEqual((await opened).status(), 200, path)
        }
        await visit(page, site, device)
        await report(18.25)
        await page.getByText(/18\.25/).first().waitFor()
      }
    )

    inWindow(
      "a key that reads no events is not told that the server is away",
      async ({ device, page, site, withoutEventsKey }) => {
        await signIn(page, site, withoutEventsKey)
        const banner = lost(page).waitFor().then(() => "lost")
        banner.catch(() => undefined)
        // The stream is refused, and so is the request that asks why.
        const refused = streamed(page).then(() => streamed(page)).then((response) => response.finished())
        await visit(page, site, device)
        assert.strictEqual(await Promise.race([banner, refused]), null)
        await twoFrames(page)
        assert.strictEqual(await lost(page).count(), 0)
      }
    )

    inWindow("a window notices who signs in and out in another one", async ({ context, page, site, viewerKey }) => {
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

    inWindow(
      "a scene takes the days of a window as they are typed, and a dry run names values that are not JSON",
      async ({ page, scene, site }) => {
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
      }
    )

    inWindow(
      "the events page takes a type that there is not for none, and filters that are refused for no lost connection",
      async ({ page, report, site }) => {
        await signIn(page, site)
        const opened = streamed(page)
        await visit(page, site, "/console/events?type=unknown")
        assert.strictEqual((await opened).status(), 200)
        await report(19.25)
        await page.getByText("19.25").waitFor()

        const refused = page.waitForResponse((response) => response.status() === 400)
          .then(() => page.waitForResponse((response) => response.status() === 400))
          .then((response) => response.finished())
        await page.getByLabel("Device id").fill("d".repeat(129))
        const banner = lost(page).waitFor().then(() => "lost")
        banner.catch(() => undefined)
        assert.strictEqual(await Promise.race([banner, refused]), null)
        await twoFrames(page)
        assert.strictEqual(await lost(page).count(), 0)
      }
    )

    inWindow("the form of a model stands beside labels that are half written", async ({ page, product, site }) => {
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

    inWindow("the bounds of a number are what one types, with zeros and signs", async ({ page, product, site }) => {
      await signIn(page, site)
      await visit(page, site, `${product}/model`)
      await page.getByRole("button", { name: "Add a property" }).click()
      const dialog = page.getByRole("dialog")
      await dialog.getByLabel("Id (required)").fill("Valve")
      await dialog.getByLabel("Name (required)").fill("Valve")
      for (const [bound, typed] of [["Least", "-0.5"], ["Most", "10.05"], ["Step", "0.05"]] as const) {
        await dialog.getByLabel(bound).focus()
        await page.keyboard.type(typed)
        assert.strictEqual(await dialog.getByLabel(bound).inputValue(), typed)
      }
      await dialog.getByRole("button", { name: "Save" }).click()
      await dialog.waitFor({ state: "detached" })
      const { properties } = JSON.parse(await page.getByLabel("The model as JSON").inputValue())
      assert.deepStrictEqual(properties.at(-1).dataType, { type: "float", min: -0.5, max: 10.05, step: 0.05 })
    })

    inWindow("what is not saved is lost by no link that somebody follows", async ({ page, product, scene, site }) => {
      await signIn(page, site)
      const dialog = page.getByRole("dialog", { name: "Leave without saving?" })
      await visit(page, site, `${product}/model`)
      const source = page.getByLabel("The model as JSON")
      await source.fill("{}")
      await page.getByRole("link", { name: "Versions" }).click()
      await dialog.getByRole("button", { name: "Cancel" }).click()
      assert.strictEqual(await source.inputValue(), "{}")
      await page.getByRole("link", { name: "Versions" }).click()
      await dialog.getByRole("button", { name: "Leave" }).click()
      await page.getByRole("table", { name: "Versions of the thing model" }).waitFor()

      await visit(page, site, scene)
      const description = page.getByLabel("Description")
      await description.fill("For the hall")
      await page.getByRole("link", { name: "Executions" }).click()
      await dialog.getByRole("button", { name: "Cancel" }).click()
      assert.strictEqual(await description.inputValue(), "For the hall")
      await page.getByRole("button", { name: "Save", exact: true }).click()
      await page.getByText("The scene is saved").waitFor()
      await page.getByRole("link", { name: "Executions" }).click()
      await page.waitForURL(/executions$/)
      assert.strictEqual(await dialog.count(), 0)
    })

    inWindow("what is not saved is lost by no way back", async ({ page, product, scene, site }) => {
      await signIn(page, site)
      await visit(page, site, product)
      const dialog = page.getByRole("dialog", { name: "Leave without saving?" })
      for (
        const [path, label, text] of [[scene, "Description", "For the hall"], [
          `${product}/model`,
          "The model as JSON",
          "{}"
        ]]
      ) {
        await visit(page, site, "/console/products")
        await page.evaluate(follow(path!))
        const field = page.getByLabel(label!)
        await field.fill(text!)
        await page.getByRole("link", { name: "Skip to the content" }).press("Enter")
        await page.waitForURL(/#main$/)
        assert.strictEqual(await dialog.count(), 0)
        await page.evaluate("history.go(-2)")
        await dialog.getByRole("button", { name: "Cancel" }).click()
        assert.deepStrictEqual([await field.inputValue(), new URL(page.url()).pathname], [text, path])
        await page.evaluate("history.back()")
        await dialog.getByRole("button", { name: "Leave" }).click()
        await page.getByRole("heading", { name: "Products", level: 1 }).waitFor()
        assert.strictEqual(new URL(page.url()).pathname, "/console/products")
      }
    })

    inWindow(
      "an element of a model is not saved while one of its fields is half written",
      async ({ page, product, site }) => {
        await signIn(page, site)
        await visit(page, site, `${product}/model`)
        const dialog = page.getByRole("dialog")
        const save = dialog.getByRole("button", { name: "Save" })
        const isOff = async () => await save.getAttribute("aria-disabled") === "true"
        await page.getByRole("button", { name: "Add a service" }).click()
        const [inputs, outputs] = [dialog.getByLabel("Inputs"), dialog.getByLabel("Outputs")]
        await inputs.fill(`[{ "id": "Delay"`)
        await outputs.fill(`[{ "id": "Done", "name": "Done", "dataType": { "type": "bool" } }]`)
        assert.isTrue(await isOff())
        await inputs.fill("[]")
        assert.isFalse(await isOff())
        await dialog.getByRole("button", { name: "Cancel" }).click()

        await page.getByRole("button", { name: "Add a property" }).click()
        await dialog.getByLabel("Type", { exact: true }).selectOption("enum")
        await dialog.getByLabel("Values").fill("0: off\n1 on")
        await dialog.getByText("One on each line: number, colon, label").nth(1).waitFor()
        assert.isTrue(await isOff())
        await dialog.getByLabel("Values").fill("0: off\n1: on\n")
        assert.isFalse(await isOff())
        // What is gone with its field holds up nothing.
        await dialog.getByLabel("Type", { exact: true }).selectOption("array")
        await dialog.getByLabel("Items", { exact: true }).selectOption("struct")
        await dialog.getByLabel("Members").fill("[{")
        assert.isTrue(await isOff())
        await dialog.getByLabel("Items", { exact: true }).selectOption("int")
        assert.isFalse(await isOff())
      }
    )

    inWindow(
      "a number that a device has reported is emptied and typed anew before it is set",
      async ({ device, page, post, site }) => {
        await post({ Target: 21 })
        await signIn(page, site)
        await visit(page, site, `${device}/control`)
        const target = page.getByLabel("Target", { exact: true })
        await shows(target, "21")
        await target.press("End")
        await page.keyboard.press("Backspace")
        await page.keyboard.press("Backspace")
        assert.strictEqual(await target.inputValue(), "")
        const set = page.getByRole("button", { name: "Set properties" })
        assert.strictEqual(await set.getAttribute("aria-disabled"), "true")
        await page.keyboard.type("18")
        assert.strictEqual(await target.inputValue(), "18")
        await page.getByRole("button", { name: "Set 1 property" }).waitFor()
        // Who leaves it as it is has what the device has reported again.
        await page.getByRole("checkbox", { name: "Target" }).uncheck()
        await shows(target, "21")
      }
    )

    inWindow(
      "a device leads to the devices of its batch, and to the firmware of its product",
      async ({ batched, page, site }) => {
        await signIn(page, site)
        await visit(page, site, batched)
        await page.locator("main").getByRole("link", { name: /^\d+$/ }).click()
        await page.getByText("30 in total").waitFor()
        await visit(page, site, `${batched}/firmware`)
        await page.getByRole("link", { name: "Firmware of the product" }).click()
        await page.getByRole("heading", { name: "Firmware", exact: true }).waitFor()
        const chosen = page.getByLabel("Product", { exact: true }).locator("option:checked")
        await chosen.filter({ hasText: "Thermostat" }).waitFor({ state: "attached" })
      }
    )

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

    inWindow("a firmware that is refused is corrected without another upload", async ({ page, site }) => {
      const uploads: Array<string> = []
      page.on("request", (request) => {
        if (request.url().includes("/oss/ota/")) uploads.push(request.url())
      })
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

    inWindow(
      "a scene that is disabled while it is edited stays disabled when it is saved",
      async ({ page, scene, site }) => {
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
      }
    )

    inWindow(
      "the latest time that a device or a scene can name breaks no form, east of Greenwich either",
      async ({ device, page, post, scene, site }) => {
        await post({ LastSeen: "8640000000000000" })
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
      },
      { timezoneId: "Asia/Shanghai" }
    )

    inWindow("what is desired as JSON is what one types: what is left out goes", async ({ hub, page, site }) => {
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

    inWindow("a list goes back to its last page, and says what could not be done", async ({ page, site }) => {
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

    inWindow("a form does not send a time or a number that is half typed", async ({ page, product, site }) => {
      const sent: Array<string> = []
      page.on("request", (request) => {
        if (request.method() !== "GET") sent.push(`${request.method()} ${request.url()}`)
      })
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
      assert.deepStrictEqual(sent, [])
    })

    inWindow("an address that names nothing shows a page that says so", async ({ device, page, site }) => {
      await signIn(page, site)
      await page.goto(`${site}/console/devices/%ZZ`)
      await page.getByRole("heading", { name: "There is no such page", level: 1 }).waitFor()
      await visit(page, site, "/console/devices")
      await visit(page, site, `${device}/toString`)
      await page.getByRole("heading", { name: "Identity" }).waitFor()
      await visit(page, site, `${device}/data?range=toString`)
      assert.strictEqual(await page.getByRole("button", { name: "Day" }).getAttribute("aria-pressed"), "true")
      await visit(page, site, `${device}/data?from=1&to=9e15`)
      assert.strictEqual(await page.getByRole("button", { name: "Day" }).getAttribute("aria-pressed"), "true")
      await visit(page, site, "/console?span=toString")
      assert.strictEqual(await page.getByRole("button", { name: "Hour" }).getAttribute("aria-pressed"), "true")
    })

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

    inWindow("who closes the dialog breaks off the upload, and gets no firmware", async ({ page, site }) => {
      await signIn(page, site)
      await visit(page, site, "/console/firmware")
      await page.getByRole("button", { name: "New firmware" }).click()
      const dialog = page.getByRole("dialog")
      await dialog.getByLabel("Product").selectOption({ label: "Thermostat" })
      await dialog.locator("input[type=file]").setInputFiles({
        name: "firmware.bin",
        mimeType: "application/octet-stream",
        buffer: Buffer.from("too early")
      })
      await dialog.getByLabel("Name (required)").fill("Thermostat")
      await dialog.getByLabel("Version (required)").fill("3.0.0")
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
      await page.getByRole("status").getByText(/./).waitFor()
      await twoFrames(page)
      assert.strictEqual(await question.count(), 1)
    })

    inWindow(
      "a product of very many is typed, and the back button skips the typing",
      async ({ page, product, site }) => {
        await many(page, /\/openapi\/v1\/products\?/)
        await signIn(page, site)
        await visit(page, site, "/console/products")
        await visit(page, site, "/console/devices")
        await page.getByLabel("Product", { exact: true }).focus()
        await page.keyboard.type(product.split("/").at(-1)!)
        await page.getByRole("link", { name: "thermostat01" }).waitFor()
        await page.goBack()
        await page.waitForURL(/products$/)
      }
    )

    inWindow("a group of very many is named by its id", async ({ page, site }) => {
      await many(page, /\/openapi\/v1\/device-groups\?/)
      await signIn(page, site)
      await visit(page, site, "/console/devices")
      await page.locator("tbody input[type=checkbox]").first().check()
      await page.getByRole("button", { name: "Add to a group" }).click()
      await page.getByRole("dialog").getByLabel("Id of the group").waitFor()
    })

    inWindow("figures are as exact as what the device has said", async ({ device, page, post, site }) => {
      await post({ Target: 1234567 })
      await signIn(page, site)
      await visit(page, site, `${device}/data?p=Target`)
      const row = page.getByRole("table", { name: "Figures of the span" }).getByRole("row", { name: /^Target/ })
      await row.getByText("1,234,567 °C").first().waitFor()
    })

    inWindow("a plot of values near zero says which they are", async ({ device, page, post, site }) => {
      await post({ Target: 1 })
      await page.route(/\/history\/query$/, async (route) => {
        const response = await route.fetch()
        const body = await response.json()
        for (const point of body.data.series[0].results) point.avg = 0.00042
        await route.fulfill({ response, json: body })
      })
      await signIn(page, site)
      await visit(page, site, `${device}/data?p=Target`)
      await page.getByRole("img", { name: /: from 0.00042 °C to 0.00042 °C/ }).waitFor()
    })

    inWindow(
      "a plot names its days where the clocks change at midnight",
      async ({ device, page, post, site }) => {
        const [from, to] = [Date.parse("2026-09-01T12:00Z"), Date.parse("2026-09-12T12:00Z")]
        await post({ Target: 1 })
        await page.route(/\/history\/query$/, async (route) => {
          const response = await route.fetch()
          const body = await response.json()
          const results = [from, to].map((time) => ({ time, avg: 1, min: 1, max: 1, last: 1, count: 1 }))
          body.data.series = [{ property_id: "Target", results }]
          await route.fulfill({ response, json: body })
        })
        await page.addInitScript(`{
          const { fillText } = CanvasRenderingContext2D.prototype
          window.written = new Set()
          CanvasRenderingContext2D.prototype.fillText = function (...drawn) {
            window.written.add(drawn[0])
            return fillText.apply(this, drawn)
          }
        }`)
        await signIn(page, site)
        await page.goto(`${site}${device}/data?p=Target&from=${from}&to=${to}`)
        await page.locator(".plot canvas").waitFor()
        await twoFrames(page)
        const days = await page.evaluate<ReadonlyArray<string>>(
          `[...window.written].filter((text) => text.startsWith("Sep"))`
        )
        assert.deepStrictEqual(days, ["Sep 2", "Sep 4", "Sep 6", "Sep 8", "Sep 10", "Sep 12"])
      },
      { timezoneId: "America/Santiago" }
    )

    inWindow("a value near zero is not shown as zero", async ({ device, page, post, site }) => {
      await post({ Temperature: 1.5e-7 })
      await signIn(page, site)
      await visit(page, site, device)
      await page.getByText("1.5E-7 °C").first().waitFor()
    })

    inWindow("an access key is limited to products, operations and addresses", async ({ page, product, site }) => {
      await signIn(page, site)
      await visit(page, site, "/console/keys")
      await page.getByRole("button", { name: "New access key" }).click()
      const dialog = page.getByRole("dialog")
      await dialog.getByLabel("Name").fill("limited")
      await dialog.getByLabel("Only these products").fill(product.split("/").at(-1)!)
      await dialog.getByLabel("Only these operations").fill("devices:read\nhistory:read")
      await dialog.getByLabel("Only from these addresses").fill("192.0.2.0/24")
      await dialog.getByRole("button", { name: "Create" }).click()
      await dialog.getByText("This is the only time").waitFor()
      await dialog.getByRole("button", { name: "Close" }).click()
      await page.getByRole("row", { name: /limited/ })
        .getByText("Only 1 product, 2 groups of operations, from 1 address").waitFor()
    })

    inWindow("a page whose files do not come says so, and comes when one tries again", async ({ page, site }) => {
      await signIn(page, site)
      const files = /\/console\/assets\/Events-/
      await page.route(files, (route) => route.abort())
      await page.getByRole("link", { name: "Events" }).click()
      await page.getByRole("heading", { name: "The page could not be loaded", level: 1 }).waitFor()
      await page.unroute(files)
      await page.getByRole("button", { name: "Try again" }).click()
      await page.getByRole("heading", { name: "Events", level: 1 }).waitFor()
    })

    inWindow("who signs out of a session that has ended is signed out", async ({ context, page, site }) => {
      await signIn(page, site)
      await visit(page, site, "/console/products")
      await context.clearCookies()
      await page.getByRole("button", { name: "Sign out" }).click()
      await page.getByRole("heading", { name: "Sign in", level: 1 }).waitFor()
      assert.strictEqual(await page.getByRole("dialog").count(), 0)
    })

    inWindow("a page whose session has ended asks the server for nothing", async ({ context, device, page, site }) => {
      await signIn(page, site)
      const opened = streamed(page)
      await visit(page, site, `${device}/trace`)
      await opened
      await page.clock.install()
      await context.request.delete(`${site}/openapi/v1/browser-sessions/current`, {
        headers: { "x-csrf-protection": "1" }
      })
      await page.getByText(/^Your session has ended/).waitFor()
      await page.waitForLoadState("networkidle")
      const asked: Array<string> = []
      page.on("request", (request) => asked.push(request.url()))
      for (let second = 0; second < 30; second++) await page.clock.runFor(1000)
      assert.deepStrictEqual(asked, [])
      // It follows the device again when somebody has signed in.
      const again = streamed(page)
      await page.getByLabel("Access key").fill(ownerKey)
      await page.getByRole("button", { name: "Sign in" }).click()
      await page.clock.runFor(5000)
      assert.strictEqual((await again).status(), 200)
    })

    inWindow("who signs in again goes on where the focus was", async ({ context, page, scene, site }) => {
      await signIn(page, site)
      await visit(page, site, scene)
      const description = page.getByLabel("Description")
      await description.fill("For the hall")
      await context.clearCookies()
      await page.keyboard.press("Enter")
      await page.getByText(/^Your session has ended/).waitFor()
      await page.getByLabel("Access key").fill(ownerKey)
      await page.keyboard.press("Enter")
      await page.getByText(/^Your session has ended/).waitFor({ state: "detached" })
      await twoFrames(page)
      assert.strictEqual(await page.locator(":focus").inputValue(), "For the hall")
    })

    inWindow(
      "a key that may not read the overview begins at the first page that it may",
      async ({ ofProductsAloneKey, page, site }) => {
        const refused = refusals(page)
        await signIn(page, site, ofProductsAloneKey)
        await page.getByRole("heading", { name: "Products", level: 1 }).waitFor()
        await page.getByRole("link", { name: "Thermostat" }).waitFor()
        assert.strictEqual(new URL(page.url()).pathname, "/console/products")
        await page.getByRole("link", { name: "Device Cloud" }).click()
        await page.waitForURL(/products$/)
        assert.deepStrictEqual(refused, [])
      }
    )

    inWindow("a key that is shown or hidden keeps the focus", async ({ page, site }) => {
      await signIn(page, site)
      await visit(page, site, "/console/subscriptions")
      await press(page, "Show the key")
      await page.getByLabel("The key that signs webhooks").waitFor()
      assert.strictEqual(await focused(page), "Hide the key")
      await page.keyboard.press("Enter")
      await page.getByLabel("The key that signs webhooks").waitFor({ state: "detached" })
      assert.strictEqual(await focused(page), "Show the key")
    })

    inWindow("a trace that is stopped keeps the focus", async ({ device, page, site }) => {
      await signIn(page, site)
      await visit(page, site, `${device}/trace`)
      const isOff = () => page.getByRole("button", { name: "Stop the trace" }).getAttribute("aria-disabled")
      assert.strictEqual(await isOff(), "true")
      await press(page, "Start a trace")
      await page.getByRole("button", { name: "Trace for longer" }).waitFor()
      assert.strictEqual(await isOff(), "false")
      await press(page, "Stop the trace")
      await page.getByRole("button", { name: "Start a trace" }).waitFor()
      assert.strictEqual(await focused(page), "Stop the trace")
    })

    inWindow("a property that is removed from a plot leaves the focus to the next", async ({ device, page, site }) => {
      await signIn(page, site)
      await visit(page, site, `${device}/data?p=PowerSwitch,Target`)
      await press(page, "Remove Power from the plot")
      await page.getByRole("button", { name: "Remove Power from the plot" }).waitFor({ state: "detached" })
      assert.strictEqual(await focused(page), "Remove Target from the plot")
      // The last one stays.
      await page.keyboard.press("Enter")
      await twoFrames(page)
      assert.strictEqual(await focused(page), "Remove Target from the plot")
    })

    inWindow("the ends of a list keep the focus", async ({ page, site }) => {
      await signIn(page, site)
      await visit(page, site, "/console/devices")
      for (const [name, place] of [["Next page", "Page 2 of 2"], ["Previous page", "Page 1 of 2"]] as const) {
        await press(page, name)
        await page.getByText(place, { exact: true }).waitFor()
        await page.keyboard.press("Enter")
        await twoFrames(page)
        assert.deepStrictEqual([await focused(page), await page.getByText(place, { exact: true }).count()], [name, 1])
      }
    })

    inWindow("an action of a scene that is moved keeps the focus", async ({ page, scene, site }) => {
      await signIn(page, site)
      await visit(page, site, scene)
      for (const kind of ["action/delay", "action/webhook"]) {
        await page.getByLabel("Add an action").selectOption(kind)
        await page.getByRole("button", { name: "Add", exact: true }).last().click()
      }
      await page.getByRole("button", { name: /^Move up: 3/ }).focus()
      for (const place of [2, 1, 1]) {
        await page.keyboard.press("Enter")
        await page.getByRole("heading", { name: `${place}. Call an address` }).waitFor()
        await twoFrames(page)
        assert.strictEqual(await focused(page), `Move up: ${place}. Call an address`)
      }
    })

    inWindow("who deletes a row of a table goes on in the table", async ({ page, site }) => {
      await signIn(page, site)
      await visit(page, site, "/console/keys")
      await page.getByRole("button", { name: "New access key" }).click()
      await page.getByRole("dialog").getByLabel("Name").fill("short-lived")
      await page.keyboard.press("Enter")
      await page.getByRole("dialog").getByText("This is the only time").waitFor()
      await page.getByRole("dialog").getByRole("button", { name: "Close" }).click()
      const row = page.getByRole("row", { name: /short-lived/ })
      await row.getByRole("button", { name: /^Delete/ }).focus()
      await page.keyboard.press("Enter")
      await page.getByRole("dialog").getByRole("button", { name: "Delete" }).press("Enter")
      await row.waitFor({ state: "detached" })
      await twoFrames(page)
      assert.strictEqual(await focused(page), "Access keys of the project")
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
      "a browser whose clock is fast can stop the time in which sub-devices join",
      async ({ hub, page, site }) => {
        await signIn(page, site)
        await page.clock.install({ time: Date.now() + 3_600_000 })
        await visit(page, site, `/console/gateways?gateway=${hub.split("/").at(-1)}`)
        await page.getByRole("button", { name: "Let sub-devices join" }).click()
        await page.getByRole("dialog").getByRole("button", { name: "Start" }).click()
        await page.getByRole("heading", { name: "Sub-devices may join" }).waitFor()
        await page.getByRole("button", { name: "Stop", exact: true }).click()
        await page.getByRole("heading", { name: "Sub-devices could join" }).waitFor()
      }
    )

    inWindow("who cancels while a firmware is created gets none", async ({ page, site }) => {
      await signIn(page, site)
      await visit(page, site, "/console/firmware")
      await page.getByRole("button", { name: "New firmware" }).click()
      const dialog = page.getByRole("dialog")
      await dialog.getByLabel("Product").selectOption({ label: "Thermostat" })
      await dialog.locator("input[type=file]").setInputFiles({
        name: "firmware.bin",
        mimeType: "application/octet-stream",
        buffer: Buffer.from("too early")
      })
      await dialog.getByLabel("Name (required)").fill("Thermostat")
      await dialog.getByLabel("Version (required)").fill("4.0.0")
      const creating = await holdUp(page, /\/ota\/firmwares$/, "POST")
      await dialog.getByRole("button", { name: "Create" }).click()
      await creating.arrived
      await dialog.getByRole("button", { name: "Cancel" }).click()
      const removed = page.waitForResponse((response) => response.request().method() === "DELETE")
      creating.release("continue")
      assert.strictEqual((await removed).status(), 200)
      await twoFrames(page)
      assert.strictEqual(new URL(page.url()).pathname, "/console/firmware")
      await visit(page, site, "/console/products")
      await visit(page, site, "/console/firmware")
      await page.getByLabel("Product", { exact: true }).selectOption({ label: "Thermostat" })
      await page.getByText("1.1.0").waitFor()
      assert.strictEqual(await page.getByText("4.0.0").count(), 0)
    })

    inWindow(
      "a configuration that somebody else stores meanwhile is shown before it is replaced",
      async ({ page, product, site }) => {
        const store = async (content: string) => {
          const response = await fetch(`${site}/openapi/v1/products/${product.split("/").at(-1)}/configuration`, {
            method: "PUT",
            headers: { authorization: `Bearer ${ownerKey}`, "content-type": "application/json" },
            body: JSON.stringify({ format: "json", content })
          })
          assert.strictEqual(response.status, 200)
        }
        await store(`{"interval":60}`)
        await signIn(page, site)
        await visit(page, site, `${product}/configuration`)
        const content = page.getByLabel("Content")
        const save = page.getByRole("button", { name: "Save", exact: true })
        await content.fill(`{"interval":5}`)
        await store(`{"interval":3600}`)
        await save.click()
        await page.getByRole("alert").getByText(`{"interval":3600}`).waitFor()
        assert.strictEqual(await content.inputValue(), `{"interval":5}`)
        await save.click()
        await page.getByText(/^Saved as version/).waitFor()
        assert.strictEqual(await page.getByRole("alert").count(), 0)
      }
    )

    inWindow(
      "a codec that somebody else stores meanwhile is shown before it is replaced",
      async ({ codec, page, site }) => {
        const codecOf = (name: string) => ({
          reports: [{
            name,
            method: "thing.event.property.post",
            parts: [{ type: "uint", size: 2, to: "params.Angle" }]
          }]
        })
        const store = async (name: string) => {
          const response = await fetch(`${site}${codec.replace("/console", "/openapi/v1")}`, {
            method: "PUT",
            headers: { authorization: `Bearer ${ownerKey}`, "content-type": "application/json" },
            body: JSON.stringify({ codec: codecOf(name) })
          })
          assert.strictEqual(response.status, 200)
        }
        await store("first")
        await signIn(page, site)
        await visit(page, site, codec)
        const text = page.getByLabel("Description as JSON")
        const save = page.getByRole("button", { name: "Save", exact: true })
        await text.fill(JSON.stringify(codecOf("mine")))
        await store("theirs")
        await save.click()
        await page.getByRole("alert").getByText("theirs").waitFor()
        assert.strictEqual(await text.inputValue(), JSON.stringify(codecOf("mine")))
        await save.click()
        await page.getByText(/^Saved as version/).waitFor()
        assert.strictEqual(await page.getByRole("alert").count(), 0)
        // What is deleted is gone from the form, too.
        await page.getByRole("button", { name: "Delete the codec?" }).click()
        await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click()
        await shows(text, "{}")
      }
    )

    inWindow("a subscription that begins at a time is not created without one", async ({ page, site }) => {
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
  })
})
