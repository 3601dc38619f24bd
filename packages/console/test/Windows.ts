/**
 * Tests of pages of the console, each in a window of its own.
 */
import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { BrowserContext, Page } from "playwright-core"
import { share } from "../../../vitest.storages.ts"
import { hasBrowser, open } from "./ConsolePage.ts"
import { Furnished } from "./Furnished.ts"

interface Window extends Readonly<Furnished["Service"]> {
  readonly context: BrowserContext
  readonly page: Page
}

/** Runs a test in a window of its own, whose page may throw nothing. */
type InWindow = (
  name: string,
  test: (window: Window) => Promise<void>,
  options?: Parameters<typeof open>[1]
) => void

/** The tests of a file, which share a server and a browser. There are none without a browser. */
export const inBrowser = (define: (inWindow: InWindow) => void) =>
  describe.runIf(hasBrowser)("the console", () => {
    layer(Furnished.layer, { excludeTestServices: true, timeout: "120 seconds" })(
      "in a browser",
      (it) =>
        define((name, test, options = {}) =>
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
        )
    )
  })

/**
 * Opens a page: `npm test` by a link in the console, `npm run fuzz` by its address. It
 * is there when this returns.
 */
export const visit = async (page: Page, site: string, path: string) => {
  if (share > 1 && page.url().startsWith(site)) await page.evaluate(follow(path))
  else await page.goto(`${site}${path}`)
  await page.locator("main:not([aria-busy=true]) h1").waitFor()
  await page.locator("main:not(:has(.loading))").waitFor()
}

/** Follows a link. Ends when the console has taken up the address, and has perhaps begun to load the page. */
export const follow = (path: string) =>
  `new Promise((resolve) => {
    const link = document.createElement("a")
    link.href = ${JSON.stringify(path)}
    document.body.append(link)
    link.click()
    link.remove()
    requestAnimationFrame(() => requestAnimationFrame(resolve))
  })`

export const twoFrames = (page: Page) =>
  page.evaluate("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))")
