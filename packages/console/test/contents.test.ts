/**
 * What single pages of the console show: as it is, as soon as it changes, and that
 * it cannot be read.
 */
import { ownerKey } from "@device-cloud/testing/http"
import { assert } from "@effect/vitest"
import type { Page, Response } from "playwright-core"
import { vi } from "vitest"
import { isStream, signIn, signInAtForm, streamed } from "./ConsolePage.ts"
import { follow, inBrowser, twoFrames, visit } from "./Windows.ts"

/** The second one from now on: who waits for the first one and then for another may miss it. */
const second = (page: Page, isWanted: (response: Response) => boolean) => {
  let seen = 0
  return page.waitForResponse((response) => isWanted(response) && ++seen === 2)
}

/** Waits for the request that asks why a stream is refused, to its end: `EventSource` does not tell. */
const toldWhy = async (page: Page, of = "") => {
  const response = await page.waitForResponse((response) =>
    isStream(response) && response.url().includes(of) && response.request().resourceType() === "fetch"
  )
  return response.finished()
}

const lost = (page: Page) => page.getByText(/^The connection to the server is lost/)

inBrowser((inWindow) => {
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
    "windows that are hidden leave the connections of the browser to the one in view, and catch up",
    async ({ context, device, page, report, site }) => {
      await signIn(page, site)
      /** A browser without a screen shows all windows. */
      const become = (window: Page, state: "hidden" | "visible") =>
        window.evaluate(`
          Object.defineProperty(document, "visibilityState", { configurable: true, value: "${state}" })
          document.dispatchEvent(new Event("visibilitychange"))
        `)
      const openHidden = async (path: string) => {
        const window = await context.newPage()
        const opened = streamed(window)
        await visit(window, site, path)
        await opened
        await become(window, "hidden")
        return window
      }
      const events = await openHidden("/console/events?type=property")
      const devices: Array<Page> = []
      for (let count = 0; count < 6; count++) devices.push(await openHidden(device))
      const opened = streamed(page)
      await visit(page, site, "/console/devices")
      await opened
      await report(18.25)
      await events.getByText("18.25").first().waitFor()
      assert.strictEqual(await devices[0]!.getByText(/18\.25/).count(), 0)
      await become(devices[0]!, "visible")
      await devices[0]!.getByText(/18\.25/).first().waitFor()
    }
  )

  inWindow(
    "a report that comes while the shadow is read, or read again, is shown",
    async ({ device, page, report, site }) => {
      await signIn(page, site)
      const opened = streamed(page)
      await visit(page, site, `${device}/events`)
      await opened
      const isShadow = (response: Response) => response.url().endsWith("/shadow")
      /** The response to the next read comes when the page has heard of a later report. */
      const overtakeNext = (temperature: number) =>
        page.route(/\/shadow$/, async (route) => {
          const response = await route.fetch()
          // Another stream of the page tells when its own has the report, too.
          const told = page.evaluate(`new Promise((resolve) => {
          const stream = new EventSource("/openapi/v1/events?type=property")
          stream.onopen = () => document.body.dataset.listens = "yes"
          stream.addEventListener("property", () => {
            stream.close()
            delete document.body.dataset.listens
            setTimeout(resolve, 250)
          })
        })`)
          await page.locator("body[data-listens]").waitFor({ state: "attached" })
          await report(temperature)
          await told
          await route.fulfill({ response })
        }, { times: 1 })

      await overtakeNext(18.75)
      // What was desired may have changed, too: it is read once more.
      const readTwice = second(page, isShadow)
      await page.getByRole("link", { name: "Overview", exact: true }).last().click()
      await page.getByText(/18\.75/).first().waitFor()
      await (await readTwice).finished()
      await twoFrames(page)

      await overtakeNext(19.25)
      const readAgain = page.waitForResponse(isShadow)
      // As when somebody has signed in in another window: the page is read again.
      await page.evaluate("new BroadcastChannel('device-cloud-session').postMessage('changed')")
      await (await readAgain).finished()
      await twoFrames(page)
      assert.strictEqual(await page.getByText(/18\.75/).count(), 0)
      await page.getByText(/19\.25/).first().waitFor()
    }
  )

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
    "a key of several products goes from a tag, and from a batch, to the devices that have it",
    async ({ call, device, ofProductsKey, page, product, site }) => {
      const tags = `${device.replace("/console/devices", "/things")}/tags`
      await call("PUT", tags, { tags: { room: "attic" } })
      await signIn(page, site, ofProductsKey)
      await visit(page, site, device)
      await page.getByRole("link", { name: "room: attic" }).click()
      await page.getByText("1 in total", { exact: true }).waitFor()
      await visit(page, site, product.replace("/console/products/", "/console/devices?view=batches&product="))
      await page.getByRole("link", { name: "Show devices" }).click()
      await page.getByText("30 in total", { exact: true }).waitFor()
      await call("PUT", tags, { tags: {} })
    }
  )

  inWindow(
    "a key that reads no events is not told that the server is away",
    async ({ device, page, site, withoutEventsKey }) => {
      await signIn(page, site, withoutEventsKey)
      const banner = lost(page).waitFor().then(() => "lost")
      banner.catch(() => undefined)
      const refused = toldWhy(page, "device_id=")
      await visit(page, site, device)
      assert.strictEqual(await Promise.race([banner, refused]), null)
      await twoFrames(page)
      assert.strictEqual(await lost(page).count(), 0)
    }
  )

  inWindow(
    "live values go on once a proxy that had no server for a while has one again",
    async ({ device, page, report, site }) => {
      await signIn(page, site)
      const address = /\/v1\/events\?/
      await page.route(
        address,
        (route) => route.fulfill({ status: 404, contentType: "text/html", body: "<h1>No server</h1>" })
      )
      await visit(page, site, device)
      await lost(page).waitFor()
      const opened = streamed(page)
      await page.unroute(address)
      assert.strictEqual((await opened).status(), 200)
      await report(16.75)
      await page.getByText(/16\.75/).first().waitFor()
    }
  )

  inWindow(
    "live values go on when a network has forgotten the connection without a word",
    async ({ device, page, report, site }) => {
      await signIn(page, site)
      const address = /\/v1\/events\?/
      let isForgotten = true
      // The stream never says anything.
      await page.route(address, (route) => isForgotten ? undefined : route.continue())
      await page.clock.install()
      const silent = page.waitForRequest(address)
      await visit(page, site, device)
      await silent
      await twoFrames(page)
      isForgotten = false
      const opened = streamed(page)
      await page.clock.runFor(61_000)
      assert.strictEqual((await opened).status(), 200)
      await report(17.5)
      await page.clock.runFor(1000)
      await page.getByText(/17\.5/).first().waitFor()
      // It goes on after its last event, and the second time where the feed is.
      for (const goesOn of [true, false]) {
        const again = streamed(page)
        await page.clock.runFor(61_000)
        assert.strictEqual(new URL((await again).url()).searchParams.has("last_event_id"), goesOn)
      }
    }
  )

  inWindow(
    "who deletes a device goes on with the list, also if the page knows before the answer that it is gone",
    async ({ call, page, product, site }) => {
      const { device_id } = await call("POST", `/products/${product.split("/").at(-1)}/things`, {
        device_name: `leaving${Date.now()}`
      })
      await signIn(page, site)
      const opened = streamed(page)
      await visit(page, site, `/console/devices/${device_id}`)
      assert.strictEqual((await opened).status(), 200)
      const gone = page.getByText("This device was deleted")
      await page.route(/\/v1\/things\/\w+$/, async (route) => {
        if (route.request().method() !== "DELETE") return route.fallback()
        const response = await route.fetch()
        await gone.waitFor()
        await route.fulfill({ response })
      })
      const dialog = page.getByRole("dialog")
      await page.getByRole("button", { name: /^Delete/ }).click()
      await dialog.getByRole("textbox").fill(await page.getByRole("heading", { level: 1 }).innerText())
      await dialog.getByRole("button", { name: /^Delete/ }).click()
      await page.waitForURL(/\/console\/devices$/)
      assert.strictEqual(await gone.count(), 0)
    }
  )

  inWindow("a window notices who signs in and out in another one", async ({ context, page, site, viewerKey }) => {
    const create = page.getByRole("button", { name: "New product" })
    const ended = page.getByText(/^Your session has ended/)
    const other = await context.newPage()
    await other.goto(`${site}/console/products`)
    await other.getByLabel("Access key").waitFor()
    await signInAtForm(page, site)
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
    "a window whose question who has signed in fails asks again",
    async ({ context, page, site, viewerKey }) => {
      const other = await context.newPage()
      await signIn(page, site)
      await visit(page, site, "/console/products")
      await other.goto(`${site}/console/products`)
      await other.getByRole("button", { name: "Sign out" }).click()
      await page.getByText(/^Your session has ended/).waitFor()
      await page.route("**/browser-sessions/current", (route) => route.abort(), { times: 1 })
      await other.getByLabel("Access key").fill(viewerKey)
      await other.getByRole("button", { name: "Sign in" }).click()
      await page.getByText("dashboard (viewer)").waitFor()
      assert.strictEqual(await page.getByText(/^Your session has ended/).count(), 0)
    }
  )

  inWindow(
    "what is asked goes when another key signs in, and stays for the same one",
    async ({ context, page, scene, site, viewerKey }) => {
      const question = page.getByRole("heading", { name: /^Delete the scene/ })
      const other = await context.newPage()
      /** In the other window somebody signs out, and in with a key. */
      const change = async (key: string) => {
        await other.getByRole("button", { name: "Sign out" }).click()
        await page.getByText(/^Your session has ended/).waitFor()
        await other.getByLabel("Access key").fill(key)
        await other.getByRole("button", { name: "Sign in" }).click()
        await page.getByText(/^Your session has ended/).waitFor({ state: "detached" })
      }
      await signIn(page, site)
      await other.goto(`${site}/console/products`)
      await visit(page, site, scene)
      await page.locator("main").getByRole("button", { name: /^Delete the scene/ }).click()
      await question.waitFor()
      await change(ownerKey)
      assert.strictEqual(await question.count(), 1)
      await change(viewerKey)
      await page.getByText("dashboard (viewer)").waitFor()
      await question.waitFor({ state: "detached" })
    }
  )

  inWindow("what a page has asked goes with the page", async ({ page, scene, site }) => {
    await signIn(page, site)
    await visit(page, site, "/console/scenes")
    await page.evaluate(follow(scene))
    await page.locator("main").getByRole("button", { name: /^Delete the scene/ }).click()
    const question = page.getByRole("heading", { name: /^Delete the scene/ })
    await question.waitFor()
    await page.goBack()
    await page.getByRole("heading", { name: "Scenes" }).waitFor()
    await question.waitFor({ state: "detached" })
  })

  inWindow(
    "the events page takes a type that there is not for none, and filters that are refused for no lost connection",
    async ({ page, report, site }) => {
      await signIn(page, site)
      const opened = streamed(page)
      await visit(page, site, "/console/events?type=unknown")
      assert.strictEqual((await opened).status(), 200)
      await report(19.25)
      await page.getByText("19.25").waitFor()

      const refused = toldWhy(page, "device_id=")
      await page.getByLabel("Device id").fill("d".repeat(129))
      const banner = lost(page).waitFor().then(() => "lost")
      banner.catch(() => undefined)
      assert.strictEqual(await Promise.race([banner, refused]), null)
      await twoFrames(page)
      assert.strictEqual(await lost(page).count(), 0)
    }
  )

  inWindow("events that were gathered for one type are not shown under another", async ({ page, report, site }) => {
    // What is gathered waits until the test lets it go on.
    await page.addInitScript(`
      const later = window.setTimeout
      const held = []
      window.setTimeout = (run, wait, ...rest) => {
        if (wait !== 250) return later(run, wait, ...rest)
        held.push(run)
        document.body.dataset.held = held.length
        return -held.length
      }
      const clear = window.clearTimeout
      window.clearTimeout = (timer) => timer < 0 ? delete held[-timer - 1] : clear(timer)
      window.goOn = () => held.forEach((run) => run())
    `)
    await signIn(page, site)
    const opened = streamed(page)
    await visit(page, site, "/console/events?type=property")
    await opened
    await report(18)
    await page.locator("body[data-held]").waitFor({ state: "attached" })
    const other = streamed(page)
    await page.getByLabel("Type").selectOption("status")
    await other
    await page.evaluate("goOn()")
    await twoFrames(page)
    assert.strictEqual(await page.getByText("Temperature").count(), 0)
  })

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

  inWindow("an address that names nothing shows a page that says so", async ({ device, page, pages, site }) => {
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
    for (
      const path of [
        "/firmware/nowhere",
        pages.find((path) => path.includes("/campaigns/"))!.replace(/\/console(.*\/)\d+$/, "$1nowhere"),
        "/jobs/nowhere",
        "/subscriptions/nowhere",
        "/devices?view=groups&group=nowhere"
      ]
    ) {
      await visit(page, site, `/console${path}`)
      await page.getByRole("heading", { name: "There is nothing named \"nowhere\"" }).first().waitFor()
      assert.strictEqual(await page.getByText("40001").count(), 0, path)
    }
  })

  inWindow("a page says once that what it is of is not there", async ({ call, page, pages, product, site }) => {
    await signIn(page, site)
    const firmware = await call("POST", `/products/${product.split("/").at(-1)}/ota/firmwares`, {
      name: "Another",
      version: "7.0.0",
      oss_path: "https://example.com/firmware.bin",
      algorithms: 1,
      hash: "93230c3bde425a9d7984a594ac55ea1e"
    })
    // A campaign of another firmware.
    const taskId = pages.find((path) => path.includes("/campaigns/"))!.split("/").at(-1)
    for (
      const [path, said] of [
        ["/jobs/999999", "There is no job 999999"],
        ["/firmware/999999/campaigns/999998", "There is no firmware 999999 in this project"],
        [`/firmware/${firmware["id"]}/campaigns/999998`, "There is nothing named \"999998\""],
        [`/firmware/${firmware["id"]}/campaigns/${taskId}`, `There is nothing named "${taskId}"`]
      ] as const
    ) {
      await visit(page, site, `/console${path}`)
      await page.getByRole("heading", { name: said }).waitFor()
      await vi.waitFor(async () => assert.strictEqual(await page.getByRole("heading", { level: 2 }).count(), 1, path))
      assert.strictEqual(await page.getByRole("table").count(), 0, path)
    }
  })

  inWindow("an id that is dots leads to no other operation", async ({ page, product, site }) => {
    await signIn(page, site)
    const paths: Array<string> = []
    page.on("request", (request) => paths.push(new URL(request.url()).pathname))
    await visit(page, site, `/console/devices/connect?product=${product.split("/").at(-1)}&device=..`)
    await page.getByText("There is nothing named \"..\"").waitFor()
    assert.notInclude(paths, "/openapi/v1/detail")
  })

  inWindow("the picture of a scene has those of all pages that run it", async ({ page, scene, site }) => {
    const id = scene.split("/").at(-1)
    await page.route(/\/rule-engine\/scenes\?/, async (route) => {
      const response = await route.fetch({ url: route.request().url().replace(/page=\d+/, "page=1") })
      const body = await response.json()
      const elsewhere = {
        id: "elsewhere",
        name: "Elsewhere",
        actions: [{ URI: "action/rule", params: { scene_id: id } }]
      }
      const isSecond = /[?&]page=2/.test(route.request().url())
      body.data = { ...body.data, pages: 2, results: isSecond ? [elsewhere] : body.data.results }
      await route.fulfill({ response, json: body })
    })
    await signIn(page, site)
    await visit(page, site, `${scene}/picture`)
    await page.getByRole("link", { name: "Elsewhere" }).waitFor()
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

  inWindow(
    "the hours of presence are those of the clock where it changes at midnight",
    async ({ device, page, site }) => {
      await page.clock.install({ time: new Date("2026-09-06T20:00Z") })
      // The server does not say what time it is.
      await page.addInitScript(`{
        const { get } = Headers.prototype
        Headers.prototype.get = function (name) {
          return name === "date" ? null : get.call(this, name)
        }
      }`)
      await page.route(/\/presence\?/, async (route) => {
        const response = await route.fetch()
        const body = await response.json()
        await route.fulfill({ response, json: { ...body, data: { ...body.data, results: [] } } })
      })
      await signIn(page, site)
      await page.goto(`${site}${device}?days=1`)
      const names = page.locator(".presence-band text")
      await names.first().waitFor()
      assert.deepStrictEqual(await names.allTextContents(), [
        "18:00",
        "21:00",
        "01:00",
        "03:00",
        "06:00",
        "09:00",
        "12:00",
        "15:00"
      ])
    },
    { timezoneId: "America/Santiago" }
  )

  inWindow("a plot shows values that stand alone between many", async ({ device, page, post, site }) => {
    const [from, to] = [Date.parse("2026-09-01T00:00Z"), Date.parse("2026-09-02T00:00Z")]
    const minute = 60_000
    await post({ Target: 1 })
    await page.route(/\/history\/query$/, async (route) => {
      const response = await route.fetch()
      const body = await response.json()
      const many = Array.from({ length: 200 }, (_, i) => [from + (600 + i) * minute, i] as const)
      const results = [[from + minute, 120] as const, ...many, [to - minute, 60] as const]
        .map(([time, value]) => ({ time, avg: value, min: value, max: value, last: value, count: 1 }))
      body.data.series = [{ property_id: "Target", results }]
      await route.fulfill({ response, json: body })
    })
    await page.addInitScript(`{
      const { arc } = Path2D.prototype
      window.heights = new Set()
      Path2D.prototype.arc = function (...drawn) {
        window.heights.add(Math.round(drawn[1]))
        return arc.apply(this, drawn)
      }
    }`)
    await signIn(page, site)
    await page.goto(`${site}${device}/data?p=Target&from=${from}&to=${to}`)
    await page.locator(".plot canvas").waitFor()
    await twoFrames(page)
    assert.strictEqual(await page.evaluate("window.heights.size"), 2)
  })

  inWindow(
    "what differs by its colour does so where the system chooses the colours",
    async ({ device, page, pages, site }) => {
      /** The colours of what `places` has, without those that are there twice. */
      const colors = (places: string, property: string) =>
        page.locator(places).evaluateAll(
          (elements: ReadonlyArray<never>, property) => [
            // @ts-expect-error This runs in the page.
            ...new Set(elements.map((element) => getComputedStyle(element)[property]))
          ],
          property
        )
      await signIn(page, site)
      await visit(page, site, device)
      assert.lengthOf(await colors(".tabs a", "borderBottomColor"), 2)
      await visit(page, site, pages.find((path) => path.includes("/campaigns/"))!)
      assert.lengthOf(await colors(".bar, .bar > span", "backgroundColor"), 6)
      assert.lengthOf(await colors(".progress .key i", "backgroundColor"), 5)
      await visit(page, site, "/console")
      const lines = page.locator(".plot", { hasText: "Refused" })
      await lines.locator(".u-marker").last().waitFor()
      assert.lengthOf(await colors(".plot .u-series + .u-series .u-marker", "borderTopColor"), 3)
      assert.lengthOf(await colors(".button[aria-pressed]", "backgroundColor"), 2)
    },
    { forcedColors: "active" }
  )

  inWindow("a page is printed dark on white, whatever the theme", async ({ page, site }) => {
    await signIn(page, site)
    await visit(page, site, "/console/products")
    await page.emulateMedia({ media: "print", colorScheme: "dark" })
    for (const theme of ["dark", "system"]) {
      await page.getByLabel("Appearance").selectOption(theme)
      assert.strictEqual(await page.evaluate("getComputedStyle(document.body).color"), "rgb(20, 33, 34)")
    }
  })

  inWindow("a plot is drawn in the colours of a theme as soon as it is chosen", async ({ page, site }) => {
    await page.addInitScript(`{
      const { fillText } = CanvasRenderingContext2D.prototype
      CanvasRenderingContext2D.prototype.fillText = function (...drawn) {
        window.ink = this.fillStyle
        return fillText.apply(this, drawn)
      }
    }`)
    await signIn(page, site)
    await visit(page, site, "/console")
    await page.locator(".plot canvas").first().waitFor()
    await twoFrames(page)
    // The clock goes on for less time than lies between two reads.
    await page.clock.install()
    const ink = async () => {
      await page.clock.runFor(500)
      return page.evaluate("window.ink")
    }
    const inks = [await ink()]
    for (const theme of ["dark", "light", "system"]) {
      await page.getByLabel("Appearance").selectOption(theme)
      inks.push(await ink())
    }
    const changed = page.evaluate(`new Promise((resolve) => {
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => resolve(), { once: true })
    })`)
    await page.emulateMedia({ colorScheme: "dark" })
    await changed
    inks.push(await ink())
    const [onLight, onDark] = ["#4d5f60", "#a6b5b6"]
    assert.deepStrictEqual(inks, [onLight, onDark, onLight, onLight, onDark])
  })

  inWindow(
    "the span of the audit log is the same one in every zone",
    async ({ page, site }) => {
      await signIn(page, site)
      await visit(page, site, "/console/audit?start=2026-11-01T00:30:00.000Z")
      assert.strictEqual(await page.getByLabel("From").inputValue(), "2026-11-01T08:30")
      await page.getByLabel("Until").focus()
      await page.keyboard.type("110220250930AM")
      await page.waitForURL(/end=/)
      // On the way to another year lies one in which no clock had a zone.
      await page.getByLabel("From").focus()
      await page.getByLabel("Until").focus()
      await page.keyboard.type("11022026")
      await page.waitForURL(/end=2026/)
      assert.strictEqual(await page.getByLabel("Until").inputValue(), "2026-11-02T09:30")
      assert.strictEqual(new URL(page.url()).searchParams.get("end"), "2026-11-02T01:30:00.000Z")
      const csv = (await page.getByRole("link", { name: "Export" }).getAttribute("href"))!
      assert.strictEqual(new URLSearchParams(csv.split("?")[1]).get("end"), "2026-11-02T01:30:00.000Z")
    },
    { timezoneId: "Asia/Shanghai" }
  )

  inWindow(
    "the devices of a batch are those of its product, and the filters say so",
    async ({ page, product, site }) => {
      const key = product.split("/").at(-1)
      await signIn(page, site)
      await visit(page, site, `/console/devices?product=${key}&batch=1`)
      assert.strictEqual(await page.getByLabel("Batch").inputValue(), "1")
      await page.getByLabel("Product", { exact: true }).selectOption({ label: "Hub" })
      await page.getByRole("link", { name: "hub01" }).waitFor()
      assert.strictEqual(await page.getByLabel("Batch").inputValue(), "")
    }
  )

  inWindow("what there is one of is not said of several", async ({ call, page, product, site }) => {
    const key = product.split("/").at(-1)
    const { batch_id } = await call("POST", `/products/${key}/batch-things`, { num: 1, desc: "one" })
    await call("PUT", `/products/${key}/history-retention`, { days: 1 })
    await signIn(page, site)
    await visit(page, site, product)
    await page.getByText("Kept for 1 day,").waitFor()
    await visit(page, site, `/console/devices?view=batches&product=${key}`)
    await page.getByRole("button", { name: `Delete batch ${batch_id}?` }).click()
    await page.getByRole("dialog").getByText("It takes 1 device with it.").waitFor()
    await call("DELETE", `/products/${key}/history-retention`)
  })

  inWindow("a list that cannot be read shows no rows of another filter", async ({ page, site }) => {
    await signIn(page, site)
    await visit(page, site, "/console/devices")
    const rows = page.locator("tbody tr")
    await rows.first().waitFor()
    await page.route(/\/v1\/things\?.*status=online/, (route) => route.abort())
    await page.getByLabel("Status").selectOption("online")
    await page.getByRole("alert").getByText("The server cannot be reached").waitFor()
    assert.strictEqual(await rows.count(), 0)
    // What fails when it is read again stays in view.
    await page.unrouteAll()
    await page.getByRole("button", { name: "Try again" }).click()
    await rows.first().waitFor()
  })

  inWindow("a page that something else than the server answers says that it cannot be read", async ({ page, site }) => {
    await signIn(page, site)
    const proxied = /\/v1\/products\?/
    await page.route(proxied, (route) => route.fulfill({ contentType: "text/html", body: "<h1>Sign in</h1>" }))
    await visit(page, site, "/console/products")
    await page.getByRole("alert").getByText("The response of the server cannot be read").waitFor()
    await page.unroute(proxied)
    await page.getByRole("button", { name: "Try again" }).click()
    await page.getByRole("link", { name: "Thermostat" }).waitFor()
  })

  inWindow(
    "a page that follows another of its kind shows nothing of it while it is read",
    async ({ codec, page, product, site }) => {
      await signIn(page, site)
      const lock = codec.replace("/codec", "")
      await visit(page, site, product)
      await page.getByRole("heading", { name: "Thermostat", level: 1 }).waitFor()
      await page.route(/\/v1\/products\/\w+$/, () => undefined)
      const asked = page.waitForRequest(/\/v1\/products\/\w+$/)
      await page.evaluate(follow(lock))
      await asked
      await twoFrames(page)
      assert.strictEqual(await page.getByRole("heading", { level: 1 }).innerText(), lock.split("/").at(-1))
      assert.strictEqual(await page.getByRole("button", { name: /^Delete/ }).count(), 0)
    }
  )

  inWindow("a value near zero is not shown as zero", async ({ device, page, post, site }) => {
    await post({ Temperature: 1.5e-7 })
    await signIn(page, site)
    await visit(page, site, device)
    await page.getByText("1.5E-7 °C").first().waitFor()
  })

  inWindow(
    "a date of a device is shown as it is, also the first moment of 1970",
    async ({ device, page, post, site }) => {
      await post({ LastSeen: "0" })
      await signIn(page, site)
      await visit(page, site, `${device}/shadow`)
      await page.locator("time[datetime='1970-01-01T00:00:00.000Z']").waitFor()
    }
  )

  inWindow("a page whose files do not come says so, and comes when one tries again", async ({ page, site }) => {
    await signIn(page, site)
    await visit(page, site, "/console")
    const files = /\/console\/assets\/Events-/
    await page.route(files, (route) => route.abort())
    await page.getByRole("link", { name: "Events" }).click()
    await page.getByRole("heading", { name: "The page could not be loaded", level: 1 }).waitFor()
    await page.unroute(files)
    await page.getByRole("button", { name: "Try again" }).click()
    await page.getByRole("heading", { name: "Events", level: 1 }).waitFor()
  })

  inWindow(
    "a language whose texts do not come is not chosen, and a first visit is in English",
    async ({ page, site }) => {
      const refused = /\/assets\/zh-[^/]*\.js$/
      await page.route(refused, (route) => route.abort())
      await signIn(page, site)
      await visit(page, site, "/console")
      const chosen = page.getByLabel("Language")
      await chosen.selectOption("zh")
      await page.getByText("The server is away, or has another version of the console.").waitFor()
      assert.strictEqual(await chosen.inputValue(), "en")
      await page.unroute(refused)
      await chosen.selectOption("zh")
      await page.getByLabel("语言").waitFor()
      // What the console itself finds wrong is told in that language, too.
      await page.route(/\/v1\/products/, (route) => route.abort())
      await visit(page, site, "/console/products")
      await page.getByRole("alert").getByText("服务器无法访问").waitFor()
    },
    { locale: "zh-CN" }
  )

  inWindow(
    "a part of a page whose files do not come says so, and comes with the page",
    async ({ page, product, site }) => {
      await signIn(page, site)
      await visit(page, site, product)
      const files = /\/console\/assets\/(check|cron)-/
      const notice = page.getByRole("alert").filter({
        hasText: "The server is away, or has another version of the console."
      })
      await page.route(files, (route) => route.fulfill({ status: 404 }))
      await page.getByRole("link", { name: "Thing model" }).click()
      await notice.waitFor()
      await page.unroute(files)
      const loaded = page.waitForEvent("load")
      await notice.getByRole("button", { name: "Try again" }).click()
      await loaded
      await page.getByText("The model is valid.").waitFor()
      await visit(page, site, "/console/scenes/new")
      await page.route(files, (route) => route.fulfill({ status: 404 }))
      await page.getByLabel("Add a trigger").selectOption("trigger/cron")
      await page.getByRole("button", { name: "Add: Triggers" }).click()
      await notice.waitFor()
    }
  )

  inWindow(
    "the title of the page that asks for a key says so, in the language that was chosen",
    async ({ page, site }) => {
      await signIn(page, site)
      await visit(page, site, "/console/devices")
      await page.getByLabel("Language").selectOption("zh")
      await page.getByRole("button", { name: "退出登录" }).click()
      await page.getByRole("heading", { name: "登录" }).waitFor()
      await vi.waitFor(async () => assert.strictEqual(await page.title(), "登录 · 设备云"), 15_000)
    }
  )

  inWindow("events of a device go on beyond those that the API lists at once", async ({ device, page, site }) => {
    const [newest, first] = [Date.UTC(2026, 0, 1, 12), Date.UTC(2026, 0, 1, 12) - 1099]
    await page.route(/\/events\?limit=/, async (route) => {
      const query = new URL(route.request().url()).searchParams
      const last = Number(query.get("end") ?? newest)
      const results = Array.from(
        { length: Math.min(Number(query.get("limit")), last - first + 1) },
        (_, i) => ({ event_id: "user", time: last - i, value: newest - last + i })
      )
      await route.fulfill({ json: { code: 0, message: "success", data: { results } } })
    })
    await signIn(page, site)
    await visit(page, site, `${device}/events`)
    const rows = page.locator("tbody tr")
    const older = page.getByRole("button", { name: "Older events" })
    const counts = (count: number) => vi.waitFor(async () => assert.strictEqual(await rows.count(), count), 15_000)
    for (let count = 50; count < 1000; count += 50) {
      await counts(count)
      await older.click()
    }
    await counts(1000)
    await older.click()
    // It begins with the last of those before.
    await counts(50)
    assert.include(await rows.first().textContent(), "999")
    await older.click()
    await counts(100)
    await older.click()
    await counts(101)
    assert.include(await rows.last().textContent(), "1099")
    assert.strictEqual(await older.getAttribute("aria-disabled"), "true")
    await page.getByRole("button", { name: "To the newest events" }).click()
    await counts(50)
    assert.match((await rows.first().textContent())!, /\D0$/)
  })

  inWindow("the title of a window is not turned around by a name in it", async ({ call, page, site }) => {
    const { subscription_id } = await call("POST", "/subscriptions", { name: `Bills \u202e${Date.now()}` })
    await signIn(page, site)
    await visit(page, site, `/console/subscriptions/${subscription_id}`)
    await vi.waitFor(async () => assert.match(await page.title(), /^Bills \d+ · Device Cloud$/), 15_000)
  })

  inWindow(
    "windows of one thing tell by their titles which tab is shown",
    async ({ device, page, product, scene, site }) => {
      await signIn(page, site)
      for (
        const [path, title] of [
          [device, /^thermostat01 · Device Cloud$/],
          [`${device}/shadow`, /^Shadow · thermostat01 · Device Cloud$/],
          [`${product}/versions`, /^Versions · Thermostat · Device Cloud$/],
          [`${scene}/executions`, /^Executions · Too hot · Device Cloud$/],
          ["/console/devices?view=groups", /^Groups · Devices · Device Cloud$/]
        ] as const
      ) {
        await visit(page, site, path)
        await vi.waitFor(async () => assert.match(await page.title(), title), 15_000)
      }
    }
  )

  inWindow("buttons that copy say what", async ({ connect, device, page, pages, product, site }) => {
    await signIn(page, site)
    for (const path of [product, device, connect, pages.find((path) => path.includes("/mesh/"))!]) {
      await visit(page, site, path)
      const buttons = await page.locator("main").getByRole("button", { name: /^Copy/ }).all()
      const names = await Promise.all(
        buttons.map(async (button) => await button.getAttribute("aria-label") ?? await button.textContent())
      )
      assert.isAbove(names.length, 1, path)
      assert.strictEqual(new Set(names).size, names.length, `${path}: ${names.join()}`)
    }
  })

  inWindow("a button in a row of a campaign names its device", async ({ page, pages, site }) => {
    await signIn(page, site)
    await visit(page, site, pages.find((path) => path.includes("/campaigns/"))!)
    const names = await page.getByRole("table").getByRole("button", { name: "Cancel" }).evaluateAll((buttons) =>
      buttons.map((button) => button.ariaLabel)
    )
    assert.isAbove(names.length, 1)
    assert.strictEqual(new Set(names).size, names.length)
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
    const refused = toldWhy(page)
    await context.request.delete(`${site}/openapi/v1/browser-sessions/current`, {
      headers: { "x-csrf-protection": "1" }
    })
    await page.getByText(/^Your session has ended/).waitFor()
    await refused
    const asked: Array<string> = []
    page.on("request", (request) => asked.push(request.url()))
    for (let second = 0; second < 30; second++) await page.clock.runFor(1000)
    assert.deepStrictEqual(asked, [])
    assert.strictEqual(await lost(page).count(), 0)
    // It follows the device again when somebody has signed in.
    const again = streamed(page)
    await page.getByLabel("Access key").fill(ownerKey)
    await page.getByRole("button", { name: "Sign in" }).click()
    await page.clock.runFor(5000)
    assert.strictEqual((await again).status(), 200)
  })

  inWindow("ages and plots are those of the server, whatever the clock of the browser says", async (window) => {
    const { device, page, post, site } = window
    const day = 86_400_000
    await post({ Target: 3 })
    await signIn(page, site)
    const farFromNow = (time: number) => Math.abs(time - Date.now()) > day / 2
    for (const off of [-day, day]) {
      await page.clock.install({ time: Date.now() + off })
      const drawn = page.waitForRequest(/\/history\/query$/)
      await page.goto(`${site}${device}/data?p=Target&range=hour`)
      assert.isFalse(farFromNow((await drawn).postDataJSON().end))
      await visit(page, site, device)
      await page.getByText("just now").first().waitFor()
      const counted = page.waitForRequest(/\/activity\?/)
      await page.goto(`${site}/console`)
      assert.isFalse(farFromNow(Number(new URL((await counted).url()).searchParams.get("to"))))
    }
  })

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
})
