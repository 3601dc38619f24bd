/**
 * The console in Chromium, on a server of its own.
 */
import { Server, ServerConfig } from "@device-cloud/server"
import { ownerKey } from "@device-cloud/testing/http"
import { assert } from "@effect/vitest"
import { Effect, Layer, type Scope } from "effect"
import { type Browser, type BrowserContext, chromium, type Page, type Response } from "playwright-core"
import { chromiumPath } from "../../../vitest.browser.ts"

/** `npm test` says so in one line when there is none. */
export const hasBrowser = chromiumPath !== undefined

export const launch: Effect.Effect<Browser, never, Scope.Scope> = Effect.acquireRelease(
  Effect.promise(() => chromium.launch({ executablePath: chromiumPath!, args: ["--no-sandbox", "--disable-gpu"] })),
  (browser) => Effect.promise(() => browser.close())
)

/** A window, in English unless `options` say otherwise. What the page throws fails the test. */
export const open = (
  browser: Browser,
  options: Parameters<Browser["newContext"]>[0] = {}
): Effect.Effect<{ readonly page: Page; readonly context: BrowserContext; readonly errors: Array<string> }> =>
  Effect.promise(async () => {
    const context = await browser.newContext({ locale: "en-US", viewport: { width: 1280, height: 900 }, ...options })
    const page = await context.newPage()
    page.setDefaultTimeout(15_000)
    const errors: Array<string> = []
    page.on("pageerror", (error) => errors.push(error.stack ?? error.message))
    page.on("console", (message) => {
      if (/content security policy/i.test(message.text())) errors.push(message.text())
    })
    return { page, context, errors }
  })

/** The reference server with the given variables, until its scope closes. */
export const serve = (variables: Readonly<Record<string, string>>): Effect.Effect<void, unknown, Scope.Scope> =>
  Effect.gen(function*() {
    const scope = yield* Effect.scope
    const config = yield* ServerConfig.fromEnv({
      MQTTS_PORT: "0",
      ADMIN_KEY: ownerKey,
      LOG_LEVEL: "None",
      ...variables
    })
    yield* Layer.buildWithScope(Layer.fresh(Server.layer(config)), scope)
  })

/** Signs in with an access key, as the form of the console does. Opens no page. */
export const signIn = async (page: Page, site: string, key: string = ownerKey): Promise<void> => {
  const response = await page.context().request.post(`${site}/openapi/v1/browser-sessions`, {
    headers: { "x-csrf-protection": "1" },
    data: { access_key: key }
  })
  assert.isTrue(response.ok(), await response.text())
}

/** Signs in at the form of the console, and stays on the page that follows. */
export const signInAtForm = async (page: Page, site: string, key: string = ownerKey): Promise<void> => {
  await page.goto(`${site}/console`)
  await page.getByLabel("Access key").fill(key)
  await page.getByRole("button", { name: "Sign in" }).click()
  await page.getByRole("button", { name: "Sign out" }).waitFor()
}

export const isStream = (response: Response): boolean => response.url().includes("/openapi/v1/events?")

/** The next stream of events that the page opens. */
export const streamed = (page: Page): Promise<Response> => page.waitForResponse(isStream)
