/**
 * Where the focus of the keyboard goes on.
 */
import { ownerKey } from "@device-cloud/testing/http"
import { assert } from "@effect/vitest"
import type { Page } from "playwright-core"
import { vi } from "vitest"
import { signIn } from "./ConsolePage.ts"
import { inBrowser, twoFrames, visit } from "./Windows.ts"

/** Presses a button with the keyboard. */
const press = async (page: Page, name: string) => {
  await page.getByRole("button", { name, exact: true }).focus()
  await page.keyboard.press("Enter")
}

/** The name of what has the focus. */
const focused = (page: Page) =>
  page.evaluate<string>("(document.activeElement.ariaLabel ?? document.activeElement.textContent).trim()")

inBrowser((inWindow) => {
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

  inWindow("what gets the focus is not behind what stays in view", async ({ page, site }) => {
    await signIn(page, site)
    /** Goes on with a key, and tells what of `places` had the focus but could not be seen. */
    const unseen = async (places: string, key: string) => {
      const found: Array<string> = []
      while (await page.evaluate<boolean>(`document.activeElement.matches(${JSON.stringify(places)})`)) {
        const isSeen = await page.evaluate<boolean>(`{
          const element = document.activeElement
          const { bottom, left, top, width } = element.getBoundingClientRect()
          const heights = [top + 3, (top + bottom) / 2, bottom - 3]
          heights.some((y) => element.contains(document.elementFromPoint(left + width / 2, y)))
        }`)
        if (!isSeen) found.push(await page.evaluate<string>("document.activeElement.outerHTML"))
        await page.keyboard.press(key)
      }
      return found
    }
    // At the smaller width, a name that is moved into view leaves a strip of the box before it.
    for (const width of [320, 300]) {
      await page.setViewportSize({ width, height: 640 })
      await visit(page, site, "/console/devices")
      await page.locator("td input").last().focus()
      assert.deepStrictEqual(await unseen("td *", "Shift+Tab"), [])
    }
    await visit(page, site, "/console/subscriptions")
    await press(page, "New subscription")
    await page.locator("dialog :is(input, select, textarea)").first().focus()
    assert.deepStrictEqual(await unseen("dialog :is(input, select, textarea)", "Tab"), [])
  })

  inWindow("the button that chooses a file shows that it has the focus", async ({ page, product, site }) => {
    await signIn(page, site)
    await visit(page, site, `${product}/model`)
    await page.getByRole("button", { name: "Export" }).focus()
    await page.keyboard.press("Tab")
    const outline = "getComputedStyle(document.activeElement.closest('label')).outlineStyle"
    assert.strictEqual(await page.evaluate(outline), "solid")
  })

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
      await page.getByRole("button", { name: "Add: Actions" }).click()
    }
    await page.getByRole("button", { name: /^Move up: 3/ }).focus()
    for (const place of [2, 1, 1]) {
      await page.keyboard.press("Enter")
      await page.getByRole("heading", { name: `${place}. Call an address` }).waitFor()
      await twoFrames(page)
      assert.strictEqual(await focused(page), `Move up: ${place}. Call an address`)
    }
  })

  inWindow(
    "the last tag that is removed leaves the focus to the button that adds one",
    async ({ device, page, site }) => {
      await signIn(page, site)
      await visit(page, site, device)
      await press(page, "Edit tags")
      await page.getByRole("dialog").getByLabel("Name 1").fill("room")
      await press(page, "Remove tag 1")
      await page.getByLabel("Name 1").waitFor({ state: "detached" })
      assert.strictEqual(await focused(page), "Add a tag")
    }
  )

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

  inWindow("who does something with selected rows goes on in their table", async ({ page, site }) => {
    await signIn(page, site)
    await visit(page, site, "/console/devices")
    const toolbar = page.getByRole("toolbar")
    const select = () => page.locator("tbody input").first().check()
    await select()
    await press(page, "Enable")
    await toolbar.waitFor({ state: "detached" })
    await twoFrames(page)
    assert.strictEqual(await focused(page), "Devices")
    await select()
    await press(page, "Disable")
    await page.getByRole("dialog").getByRole("button", { name: "Disable" }).press("Enter")
    await page.getByRole("dialog").waitFor({ state: "detached" })
    await twoFrames(page)
    assert.deepStrictEqual([await focused(page), await toolbar.count()], ["Devices", 0])
    await select()
    await press(page, "Enable")
    await toolbar.waitFor({ state: "detached" })
  })

  inWindow("the menu of a narrow window closes when it is done with, and the focus goes on", async ({ page, site }) => {
    await signIn(page, site)
    await page.setViewportSize({ width: 360, height: 640 })
    await visit(page, site, "/console/devices?page=2")
    const menu = page.getByRole("button", { name: "Menu" })
    const isOpen = () => menu.getAttribute("aria-expanded")
    await menu.press("Enter")
    await menu.press("Escape")
    assert.deepStrictEqual([await isOpen(), await focused(page)], ["false", "Menu"])
    await menu.press("Enter")
    await page.getByRole("link", { name: "Devices", exact: true }).first().press("Enter")
    await page.getByText("Page 1 of 2", { exact: true }).waitFor()
    assert.deepStrictEqual([await isOpen(), await page.locator("main:focus").count()], ["false", 1])
  })

  inWindow(
    "who asks for earlier entries keeps the focus, also when there are no more",
    async ({ device, page, site }) => {
      const isOff = (name: string) => page.getByRole("button", { name, exact: true }).getAttribute("aria-disabled")
      /** The list at an address has two pages that are equal. */
      const pagesOf = (address: RegExp, cursor: string, next: string) =>
        page.route(address, async (route) => {
          const url = new URL(route.request().url())
          const isFirst = !url.searchParams.has(cursor)
          url.searchParams.delete(cursor)
          const response = await route.fetch({ url: url.href })
          const body = await response.json()
          body.data[next] = isFirst ? "9" : ""
          await route.fulfill({ response, json: body })
        })
      await pagesOf(/\/openapi\/v1\/audit\?/, "cursor", "next_cursor")
      await pagesOf(/\/presence\?/, "before", "cursor")
      await page.route(/\/events\?limit=/, async (route) => {
        const limit = Number(new URL(route.request().url()).searchParams.get("limit"))
        const results = Array.from(
          { length: Math.min(limit, 70) },
          (_, time) => ({ event_id: "user", time, value: time })
        )
        await route.fulfill({ json: { code: 0, message: "ok", data: { results } } })
      })
      await signIn(page, site)
      for (
        const [path, older, newest] of [
          ["/console/audit", "Older entries", "To the newest"],
          [device, "Earlier", "The latest"]
        ] as const
      ) {
        await visit(page, site, path)
        await press(page, older)
        await vi.waitFor(async () =>
          assert.deepStrictEqual([await isOff(older), await isOff(newest)], ["true", "false"])
        )
        await twoFrames(page)
        assert.strictEqual(await focused(page), older)
        await press(page, newest)
        await vi.waitFor(async () =>
          assert.deepStrictEqual([await isOff(older), await isOff(newest)], ["false", "true"])
        )
        await twoFrames(page)
        assert.strictEqual(await focused(page), newest)
      }
      await visit(page, site, `${device}/events`)
      await press(page, "Older events")
      await vi.waitFor(async () => assert.strictEqual(await page.locator("tbody tr").count(), 70))
      await twoFrames(page)
      assert.deepStrictEqual([await focused(page), await isOff("Older events")], ["Older events", "true"])
    }
  )
})
